//! The timeout of a periodic task: a time limit for each of its runs.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, FailureKind, FailurePolicy, FailureReport, ManualClock,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskError, TaskHandle, TaskRun,
    TaskState, current_task,
};

use crate::{
    support::HOUR,
    support::{Counter, Drops, Log, assert_cancelled, hold, manual, ms},
};

const NANO: Duration = Duration::from_nanos(1);

/// The act of each run: nothing, sleep for this long whatever the token says, or sleep until the
/// token is raised.
#[derive(Clone, Copy, Debug)]
enum Act {
    Nothing,
    Stubborn(Duration),
    Obedient(Duration),
    Panic,
}

/// Sleeps on the clock, regardless of any token: it waits for the termination of an executor that
/// does not terminate.
fn sleeper(clock: &ManualClock) -> impl Fn(Duration) + Send + 'static {
    let endless = Executor::builder().clock(clock.clone()).build().unwrap();
    move |span| assert!(!endless.await_termination(span).unwrap())
}

/// A periodic task with a period of ten milliseconds and a limit of five for each run.
struct Subject {
    clock: ManualClock,
    executor: Executor,
    future: ScheduledFuture<()>,
    /// Whether the token of each run was raised at the end of the run.
    tokens: Log<(CancellationToken, bool)>,
    drops: Drops,
}

impl Subject {
    fn new(policy: FailurePolicy, acts: &[Act]) -> Self {
        let (clock, executor) = manual(1);
        Self::on(clock, executor, policy, acts)
    }

    fn on(clock: ManualClock, executor: Executor, policy: FailurePolicy, acts: &[Act]) -> Self {
        let (tokens, drops) = (Log::new(), Drops::new());
        let (log, capture, sleep) = (tokens.clone(), drops.token(), sleeper(&clock));
        let mut acts = VecDeque::from(acts.to_vec());
        let body = move || {
            hold(&capture);
            let token = current_task().unwrap().token();
            match acts.pop_front().unwrap_or(Act::Nothing) {
                Act::Nothing => {}
                Act::Stubborn(span) => sleep(span),
                Act::Obedient(span) => drop(token.sleep(span)),
                Act::Panic => panic!("of its own"),
            }
            let is_raised = token.is_cancelled();
            log.push((token, is_raised));
        };
        let task = executor.task().timeout(ms(5)).on_failure(policy);
        let future = task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
        Self { clock, executor, future, tokens, drops }
    }

    /// Which runs had their token raised before they ended.
    fn raised(&self) -> Vec<bool> {
        self.tokens.entries().into_iter().map(|(_, is_raised)| is_raised).collect()
    }

    /// The number and the message of the last run that failed.
    fn failure(&self) -> Option<(u64, u32, String)> {
        let failed = self.future.last_failure()?;
        Some((failed.run_number(), failed.in_a_row(), failed.message().to_owned()))
    }
}

fn over_budget(run: u64, in_a_row: u32) -> Option<(u64, u32, String)> {
    Some((run, in_a_row, "exceeded its time limit of 5ms".to_owned()))
}

/// TO-006: a task that stops at the first failure is ended by a run that takes too long, exactly at
/// the limit: its token is raised, its future has completed while the run continues, and no other
/// run follows.
#[test]
fn a_run_over_budget_ends_a_task_that_stops() {
    for policy in [FailurePolicy::stop(), FailurePolicy::resume().stop_after(1)] {
        let acts = [Act::Nothing, Act::Stubborn(ms(4)), Act::Stubborn(ms(8))];
        let subject = Subject::new(policy, &acts);
        subject.clock.run_for(ms(35) - NANO);
        assert_eq!(subject.future.state(), TaskState::Running);
        subject.clock.run_for(NANO);
        assert_cancelled(&subject.future, CancelReason::TimedOut);
        assert_eq!((subject.executor.active_count(), subject.drops.count()), (1, 0));
        subject.clock.run_for(ms(100));
        assert_eq!((subject.raised(), subject.drops.count()), (vec![false, false, true], 1));
        assert_eq!(subject.failure(), over_budget(3, 1));
        let now = subject.executor.statistics();
        assert_eq!((now.pending, now.cancelled, now.runs), (0, 1, 3));
        assert_eq!((now.failed_runs, now.timed_out), (1, 1));
    }
}

