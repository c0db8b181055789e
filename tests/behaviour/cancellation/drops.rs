//! A task's closure and result are dropped once, and at the promised time.

use std::{
    panic,
    sync::{Arc, Mutex},
    thread,
};

use punctual::{
    ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor, Submission, TaskHandle, TaskRun,
};

use crate::{
    support::awaiting::{Wakes, poll},
    support::{Counter, DropToken, Drops, HOUR, Log, hold, manual, manual_with, ms},
};

/// An event in the life of a task whose body begins when it is due, and ends when the test lets it.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begin,
    End,
    Take,
    Cancel,
    DropFuture,
    StopExecutor,
}

/// A task that counts when its closure and its result are dropped.
struct Life {
    clock: ManualClock,
    executor: Option<ScheduledThreadPoolExecutor>,
    future: Option<ScheduledFuture<DropToken>>,
    /// The handles are kept, to show that they keep neither closure nor result alive.
    handle: TaskHandle,
    begun: Counter,
    gate: Counter,
    closure: Drops,
    result: Drops,
}

impl Life {
    fn new() -> Self {
        let (clock, executor) = manual(1);
        let (begun, gate) = (Counter::new(), Counter::new());
        let (closure, result) = (Drops::new(), Drops::new());
        let (begins, opened) = (begun.clone(), gate.clone());
        let (capture, results) = (closure.token(), result.clone());
        let future = executor.schedule(ms(10), move || {
            let _capture = capture;
            begins.add();
            opened.wait_for(1);
            results.token()
        });
        let future = future.expect("the executor is open");
        Self {
            clock,
            executor: Some(executor),
            handle: future.task_handle(),
            future: Some(future),
            begun,
            gate,
            closure,
            result,
        }
    }

    fn meets(&mut self, event: Event) {
        let future = self.future.as_ref();
        match event {
            Event::Begin => {
                self.clock.advance(ms(10));
                self.begun.wait_for(1);
            }
            Event::End => {
                self.gate.add();
                self.clock.run_until_idle();
            }
            Event::Take => {
                let result = future.expect("it was not dropped").try_join();
                assert!(matches!(result, Some(Ok(_))));
            }
            Event::Cancel => {
                self.handle.cancel();
            }
            Event::DropFuture => self.future = None,
            Event::StopExecutor => {
                let executor = self.executor.take().expect("it is stopped once");
                executor.shutdown_background();
            }
        }
    }

    fn drops(&self) -> (usize, usize) {
        (self.closure.count(), self.result.count())
    }
}

/// The fates of a task, and the numbers of closures and results dropped after each.
const LIVES: &[&[(Event, (usize, usize))]] = {
    use Event::*;
    &[
        &[(DropFuture, (0, 0)), (Begin, (0, 0)), (End, (1, 1))],
        &[(Begin, (0, 0)), (DropFuture, (0, 0)), (End, (1, 1))],
        &[(Begin, (0, 0)), (End, (1, 0)), (DropFuture, (1, 1))],
        &[(Begin, (0, 0)), (End, (1, 0)), (Take, (1, 1)), (DropFuture, (1, 1))],
        &[(Cancel, (1, 0)), (DropFuture, (1, 0))],
        &[(Begin, (0, 0)), (Cancel, (0, 0)), (End, (1, 1)), (DropFuture, (1, 1))],
        &[(Begin, (0, 0)), (Cancel, (0, 0)), (DropFuture, (0, 0)), (End, (1, 1))],
        &[(Begin, (0, 0)), (End, (1, 0)), (Cancel, (1, 0)), (DropFuture, (1, 1))],
        &[(StopExecutor, (1, 0)), (DropFuture, (1, 0))],
        &[(DropFuture, (0, 0)), (StopExecutor, (1, 0))],
        &[(Begin, (0, 0)), (StopExecutor, (0, 0)), (End, (1, 0)), (Take, (1, 1))],
        &[(Begin, (0, 0)), (StopExecutor, (0, 0)), (DropFuture, (0, 0)), (End, (1, 1))],
        &[(Begin, (0, 0)), (End, (1, 0)), (StopExecutor, (1, 0)), (DropFuture, (1, 1))],
    ]
};

/// F37, G14: whatever happens to a task, its closure is dropped when it has run or can no longer
/// run, and its result when no call can take it any more; each is dropped once, and no handle delays
/// it.
#[test]
fn closure_and_result_are_dropped_once_and_at_once() {
    for events in LIVES {
        let mut life = Life::new();
        for &(event, drops) in *events {
            life.meets(event);
            assert_eq!(life.drops(), drops, "after {event:?} in {events:?}");
        }
        let (closure, result) = (life.closure.clone(), life.result.clone());
        let last = life.drops();
        drop(life);
        assert_eq!((closure.count(), result.count()), last, "{events:?}");
    }
}

