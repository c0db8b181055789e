//! User code that can be replaced while an executor works: its thread factory and its rejection handler.

use std::any::Any;

use crate::{
    sync::{Arc, Mutex},
    unwind::{Callback, Contained},
};

/// Returns `value` in an `Arc`. One that is an `Arc` of a factory or a handler already is taken as it is; otherwise each
/// round of reading and setting it would wrap it once more. The caller names `T`: inferred, it would be that of `erase`.
pub(crate) fn share<T: ?Sized + 'static, V: 'static>(
    value: V,
    erase: impl FnOnce(V) -> Arc<T>,
) -> Arc<T> {
    let any: &dyn Any = &value;
    match any.downcast_ref::<Arc<T>>() {
        Some(shared) => Arc::clone(shared),
        None => erase(value),
    }
}

/// User code that can be replaced at any time.
pub(crate) struct Replaceable<T: ?Sized>(Mutex<Callback<T>>);

impl<T: ?Sized> Replaceable<T> {
    pub(crate) fn new(value: Callback<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the value. Threads that have got the one before still use that.
    pub(crate) fn set(&self, value: Arc<T>) {
        let value = Contained::new(value);
        // Dropped when the lock is released.
        let _before = std::mem::replace(&mut *self.0.lock(), value);
    }
}
