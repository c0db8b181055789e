//! Limits for each limit key of a kind, and turns between the keys.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use punctual_jobs::{Job, JobChange, JobError, JobLimit, JobRun, Jobs, Priority};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, Hold, LONG, Note, SHORT, Scene, World, standard};

#[derive(Serialize, Deserialize)]
struct Counted {
    tenant: u32,
}

impl Job for Counted {
    const NAME: &'static str = "counted";
}

/// Says for which tenant it is, how many of it run beside it, and how many of all; and takes some time.
fn counted(scene: &Scene) -> Jobs {
    let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
    let running = Arc::new(Mutex::new(HashMap::<u32, u32>::new()));
    let handler = move |run: &JobRun, job: Counted| {
        let (of_tenant, of_all) = {
            let mut running = running.lock().unwrap();
            *running.entry(job.tenant).or_default() += 1;
            (running[&job.tenant], running.values().sum::<u32>())
        };
        punctual::CancellationToken::with_clock(clock.clone()).sleep(SHORT / 4)?;
        *running.lock().unwrap().get_mut(&job.tenant).unwrap() -= 1;
        log.say(format!("{} {of_tenant} {of_all}", job.tenant));
        if run.id.0 % 3 == 0 && run.attempt == 1 {
            return Err(JobError::new("not yet"));
        }
        Ok(())
    };
    standard(scene).on(handler).backoff::<Counted>(punctual::Backoff::constant(SHORT / 10))
}

/// Runs jobs of three tenants, of which the first has no limit key, and some have an ordering key. Returns the most that ran at
/// once of each tenant, and of all.
fn most_at_once<W: World>(limit: impl Fn(Jobs) -> Jobs) -> (Vec<u32>, u32) {
    let world = W::open(|scene| limit(counted(scene)));
    let mut runs = 0;
    for number in 0..24 {
        let tenant = number % 3;
        let mut job = world.queue().now(Counted { tenant });
        if tenant > 0 {
            job = job.limit_key(format!("tenant/{tenant}"));
        }
        if number % 5 == 0 {
            job = job.ordering_key((number % 4).to_string());
        }
        let id = job.enqueue().unwrap().id.0;
        runs += if id % 3 == 0 { 2 } else { 1 };
    }
    world.until("all", || world.log().len() == runs);
    let lines = world.log().lines();
    let lines: Vec<Vec<u32>> =
        lines.iter().map(|it| it.split(' ').map(|it| it.parse().unwrap()).collect()).collect();
    let most = |tenant| lines.iter().filter(|it| it[0] == tenant).map(|it| it[1]).max().unwrap();
    ((0..3).map(most).collect(), lines.iter().map(|it| it[2]).max().unwrap())
}

fn for_each_key(most: u32) -> JobLimit {
    JobLimit::at_once(most).for_each_key()
}

pub(crate) fn of_each_limit_key_so_many_run_at_once<W: World>() {
    let (of_tenant, of_all) = most_at_once::<W>(|it| it.limit::<Counted>(for_each_key(1)));
    assert_eq!(of_tenant, [1, 1, 1]);
    assert!(of_all > 1, "of different keys at the same time");
    let (of_tenant, _) = most_at_once::<W>(|it| it.limit::<Counted>(for_each_key(2)));
    // There are four threads for three keys: not each of them may have had two.
    assert_eq!(of_tenant.iter().max(), Some(&2), "{of_tenant:?}");
}

pub(crate) fn a_limit_of_the_kind_and_one_of_each_key_hold_together<W: World>() {
    let both =
        |it: Jobs| it.limit::<Counted>(for_each_key(2)).limit::<Counted>(JobLimit::at_once(3));
    let (of_tenant, of_all) = most_at_once::<W>(both);
    assert!(of_tenant.iter().all(|most| *most <= 2), "{of_tenant:?}");
    assert!((2..=3).contains(&of_all), "{of_all}");
}