/// TO-006: if a task continues after a failure, only the token of that run is raised; when the body
/// has returned the run counts as failed, and the next run has a token and a time limit of its own.
#[test]
fn a_run_over_budget_is_a_failure_of_a_task_that_goes_on() {
    let acts = [Act::Obedient(ms(9)), Act::Stubborn(ms(8)), Act::Nothing, Act::Stubborn(ms(4))];
    let subject = Subject::new(FailurePolicy::resume(), &acts);
    subject.clock.run_for(ms(15) - NANO);
    assert_eq!((subject.future.state(), subject.failure()), (TaskState::Running, None));
    subject.clock.run_for(NANO);
    assert_eq!(
        (subject.future.state(), subject.failure()),
        (TaskState::Scheduled, over_budget(1, 1))
    );
    subject.clock.run_for(ms(10));
    // The second run has exceeded its limit and continues: it has failed when it returns.
    assert_eq!(
        (subject.future.state(), subject.failure()),
        (TaskState::Running, over_budget(1, 1))
    );
    subject.clock.run_for(ms(3));
    assert_eq!(subject.failure(), over_budget(2, 2));
    subject.clock.run_for(ms(21));
    assert_eq!(
        (subject.raised(), subject.failure()),
        (vec![true, true, false, false], over_budget(2, 2))
    );
    for (index, (token, was_raised)) in subject.tokens.entries().into_iter().enumerate() {
        assert_eq!(token.is_cancelled(), was_raised, "run {}", index + 1);
    }
    assert!(subject.future.cancel());
    assert_eq!(subject.clock.advance_to_next_deadline(), None);
    let now = subject.executor.statistics();
    assert_eq!((now.cancelled, now.failed, now.runs), (1, 0, 4));
    assert_eq!((now.failed_runs, now.timed_out), (2, 2));
}

/// Runs over the limit count like panics: a number of them in a row ends the task, with a time limit
/// as the cause in place of the panic; a run in time resets the count.
#[test]
fn so_many_runs_over_budget_end_the_task() {
    let long = Act::Stubborn(ms(6));
    let acts = [long, Act::Panic, Act::Nothing, Act::Panic, long, long, long];
    let subject = Subject::new(FailurePolicy::resume().stop_after(3), &acts);
    subject.clock.run_for(ms(46));
    assert_eq!(subject.failure(), Some((4, 1, "of its own".to_owned())));
    subject.clock.run_for(HOUR);
    let error = subject.future.try_join().expect("it ended").unwrap_err();
    assert!(error.is_timeout() && error.is_failure() && !error.is_panic() && !error.is_cancelled());
    let why = "exceeded its time limit of 5ms";
    assert_eq!(error.to_string(), format!("the task {why}"));
    let TaskError::Failed(failure) = error else { panic!("{error}") };
    assert_eq!((failure.kind(), failure.message()), (FailureKind::TimeLimit, why));
    assert!(!failure.is_panic() && failure.location().is_none() && failure.error().is_none());
    assert_eq!(format!("{failure:?}"), format!("TimeLimit({why:?})"));
    assert_eq!(failure.into_payload().downcast_ref::<String>().map(String::as_str), Some(why));
    let kind = subject.future.last_failure().map(|failed| failed.kind());
    assert_eq!(kind, Some(FailureKind::TimeLimit));
    assert_eq!(subject.failure(), over_budget(6, 3));
    assert_eq!((subject.drops.count(), subject.executor.statistics().failed), (1, 1));
}

