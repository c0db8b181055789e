//! Debounce and throttle: one run for many calls.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*};
use punctual::{
    Debounced, FailurePolicy, MissedRuns, ScheduledThreadPoolExecutor as Executor, TaskState,
    Throttled,
    gate::{Entry, from_fn},
};

use crate::support::{Counter, Drops, Log, eventually, manual, manual_with, ms};

/// The moments of runs, if the executor's clock is moved on by one millisecond at a time, and `calls`
/// says at which there is a call.
fn runs_of(
    subject: impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()>,
    calls: impl Fn(u64) -> bool,
) -> Vec<u64> {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let call = subject(&executor, runs.clone(), clock.clone());
    for now in 0..100 {
        if calls(now) {
            call();
            clock.run_until_idle();
        }
        clock.run_for(ms(1));
    }
    runs.entries()
}

fn debounced(
    quiet: Duration,
    max_wait: Duration,
) -> impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()> {
    move |executor, runs, clock| {
        let body = move || runs.push(clock.elapsed().as_millis() as u64);
        let task = executor.task().debounce(quiet, body).expect("accepted").max_wait(max_wait);
        Box::new(move || assert!(task.call()))
    }
}

fn throttled(
    period: Duration,
) -> impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()> {
    move |executor, runs, clock| {
        let body = move || runs.push(clock.elapsed().as_millis() as u64);
        let task = executor.task().throttle(period, body).expect("accepted");
        Box::new(move || assert!(task.call()))
    }
}

#[test]
fn a_debounced_task_runs_when_it_has_been_quiet() {
    let calls = |now| [5, 10, 14, 40, 49].contains(&now);
    assert_eq!(runs_of(debounced(ms(10), Duration::MAX), calls), [24, 59]);
    assert_eq!(runs_of(debounced(ms(10), Duration::MAX), |_| false), [0; 0]);
}

#[test]
fn the_wait_of_a_debounced_task_has_a_limit() {
    let calls = |now| now < 50 && now % 2 == 0;
    assert_eq!(runs_of(debounced(ms(5), ms(20)), calls), [20, 40, 53]);
    assert_eq!(runs_of(debounced(ms(5), Duration::MAX), calls), [53]);
}

/// M145.
#[test]
fn a_throttled_task_runs_at_once_and_then_once_in_a_period() {
    assert_eq!(runs_of(throttled(ms(10)), |now| now < 25), [0, 10, 20, 30]);
    assert_eq!(runs_of(throttled(ms(10)), |now| [3, 7, 30, 31].contains(&now)), [3, 13, 30, 40]);
}

#[test]
fn a_call_during_a_run_has_a_run_after_it() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let body = || {
        let (is_started, gate) = (started.clone(), release.clone());
        move || {
            is_started.add();
            gate.wait_for(is_started.get());
        }
    };
    let debounced = executor.task().debounce(ms(10), body()).expect("accepted");
    assert!(debounced.call());
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(debounced.call());
    release.add();
    clock.advance(ms(10));
    started.wait_for(2);
    release.add();
    let throttled = executor.task().throttle(ms(10), body()).expect("accepted");
    assert!(throttled.call());
    started.wait_for(3);
    assert!(throttled.call());
    release.add();
    clock.run_until_idle();
    assert_eq!(throttled.task_handle().delay(), Some(ms(10)));
    assert!(throttled.task_handle().cancel());
    assert_eq!(executor.pending_count(), 1);
}

/// M143.
#[test]
fn what_waits_can_be_flushed() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let noted = runs.clone();
    let task = executor.task().debounce(ms(10), move || noted.add()).expect("accepted");
    assert!(!task.flush(), "no call yet");
    assert!(task.call());
    assert!(task.flush());
    clock.run_until_idle();
    assert_eq!(runs.get(), 1);
    assert!(!task.flush());
    clock.run_for(ms(20));
    assert_eq!(runs.get(), 1, "that call has had its run");
}