/// A job of the limit key `a` holds, and one may run of each.
fn held<W: World>() -> W {
    let world = W::open(|scene| {
        let jobs = standard(scene).limit::<Hold>(for_each_key(1));
        jobs.limit::<Flaky>(for_each_key(1)).backoff::<Flaky>(punctual::Backoff::constant(HOUR))
    });
    world.queue().now(Hold::new("a")).limit_key("a").key("first").enqueue().unwrap();
    world.until("its begin", || world.log().has("a begins"));
    world
}

pub(crate) fn a_limit_key_that_is_full_holds_up_no_other<W: World>() {
    let world = held::<W>();
    for _ in 0..8 {
        world.queue().now(Hold::new("a")).limit_key("a").enqueue().unwrap();
    }
    world.queue().now(Hold::new("b")).limit_key("b").enqueue().unwrap();
    world.queue().now(Hold::new("none")).enqueue().unwrap();
    world.until("the others", || world.log().has("b begins") && world.log().has("none begins"));
    world.queue().now(Hold::new("none")).enqueue().unwrap();
    world.queue().after(SHORT, Hold::new("c")).limit_key("c").enqueue().unwrap();
    world.until("one that is due later", || world.log().has("c begins"));
    assert_eq!(world.log().len(), 4, "{:?}", world.log().lines());
    world.scene().gate.cancel();
    world.until("all", || world.log().len() == 26);
}

fn begins<W: World>(world: &W) -> Vec<String> {
    let lines = world.log().lines().into_iter();
    lines.filter_map(|it| it.strip_suffix(" begins").map(str::to_owned)).collect()
}

/// Opens a queue of which one job of the kind runs at a time, and one holds whose limit key is `b`.
fn one_at_a_time<W: World>() -> W {
    let world = W::open(|scene| standard(scene).limit::<Hold>(JobLimit::at_once(1)));
    world.queue().now(Hold::new("b")).limit_key("b").enqueue().unwrap();
    world.until("its begin", || world.log().has("b begins"));
    world
}

pub(crate) fn limit_keys_take_turns<W: World>() {
    let world = one_at_a_time::<W>();
    for key in ["a", "a", "a", "a", "b", "b", "", "", "c"] {
        let job = world.queue().now(Hold::new(key));
        let job = if key.is_empty() { job } else { job.limit_key(key) };
        job.enqueue().unwrap();
    }
    world.scene().gate.cancel();
    world.until("all", || world.log().len() == 20);
    assert_eq!(begins(&world), ["b", "c", "", "a", "b", "", "a", "b", "a", "a"]);
}

pub(crate) fn a_priority_is_before_the_turn_of_a_limit_key<W: World>() {
    let world = one_at_a_time::<W>();
    let send = |text: &str, key, priority| {
        let job = world.queue().now(Hold::new(text)).limit_key(key);
        job.priority(priority).enqueue().unwrap();
    };
    send("low c", "c", Priority::Low);
    send("normal c", "c", Priority::Normal);
    send("high a", "a", Priority::High);
    send("high a", "a", Priority::High);
    send("high b", "b", Priority::High);
    send("normal a", "a", Priority::Normal);
    world.scene().gate.cancel();
    world.until("all", || world.log().len() == 14);
    let expected = ["b", "high a", "high b", "high a", "normal c", "normal a", "low c"];
    assert_eq!(begins(&world), expected);
}

pub(crate) fn a_waiting_job_of_a_limit_key_can_be_changed<W: World>() {
    let world = held::<W>();
    let send = |key: &str| {
        let job = world.queue().now(Hold::new(key)).limit_key("a");
        job.key(key).enqueue().unwrap()
    };
    send("cancelled");
    send("moved");
    send("replaced");
    let (discarded, removed, retried) = (send("discarded"), send("removed"), send("retried"));
    assert_eq!(world.queue().cancel("cancelled").unwrap(), JobChange::Done);
    assert_eq!(world.queue().discard(discarded.id).unwrap(), JobChange::Done);
    assert_eq!(world.queue().remove(removed.id).unwrap(), JobChange::Done);
    world.queue().retry(retried.id).unwrap();
    assert!(
        world
            .queue()
            .now(Note::new(""))
            .limit_key("b")
            .unique("moved")
            .enqueue()
            .unwrap()
            .was_skipped
    );
    assert_eq!(world.queue().reschedule("moved", 3 * SHORT).unwrap(), JobChange::Done);
    world
        .queue()
        .now(Hold::new("has another key"))
        .limit_key("b")
        .key("replaced")
        .enqueue()
        .unwrap();
    world.until("the replaced", || world.log().has("has another key begins"));
    world.settle();
    assert_eq!(begins(&world), ["a", "has another key"]);
    world.scene().gate.cancel();
    world.until("the moved", || world.log().has("moved ends"));
    assert_eq!(begins(&world)[2..], ["retried", "moved"]);
    assert!(!world.log().has("discarded begins"));
}

