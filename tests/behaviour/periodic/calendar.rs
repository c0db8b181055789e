//! Tasks by the calendar of a time zone, on an executor whose wall clock is set.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual::{
    ManualClock, MissedRuns, ScheduledThreadPoolExecutor as Executor, Trigger, current_task,
    trigger::{Cron, Repeated, cron},
};

use crate::support::{Log, manual};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// 7 June 2027, a Monday, at midnight in UTC.
fn monday() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_812_326_400)
}

fn utc(expression: &str) -> Cron {
    cron(expression, "Etc/UTC").expect("it is good")
}

/// An executor on whose wall clock it is that Monday, and what ran on it: the minute, counted from then,
/// and the number of runs that were missed before.
struct Subject {
    clock: ManualClock,
    executor: Executor,
    runs: Log<(i64, u64)>,
}

impl Subject {
    fn new(policy: MissedRuns, trigger: impl Trigger) -> Self {
        let (clock, executor) = manual(1);
        clock.set_wall_time(monday());
        let (runs, own) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || {
            let minutes = match own.wall_time().duration_since(monday()) {
                Ok(since) => i64::try_from(since.as_secs() / 60).expect("a small number"),
                Err(_) => -1,
            };
            log.push((minutes, current_task().expect("inside a task").missed_runs()));
        };
        let task = executor.task().missed_runs(policy).repeat(trigger, body);
        drop(task.expect("accepted"));
        Self { clock, executor, runs }
    }

    /// Sets the clock, and has the task look at it.
    fn set(&self, ahead: Duration) {
        self.clock.set_wall_time(monday() + ahead);
        self.clock.run_for(Duration::from_secs(30));
    }
}

#[test]
fn a_task_runs_by_the_calendar() {
    let subject = Subject::new(MissedRuns::Coalesce, utc("30 9 * * MON-FRI").times(7));
    subject.clock.run_for(30 * DAY);
    let days = [0, 1, 2, 3, 4, 7, 8].map(|day| (day * 1_440 + 570, 0));
    assert_eq!(subject.runs.entries(), days);
    assert_eq!(subject.executor.pending_count(), 0);
}

/// A machine that has slept for two days makes up for them by one run, which is told of them.
#[test]
fn a_run_stands_for_all_that_were_missed() {
    let subject = Subject::new(MissedRuns::Coalesce, utc("0 2 * * *"));
    subject.set(2 * DAY + 3 * HOUR);
    assert_eq!(subject.runs.entries(), [(2 * 1_440 + 180, 2)]);
    let subject = Subject::new(MissedRuns::Burst, utc("0 2 * * *"));
    subject.set(2 * DAY + 3 * HOUR);
    assert_eq!(subject.runs.entries(), [(2 * 1_440 + 180, 0); 3]);
}

/// Rule W4: an interval goes on by the clock.
#[test]
fn an_interval_runs_again_what_comes_again() {
    let subject = Subject::new(MissedRuns::Coalesce, utc("*/15 * * * *"));
    subject.clock.run_for(2 * HOUR + 5 * MINUTE);
    subject.set(HOUR + 30 * MINUTE);
    subject.clock.run_for(35 * MINUTE);
    let minutes: Vec<_> = subject.runs.entries().into_iter().map(|(minute, _)| minute).collect();
    assert_eq!(minutes[7..], [120, 105, 120]);
}

/// A task that runs at a time of the day runs once, also if the clock shows that time a second time, as after a
/// small correction; a clock that was wrong by more than three hours does not count.
#[test]
fn a_time_of_the_day_runs_once() {
    let daily = || utc("0 2 * * *");
    let runs_after_a_step_back = |trigger, back: Duration| {
        let subject = Subject::new(MissedRuns::Coalesce, trigger);
        subject.clock.run_for(4 * HOUR);
        subject.set(4 * HOUR - back);
        subject.clock.run_for(10 * HOUR);
        subject.runs.entries().len()
    };
    assert_eq!(runs_after_a_step_back(daily(), 2 * HOUR + MINUTE), 1);
    assert_eq!(runs_after_a_step_back(daily().repeated(Repeated::Both), 2 * HOUR + MINUTE), 2);
    assert_eq!(runs_after_a_step_back(daily(), 4 * HOUR), 1);
    let wrong = Subject::new(MissedRuns::Coalesce, utc("0 2 * * *"));
    wrong.set(20 * DAY + 3 * HOUR);
    wrong.set(DAY);
    wrong.clock.run_for(3 * HOUR);
    assert_eq!(wrong.runs.entries().len(), 2, "it was the wrong day");
}

/// The run that is planned when clocks are put forward takes place when they have been.
#[test]
fn a_run_in_the_gap_is_at_its_end() {
    let trigger = cron("30 2 * * *", "America/New_York").expect("it is good");
    let (clock, executor) = manual(1);
    // Clocks are put forward on 14 March 2027, at 07:00 UTC.
    let sunday = UNIX_EPOCH + Duration::from_secs(1_805_007_600);
    clock.set_wall_time(sunday - 4 * HOUR);
    let (runs, own) = (Log::new(), clock.clone());
    let log = runs.clone();
    let task = executor.repeat(trigger, move || log.push(own.wall_time()));
    clock.run_for(2 * DAY);
    assert_eq!(runs.entries(), [sunday, sunday + 23 * HOUR + 30 * MINUTE]);
    assert!(task.expect("accepted").cancel());
}
