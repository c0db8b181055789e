//! The tasks that a shutdown keeps and those that it cancels: the two policies, alone, combined and
//! raced.
//!
//! The main test goes through every set-up. Four workers are blocked by a first wave of tasks, a
//! second wave is queued behind them, the executor is shut down and the workers are released.
//! Nothing in it depends on the time, although it runs on the system's clock.

use std::{
    hint,
    panic::resume_unwind,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use punctual::{
    CancelReason, Handle, RejectedExecutionError, RejectionReason, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskError, TaskState,
};

use crate::{
    rounds::rounds,
    support::{Counter, LONG, eventually, in_time, manual, ms},
};

const WORKERS: usize = 4;
const PERIOD: Duration = ms(1);

/// The treatment of the periodic tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Periodics {
    /// The policy, explicit or default, cancels them.
    Off { explicit: bool },
    /// The policy keeps them, and the test cancels them.
    CancelledByHand,
    /// The policy keeps them until they panic.
    Continue,
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    /// `None` leaves the default, which keeps them.
    keep_delayed: Option<bool>,
    periodics: Periodics,
    /// The delay of the delayed tasks, and of the first run of the periodic ones.
    delay: Duration,
    /// The run in which a periodic task blocks; it panics in the next.
    round: usize,
}

impl Setup {
    fn all() -> Vec<Self> {
        let mut setups = Vec::new();
        for keep_delayed in [None, Some(true), Some(false)] {
            for periodics in [
                Periodics::Off { explicit: false },
                Periodics::Off { explicit: true },
                Periodics::CancelledByHand,
                Periodics::Continue,
            ] {
                for (delay, round) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
                    setups.push(Self { keep_delayed, periodics, delay: ms(delay), round });
                }
            }
        }
        setups
    }

    fn executor(self) -> ScheduledThreadPoolExecutor {
        let executor = ScheduledThreadPoolExecutor::new(WORKERS);
        if let Some(keep) = self.keep_delayed {
            executor.set_executes_existing_delayed_tasks_after_shutdown(keep);
        }
        if self.periodics != (Periodics::Off { explicit: false }) {
            executor.set_continues_existing_periodic_tasks_after_shutdown(self.keeps_periodic());
        }
        executor
    }

    fn keeps_delayed(self) -> bool {
        self.keep_delayed.unwrap_or(true)
    }

    fn keeps_periodic(self) -> bool {
        !matches!(self.periodics, Periodics::Off { .. })
    }

    /// A queued task that the policy does not keep must not fall due before the shutdown.
    fn delay_when_queued(self) -> Duration {
        if self.keeps_delayed() { self.delay } else { LONG }
    }

    fn blocking_bodies(self) -> usize {
        let continuing = if self.periodics == Periodics::Continue { 2 } else { 0 };
        WORKERS + 1 + usize::from(self.keeps_delayed()) + continuing
    }
}

/// Bodies that block, and the number of those that have begun.
#[derive(Clone, Default)]
struct Blocking {
    begun: Counter,
    gate: Counter,
}

impl Blocking {
    fn once(&self) -> impl FnOnce() + Send + 'static {
        let blocking = self.clone();
        move || blocking.block()
    }

    /// Blocks in run number `round`, and in the next panics with `payload`, without a message.
    fn in_round(&self, round: usize, payload: usize) -> impl FnMut() + Send + 'static {
        let (blocking, mut run) = (self.clone(), 0);
        move || {
            run += 1;
            if run == round {
                blocking.block();
            } else if run > round {
                resume_unwind(Box::new(payload));
            }
        }
    }

    fn block(&self) {
        self.begun.add();
        self.gate.wait_for(1);
    }
}

/// One task of each kind, to fill every worker.
struct Wave {
    immediate: ScheduledFuture<()>,
    delayed: ScheduledFuture<()>,
    periodics: [ScheduledFuture<()>; 2],
    /// The payload with which the two periodic tasks panic.
    payloads: [usize; 2],
}

impl Wave {
    fn submit(on: &Handle, blocking: &Blocking, setup: Setup, delay: Duration, n: usize) -> Self {
        let payloads = [10 * n, 10 * n + 1];
        let [rate, fixed] = payloads.map(|payload| blocking.in_round(setup.round, payload));
        let (immediate, delayed) =
            (on.submit(blocking.once()).unwrap(), on.schedule(delay, blocking.once()).unwrap());
        let periodics = [
            on.schedule_at_fixed_rate(setup.delay, PERIOD, rate).unwrap(),
            on.schedule_with_fixed_delay(setup.delay, PERIOD, fixed).unwrap(),
        ];
        Self { immediate, delayed, periodics, payloads }
    }

