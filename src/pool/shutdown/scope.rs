//! The pools whose termination the calling thread must not wait for.
//!
//! A pool terminates when its workers have ended and no shutdown is under way. So three kinds of
//! threads would wait for themselves: the pool's workers; a thread that is shutting the pool down
//! and runs user code there, since the captures of a task that it has cancelled may own the
//! executor, whose drop would wait; and a thread that is starting a worker, since the thread
//! factory is user code too.
//!
//! A thread can be inside several pools at once (a task of one pool shuts down another), so this is
//! a stack in a thread-local: a few addresses, which are valid as long as the guards live.
//!
//! A thread that is being torn down may have lost its stack already, and still drop an executor
//! that a thread-local owned. It then counts as being inside no pool. That is right unless one of
//! the tasks that this drop cancels waits, in its own drop, for the same pool: only then it hangs.

use std::cell::RefCell;

use crate::{pool::Pool, sync::thread_local};

thread_local! {
    static SCOPES: RefCell<Vec<(usize, Role)>> = const { RefCell::new(Vec::new()) };
}

/// The part that a thread plays in a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) enum Role {
    /// It runs the pool's tasks.
    Worker,
    /// It shuts the pool down, or brings about its termination.
    Stopper,
    /// It has the pool's thread factory start a thread.
    Starter,
}

/// The calling thread acts for a pool, in one role, until this is dropped.
pub(in crate::pool) struct PoolScope(());

impl PoolScope {
    pub(in crate::pool) fn enter(pool: &Pool, role: Role) -> Self {
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push((address(pool), role)));
        Self(())
    }
}

impl Drop for PoolScope {
    fn drop(&mut self) {
        // The last scope that was entered is the first to be left.
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
    }
}

/// Returns `true` if the calling thread acts for the pool, in whichever role.
pub(in crate::pool) fn is_in_scope_of(pool: &Pool) -> bool {
    any_scope(|(inside, _)| inside == address(pool))
}

/// Returns `true` if the calling thread is a worker of the pool.
pub(in crate::pool) fn is_worker_of(pool: &Pool) -> bool {
    any_scope(|scope| scope == (address(pool), Role::Worker))
}

/// Returns `true` if the calling thread is in the middle of starting one of the pool's threads.
pub(in crate::pool) fn is_starting_thread_of(pool: &Pool) -> bool {
    any_scope(|scope| scope == (address(pool), Role::Starter))
}

fn any_scope(is_it: impl Fn((usize, Role)) -> bool) -> bool {
    SCOPES.try_with(|scopes| scopes.borrow().iter().any(|scope| is_it(*scope))).unwrap_or(false)
}

fn address(pool: &Pool) -> usize {
    std::ptr::from_ref(pool) as usize
}
