//! The base of the [model's primitives](super) with `--cfg loom`: a checker that tries every order
//! within a bound, and lets each load see every value that the memory model of C11 lets it see.
//!
//! # Sequential consistency
//!
//! Loom treats `SeqCst` as `Acquire` or `Release`, and would report false faults. It does know fences. So each access
//! that writes with `SeqCst` is followed by a fence here: two threads that each write one variable and then read the
//! other's do not both miss the write of the other. No protocol of this crate needs more. The fence also orders relaxed
//! accesses behind it. So this finds a weakened write, but not a weakened read.
//!
//! # Turns
//!
//! When loom looks for steps that could have come in another order, it remembers only the last access
//! to each atomic. If a thread reads and then writes, its read hides that another thread read before,
//! and the order in which that one reads later is never tried. So each access is preceded by an
//! access to a counter beside it, which is a read-modify-write and orders nothing.

pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::{hint::spin_loop, thread};

/// Returns `true` if a park is to end for no reason. None does: such orders would have no end.
pub(super) fn is_restless() -> bool {
    false
}

/// The atomics of the crate.
pub(crate) mod atomic {
    pub(crate) use loom::sync::atomic::Ordering;
    use loom::sync::atomic::{self, fence};

    /// A counter that is incremented before each access to an atomic, and orders nothing; see the module.
    #[derive(Debug)]
    struct Turn(atomic::AtomicUsize);

    impl Turn {
        fn new() -> Self {
            Self(atomic::AtomicUsize::new(0))
        }

        fn take<R>(&self, access: impl FnOnce() -> R) -> R {
            // Relaxed: orders no other access.
            self.0.fetch_add(1, Ordering::Relaxed);
            access()
        }

        /// The same for an access that writes, with the fence that this needs.
        fn take_to_write<R>(&self, order: Ordering, access: impl FnOnce() -> R) -> R {
            let result = self.take(access);
            if order == Ordering::SeqCst {
                fence(order);
            }
            result
        }
    }

    macro_rules! atomics {
        ($($name:ident: $value:ty;)+) => {$(
            #[derive(Debug)]
            pub(crate) struct $name {
                turn: Turn,
                inner: atomic::$name,
            }

            #[allow(dead_code, reason = "not each of them is used in each way")]
            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self { turn: Turn::new(), inner: atomic::$name::new(value) }
                }

                pub(crate) fn into_inner(self) -> $value {
                    self.inner.into_inner()
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    self.turn.take(|| self.inner.load(order))
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.turn.take_to_write(order, || self.inner.store(value, order));
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.turn.take_to_write(order, || self.inner.swap(value, order))
                }
            }

            impl Default for $name {
                fn default() -> Self {
                    Self::new(Default::default())
                }
            }
        )+};
    }

    macro_rules! counts {
        ($($name:ident: $value:ty;)+) => {
            atomics! { $($name: $value;)+ }

            $(#[allow(dead_code, reason = "as above")]
            impl $name {
                pub(crate) fn fetch_add(&self, more: $value, order: Ordering) -> $value {
                    self.turn.take_to_write(order, || self.inner.fetch_add(more, order))
                }

                pub(crate) fn fetch_sub(&self, less: $value, order: Ordering) -> $value {
                    self.turn.take_to_write(order, || self.inner.fetch_sub(less, order))
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    done: Ordering,
                    failed: Ordering,
                ) -> Result<$value, $value> {
                    self.turn.take_to_write(done, || {
                        self.inner.compare_exchange(current, new, done, failed)
                    })
                }
            })+
        };
    }

    atomics! { AtomicBool: bool; AtomicU8: u8; }
    counts! { AtomicU32: u32; AtomicU64: u64; AtomicUsize: usize; }
}

/// Returns one number for all threads: no model depends on it.
pub(crate) fn thread_number() -> usize {
    0
}

/// Like the macro of the standard library, which also takes `const` initial values.
macro_rules! with_const {
    ($($(#[$about:meta])* static $name:ident: $value:ty = const { $init:expr };)+) => {
        loom::thread_local! { $($(#[$about])* static $name: $value = $init;)+ }
    };
    ($($statics:tt)+) => {
        loom::thread_local! { $($statics)+ }
    };
}
pub(crate) use with_const as thread_local;