/// A periodic closure outlives its future, and is dropped once, as soon as the periodic task ends.
#[test]
fn a_periodic_closure_is_dropped_when_its_task_ends() {
    type End = fn(&ManualClock, &TaskHandle, ScheduledThreadPoolExecutor);
    let ends: [(End, usize); 3] = [
        (|_, handle, _executor| assert!(handle.cancel()), 2),
        (|_, _, executor| drop(executor), 2),
        // The third run panics.
        (|clock, _, _executor| clock.run_for(ms(10)), 3),
    ];
    for (end, all_runs) in ends {
        let (clock, executor) = manual(1);
        let (runs, drops) = (Counter::new(), Drops::new());
        let (ran, capture) = (runs.clone(), drops.token());
        let future = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
            let _capture = &capture;
            ran.add();
            if ran.get() == 3 {
                panic::resume_unwind(Box::new("the third run"));
            }
        });
        let handle = future.expect("the executor is open").task_handle();
        clock.run_for(ms(20));
        assert_eq!((runs.get(), drops.count()), (2, 0));
        end(&clock, &handle, executor);
        assert_eq!((runs.get(), drops.count()), (all_runs, 1));
        assert!(handle.is_done());
    }
}

/// When it is dropped, notes how often the waiters of its task had been woken by then.
struct Witness(Arc<Wakes>, Log<usize>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.1.push(self.0.count());
    }
}

/// F16, M39: threads that wait for a task are woken before its leftover values are dropped: such a
/// drop may take long, or wait for a thread that is being woken.
#[test]
fn waiters_are_woken_before_leftover_values_are_dropped() {
    type End = fn(&ManualClock, &TaskHandle, ScheduledThreadPoolExecutor);
    // A run drops its closure and the wrapper around it before it ends the task.
    let ends: [(&str, End, [usize; 2]); 3] = [
        ("cancelled", |_, task, _executor| assert!(task.cancel()), [1, 1]),
        ("stopped", |_, _, executor| drop(executor), [1, 1]),
        ("run", |clock, _, _executor| clock.run_for(ms(10)), [0, 0]),
    ];
    for (what, end, expected) in ends {
        let (wakes, told) = (Wakes::new(), Log::new());
        let wrapper = Witness(Arc::clone(&wakes), told.clone());
        let capture = Witness(Arc::clone(&wakes), told.clone());
        let once = Mutex::new(Some(wrapper));
        let (clock, executor) = manual_with(move |builder| {
            builder.decorate_task(move |_: &Submission<'_>| {
                let wrapper = once.lock().expect("nobody panics").take();
                move |next: TaskRun<'_>| {
                    hold(&wrapper);
                    next.run()
                }
            })
        });
        let task = executor.schedule(ms(10), move || drop(capture));
        let mut task = task.expect("the executor is open");
        assert!(poll(&mut task, &wakes).is_pending());
        end(&clock, &task.task_handle(), executor);
        assert_eq!(told.entries(), expected, "{what}");
    }
}

/// A task may own its future, and drop it while it runs.
#[test]
fn a_task_may_drop_its_own_future() {
    let (clock, executor) = manual(1);
    let result = Drops::new();
    let own = Arc::new(Mutex::new(None::<ScheduledFuture<DropToken>>));
    let (mine, results) = (Arc::clone(&own), result.clone());
    let future = executor.schedule(ms(10), move || {
        drop(mine.lock().expect("nobody panics").take());
        results.token()
    });
    *own.lock().expect("nobody panics") = Some(future.expect("the executor is open"));
    clock.run_for(ms(10));
    assert!(own.lock().expect("nobody panics").is_none());
    assert_eq!(result.count(), 1);
}

/// Five hundred guards in a row are dropped inside one another, and a chain of a thousand results, on a stack of 2 MiB.
#[test]
fn a_chain_of_guards_or_results_fits_on_a_stack() {
    let drops = || {
        let (clock, executor) = manual(1);
        let mut guard = None;
        for _ in 0..500 {
            let inner = guard.take();
            let body = move || drop(inner);
            guard = Some(executor.schedule(HOUR, body).unwrap().cancel_on_drop());
        }
        drop(guard);
        assert_eq!(executor.pending_tasks().len(), 0);
        let mut last: ScheduledFuture<Link> = executor.submit(|| Link(None)).unwrap();
        for _ in 0..1000 {
            last = executor.submit(move || Link(Some(Box::new(last)))).unwrap();
            clock.run_until_idle();
        }
        drop(last);
    };
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(drops);
    thread.unwrap().join().unwrap();
}

/// A result that owns the future of another.
struct Link(#[allow(dead_code)] Option<Box<ScheduledFuture<Link>>>);