#[test]
fn a_call_waits_until_its_run_begins_or_the_task_ends() {
    let (clock, executor) = manual(1);
    let task = executor.task().debounce(ms(10), || ()).expect("accepted");
    assert!(!task.is_waiting(), "no call yet");
    assert!(task.call());
    assert!(task.is_waiting());
    clock.run_for(ms(9));
    assert!(task.is_waiting());
    clock.run_for(ms(1));
    assert!(!task.is_waiting(), "that call has had its run");
    assert!(task.call());
    assert!(task.task_handle().cancel());
    assert!(!task.is_waiting(), "there will be no run");
}

#[test]
fn dropping_it_cancels_nothing() {
    let (clock, executor) = manual(1);
    executor.task().debounce(ms(10), || ()).expect("accepted").call();
    executor.task().throttle(ms(10), || ()).expect("accepted").call();
    clock.run_for(ms(10));
    assert_eq!(executor.statistics().runs, 2, "what was asked for takes place");
    assert_eq!(executor.pending_count(), 2, "and the task lives on");
}

#[test]
fn dropping_it_cancels_the_task_if_that_was_asked_for() {
    let (_, executor) = manual(1);
    let drops = Drops::default();
    let (one, other) = (drops.token(), drops.token());
    let debounced = executor.task().debounce(ms(10), move || _ = &one).expect("accepted");
    let throttled = executor.task().throttle(ms(10), move || _ = &other).expect("accepted");
    let (debounced, throttled) = (debounced.cancel_on_drop(), throttled.cancel_on_drop());
    let handle = debounced.task_handle().clone();
    assert!(debounced.call());
    drop((debounced, throttled));
    assert_eq!((drops.count(), executor.pending_count()), (2, 0));
    assert_eq!(handle.state(), TaskState::Cancelled);
}

#[test]
fn a_failure_ends_it_if_the_policy_says_so() {
    let (clock, executor) = manual(1);
    let ends = executor.task().debounce(ms(1), || Err::<(), _>("no")).expect("accepted");
    let policy = FailurePolicy::resume();
    let goes_on = executor.task().on_failure(policy).throttle(ms(1), || Err::<(), _>("no"));
    let goes_on = goes_on.expect("accepted");
    assert!(ends.call() && goes_on.call());
    clock.run_for(ms(1));
    assert!(!ends.call());
    assert!(goes_on.call());
    assert_eq!(ends.task_handle().last_failure().expect("it has failed").message(), "no");
}

/// Many threads call at once: no call is without a run after it.
#[test]
fn no_call_is_lost() {
    let executor = Executor::new(2);
    let (calls, seen) = (Counter::new(), Counter::new());
    let noting = || {
        let (calls, seen) = (calls.clone(), seen.clone());
        move || (seen.get()..calls.get()).for_each(|_| seen.add())
    };
    let debounced =
        executor.task().debounce(Duration::from_micros(50), noting()).expect("accepted");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    calls.add();
                    assert!(debounced.call());
                }
            });
        }
    });
    eventually("every call was seen", || seen.get() == calls.get());
    let throttled =
        executor.task().throttle(Duration::from_micros(50), noting()).expect("accepted");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    calls.add();
                    assert!(throttled.call());
                }
            });
        }
    });
    eventually("every call was seen", || seen.get() == calls.get());
}

/// The case of a late run: calls at 0, 0.5 and 0.95 s, with the worker busy until 0.9 s.
#[test]
fn the_period_counts_from_when_the_last_run_began() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (log, own) = (runs.clone(), clock.clone());
    let task = executor
        .task()
        .throttle(ms(1_000), move || log.push(own.elapsed().as_millis() as u64))
        .expect("accepted");
    let (started, release) = (Counter::new(), Counter::new());
    let (starts, held) = (started.clone(), release.clone());
    drop(executor.submit(move || {
        starts.add();
        held.wait_for(1);
    }));
    started.wait_for(1);
    assert!(task.call());
    clock.advance(ms(500));
    assert!(task.call());
    clock.advance(ms(400));
    release.add();
    clock.run_until_idle();
    clock.run_for(ms(50));
    assert!(task.call());
    clock.run_for(ms(2_000));
    assert_eq!(runs.entries(), [900, 1_900]);
}

