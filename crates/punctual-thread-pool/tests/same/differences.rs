//! The differences, each run on both crates, so that the table of the crate's page is what the tests have found.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, TryRecvError},
    },
    thread,
    time::Duration,
};

use original::ScheduledThreadPool as There;
use punctual_thread_pool::ScheduledThreadPool as Here;

use crate::patience::receive;
use crate::subject::{Gate, OnDrop, Pool, threads_of, unique_name, wait_for_the_end_of};

const HOUR: Duration = Duration::from_secs(3600);

/// Notes on which thread it is dropped.
struct Guard(mpsc::Sender<thread::ThreadId>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

/// Cancels a job that would run in an hour. Returns whether it was dropped by then, and whether the threads
/// outlive the pool because of it.
fn cancelled<P: Pool>() -> (bool, bool) {
    let (name, (dropped, drops)) = (unique_name(), mpsc::channel());
    let pool = P::with_name(&name, 1);
    let guard = Guard(dropped);
    P::cancel(&pool.after(HOUR, move || drop(guard)));
    let is_dropped = drops.try_recv() == Ok(thread::current().id());
    // The thread has its name, and has begun to wait again.
    drop(Gate::close(&pool));
    drop(pool);
    if is_dropped {
        wait_for_the_end_of(&name);
    }
    (is_dropped, threads_of(&name) > 0)
}

#[test]
fn a_cancelled_job_is_dropped_at_once() {
    assert_eq!(cancelled::<Here>(), (true, false));
    assert_eq!(cancelled::<There>(), (false, true));
}

/// Where a job is dropped that the drop of the pool discards while another runs: whether it is by then, and
/// whether this thread did it.
fn discarded<P: Pool>() -> (bool, bool) {
    let (pool, (dropped, drops)) = (P::build(1, None, OnDrop::Discard), mpsc::channel());
    let gate = Gate::close(&pool);
    let guard = Guard(dropped);
    pool.after(HOUR, move || drop(guard));
    drop(pool);
    let by_then = drops.try_recv();
    gate.open();
    let (is_dropped, thread) = match by_then {
        Ok(thread) => (true, thread),
        Err(TryRecvError::Empty) => (false, receive(&drops, "it is dropped")),
        Err(TryRecvError::Disconnected) => panic!("a guard notes its drop"),
    };
    (is_dropped, thread == thread::current().id())
}

#[test]
fn a_discarded_job_is_dropped_by_the_drop_of_the_pool() {
    assert_eq!(discarded::<Here>(), (true, true));
    assert_eq!(discarded::<There>(), (false, false));
}

/// A handle shows a job's number and state.
#[test]
fn a_handle_shows_more() {
    let here = format!("{:?}", Here::new(1).execute_after(HOUR, || ()));
    assert!(here.starts_with("JobHandle(TaskHandle {"), "{here}");
    let pool = There::build(1, None, OnDrop::Discard);
    assert_eq!(format!("{:?}", pool.execute_after(HOUR, || ())), "JobHandle(false)");
}

/// A value whose drop panics.
struct Bomb(Arc<Mutex<Vec<&'static str>>>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.lock().expect("nobody panics with it").push("dropped");
        std::panic::resume_unwind(Box::new("as planned"));
    }
}

/// A series that panics, with a capture whose drop panics, is over, and the thread goes on. (On the
/// original the second panic comes while the first unwinds, and aborts the process.)
#[test]
fn a_panic_of_a_drop_is_contained() {
    let (log, pool) = (Arc::new(Mutex::new(Vec::new())), Here::new(1));
    let bomb = Bomb(Arc::clone(&log));
    pool.execute_at_fixed_rate(Duration::ZERO, Duration::ZERO, move || {
        bomb.0.lock().expect("nobody panics with it").push("runs");
        std::panic::resume_unwind(Box::new("as planned"));
    });
    drop(Gate::close(&pool));
    assert_eq!(*log.lock().expect("nobody panics with it"), ["runs", "dropped"]);
}

/// A payload whose drop panics costs the original the thread, and this crate nothing.
fn survives_a_payload<P: Pool>() -> bool {
    let log = Arc::new(Mutex::new(Vec::new()));
    let name = unique_name();
    let (pool, payload) = (P::with_name(&name, 1), Bomb(Arc::clone(&log)));
    drop(Gate::close(&pool));
    pool.execute(move || std::panic::resume_unwind(Box::new(payload)));
    let (done, is_done) = mpsc::channel();
    pool.execute(move || done.send(()).expect("the test waits for it"));
    // Either the next job runs, or no thread is left to run it.
    loop {
        match is_done.try_recv() {
            Ok(()) => return true,
            Err(_) if threads_of(&name) == 0 => return is_done.try_recv().is_ok(),
            Err(_) => thread::yield_now(),
        }
    }
}

#[test]
fn a_panic_of_a_payload_ends_no_thread() {
    assert!(survives_a_payload::<Here>());
    assert!(!survives_a_payload::<There>());
}
