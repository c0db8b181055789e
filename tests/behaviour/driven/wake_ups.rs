//! Wake-ups of a caller that sleeps, and how many there are.

use std::{
    sync::{Arc, mpsc},
    task::{Wake, Waker},
    thread,
    time::Duration,
};

use punctual::{DrivenExecutor, ScheduledThreadPoolExecutor, gate, trigger::on_demand};

use super::{SECOND, Wakes, driven, driven_with};
use crate::{
    rounds::rounds,
    support::{Bomb, Counter, elsewhere},
};

/// Does something while the caller sleeps that was told to sleep for two seconds, and returns how often
/// it was woken.
fn wakes_by(act: impl FnOnce(&DrivenExecutor)) -> usize {
    let (_, mut executor) = driven();
    let wakes = Wakes::of(&mut executor);
    executor.schedule(2 * SECOND, || ()).unwrap();
    assert_eq!(executor.time_until_next(), Some(2 * SECOND));
    assert_eq!(wakes.count(), 0);
    act(&executor);
    wakes.count()
}

/// G58, M204: the caller is woken for what is due before the moment that it was told, and for nothing else.
#[test]
fn the_caller_is_woken_for_what_comes_sooner() {
    let submit = |span: Duration| {
        move |executor: &DrivenExecutor| drop(executor.schedule(span, || ()).unwrap())
    };
    for span in [Duration::ZERO, SECOND, 2 * SECOND - super::NANO] {
        assert_eq!(wakes_by(submit(span)), 1, "{span:?}");
    }
    for span in [2 * SECOND, 3 * SECOND, Duration::MAX] {
        assert_eq!(wakes_by(submit(span)), 0, "{span:?}");
    }
    let moved = wakes_by(|executor| {
        let task = executor.schedule(3 * SECOND, || ()).unwrap();
        assert!(task.reschedule(SECOND));
    });
    assert_eq!(moved, 1);
    let from_never: [fn(&DrivenExecutor); 4] = [
        |executor| {
            let task = executor.schedule(SECOND, || ()).unwrap();
            assert!(task.pause() && task.run_now());
        },
        |executor| assert!(executor.repeat(on_demand(), || ()).unwrap().run_now()),
        |executor| {
            assert!(executor.schedule(Duration::MAX, || ()).unwrap().run_within(SECOND));
        },
        |executor| assert!(executor.task().throttle(SECOND, || ()).unwrap().call()),
    ];
    for bring_forward in from_never {
        let wakes = wakes_by(bring_forward);
        assert!(wakes >= 1, "{wakes}");
    }
    let cancelled = wakes_by(|executor| {
        assert!(executor.schedule(3 * SECOND, || ()).unwrap().cancel());
        assert!(executor.pending_tasks()[0].cancel());
    });
    assert_eq!(cancelled, 0, "there is less to do");
}

/// Once woken it is awake, and a second wake-up would be of no use; nor does it wake itself.
#[test]
fn one_wake_up_for_each_sleep() {
    let (clock, mut executor) = driven();
    let wakes = Wakes::of(&mut executor);
    for round in 1..4 {
        let _ = executor.time_until_next();
        for span in [3, 2, 1, 0] {
            executor.schedule(span * SECOND, || ()).unwrap();
        }
        assert_eq!(wakes.count(), round);
        clock.advance(3 * SECOND);
        let handle = executor.handle();
        executor.execute(move || handle.execute(|| ()).unwrap()).unwrap();
        assert_eq!(executor.run_due(), 5);
        assert_eq!(executor.run_due(), 1);
        executor.execute(|| ()).unwrap();
        assert_eq!(wakes.count(), round, "nobody was told to sleep");
        assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
        executor.execute(|| ()).unwrap();
        assert_eq!(wakes.count(), round, "the caller knows that something is due");
        executor.run_due();
    }
}

/// A shutdown that leaves nothing, and the end, wake the caller.
#[test]
fn the_end_wakes_the_caller() {
    assert!(wakes_by(|executor| drop(executor.shutdown_now())) > 0);
    assert_eq!(wakes_by(|executor| executor.shutdown()), 0, "the task is kept");
    let (_, mut executor) = driven();
    let wakes = Wakes::of(&mut executor);
    assert_eq!(executor.time_until_next(), None);
    executor.shutdown();
    assert!(wakes.count() > 0);
    assert!(executor.is_terminated());
}