pub(crate) fn a_job_that_is_cancelled_or_fails_gives_its_key_slot_back<W: World>() {
    let world = held::<W>();
    world.queue().now(Hold::new("second")).limit_key("a").enqueue().unwrap();
    assert_eq!(world.queue().cancel("first").unwrap(), JobChange::Signalled);
    world.until("the second", || world.log().has("second begins"));
    world.queue().now(Hold::that_fails("third")).limit_key("a").enqueue().unwrap();
    world.queue().now(Hold::new("fourth")).limit_key("a").enqueue().unwrap();
    world.scene().gate.cancel();
    world.until("the fourth", || world.log().has("fourth ends"));
}

pub(crate) fn a_job_between_two_attempts_has_no_key_slot<W: World>() {
    let world = held::<W>();
    world.queue().now(Flaky::new("x", 1)).limit_key("f").key("x").enqueue().unwrap();
    world.until("an attempt", || world.log().has("x 1"));
    world.queue().now(Flaky::new("y", 0)).limit_key("f").enqueue().unwrap();
    world.until("the other one", || world.log().has("y 1"));
    assert_eq!(world.queue().reschedule("x", SHORT).unwrap(), JobChange::Done);
    world.until("the next attempt", || world.log().has("x 2"));
    assert_eq!(world.log().lines(), ["a begins", "x 1", "y 1", "x 2"]);
}

pub(crate) fn a_limit_key_and_an_ordering_key_hold_together<W: World>() {
    let world = held::<W>();
    let hold = |text: &str, limit: &str, order: &str| {
        let job = world.queue().now(Hold::new(text)).limit_key(limit);
        job.ordering_key(order).key(text).enqueue().unwrap();
    };
    // More of these than there are workers, before one whose limit key is free.
    for order in ["1", "2", "3", "4", "5", "6"] {
        hold(order, "a", order);
    }
    hold("b", "b", "9");
    // Later than the one before it, which otherwise may come to the line of its ordering key second.
    let behind = world.queue().after(SHORT, Hold::new("behind")).limit_key("c");
    behind.ordering_key("1").enqueue().unwrap();
    world.until("the other", || world.log().has("b begins"));
    world.settle();
    assert_eq!(begins(&world), ["a", "b"], "a job waits for its turn and its slot");
    assert_eq!(world.queue().cancel("1").unwrap(), JobChange::Done);
    world.until("the next of the key", || world.log().has("behind begins"));
    world.scene().gate.cancel();
    world.until("all", || begins(&world).len() == 8 && world.log().len() == 17);
}

pub(crate) fn a_kind_without_a_limit_takes_no_notice_of_limit_keys<W: World>() {
    let world = W::open(standard);
    for (text, delay) in [("1", 0), ("2", 0), ("later", 1)] {
        let job = world.queue().after(delay * SHORT, Hold::new(text));
        job.limit_key("a").enqueue().unwrap();
    }
    world.until("all begin", || begins(&world).len() == 3);
    world.scene().gate.cancel();
    world.until("all end", || world.log().len() == 6);
}

pub(crate) fn a_shutdown_releases_what_waits_for_a_key_slot<W: World>() {
    let world = held::<W>();
    world.queue().now(Hold::new("second")).limit_key("a").enqueue().unwrap();
    let report = world.shutdown(Duration::ZERO, LONG);
    assert!(report.still_running.is_empty(), "{report}");
    assert_eq!(world.log().lines(), ["a begins", "a is stopped"]);
}