/// An event for a throttled task; they come one after the other.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Call,
    Pass(u64),
    /// Another task occupies the worker for so long.
    Busy(u64),
    /// The body of the next run takes so long, and calls the task itself then.
    Slow(u64),
    Pause,
    Resume,
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let step = prop_oneof![
        5 => Just(Happens::Call),
        4 => (1..40_u64).prop_map(Happens::Pass),
        2 => (1..60_u64).prop_map(Happens::Busy),
        1 => (1..60_u64).prop_map(Happens::Slow),
        1 => Just(Happens::Pause),
        1 => Just(Happens::Resume),
    ];
    vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever is called, and whatever is late, two runs never begin within the period, and each call is followed
    /// by a run.
    #[test]
    fn a_throttled_task_keeps_its_period(
        steps in happenings(),
        period in 1..50_u64,
        puts_off in 0..30_u64,
    ) {
        let (clock, executor) = manual(1);
        let (begins, slow) = (Log::new(), Arc::new(AtomicU64::new(0)));
        let itself = Arc::new(OnceLock::<Throttled>::new());
        let (log, own, next, inside) = (begins.clone(), clock.clone(), slow.clone(), itself.clone());
        let gate = from_fn(move |tick| match puts_off {
            20.. => Entry::Run,
            _ if tick.attempt() > 1 => Entry::Run,
            span => Entry::Again(ms(span)),
        });
        let task = executor.task().gate(gate).throttle(ms(period), move || {
            log.push(own.elapsed().as_millis() as u64);
            let takes = next.swap(0, Ordering::SeqCst);
            if takes > 0 {
                own.advance(ms(takes / 2));
                inside.get().expect("it is there").call();
                own.advance(ms(takes - takes / 2));
            }
        });
        let task = itself.get_or_init(|| task.expect("accepted"));
        let mut last_call = None;
        for step in steps {
            match step {
                Happens::Call => {
                    // Before the call, since a worker that is busy moves the clock on.
                    last_call = Some(clock.elapsed().as_millis() as u64);
                    prop_assert!(task.call());
                }
                Happens::Pass(millis) => clock.run_for(ms(millis)),
                Happens::Busy(millis) => {
                    let own = clock.clone();
                    drop(executor.submit(move || own.advance(ms(millis))));
                }
                Happens::Slow(millis) => slow.store(millis, Ordering::SeqCst),
                Happens::Pause => _ = task.task_handle().pause(),
                Happens::Resume => _ = task.task_handle().resume(),
            }
            let begins = begins.entries();
            let is_kept = begins.windows(2).all(|pair| pair[1] - pair[0] >= period);
            prop_assert!(is_kept, "{begins:?} {period}");
        }
        task.task_handle().resume();
        clock.run_for(ms(500));
        let begins = begins.entries();
        prop_assert!(begins.windows(2).all(|pair| pair[1] - pair[0] >= period), "{begins:?}");
        prop_assert!(begins.last().copied() >= last_call, "{begins:?} {last_call:?}");
    }
}

/// Many threads call a throttled task on the system's clock: it keeps its period even so.
#[test]
fn many_callers_keep_the_period() {
    let executor = Executor::new(2);
    let period = ms(2);
    let begins = Log::new();
    let log = begins.clone();
    let task =
        executor.task().throttle(period, move || log.push(Instant::now())).expect("accepted");
    let end = Instant::now() + ms(100);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < end {
                    assert!(task.call());
                }
            });
        }
    });
    let last_call = Instant::now();
    eventually("the last call has its run", || {
        begins.entries().last().is_some_and(|begin| *begin >= last_call)
            || task.task_handle().delay().is_none()
    });
    // A thread may be held up between the moment from which the period counts and that which its body notes. So
    // runs that are next to each other may seem too near, and not those on both sides of others.
    let begins = begins.entries();
    for (first, rest) in begins.iter().zip(1..).map(|(begin, next)| (begin, &begins[next..])) {
        for (between, begin) in (0..).zip(rest) {
            assert!(
                *begin - *first >= period * between,
                "{between} runs within {:?}",
                *begin - *first
            );
        }
    }
}

