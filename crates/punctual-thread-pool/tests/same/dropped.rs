//! The effects of a drop of the pool on jobs that wait, repeat or run, with and without handles.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::patience::receive;
use crate::subject::{
    KINDS, Kind, OnDrop, Pool, all, ms, panic_of, same, unique_name, wait_for_the_end_of,
};

/// The events after the drop of a pool on which jobs wait. The last event is noted by the thread that
/// drops it.
fn waiting<P: Pool>(on_drop: OnDrop, keeps_handles: bool) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::build(2, None, on_drop), mpsc::channel());
    let delay = ms(150);
    let start = Instant::now();
    let note = |name: &'static str| {
        let event = event.clone();
        move || {
            assert!(start.elapsed() >= delay, "it is early");
            event.send(name).expect("the test waits for it");
        }
    };
    let mut handles = vec![pool.after(delay, note("once"))];
    handles.extend(KINDS.map(|kind| pool.repeat(kind, delay, ms(1), note("again"))));
    P::cancel(&pool.after(delay, note("cancelled")));
    if !keeps_handles {
        handles.clear();
    }
    drop(pool);
    event.send("dropped").expect("the test waits for it");
    if start.elapsed() >= delay {
        return None;
    }
    drop(event);
    let mut happened = all(&events);
    happened[1..].sort_unstable();
    drop(handles);
    Some(happened)
}

/// By default each waiting job runs once more, when it is due, and a series is over then.
#[test]
fn waiting_jobs_run_once_more() {
    for keeps_handles in [true, false] {
        same!(
            waiting(OnDrop::Complete, keeps_handles),
            ["dropped", "again", "again", "again", "again", "once"]
        );
    }
}

#[test]
fn waiting_jobs_are_discarded() {
    for keeps_handles in [true, false] {
        same!(waiting(OnDrop::Discard, keeps_handles), ["dropped"]);
    }
}

/// A series that is cancelled after the drop, before its last run.
fn cancelled_after_the_drop<P: Pool>() -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let start = Instant::now();
    let handles = KINDS.map(|kind| {
        let event = event.clone();
        pool.repeat(kind, ms(100), ms(1), move || event.send("runs").expect("waited for"))
    });
    drop((pool, event));
    handles.iter().for_each(P::cancel);
    if start.elapsed() >= ms(100) {
        return None;
    }
    Some(all(&events))
}

#[test]
fn a_handle_works_after_the_drop() {
    let none: [&str; 0] = [];
    same!(cancelled_after_the_drop(), none);
}

/// A pool that is dropped while one job runs, others are due, and others wait; by kind of the one that runs.
fn running<P: Pool>(on_drop: OnDrop, kind: Option<Kind>) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::build(1, None, on_drop), mpsc::channel());
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let note = event.clone();
    let job = move || {
        note.send("begins").expect("the test waits for it");
        begun.send(()).expect("the test waits for it");
        let _ = goes_on.recv();
        note.send("ends").expect("the test waits for it");
    };
    let _handle = match kind {
        Some(kind) => pool.repeat(kind, Duration::ZERO, Duration::ZERO, job),
        None => pool.execute(job),
    };
    receive(&has_begun, "it runs");
    for (delay, name) in [(ms(0), "due"), (ms(1), "soon due")] {
        let event = event.clone();
        pool.after(delay, move || event.send(name).expect("the test waits for it"));
    }
    drop(pool);
    event.send("dropped").expect("the test waits for it");
    drop((event, go_on));
    Some(all(&events))
}

/// A job that runs finishes; if it repeats, that was the last run. The drop does not wait for it.
#[test]
fn a_running_job_finishes() {
    for kind in KINDS.map(Some).into_iter().chain([None]) {
        same!(running(OnDrop::Complete, kind), ["begins", "dropped", "ends", "due", "soon due"]);
        same!(running(OnDrop::Discard, kind), ["begins", "dropped", "ends"]);
    }
}

/// A pool that one of its own jobs drops, because it is the last that has it.
fn dropped_by_its_job<P: Pool>(on_drop: OnDrop, kind: Kind) -> Option<Vec<&'static str>> {
    let (name, (event, events)) = (unique_name(), mpsc::channel());
    let pool = Arc::new(P::build(2, Some(&name), on_drop));
    let (begin, begins) = mpsc::channel::<()>();
    let (mut own, once) = (Some(Arc::clone(&pool)), event.clone());
    let (start, delay) = (Instant::now(), ms(100));
    let (late, is_late) = mpsc::channel();
    pool.repeat(kind, Duration::ZERO, Duration::ZERO, move || {
        let _ = begins.recv();
        event.send("drops").expect("the test waits for it");
        drop(own.take().expect("it runs once"));
        event.send("has dropped").expect("the test waits for it");
        late.send(start.elapsed() >= delay).expect("the test waits for it");
    });
    pool.after(delay, move || once.send("after it").expect("the test waits for it"));
    drop(pool);
    drop(begin);
    let happened = all(&events);
    wait_for_the_end_of(&name);
    (!is_late.recv().expect("the job has run")).then_some(happened)
}

#[test]
fn a_job_may_drop_its_pool() {
    for kind in KINDS {
        same!(dropped_by_its_job(OnDrop::Complete, kind), ["drops", "has dropped", "after it"]);
        same!(dropped_by_its_job(OnDrop::Discard, kind), ["drops", "has dropped"]);
    }
}

/// A pool that is dropped because its owner panics.
fn dropped_by_a_panic<P: Pool>(on_drop: OnDrop) -> Option<Vec<&'static str>> {
    let (event, events) = mpsc::channel();
    let start = Instant::now();
    let message = panic_of(|| {
        let pool = P::build(1, None, on_drop);
        pool.after(ms(100), move || event.send("runs").expect("the test waits for it"));
        std::panic::resume_unwind(Box::new("as planned"));
    });
    assert_eq!(message.as_deref(), Some("as planned"));
    if start.elapsed() >= ms(100) {
        return None;
    }
    Some(all(&events))
}

#[test]
fn a_panic_of_the_owner_changes_nothing() {
    let none: [&str; 0] = [];
    same!(dropped_by_a_panic(OnDrop::Complete), ["runs"]);
    same!(dropped_by_a_panic(OnDrop::Discard), none);
}

/// Many pools that are dropped while series are in every state: no run begins after the last that may, and
/// every thread ends.
fn dropped_at_any_time<P: Pool>(on_drop: OnDrop) -> Option<()> {
    let name = unique_name();
    for round in 0..100_u64 {
        let (pool, (event, events)) = (P::build(2, Some(&name), on_drop), mpsc::channel());
        let handles = KINDS.map(|kind| {
            let event = event.clone();
            pool.repeat(kind, Duration::ZERO, Duration::from_micros(20), move || {
                let _ = event.send(());
            })
        });
        drop(event);
        if round % 2 == 0 {
            receive(&events, "they run");
        }
        thread::sleep(Duration::from_micros(round * 7 % 200));
        drop(pool);
        // All closures are dropped, although the program has cancelled none.
        all(&events);
        drop(handles);
    }
    wait_for_the_end_of(&name);
    Some(())
}

#[test]
fn every_series_comes_to_its_end() {
    same!(dropped_at_any_time(OnDrop::Complete), ());
    same!(dropped_at_any_time(OnDrop::Discard), ());
}
