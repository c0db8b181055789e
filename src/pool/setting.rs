//! A setting that is a piece of the user's code and can be replaced at any time.

use crate::{
    sync::{Arc, Mutex},
    unwind::{Callback, Contained},
};

/// See the [module](self).
pub(crate) struct Setting<T: ?Sized>(Mutex<Callback<T>>);

impl<T: ?Sized> Setting<T> {
    pub(super) fn new(value: Callback<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Who has got the one before still uses that.
    pub(crate) fn set(&self, value: Arc<T>) {
        let value = Contained::new(value);
        // Dropped when the lock is released.
        let _before = std::mem::replace(&mut *self.0.lock(), value);
    }
}
