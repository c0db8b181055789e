//! The system's allocator, with a switch: while it is on, allocations are counted.
//!
//! It is off while times are taken. Then it costs a load of a variable that no thread writes, and a
//! branch that always goes the same way: a box that is made and dropped took 9.6 ns instead of 9.1,
//! in a loop that did nothing else.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
};

/// Declare it as the global allocator.
pub struct Counting;

/// The allocations of all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The number of allocations, including those that change the size of a block.
    pub allocations: u64,
    /// The bytes of the blocks that are not freed, without what the allocator adds to each.
    /// Negative if blocks were freed that are older than the counting.
    pub bytes: i64,
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

/// Starts counting, from zero.
pub fn start() {
    ALLOCATIONS.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    IS_ON.store(true, Relaxed);
}

/// The counts since the start.
pub fn so_far() -> Counts {
    Counts { allocations: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed) }
}

/// Stops counting.
pub fn stop() {
    IS_ON.store(false, Relaxed);
}

#[inline]
fn note(allocations: u64, freed: usize, asked: usize) {
    if IS_ON.load(Relaxed) {
        ALLOCATIONS.fetch_add(allocations, Relaxed);
        BYTES.fetch_add(asked as i64 - freed as i64, Relaxed);
    }
}

// SAFETY: all calls are passed unchanged to the system's allocator, and its results are returned
// unchanged. The counting does not allocate and does not unwind.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, 0, layout.size());
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, 0, layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, layout.size(), size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(0, layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