/// After a run over its limit the next one is postponed, as after a panic.
#[test]
fn a_run_over_budget_puts_off_the_next() {
    let policy = FailurePolicy::resume().back_off(ms(20)..=ms(20));
    let subject = Subject::new(policy, &[Act::Stubborn(ms(6))]);
    subject.clock.run_for(ms(16));
    assert_eq!(subject.failure(), over_budget(1, 1));
    assert_eq!(subject.future.delay(), Some(ms(20)));
}

/// A run that panics by itself after its limit has failed with its own panic.
#[test]
fn a_panic_of_its_own_outweighs_the_budget() {
    let (clock, executor) = manual(1);
    let sleep = sleeper(&clock);
    let body = move || {
        sleep(ms(8));
        panic!("of its own");
    };
    let task = executor.task().timeout(ms(5)).on_failure(FailurePolicy::resume());
    let future = task.schedule_with_fixed_delay(ms(1), HOUR, body).unwrap();
    clock.run_for(ms(20));
    assert_eq!(future.last_failure().unwrap().message(), "of its own");
}

/// Between runs a task is like any other: it can be cancelled, and leaves no timeout behind.
#[test]
fn between_runs_there_is_no_timeout() {
    for policy in [FailurePolicy::stop(), FailurePolicy::resume()] {
        let subject = Subject::new(policy, &[]);
        subject.clock.run_for(ms(12));
        assert_eq!(subject.clock.advance_to_next_deadline(), Some(ms(8)));
        assert!(subject.future.cancel());
        assert_eq!(subject.drops.count(), 1);
        assert_eq!(subject.clock.advance_to_next_deadline(), None);
    }
}

/// If a run is cancelled and signalled, the token of that run is raised, and the run does not count
/// as over its limit.
#[test]
fn a_run_is_signalled_by_its_own_token() {
    for policy in [FailurePolicy::stop(), FailurePolicy::resume()] {
        let subject = Subject::new(policy, &[Act::Nothing, Act::Obedient(ms(4))]);
        subject.clock.run_for(ms(21));
        assert!(subject.future.cancel_and_signal());
        subject.clock.run_until_idle();
        assert_eq!((subject.raised(), subject.failure()), (vec![false, true], None));
        assert_cancelled(&subject.future, CancelReason::Requested);
        assert_eq!(subject.clock.advance_to_next_deadline(), None);
    }
}

/// The executor's decorator runs outside the limit, and hooks around both. No code has panicked, so nothing
/// unwinds through the decorator; the hook after the run sees the failure, and the handler is told of it once.
#[test]
fn decorator_and_hooks_see_the_failure() {
    let (seen, told) = (Log::new(), Log::new());
    let (wrapped, after) = (seen.clone(), seen.clone());
    let reports = told.clone();
    let clock = ManualClock::new();
    let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
    let builder = builder
        .decorate_task(move |_| {
            let seen = wrapped.clone();
            move |next: TaskRun<'_>| {
                let leaving = Leaving(seen.clone());
                let done = next.run();
                std::mem::forget(leaving);
                seen.push("returned".to_owned());
                done
            }
        })
        .after_execute(move |_, outcome| after.push(format!("{:?}", outcome.is_ok())))
        .failure_handler(move |report: &FailureReport<'_>| {
            reports.push((report.run_number(), report.message().to_owned()));
        });
    let executor = builder.build().unwrap();
    let acts = [Act::Stubborn(ms(6)), Act::Stubborn(ms(4))];
    let subject = Subject::on(clock, executor, FailurePolicy::resume(), &acts);
    subject.clock.run_for(ms(25));
    assert_eq!(seen.entries(), ["returned", "false", "returned", "true"]);
    assert_eq!(told.entries(), [(Some(1), "exceeded its time limit of 5ms".to_owned())]);
    assert_eq!(subject.raised(), [true, false]);
}

