//! Which queues' handlers and callbacks the calling thread is in.

use std::{cell::RefCell, sync::Arc};

thread_local! {
    /// The engines whose handlers the thread is in, the innermost last: a handler may run a task of another
    /// executor itself.
    static HANDLING: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
}

/// Returns `true` if the calling thread is in a handler or callback of this engine.
pub(crate) fn is_in_handler_of<E: ?Sized>(engine: &Arc<E>) -> bool {
    HANDLING.with_borrow(|handling| handling.contains(&address(engine)))
}

/// Which engine it is. It is compared with others that are alive and nothing else.
fn address<E: ?Sized>(engine: &Arc<E>) -> *const () {
    Arc::as_ptr(engine).cast()
}

/// A handler or callback that the thread is in, until this is dropped.
pub(crate) struct Handling;

impl Handling {
    pub(crate) fn begin<E: ?Sized>(engine: &Arc<E>) -> Self {
        HANDLING.with_borrow_mut(|handling| handling.push(address(engine)));
        Self
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        HANDLING.with_borrow_mut(|handling| handling.pop());
    }
}
