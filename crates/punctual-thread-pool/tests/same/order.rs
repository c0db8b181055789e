//! Which job runs first, and which one does not run at all.

use std::{
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::patience::receive;
use crate::subject::{Gate, KINDS, Kind, OnDrop, Pool, all, ms, same};

/// The delays of jobs whose order is compared differ by this much. Their submissions have to take less.
const MARGIN: Duration = ms(40);

/// Jobs run in the order in which they are due. Those without a delay run in the order of submission.
fn jobs_by_delay<P: Pool>() -> Option<Vec<u32>> {
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let gate = Gate::close(&pool);
    let start = Instant::now();
    let note = |number: u32| {
        let event = event.clone();
        move || event.send(number).expect("the test waits for it")
    };
    for (number, delay) in [(3, 3 * MARGIN), (1, MARGIN), (2, 2 * MARGIN)] {
        pool.after(delay, note(number));
    }
    pool.execute(note(10));
    pool.after(Duration::ZERO, note(11));
    pool.execute(note(12));
    let is_on_time = start.elapsed() < MARGIN;
    gate.open();
    drop((pool, event));
    is_on_time.then(|| all(&events))
}

#[test]
fn jobs_run_in_the_order_in_which_they_are_due() {
    same!(jobs_by_delay(), [10, 11, 12, 1, 2, 3]);
}

/// A job that repeats and one that does not, on a thread that was busy until both were overdue.
fn overdue<P: Pool>(kind: Kind) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let gate = Gate::close(&pool);
    let (start, once) = (Instant::now(), event.clone());
    let mut runs = 0;
    let own = Arc::new(OnceLock::<P::Handle>::new());
    let handle = Arc::clone(&own);
    let series = pool.repeat(kind, 2 * MARGIN, 2 * MARGIN, move || {
        event.send("again").expect("the test waits for it");
        runs += 1;
        if runs == 4 {
            P::cancel(handle.get().expect("it was set before the gate opened"));
        }
    });
    let _ = own.set(series);
    pool.after(5 * MARGIN, move || once.send("once").expect("the test waits for it"));
    let is_on_time = start.elapsed() < MARGIN;
    thread::sleep(10 * MARGIN);
    gate.open();
    is_on_time.then(|| all(&events))
}

/// Missed runs at a rate are made up for in the order of their moments, with whatever else is overdue. After
/// a delay the next run is in the future, and so behind.
#[test]
fn missed_runs_are_made_up_for_in_order() {
    for kind in [Kind::FixedRate, Kind::DynamicRate] {
        same!(overdue(kind), ["again", "again", "once", "again", "again"]);
    }
    for kind in [Kind::FixedDelay, Kind::DynamicDelay] {
        same!(overdue(kind), ["again", "once", "again", "again", "again"]);
    }
}

/// A job that repeats without a pause, and one that was submitted after it, on one thread.
fn no_pause<P: Pool>(kind: Kind) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let gate = Gate::close(&pool);
    let (again, mut runs, own) = (event.clone(), 0, Arc::new(OnceLock::<P::Handle>::new()));
    let handle = Arc::clone(&own);
    let series = pool.repeat(kind, Duration::ZERO, Duration::ZERO, move || {
        again.send("again").expect("the test waits for it");
        runs += 1;
        if runs == 50 {
            P::cancel(handle.get().expect("it was set before the gate opened"));
        }
    });
    let _ = own.set(series);
    pool.execute(move || event.send("other").expect("the test waits for it"));
    gate.open();
    Some(all(&events))
}

/// At a rate of zero a job is always the one that has been due for longest. With a delay of zero it lets the
/// others run.
#[test]
fn a_pause_of_zero() {
    let at = |place: usize| {
        let mut events = vec!["again"; 50];
        events.insert(place, "other");
        events
    };
    for kind in KINDS {
        let place = if matches!(kind, Kind::FixedRate | Kind::DynamicRate) { 50 } else { 1 };
        same!(no_pause(kind), at(place));
    }
}

/// Cancels jobs at several moments, and notes how often each runs.
fn cancelled<P: Pool>() -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let note = |name: &'static str| {
        let event = event.clone();
        move || event.send(name).expect("the test waits for it")
    };
    let gate = Gate::close(&pool);
    P::cancel(&pool.execute(note("cancelled while it was due")));
    P::cancel(&pool.after(ms(1), note("cancelled before it was due")));
    for kind in KINDS {
        P::cancel(&pool.repeat(kind, Duration::ZERO, ms(1), note("a cancelled series")));
    }
    let twice = pool.after(ms(1), note("cancelled twice"));
    P::cancel(&twice);
    P::cancel(&twice);
    drop(pool.execute(note("its handle was dropped")));
    let ended = pool.execute(note("cancelled when it had run"));
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let end = note("cancelled while it ran");
    let running = pool.execute(move || {
        begun.send(()).expect("the test waits for it");
        let _ = goes_on.recv();
        end();
    });
    gate.open();
    receive(&has_begun, "it runs");
    P::cancel(&running);
    P::cancel(&ended);
    drop((go_on, pool, event));
    Some(all(&events))
}

#[test]
fn a_cancelled_job_does_not_begin() {
    let run = ["its handle was dropped", "cancelled when it had run", "cancelled while it ran"];
    same!(cancelled(), run);
}

/// A series that another thread cancels during a run, which finishes and is the last.
fn cancelled_during_a_run<P: Pool>(kind: Kind) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(2), mpsc::channel());
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let series = pool.repeat(kind, Duration::ZERO, Duration::ZERO, move || {
        event.send("begins").expect("the test waits for it");
        begun.send(()).expect("the test waits for it");
        let _ = goes_on.recv();
        event.send("ends").expect("the test waits for it");
    });
    receive(&has_begun, "it runs");
    P::cancel(&series);
    drop(go_on);
    Some(all(&events))
}

#[test]
fn a_run_that_is_cancelled_finishes_and_is_the_last() {
    for kind in KINDS {
        same!(cancelled_during_a_run(kind), ["begins", "ends"]);
    }
}

/// A job that submits another, which submits another.
fn nested<P: Pool>() -> Option<Vec<u32>> {
    let (pool, (event, events)) = (Arc::new(P::new(1)), mpsc::channel());
    let (second, weak) = (event.clone(), Arc::downgrade(&pool));
    pool.execute(move || {
        let pool = weak.upgrade().expect("the test keeps it");
        pool.after(ms(2), move || second.send(2).expect("the test waits for it"));
        event.send(1).expect("the test waits for it");
    });
    let received = all(&events);
    drop(pool);
    Some(received)
}

#[test]
fn a_job_may_submit() {
    same!(nested(), [1, 2]);
}

/// Many threads submit at once, and cancel every third job before the pool gets to it.
fn from_many_threads<P: Pool>() -> Option<(usize, usize)> {
    const EACH: usize = 600;
    let pool = P::build(3, None, OnDrop::Complete);
    let gates = [(); 3].map(|()| Gate::close(&pool));
    let (event, events) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (pool, event) = (&pool, event.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    let event = event.clone();
                    let job = move || event.send(number).expect("the test waits for it");
                    let handle = pool.after(Duration::from_micros((number % 7) as u64), job);
                    if number % 3 == 0 {
                        P::cancel(&handle);
                    }
                }
            });
        }
    });
    gates.into_iter().for_each(Gate::open);
    drop((pool, event));
    let run = all(&events);
    Some((run.len(), run.iter().filter(|number| *number % 3 == 0).count()))
}

#[test]
fn no_job_is_lost_and_none_runs_twice() {
    same!(from_many_threads(), (1600, 0));
}