/// A call whose run does not take place does not wait any more: its run is skipped by a gate, whose answer may
/// take a while, or left out because it is overdue, or its hook panics.
#[test]
fn a_call_whose_run_does_not_take_place_waits_no_more() {
    let closed = || from_fn(|_| Entry::Skip);
    let fails = |builder: punctual::Builder| builder.before_execute(|_| panic!("no"));
    let with_gate = manual(1);
    let overdue = manual(1);
    let with_hook = manual_with(fails);
    let skipped = with_gate.1.task().gate(closed()).debounce(ms(10), || ());
    let left_out = overdue.1.task().missed_runs(MissedRuns::Within(ms(5)));
    let left_out = left_out.debounce(ms(10), || ());
    let failed = with_hook.1.task().on_failure(FailurePolicy::resume()).debounce(ms(10), || ());
    for ((clock, executor), task) in
        [(with_gate, skipped), (overdue, left_out), (with_hook, failed)]
    {
        let task = task.expect("accepted").max_wait(ms(30));
        assert!(task.call());
        clock.run_for(ms(2));
        assert!(task.is_waiting());
        clock.advance(ms(48));
        clock.run_until_idle();
        assert!(!task.is_waiting());
        assert!(!task.flush(), "no call is outstanding");
        assert!(task.call());
        assert_eq!(task.task_handle().delay(), Some(ms(10)), "the wait begins anew");
        assert!(task.is_waiting() && task.flush());
        clock.run_until_idle();
        assert_eq!(executor.pending_count(), 1);
    }
}

/// A call that comes while the gate is asked about another one's run has a run of its own, if that is skipped.
#[test]
fn a_call_during_the_question_has_a_run_of_its_own() {
    let (clock, executor) = manual(1);
    let itself = Arc::new(OnceLock::<Debounced>::new());
    let (inside, own) = (itself.clone(), clock.clone());
    let asked = Log::new();
    let log = asked.clone();
    let gate = from_fn(move |_| {
        log.push(own.elapsed().as_millis() as u64);
        let task = inside.get().expect("it is there");
        assert!(task.is_waiting(), "its run has not begun");
        if log.entries().len() == 1 {
            own.advance(ms(2));
            assert!(task.call());
            own.advance(ms(1));
            return Entry::Skip;
        }
        Entry::Run
    });
    let task = executor.task().gate(gate).debounce(ms(10), || ()).expect("accepted");
    let task = itself.get_or_init(|| task.max_wait(ms(100)));
    assert!(task.call());
    clock.run_for(ms(10));
    assert_eq!((asked.entries(), clock.elapsed()), (vec![10], ms(13)));
    assert!(task.is_waiting(), "the second call waits");
    assert_eq!(task.task_handle().delay(), Some(ms(9)), "12 and 10 are 22");
    clock.run_for(ms(9));
    assert_eq!((asked.entries(), executor.statistics().runs), (vec![10, 22], 1));
    assert!(!task.is_waiting() && !task.flush());
}

/// A run that its gate puts off goes on waiting, and can be flushed.
#[test]
fn a_call_whose_run_is_put_off_goes_on_waiting() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let (log, own) = (asked.clone(), clock.clone());
    let gate = from_fn(move |_| {
        log.push(own.elapsed().as_millis() as u64);
        if log.entries().len() < 3 { Entry::Again(ms(50)) } else { Entry::Run }
    });
    let task = executor.task().gate(gate).debounce(ms(10), || ()).expect("accepted");
    assert!(task.call());
    clock.run_for(ms(30));
    assert!(task.is_waiting());
    assert!(task.flush());
    clock.run_for(ms(49));
    assert_eq!((asked.entries(), task.is_waiting()), (vec![10, 30], true));
    clock.run_for(ms(1));
    assert_eq!((asked.entries(), task.is_waiting()), (vec![10, 30, 80], false));
    assert_eq!(executor.statistics().runs, 1);
}

