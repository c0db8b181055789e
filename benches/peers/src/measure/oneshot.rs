//! A result that one thread waits for, made of park and unpark: for peers without a future.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, Thread},
};

const EMPTY: u32 = 0;
const AWAITED: u32 = 1;
/// A value is stored with this added.
const FIRST: u32 = 2;

struct Cell {
    state: AtomicU32,
    waiter: Thread,
}

pub(super) struct Sender(Arc<Cell>);

pub(super) struct Oneshot(Arc<Cell>);

/// Creates a pair whose receiver belongs to this thread.
pub(super) fn oneshot() -> (Sender, Oneshot) {
    let cell = Arc::new(Cell { state: AtomicU32::new(EMPTY), waiter: thread::current() });
    (Sender(Arc::clone(&cell)), Oneshot(cell))
}

impl Sender {
    pub(super) fn send(self, value: u32) {
        if self.0.state.swap(value + FIRST, Ordering::AcqRel) == AWAITED {
            self.0.waiter.unpark();
        }
    }
}

impl Oneshot {
    pub(super) fn wait(self) -> u32 {
        let state = &self.0.state;
        let waits = state.compare_exchange(EMPTY, AWAITED, Ordering::AcqRel, Ordering::Acquire);
        if waits.is_ok() {
            while state.load(Ordering::Acquire) == AWAITED {
                thread::park();
            }
        }
        state.load(Ordering::Acquire) - FIRST
    }
}