    fn futures(&self) -> impl Iterator<Item = &ScheduledFuture<()>> {
        [&self.immediate, &self.delayed].into_iter().chain(&self.periodics)
    }
}

/// An executor with every worker blocked by the first wave, and the second wave queued.
struct Scene {
    setup: Setup,
    executor: ScheduledThreadPoolExecutor,
    blocking: Blocking,
    running: Wave,
    queued: Wave,
}

impl Scene {
    fn new(setup: Setup) -> Self {
        let executor = setup.executor();
        let blocking = Blocking::default();
        let running = Wave::submit(&executor, &blocking, setup, setup.delay, 1);
        blocking.begun.wait_for(WORKERS);
        assert_eq!(executor.pending_count(), 0);
        let delay = setup.delay_when_queued();
        let queued = Wave::submit(&executor, &blocking, setup, delay, 2);
        Self { setup, executor, blocking, running, queued }
    }

    fn futures(&self) -> impl Iterator<Item = &ScheduledFuture<()>> {
        self.running.futures().chain(self.queued.futures())
    }

    fn check_that_the_second_wave_waits(&self) {
        assert_eq!(self.executor.pending_count(), 4);
        assert_eq!(self.blocking.begun.get(), WORKERS);
        assert!(self.futures().all(|future| !future.is_done()));
        assert_eq!(self.running.immediate.delay(), None);
        assert_eq!(self.queued.immediate.delay(), Some(Duration::ZERO));
    }

    fn check_that_it_is_shut_down(&self) {
        assert!(self.executor.is_shutdown());
        assert!(self.executor.is_terminating());
        assert!(!self.executor.is_terminated());
        for refused in [
            self.executor.submit(|| ()),
            self.executor.schedule(ms(1000), || ()),
            self.executor.schedule_at_fixed_rate(ms(1000), ms(1000), || ()),
            self.executor.schedule_with_fixed_delay(ms(1000), ms(1000), || ()),
        ] {
            assert!(
                matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
            );
        }
    }

    fn check_what_was_kept(&self) {
        assert!(self.running.futures().all(|future| !future.is_done()));
        assert_is_kept(&self.queued.immediate, true);
        assert_is_kept(&self.queued.delayed, self.setup.keeps_delayed());
        for periodic in &self.queued.periodics {
            assert_is_kept(periodic, self.setup.keeps_periodic());
        }
        let kept = self.queued.futures().filter(|future| !future.is_done());
        assert_eq!(self.executor.pending_count(), kept.count());
    }

    fn cancel_by_hand(&self) {
        for wave in [&self.running, &self.queued] {
            for periodic in &wave.periodics {
                assert!(periodic.cancel());
                assert_eq!(periodic.state(), TaskState::Cancelled);
            }
        }
    }

    fn release(&self) {
        self.blocking.gate.add();
        assert_eq!(self.executor.await_termination(LONG), Ok(true));
        assert!(!self.executor.is_terminating());
        assert!(self.executor.is_terminated());
        assert_eq!(self.executor.pending_count(), 0);
    }

    fn check_how_everything_ended(&self) {
        for completed in [&self.running.immediate, &self.running.delayed, &self.queued.immediate] {
            assert_eq!(completed.state(), TaskState::Completed);
        }
        let delayed = match self.setup.keeps_delayed() {
            true => TaskState::Completed,
            false => TaskState::Cancelled,
        };
        assert_eq!(self.queued.delayed.state(), delayed);
        for wave in [&self.running, &self.queued] {
            for (periodic, payload) in wave.periodics.iter().zip(wave.payloads) {
                match self.setup.periodics {
                    Periodics::Continue => assert_panicked_with(periodic, payload),
                    _ => assert_eq!(periodic.state(), TaskState::Cancelled),
                }
            }
        }
        assert_eq!(self.blocking.begun.get(), self.setup.blocking_bodies());
    }
}

fn assert_is_kept(queued: &ScheduledFuture<()>, keeps: bool) {
    assert_eq!(queued.delay().is_some(), keeps, "is it in the queue?");
    let state = match keeps {
        true => TaskState::Scheduled,
        false => TaskState::Cancelled,
    };
    assert_eq!(queued.state(), state);
}

fn assert_panicked_with(future: &ScheduledFuture<()>, payload: usize) {
    let Some(Err(TaskError::Failed(panic))) = future.try_join() else {
        panic!("it has not panicked: {future:?}");
    };
    assert_eq!(panic.into_payload().downcast_ref(), Some(&payload));
}