/// Records that a panic passed through.
struct Leaving(Log<String>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.push("unwound".to_owned());
    }
}

/// A drained task runs by hand like any other: its token is not raised from the beginning, and it
/// does not exceed its limit just because the executor has terminated meanwhile.
#[test]
fn a_run_by_hand_is_not_disturbed_by_the_end() {
    let (_clock, executor) = manual(1);
    let (busy, open, begun, gate) =
        (Counter::new(), Counter::new(), Counter::new(), Counter::new());
    let raised = Log::new();
    let (log, begins, wait) = (raised.clone(), begun.clone(), gate.clone());
    let task = executor.task().timeout(HOUR).on_failure(FailurePolicy::resume());
    let future = task
        .schedule_with_fixed_delay(HOUR, HOUR, move || {
            begins.add();
            wait.wait_for(1);
            log.push(current_task().unwrap().token().is_cancelled());
        })
        .unwrap();
    let (busy_now, may_end) = (busy.clone(), open.clone());
    executor
        .execute(move || {
            busy_now.add();
            may_end.wait_for(1);
        })
        .unwrap();
    busy.wait_for(1);
    let given_back = executor.shutdown_now().next().expect("the periodic one");
    let by_hand = thread::spawn(move || given_back.run());
    begun.wait_for(1);
    open.add();
    // This includes the timer thread, which has nothing left to watch then.
    executor.close().unwrap();
    gate.add();
    by_hand.join().unwrap();
    assert_eq!((raised.entries(), future.last_failure()), (vec![false], None));
    assert_cancelled(&future, CancelReason::ShutdownNow);
}

/// A limit of zero expires when the run begins, one of `Duration::MAX` never does; and a task that
/// times out repeatedly continues.
#[test]
fn the_extremes_of_a_budget() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let count = runs.clone();
    let body = move || {
        count.add();
        current_task().unwrap().token().wait();
    };
    let task = executor.task().timeout(Duration::ZERO).on_failure(FailurePolicy::resume());
    let none = task.schedule_at_fixed_rate(ms(1), ms(1), body).unwrap();
    clock.run_for(ms(50));
    assert_eq!((runs.get(), none.last_failure().unwrap().run_number()), (50, 50));
    assert!(none.cancel());

    let sleep = sleeper(&clock);
    let body = move || sleep(HOUR);
    let all = executor.task().timeout(Duration::MAX).schedule_at_fixed_rate(ms(1), ms(1), body);
    let all = all.unwrap();
    clock.run_for(ms(1));
    assert_eq!(all.state(), TaskState::Running);
    clock.run_for(HOUR);
    assert_eq!((all.state(), all.last_failure()), (TaskState::Running, None));
    assert!(all.cancel());
    clock.run_for(HOUR);
}

/// The token of a run that takes too long is raised by its limit, which is no request to the series: what is asked of the
/// series until the body returns has its effect.
#[test]
fn what_is_asked_of_a_series_after_the_limit_of_its_run_has_its_effect() {
    let (clock, executor) = manual(1);
    let (handle, answers, runs) = (Arc::new(OnceLock::<TaskHandle>::new()), Log::new(), Log::new());
    let (own, said, began, shown) =
        (Arc::clone(&handle), answers.clone(), runs.clone(), clock.clone());
    let body = move || {
        began.push(shown.elapsed());
        if began.entries().len() == 1 {
            // Until the limit.
            current_task().unwrap().token().wait();
            said.push(own.get().unwrap().pause());
        }
    };
    let task = executor.task().timeout(ms(5)).on_failure(FailurePolicy::resume());
    let future = task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    handle.set(future.task_handle()).unwrap();
    clock.run_for(ms(100));
    assert_eq!((runs.entries(), answers.entries()), (vec![ms(10)], vec![true]));
    assert!(future.resume());
    clock.run_for(ms(10));
    assert!(runs.entries().len() > 1, "it goes on when it is resumed");
}
