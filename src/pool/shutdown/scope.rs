//! Which pools the calling thread serves: those whose end it must not wait for.
//!
//! A pool ends when its workers have ended and no shutdown is under way. So three kinds of threads
//! would wait for themselves: its workers; one that is in the middle of shutting it down, and runs
//! user code there: the captures of a task it has cancelled may own the executor, and their
//! drop would wait; and one that is starting a worker, by a factory that is user code too.
//!
//! A thread can serve several at once (a task of one pool shuts down another), so this is a
//! stack: a few addresses, for as long as the guards live.
//!
//! A thread that is being torn down may have lost its stack already, and still drop an executor
//! that a thread-local owned. It then counts as serving nobody. That is right unless one of the
//! tasks that this drop cancels waits in its own drop for the same pool: only there it would hang.

use std::cell::RefCell;

use crate::{pool::Pool, sync::thread_local};

thread_local! {
    static SCOPES: RefCell<Vec<(usize, Role)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) enum Role {
    /// It runs the pool's tasks.
    Worker,
    /// It shuts the pool down, or brings its end about.
    Stopper,
    /// It has the pool's thread factory start a thread.
    Starter,
}

/// The calling thread serves a pool until this is dropped.
pub(in crate::pool) struct PoolScope(());

impl PoolScope {
    pub(in crate::pool) fn enter(pool: &Pool, role: Role) -> Self {
        let _ = SCOPES.try_with(|served| served.borrow_mut().push((address(pool), role)));
        Self(())
    }
}

impl Drop for PoolScope {
    fn drop(&mut self) {
        // The last to begin is the first to end.
        let _ = SCOPES.try_with(|served| served.borrow_mut().pop());
    }
}

/// Whether the calling thread serves the pool, in whichever role.
pub(in crate::pool) fn is_in_scope_of(pool: &Pool) -> bool {
    served(|(served, _)| served == address(pool))
}

/// Whether the calling thread is a worker of the pool.
pub(in crate::pool) fn is_worker_of(pool: &Pool) -> bool {
    served(|one| one == (address(pool), Role::Worker))
}

/// Whether the calling thread is in the middle of starting one of the pool's threads.
pub(in crate::pool) fn is_starting_thread_of(pool: &Pool) -> bool {
    served(|one| one == (address(pool), Role::Starter))
}

fn served(found: impl Fn((usize, Role)) -> bool) -> bool {
    SCOPES.try_with(|served| served.borrow().iter().any(|one| found(*one))).unwrap_or(false)
}

fn address(pool: &Pool) -> usize {
    std::ptr::from_ref(pool) as usize
}
