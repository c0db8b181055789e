//! How many tasks of a group run at once, in which order, and what that leaves to others.

use punctual::{ConfigError, RejectionReason};

use super::support::{Busy, Overlap, assert_sound, noting};
use crate::support::{Counter, Log, eventually, manual, ms};

/// Tasks of a group with a limit of one never overlap, and run in the order in which they are due, and then
/// of their submission, however many workers there are.
#[test]
fn one_at_a_time_and_in_order() {
    let (clock, executor) = manual(4);
    let group = executor.group("one").limit(1).build().unwrap();
    let (log, overlap) = (Log::new(), Overlap::default());
    for number in 0..50_u64 {
        let (log, overlap) = (log.clone(), overlap.clone());
        let due = number % 5;
        group
            .task()
            .schedule(ms(10 - due), move || overlap.run(|| log.push((10 - due, number))))
            .unwrap();
    }
    clock.advance(ms(20));
    clock.run_until_idle();
    let mut expected: Vec<_> = (0..50).map(|number| (10 - number % 5, number)).collect();
    expected.sort_unstable();
    assert_eq!((log.entries(), overlap.most()), (expected, 1));
    assert_sound(group.statistics());
}

/// M172: as many run as the limit says, and the next when one of them has ended.
#[test]
fn as_many_as_the_limit_says() {
    let (_clock, executor) = manual(4);
    let group = executor.group("two").limit(2).build().unwrap();
    let (a, b) = (Busy::start(&group), Busy::start(&group));
    let (c, c_started) = Busy::submit(&group);
    let (d, d_started) = Busy::submit(&group);
    eventually("both wait", || group.statistics().waiting == 2);
    assert_eq!((group.statistics().active, executor.statistics().active), (2, 2));
    b.end();
    c_started.wait_for(1);
    eventually("one waits", || group.statistics().waiting == 1);
    assert_eq!(d_started.get(), 0);
    a.end();
    d_started.wait_for(1);
    c.end();
    d.end();
    assert_eq!(group.statistics().completed, 4);
}

/// A task that waits for its group occupies no worker, and others that are due later pass it.
#[test]
fn others_are_not_stopped() {
    let (clock, executor) = manual(2);
    let group = executor.group("one").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let log = Log::new();
    for number in 0..20 {
        noting(&group, &log, ms(1), number);
    }
    clock.advance(ms(5));
    assert_eq!(executor.submit(|| "passes").unwrap().join().unwrap(), "passes");
    eventually("all wait", || group.statistics().waiting == 20);
    assert_eq!((log.entries().len(), executor.pending_count()), (0, 20));
    busy.end();
    clock.run_until_idle();
    assert_eq!(log.entries(), (0..20).collect::<Vec<_>>());
}

/// Two groups do not limit each other.
#[test]
fn groups_are_apart() {
    let (_clock, executor) = manual(2);
    let (one, other) = (
        executor.group("a").limit(1).build().unwrap(),
        executor.group("b").limit(1).build().unwrap(),
    );
    let (a, b) = (Busy::start(&one), Busy::start(&other));
    a.end();
    b.end();
}

/// M175: a limit that is raised lets tasks start at once; one that is lowered interrupts nothing, and holds from then on.
#[test]
fn the_limit_is_changed() {
    let (_clock, executor) = manual(4);
    let group = executor.group("g").limit(1).build().unwrap();
    let a = Busy::start(&group);
    let (b, b_started) = Busy::submit(&group);
    let (c, c_started) = Busy::submit(&group);
    let (d, d_started) = Busy::submit(&group);
    eventually("three wait", || group.statistics().waiting == 3);
    group.set_limit(3).unwrap();
    b_started.wait_for(1);
    c_started.wait_for(1);
    assert_eq!((group.limit(), group.statistics().active, d_started.get()), (3, 3, 0));
    group.set_limit(1).unwrap();
    a.end();
    b.end();
    assert_eq!((group.statistics().active, d_started.get()), (1, 0));
    c.end();
    d_started.wait_for(1);
    d.end();
}

/// M176: the workers that are reserved stay free for others; if the pool grows, the group does.
#[test]
fn workers_are_reserved() {
    let (_clock, executor) = manual(3);
    let group = executor.group("batch").reserve(1).build().unwrap();
    let (a, b) = (Busy::start(&group), Busy::start(&group));
    let (c, c_started) = Busy::submit(&group);
    assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
    assert_eq!((c_started.get(), group.statistics().active), (0, 2));
    executor.set_core_pool_size(4);
    c_started.wait_for(1);
    let (d, d_started) = Busy::submit(&group);
    eventually("it waits", || group.statistics().waiting == 1);
    group.set_reserved(0);
    d_started.wait_for(1);
    assert_eq!(group.reserved(), 0);
    [a, b, c, d].into_iter().for_each(Busy::end);
}