fn assert_cancelled_by_shutdown(future: &ScheduledFuture<()>) {
    let outcome = future.try_join();
    assert!(
        matches!(outcome, Some(Err(TaskError::Cancelled(CancelReason::Shutdown)))),
        "{outcome:?}"
    );
}

/// SP-004, SP-005, SP-006, SP-007 to SP-017: under all policies and with any delay and interrupted
/// run, a shutdown lets running and due tasks finish, keeps or cancels pending tasks at once as the
/// policies say, refuses new ones, and terminates when the kept tasks have ended.
#[test]
fn a_shutdown_keeps_what_its_policies_keep_and_cancels_the_rest() {
    for setup in Setup::all() {
        // This is shown if the test fails: the last line is the set-up that failed.
        println!("{setup:?}");
        let scene = Scene::new(setup);
        scene.check_that_the_second_wave_waits();
        scene.executor.shutdown();
        scene.check_that_it_is_shut_down();
        scene.check_what_was_kept();
        if setup.periodics == Periodics::CancelledByHand {
            scene.cancel_by_hand();
        }
        scene.release();
        scene.check_how_everything_ended();
    }
}

/// SP-001: an executor is shut down after the call, and not before.
#[test]
fn an_executor_is_shut_down_once_it_has_been_told() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    assert!(!executor.is_shutdown());
    executor.shutdown();
    assert!(executor.is_shutdown());
}

/// SP-003: a policy that is set, on the builder or later, reads back as set, and the other one does
/// not change.
#[test]
fn policies_read_back_as_they_were_set() {
    let policies = |executor: &Handle| {
        (
            executor.executes_existing_delayed_tasks_after_shutdown(),
            executor.continues_existing_periodic_tasks_after_shutdown(),
        )
    };
    assert_eq!(policies(&ScheduledThreadPoolExecutor::new(1)), (true, false));
    for (delayed, periodic) in [(true, true), (true, false), (false, true), (false, false)] {
        let executor = ScheduledThreadPoolExecutor::builder()
            .executes_existing_delayed_tasks_after_shutdown(delayed)
            .continues_existing_periodic_tasks_after_shutdown(periodic)
            .build()
            .unwrap();
        assert_eq!(policies(&executor), (delayed, periodic));
        executor.set_executes_existing_delayed_tasks_after_shutdown(!delayed);
        assert_eq!(policies(&executor), (!delayed, periodic));
        executor.set_continues_existing_periodic_tasks_after_shutdown(!periodic);
        assert_eq!(policies(&executor), (!delayed, !periodic));
    }
}

/// SP-019: switching a policy off after the shutdown cancels at once the tasks that it had kept and
/// no others, switching it on again restores none, and when no task is kept the executor
/// terminates.
#[test]
fn a_policy_that_is_switched_off_after_a_shutdown_acts_at_once() {
    type Switch = fn(&Handle, bool);
    let delayed: Switch = Handle::set_executes_existing_delayed_tasks_after_shutdown;
    let periodic: Switch = Handle::set_continues_existing_periodic_tasks_after_shutdown;
    for (first, second, delayed_goes_first) in
        [(delayed, periodic, true), (periodic, delayed, false)]
    {
        let (_clock, executor) = manual(1);
        periodic(&executor, true);
        let kept = [
            executor.schedule(LONG, || ()).unwrap(),
            executor.schedule_at_fixed_rate(LONG, PERIOD, || ()).unwrap(),
        ];
        executor.shutdown();
        assert!(kept.iter().all(|future| !future.is_done()));
        first(&executor, false);
        assert_cancelled_by_shutdown(&kept[usize::from(!delayed_goes_first)]);
        assert!(!kept[usize::from(delayed_goes_first)].is_done());
        first(&executor, true);
        assert_eq!(executor.pending_count(), 1);
        second(&executor, false);
        assert_cancelled_by_shutdown(&kept[usize::from(delayed_goes_first)]);
        eventually("it terminates", || executor.is_terminated());
    }
}

