//! The moment of the wall clock for which a run was planned, as the run sees it.

use std::time::{Duration, SystemTime};

use punctual::{
    Handle, ManualClock, ScheduledFuture, TaskContext, current_task,
    trigger::{Due, every, from_fn},
};

use crate::support::{Log, manual, manual_with, ms};

const SECOND: Duration = Duration::from_secs(1);

/// The plan of a run: whether it is on the wall clock, and how long after the beginning of this test.
type Plan = (bool, Duration);

fn plan(task: &TaskContext, begin: SystemTime) -> Plan {
    (task.is_on_wall(), task.planned_wall().duration_since(begin).expect("it is later"))
}

/// A series whose runs are planned on the wall clock, every ten seconds, and note their plans.
fn on_wall(executor: &Handle, begin: SystemTime, log: &Log<Plan>) -> ScheduledFuture<()> {
    let mut moment = begin;
    let tens = from_fn(move |_| {
        moment += 10 * SECOND;
        Some(Due::Wall(moment))
    });
    executor.repeat(tens, noting(begin, log)).expect("accepted")
}

fn noting(begin: SystemTime, log: &Log<Plan>) -> impl FnMut() + Send + 'static {
    let log = log.clone();
    move || log.push(plan(&current_task().expect("inside a task"), begin))
}

fn begin(clock: &ManualClock) -> SystemTime {
    clock.wall_time()
}

/// A run on the wall clock has the exact moment, also if it is late, and also if that clock was set meanwhile.
#[test]
fn a_run_on_the_wall_clock_has_its_exact_moment() {
    let (clock, executor) = manual(1);
    let (begin, log) = (begin(&clock), Log::new());
    let series = on_wall(&executor, begin, &log);
    clock.run_for(10 * SECOND);
    clock.advance(13 * SECOND); // three seconds late
    clock.run_until_idle();
    clock.set_wall_time(begin + 31 * SECOND);
    clock.run_for(7 * SECOND); // to the next look
    assert_eq!(log.entries(), [10, 20, 30].map(|seconds| (true, seconds * SECOND)));
    series.cancel();
}

/// A run that is beside the schedule is not planned on that clock, nor are those after another schedule; both have an
/// estimate. A plain task has one too, whatever its worker has run before.
#[test]
fn other_runs_have_an_estimate() {
    let (clock, executor) = manual(1);
    let (begin, log) = (begin(&clock), Log::new());
    let series = on_wall(&executor, begin, &log);
    clock.run_for(10 * SECOND);
    clock.run_for(2 * SECOND);
    assert!(series.run_now());
    clock.run_until_idle();
    assert_eq!(log.entries(), [(true, 10 * SECOND), (false, 12 * SECOND)]);
    clock.run_for(8 * SECOND);
    assert_eq!(log.entries()[2..], [(true, 20 * SECOND)]);
    executor.schedule(SECOND, noting(begin, &log)).expect("accepted");
    clock.advance(3 * SECOND);
    clock.run_until_idle();
    // The moment for which it was planned, and not that at which it runs.
    assert_eq!(log.entries()[3..], [(false, 21 * SECOND)]);
    assert!(series.set_trigger(every(5 * SECOND)));
    clock.run_for(5 * SECOND);
    assert_eq!(log.entries()[4..], [(false, 23 * SECOND), (false, 28 * SECOND)]);
    series.cancel();
}

/// The hooks around a run see the same; a series of a group and one with a time limit are no exception.
#[test]
fn hooks_see_the_plan() {
    let log = Log::new();
    let noted = log.clone();
    let clock_of_hook = ManualClock::new();
    let begin = begin(&clock_of_hook);
    let (clock, executor) =
        manual_with(|builder| builder.before_execute(move |task| noted.push(plan(task, begin))));
    clock.set_wall_time(begin);
    let group = executor.group("g").limit(1).build().expect("it is right");
    let mut once = [Due::Wall(begin + SECOND)].into_iter();
    let series = group.task().timeout(ms(500)).repeat(from_fn(move |_| once.next()), || ());
    clock.run_for(2 * SECOND);
    series.expect("accepted").join().expect("it ends");
    assert_eq!(log.entries(), [(true, SECOND)]);
}