/// One task may run, however many workers are reserved, and in a pool that has shrunk.
#[test]
fn one_may_always_run() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").reserve(7).build().unwrap();
    assert_eq!(group.task().submit(|| 1).unwrap().join().unwrap(), 1);
    let group = executor.group("g").reserve(1).build().unwrap();
    executor.set_core_pool_size(1);
    assert_eq!(group.task().submit(|| 2).unwrap().join().unwrap(), 2);
    executor.set_core_pool_size(0);
    assert_eq!(group.task().submit(|| 3).unwrap().join().unwrap(), 3);
}

/// A pool that shrinks has its groups shrink.
#[test]
fn a_smaller_pool_has_a_smaller_group() {
    let (_clock, executor) = manual(3);
    let group = executor.group("g").reserve(1).build().unwrap();
    let (a, b) = (Busy::start(&group), Busy::start(&group));
    executor.set_core_pool_size(2);
    let (c, c_started) = Busy::submit(&group);
    a.end();
    assert_eq!(executor.submit(|| ()).unwrap().join().unwrap(), ());
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!(c_started.get(), 0);
    b.end();
    c_started.wait_for(1);
    c.end();
}

/// A limit of zero is an error, and changes nothing.
#[test]
fn a_limit_of_zero_is_refused() {
    let (_clock, executor) = manual(1);
    assert!(matches!(executor.group("g").limit(0).build(), Err(ConfigError::ZeroLimit)));
    let group = executor.group("g").limit(3).build().unwrap();
    let error = group.set_limit(0).unwrap_err();
    assert!(error.to_string().contains("pause the group"), "{error}");
    assert_eq!(group.limit(), 3);
}

/// A task cannot be put into a group of another executor. Its closure is not lost.
#[test]
fn a_group_belongs_to_its_executor() {
    let ((_, executor), (_, other)) = (manual(1), manual(1));
    let group = other.group("theirs").build().unwrap();
    let runs = Counter::new();
    let counted = runs.clone();
    let refused = executor.task().group(&group).submit(move || counted.add()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::ForeignGroup));
    refused.into_task().run();
    assert_eq!((runs.get(), group.statistics().submitted), (1, 0));
}

/// The periods of two tasks in one group interleave, and each releases its permit after each run.
#[test]
fn periodic_tasks_take_turns() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let (log, overlap) = (Log::new(), Overlap::default());
    for name in ["a", "b"] {
        let (log, overlap) = (log.clone(), overlap.clone());
        let tick = move || overlap.run(|| log.push(name));
        group.task().schedule_at_fixed_rate(ms(10), ms(10), tick).unwrap();
    }
    clock.run_for(ms(50));
    assert_eq!(log.entries(), ["a", "b"].repeat(5));
    assert_eq!((overlap.most(), group.statistics().runs), (1, 10));
}

/// M173: a series releases its permit after each run, to a task that has waited for it meanwhile.
#[test]
fn a_series_releases_its_permit() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let (started, go_on) = (Counter::new(), Counter::new());
    let (starts, goes) = (started.clone(), go_on.clone());
    let series = group.task().schedule_at_fixed_rate(ms(0), ms(10), move || {
        starts.add();
        goes.wait_for(1);
    });
    started.wait_for(1);
    let waits = group.task().submit(|| 7).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    go_on.add();
    eventually("it has its turn", || waits.is_done());
    assert_eq!(waits.join().unwrap(), 7);
    assert!(series.unwrap().cancel());
}

/// A task whose body panics releases its permit.
#[test]
fn a_panic_releases_the_permit() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let first = group.task().submit(|| panic!("no")).unwrap();
    let second = group.task().submit(|| 2).unwrap();
    assert!(first.join().is_err());
    assert_eq!(second.join().unwrap(), 2);
    clock.run_until_idle();
    let now = group.statistics();
    assert_eq!((now.failed, now.completed, now.runs, now.failed_runs), (1, 1, 2, 1));
}

/// The handle shows its name, its settings and its executor, and is found again as long as there are tasks.
#[test]
fn groups_are_listed() {
    let (clock, executor) = manual(1);
    assert!(executor.groups().is_empty());
    let group = executor.group("mail").limit(2).reserve(1).build().unwrap();
    let task = group.task().schedule(ms(10), || ()).unwrap();
    drop(group);
    let listed = executor.groups();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].name(), listed[0].limit(), listed[0].reserved()), ("mail", 2, 1));
    let text = format!("{:?}", listed[0]);
    assert!(
        text.starts_with("Group { name: \"mail\", limit: 2, is_paused: false, statistics: GroupStatistics { pending: 1"),
        "{text}"
    );
    drop(listed);
    clock.run_for(ms(10));
    assert!(task.is_done());
    drop(task);
    eventually("the last task is gone", || executor.groups().is_empty());
}
