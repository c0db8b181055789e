//! Every place in the life of a task where user code is called or dropped; there it may do anything
//! to the executor. (Hooks are in `hooks`, thread factories in `factories`.)

use std::{
    cell::RefCell,
    panic::panic_any,
    sync::{Arc, Mutex, PoisonError},
    task::{Wake, Waker},
};

use punctual::{
    Builder, Handle, RejectedTask, ScheduledThreadPoolExecutor as Executor, Submission, TaskRun,
};

use crate::support::{Counter, LONG, hold, in_time, ms, poll};

/// Owns an executor, and acts on it, once: when it is called, woken or dropped.
struct Late {
    owner: Mutex<Option<Executor>>,
    act: Act,
    acted: Counter,
}

/// An action that the owner of an executor performs on it.
type Act = fn(Executor);

impl Late {
    fn act(&self) {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(executor) = owner {
            (self.act)(executor);
            self.acted.add();
        }
    }
}

impl Wake for Late {
    fn wake(self: Arc<Self>) {
        self.act();
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.act();
    }
}

/// Arranges that it is called or dropped in a certain place, and soon.
type Place = fn(&Handle, Late);

const PLACES: [(&str, Place); 16] = [
    ("body", |handle, late| handle.execute(move || late.act()).expect("open")),
    ("body of a periodic task", |handle, late| {
        let series = handle.schedule_with_fixed_delay(ms(1), ms(1), move || late.act());
        drop(series.expect("open"));
    }),
    ("capture, after a run", |handle, late| handle.execute(move || hold(&late)).expect("open")),
    ("capture, after a panic", |handle, late| {
        let body = move || {
            hold(&late);
            panic_any("the body");
        };
        handle.execute(body).expect("open");
    }),
    ("capture of a periodic task, after a panic", |handle, late| {
        let series = handle.schedule_at_fixed_rate(ms(1), ms(1), move || {
            hold(&late);
            panic_any("the body");
        });
        drop(series.expect("open"));
    }),
    ("capture of what is cancelled", |handle, late| {
        let task = handle.schedule(LONG, move || hold(&late)).expect("open");
        assert!(task.cancel());
    }),
    ("capture of what is removed", |handle, late| {
        let task = handle.schedule(LONG, move || hold(&late)).expect("open");
        assert!(handle.remove(&task));
    }),
    ("capture of what is struck", |handle, late| {
        let gate = Counter::new();
        let opened = gate.clone();
        handle.execute(move || opened.wait_for(1)).expect("open");
        let behind = handle.task().timeout(ms(1)).submit(move || hold(&late));
        behind.expect("open").wait().expect("not on a worker");
        gate.add();
    }),
    ("result", |handle, late| drop(handle.submit(move || late).expect("open"))),
    ("capture of what is refused", |handle, late| {
        let refused = handle.schedule_at_fixed_rate(LONG, ms(0), move || hold(&late));
        drop(refused.expect_err("the period is zero"));
    }),
    ("payload", |handle, late| handle.execute(move || panic_any(late)).expect("open")),
    ("waker, when woken", |handle, late| {
        let mut task = handle.schedule(ms(1), || ()).expect("open");
        drop(poll(&mut task, &Waker::from(Arc::new(late))));
        task.wait().expect("not on a worker");
    }),
    ("waker, when replaced", |handle, late| {
        let mut task = handle.schedule(LONG, || ()).expect("open");
        assert!(poll(&mut task, &Waker::from(Arc::new(late))).is_pending());
        assert!(poll(&mut task, Waker::noop()).is_pending());
        task.cancel();
    }),
    ("wrapper", |handle, late| {
        WRAPPED.set(Some((true, late)));
        handle.execute(|| ()).expect("open");
    }),
    ("capture of a wrapper", |handle, late| {
        WRAPPED.set(Some((false, late)));
        handle.execute(|| ()).expect("open");
    }),
    ("capture of what is not admitted", |handle, late| {
        while handle.pending_count() < ROOM {
            drop(handle.schedule(LONG, || ()).expect("open"));
        }
        handle.execute(move || hold(&late)).expect("it is discarded");
    }),
];

/// How many tasks may be pending.
const ROOM: usize = 4;

thread_local! {
    /// The value that the next submission's wrapper owns, and whether it calls the value or only
    /// drops it.
    static WRAPPED: RefCell<Option<(bool, Late)>> = const { RefCell::new(None) };
}

/// Settings that some of the places need.
fn with_places(builder: Builder) -> Builder {
    builder
        .decorate_task(|_: &Submission<'_>| {
            let wrapped = WRAPPED.take();
            move |next: TaskRun<'_>| {
                let done = next.run();
                if let Some((true, late)) = &wrapped {
                    late.act();
                }
                done
            }
        })
        .rejected_execution_handler(|task: RejectedTask<'_>| task.discard())
}

const ACTS: [(&str, Act); 7] = [
    ("submits", |executor| {
        executor.execute(|| ()).expect("it is open");
        drop(executor.schedule(LONG, || ()).expect("it is open"));
        drop(executor.schedule_at_fixed_rate(ms(1), ms(1), || ()).expect("it is open"));
        executor.shutdown_background();
    }),
    ("looks", |executor| {
        assert!(executor.statistics().submitted > 0 && !executor.pending_tasks().is_empty());
        assert!(format!("{executor:?}").contains("pending"));
        executor.shutdown_background();
    }),
    ("cancels", |executor| {
        for task in executor.pending_tasks() {
            task.cancel_and_signal();
        }
        executor.shutdown_background();
    }),
    ("shuts down", |executor| {
        executor.shutdown();
        executor.shutdown_background();
    }),
    ("shuts down now", |executor| drop(executor.shutdown_now())),
    ("stops", Executor::shutdown_background),
    ("drops", drop),
];

/// F14, F16, F18, G25, M67: wherever user code is called or dropped it may submit, inspect, cancel,
/// shut down, and drop the executor that it owns: nothing hangs, and everything ends.
#[test]
fn anything_can_be_done_to_an_executor_from_anywhere() {
    for (place, put) in PLACES {
        for (what, act) in ACTS {
            let what = format!("{place}: {what}");
            in_time(&what.clone(), move || act_in(&what, put, act));
        }
    }
}

fn act_in(what: &str, put: Place, act: Act) {
    let builder = Executor::builder().core_pool_size(1).max_pending(ROOM);
    let executor = with_places(builder).build().expect("the settings are good");
    let (handle, acted) = (executor.handle(), Counter::new());
    let far = handle.schedule(LONG, || ()).expect("it is open");
    put(&handle, Late { owner: Mutex::new(Some(executor)), act, acted: acted.clone() });
    acted.wait_for(1);
    assert_eq!(handle.await_termination(LONG), Ok(true), "{what}");
    assert!(far.is_cancelled(), "{what}");
    assert_eq!((acted.get(), handle.pending_count()), (1, 0), "{what}");
}