/// SP-020: tasks that were cancelled before a shutdown do not delay termination, whatever the
/// policies keep.
#[test]
fn tasks_cancelled_before_a_shutdown_are_not_waited_for() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.set_continues_existing_periodic_tasks_after_shutdown(true);
    let cancelled = [
        executor.schedule(Duration::MAX, || ()).unwrap(),
        executor.schedule_at_fixed_rate(LONG, LONG, || ()).unwrap(),
        executor.schedule_with_fixed_delay(LONG, LONG, || ()).unwrap(),
    ];
    assert!(cancelled.iter().all(|task| task.cancel()));
    assert_eq!(executor.pending_count(), 0);
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// F33, SP-023: with the default policies periodic tasks do not run again after a shutdown, and the
/// executor terminates.
#[test]
fn live_periodic_tasks_end_with_a_shutdown() {
    let (clock, executor) = manual(2);
    let runs = Counter::new();
    let counting = || {
        let runs = runs.clone();
        move || runs.add()
    };
    let periodics = [
        executor.schedule_at_fixed_rate(PERIOD, PERIOD, counting()).unwrap(),
        executor.schedule_with_fixed_delay(PERIOD, PERIOD, counting()).unwrap(),
    ];
    clock.run_for(3 * PERIOD);
    assert_eq!(runs.get(), 6);
    executor.shutdown();
    clock.advance(3 * PERIOD);
    eventually("it terminates", || executor.is_terminated());
    assert_eq!(runs.get(), 6);
    periodics.iter().for_each(assert_cancelled_by_shutdown);
}

type Submission = fn(&Handle) -> Result<ScheduledFuture<()>, RejectedExecutionError>;

/// Submissions while the delayed policy is off, and whether they run if they are admitted.
const SUBMISSIONS: [(Submission, bool); 3] = [
    (|on| on.submit(|| ()), true),
    (|on| on.schedule(LONG, || ()), false),
    (|on| on.schedule_with_fixed_delay(Duration::ZERO, LONG, || ()), false),
];

/// F32, SP-024: a submission that races a shutdown is refused, or else its task runs or is
/// cancelled as the policies say; it is never left behind in the queue of a terminated executor.
#[test]
fn a_submission_that_races_a_shutdown_is_refused_or_ends() {
    const SPINS: usize = 101;
    for round in rounds("a submission that races a shutdown", 5_000) {
        let (submit, runs) = SUBMISSIONS[round % SUBMISSIONS.len()];
        let (early, late) = (round % SPINS, round / SPINS % SPINS);
        let executor = ScheduledThreadPoolExecutor::new(1);
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        // Without a worker the submission spends its time starting one.
        if round % 4 > 0 {
            executor.execute(|| ()).unwrap();
        }
        let submitted = race(|| submit(&executor), early, || executor.shutdown(), late);
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert_eq!(executor.pending_count(), 0);
        match submitted {
            Err(error) => assert!(matches!(error.reason(), RejectionReason::Shutdown)),
            Ok(future) if runs => assert!(matches!(future.try_join(), Some(Ok(())))),
            Ok(future) => assert_cancelled_by_shutdown(&future),
        }
    }
}

/// Calls `one` and `other` concurrently, each after this many spins.
fn race<R: Send>(
    one: impl FnOnce() -> R + Send,
    one_spins: usize,
    other: impl FnOnce(),
    other_spins: usize,
) -> R {
    let spin = |spins| (0..spins).for_each(|_| hint::spin_loop());
    let (is_there, go) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let racer = scope.spawn(|| {
            is_there.store(true, Ordering::SeqCst);
            eventually("the start", || go.load(Ordering::SeqCst));
            spin(one_spins);
            one()
        });
        eventually("the racer is there", || is_there.load(Ordering::SeqCst));
        go.store(true, Ordering::SeqCst);
        spin(other_spins);
        other();
        racer.join().expect("the racer does not panic")
    })
}

/// SP-025: a shutdown cancels a hundred thousand queued periodic tasks, plain and wrapped, in one
/// pass: a pass for each task would take longer than the limit.
#[test]
fn a_shutdown_of_very_many_periodic_tasks_is_one_pass() {
    const TASKS: u64 = 100_000;
    let executor = ScheduledThreadPoolExecutor::new(1);
    let runs = Counter::new();
    let futures: Vec<_> = (0..TASKS)
        .map(|n| {
            // The delays are spread, so that the order of submission is not that of the deadlines.
            let delay = LONG + Duration::from_secs(n * 7_919 % TASKS);
            if n % 2 == 0 {
                executor.schedule_at_fixed_rate(delay, LONG, || ()).unwrap()
            } else {
                let body = counted(&runs, || ());
                executor.schedule_with_fixed_delay(delay, LONG, body).unwrap()
            }
        })
        .collect();
    assert_eq!(executor.pending_count(), futures.len());
    let handle = executor.handle();
    in_time("the shutdown", move || handle.shutdown());
    assert_eq!(executor.await_termination(LONG), Ok(true));
    futures.iter().for_each(assert_cancelled_by_shutdown);
    assert_eq!(runs.get(), 0);
}

/// Wraps a body in another one.
fn counted<F: FnMut() + Send>(runs: &Counter, mut body: F) -> impl FnMut() + Send + use<F> {
    let runs = runs.clone();
    move || {
        runs.add();
        body();
    }
}
