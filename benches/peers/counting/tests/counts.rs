//! A program without the test harness, whose threads would allocate as well.

use counting::{Counting, Counts, so_far, start, stop};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    start();
    let mut bytes = Vec::<u8>::with_capacity(100);
    let one = so_far();
    bytes.reserve_exact(300);
    let grown = so_far();
    drop(bytes);
    let freed = so_far();
    stop();
    let uncounted = vec![1_u8; 100];
    assert_eq!(one, Counts { allocations: 1, bytes: 100 });
    assert_eq!(grown, Counts { allocations: 2, bytes: 300 });
    assert_eq!(freed, Counts { allocations: 2, bytes: 0 });
    assert_eq!(so_far(), freed);
    drop(uncounted);
}
