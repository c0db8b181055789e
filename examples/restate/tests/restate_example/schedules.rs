//! What schedules do while the server and the service are killed.

use std::{collections::BTreeSet, fs};

use restate::Status;
use serde_json::json;

use crate::{patience::eventually, world::World};

/// The keys of all ticks from the first to the last that have ended, of a schedule that runs each second.
fn keys(name: &str, status: &Status) -> BTreeSet<String> {
    let (first, last) = status.span.expect("some ticks");
    (first..=last).map(|moment| format!("{name}.{}.{moment}", status.revision)).collect()
}

/// The ticks of which there is a file.
fn notes(world: &World, name: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(world.notes()).expect("the notes");
    let names =
        entries.map(|entry| entry.expect("a file").file_name().into_string().expect("text"));
    names.filter(|file| file.starts_with(&format!("{name}."))).collect()
}

/// Waits until so many more ticks have ended.
fn go_on(world: &World, name: &str, more: u64) {
    let before = world.status(name).ticks;
    eventually("ticks go on", || world.status(name).ticks >= before + more);
}

/// Nothing was lost: every second from the first to the last tick has its file. Nothing came twice: Restate has counted as many
/// as there are seconds, and no more runs were begun than that, but for one for each kill.
fn assert_each_once(world: &World, name: &str, kills: usize) {
    let status = world.remove(name);
    let keys = keys(name, &status);
    assert_eq!(status.ticks, keys.len() as u64, "{status:?}");
    assert_eq!(status.failed, 0, "{status:?}");
    let noted = notes(world, name);
    assert!(keys.is_subset(&noted), "lost: {:?}", &keys - &noted);
    let begun = world.begun().into_iter().filter(|key| keys.contains(key)).count();
    assert!((keys.len()..=keys.len() + kills).contains(&begun), "{begun} runs, {status:?}");
}

#[test]
fn no_tick_is_lost_or_comes_twice_while_both_are_killed() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.put(name, "note");
    }
    let mut kills = 0;
    for round in 0..3 {
        go_on(&world, "a", 1);
        world.kill_service();
        world.start_service();
        go_on(&world, "b", 1);
        world.kill_server();
        world.start_server();
        go_on(&world, "c", 1);
        // Both, in either order.
        world.kill_server();
        world.kill_service();
        if round % 2 == 0 {
            world.start_service();
            world.start_server();
        } else {
            world.start_server();
            world.start_service();
        }
        // As each service does when it starts: nothing that runs already is changed.
        world.put("a", "note");
        kills += 4;
    }
    for name in ["a", "b", "c"] {
        go_on(&world, name, 2);
        assert_each_once(&world, name, kills);
    }
}

#[test]
fn a_body_that_is_cut_off_runs_again_for_the_same_tick() {
    let mut world = World::new();
    world.put("slow", "wait");
    eventually("the body has begun", || !world.begun().is_empty());
    world.kill_service();
    world.start_service();
    eventually("it has begun again", || world.begun().len() == 2);
    world.kill_server();
    world.start_server();
    eventually("and once more", || world.begun().len() == 3);
    let begun = world.begun();
    assert!(begun.iter().all(|key| *key == begun[0]), "{begun:?}");
    assert_eq!(world.status("slow").ticks, 0, "no run has come to its end");
    fs::write(world.notes().join("go"), "").expect("a file");
    go_on(&world, "slow", 2);
    assert_each_once(&world, "slow", 2);
}

#[test]
fn a_body_that_fails_ends_its_tick_and_not_the_schedule() {
    let world = World::new();
    world.put("broken", "fail");
    eventually("two ticks have failed", || world.status("broken").failed >= 2);
    let status = world.remove("broken");
    assert_eq!(status.ticks, status.failed, "{status:?}");
    assert_eq!(keys("broken", &status).len() as u64, status.ticks, "{status:?}");
}

#[test]
fn a_schedule_that_was_removed_ends_its_old_ticks() {
    let world = World::new();
    world.put("x", "note");
    go_on(&world, "x", 1);
    let before = world.remove("x");
    let removed = world.status("x");
    assert_eq!((removed.plan, removed.revision), (None, before.revision + 1));
    world.put("x", "note");
    go_on(&world, "x", 1);
    let after = world.remove("x");
    assert_eq!(after.revision, before.revision + 2);
    let (last, first) = (before.span.expect("a tick").1, after.span.expect("a tick").0);
    assert!(first > last, "{before:?}, {after:?}");
    let stray = world.begun();
    assert!(stray.iter().all(|key| !key.starts_with(&format!("x.{}.", removed.revision))));
}

#[test]
fn what_can_never_run_is_refused() {
    let world = World::new();
    let plan =
        |expression, zone, body| json!({ "expression": expression, "zone": zone, "body": body });
    for (plan, message) in [
        (plan("0 0 30 2 *", "UTC", "note"), "no day of any year"),
        (plan("0 9 * * *", "Europe/Atlantis", "note"), "Europe/Atlantis"),
        (plan("0 9 * * *", "UTC", "absent"), "absent"),
    ] {
        let refused = world.try_put("y", &plan).expect_err("it is refused");
        assert!(refused.contains(message) && refused.contains(" 400 "), "{refused}");
    }
    let tick = json!({ "schedule": "y", "revision": 0, "moment": 0 });
    world.tick_from_outside("y", &tick).expect_err("a schedule alone calls it");
    assert_eq!(world.status("y"), Status::default());
}