/// M205: a shutdown whose hook is slow has been seen, and does not keep the caller busy: it is woken once more at the end.
#[test]
fn nobody_polls_for_an_end_that_another_thread_brings() {
    let (in_hook, go_on) = (Counter::new(), Counter::new());
    let (tell, wait) = (in_hook.clone(), go_on.clone());
    let (_, mut executor) = driven_with(|builder| {
        builder.terminated(move || {
            tell.add();
            wait.wait_for(1);
        })
    });
    let wakes = Wakes::of(&mut executor);
    let handle = executor.handle();
    let stopper = elsewhere(move || handle.shutdown());
    in_hook.wait_for(1);
    assert_eq!((executor.run_due(), executor.time_until_next()), (0, None));
    let before = wakes.count();
    go_on.add();
    stopper.get();
    assert!(wakes.count() > before && executor.is_terminated());
}

#[test]
fn the_last_waker_counts() {
    let (_, mut executor) = driven();
    let before = Wakes::of(&mut executor);
    let _ = executor.time_until_next();
    let after = Wakes::of(&mut executor);
    let _ = executor.time_until_next();
    executor.execute(|| ()).unwrap();
    assert_eq!((before.count(), after.count()), (0, 1));
    drop(executor);
    assert_eq!((Arc::strong_count(&before), Arc::strong_count(&after)), (1, 1));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        drop(Bomb("a waker"));
    }
}

#[test]
fn a_waker_that_panics_is_contained() {
    let (_, mut executor) = driven();
    executor.set_waker(Waker::from(Arc::new(Panics)));
    let _ = executor.time_until_next();
    executor.execute(|| ()).unwrap();
    assert_eq!(executor.run_due(), 1);
}

/// G58: the caller sleeps without a limit if it is told that nothing is pending, and others submit: nothing is
/// left lying. Only a wake-up that is lost makes this hang.
#[test]
fn no_wake_up_is_lost() {
    const THREADS: usize = 2;
    const TASKS: usize = 10;
    for _ in rounds("the sleep of a driver", 300) {
        let ran = Counter::new();
        let mut executor = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
        let here = thread::current();
        struct Unpark(thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        executor.set_waker(Waker::from(Arc::new(Unpark(here))));
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (handle, ran) = (executor.handle(), ran.clone());
                scope.spawn(move || {
                    for task in 0..TASKS {
                        let (ran, wait) = (ran.clone(), ran.clone());
                        let before = wait.get();
                        let delay = Duration::from_micros((7 * task % 5 * number) as u64);
                        handle.schedule(delay, move || ran.add()).unwrap();
                        if number == 0 {
                            wait.wait_for(before + 1);
                        }
                    }
                });
            }
            while ran.get() < THREADS * TASKS {
                executor.run_due();
                match executor.time_until_next() {
                    _ if ran.get() == THREADS * TASKS => break,
                    Some(span) => thread::park_timeout(span),
                    None => thread::park(),
                }
            }
        });
        assert_eq!(executor.pending_count(), 0);
    }
}

/// A gate answers later: the caller is woken, and runs the task.
#[test]
fn the_caller_is_woken_by_the_answer_of_a_gate() {
    let (_, mut executor) = driven();
    let wakes = Wakes::of(&mut executor);
    let (tell, replies) = mpsc::channel();
    let gate = gate::from_fn(move |_| {
        let (reply, entry) = gate::later();
        tell.send(reply).unwrap();
        entry
    });
    let task = executor.task().gate(gate).submit(|| 4).unwrap();
    assert_eq!((executor.run_due(), executor.run_due()), (0, 0));
    assert_eq!(executor.time_until_next(), None);
    let before = wakes.count();
    replies.try_recv().unwrap().send(gate::Entry::Run);
    assert_eq!(wakes.count(), before + 1);
    assert_eq!(executor.run_due(), 1);
    assert_eq!(task.join().unwrap(), 4);
}