/// A run of a throttled task that is skipped or left out does not begin a period: the next call has its run at once.
#[test]
fn a_run_that_does_not_take_place_begins_no_period() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let log = asked.clone();
    let gate = from_fn(move |_| {
        log.push(());
        if log.entries().len() == 2 { Entry::Skip } else { Entry::Run }
    });
    let task = executor.task().gate(gate).missed_runs(MissedRuns::Within(ms(5)));
    let task = task.throttle(ms(10), || ()).expect("accepted");
    assert!(task.call());
    clock.run_for(ms(20));
    assert!(task.call(), "this one is skipped");
    clock.run_for(ms(1));
    assert!(task.call());
    clock.run_until_idle();
    assert_eq!((asked.entries().len(), executor.statistics().runs), (3, 2));
    assert!(task.call());
    assert_eq!(task.task_handle().delay(), Some(ms(10)));
    clock.advance(ms(16));
    clock.run_until_idle();
    assert_eq!(executor.statistics().missed_runs, 1, "that one is left out");
    assert!(task.call());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 3);
}

/// A run that was asked for by hand begins a period as well, also before the first call.
#[test]
fn a_run_that_was_asked_for_begins_a_period() {
    let (clock, executor) = manual(1);
    let task = executor.task().throttle(ms(10), || ()).expect("accepted");
    assert!(task.task_handle().run_now());
    clock.run_for(ms(4));
    assert!(task.call());
    assert_eq!(task.task_handle().delay(), Some(ms(6)));
    clock.run_for(ms(6));
    assert_eq!(executor.statistics().runs, 2);
}

/// A run by hand within the period is put off until that is over, and takes the calls with it.
#[test]
fn a_throttle_keeps_its_period_from_runs_by_hand() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (log, own) = (runs.clone(), clock.clone());
    let body = move || log.push(own.elapsed().as_millis() as u64);
    let task = executor.task().throttle(ms(10), body).expect("accepted");
    assert!(task.call());
    clock.run_for(ms(4));
    assert!(task.task_handle().run_now() && task.call());
    clock.run_for(ms(20));
    let begins = runs.entries();
    assert_eq!(begins[..2], [0, 10]);
    assert!(begins.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{begins:?}");
}

/// A run by hand does not wait for quiet, and takes the calls with it.
#[test]
fn a_run_by_hand_takes_the_calls_of_a_debounce() {
    let (clock, executor) = manual(1);
    let task = executor.task().debounce(ms(10), || ()).expect("accepted");
    assert!(task.call() && task.task_handle().run_now());
    clock.run_until_idle();
    assert_eq!((executor.statistics().runs, task.is_waiting()), (1, false));
    assert!(!task.flush());
}

/// A shutdown that keeps the task keeps its run, which no call puts off any more.
#[test]
fn a_call_after_a_shutdown_joins_the_run() {
    let (clock, executor) =
        manual_with(|builder| builder.continues_existing_periodic_tasks_after_shutdown(true));
    let runs = Log::new();
    let (log, own) = (runs.clone(), clock.clone());
    let body = move || log.push(own.elapsed().as_millis() as u64);
    let task = executor.task().debounce(ms(10), body).expect("accepted");
    assert!(task.call());
    executor.shutdown();
    clock.run_for(ms(5));
    assert!(task.call());
    clock.run_for(ms(5));
    assert_eq!((runs.entries(), task.is_waiting()), (vec![10], false));
    assert!(task.task_handle().cancel() && !task.call());
}
