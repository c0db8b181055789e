//! Allocations: a queue allocates its arrays, when they grow, and nothing else; a task allocates
//! its node.

#![allow(missing_docs, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use allocation_counter::measure;
use punctual::{DelayQueue, ManualClock, ScheduledThreadPoolExecutor};

const MANY: u64 = 1 << 16;

fn fill<T>(queue: &DelayQueue<T>, elements: impl Iterator<Item = T>) {
    for (delay, element) in (0..).zip(elements) {
        queue.insert(Duration::from_nanos(delay), element).expect("it is open");
    }
}

/// G34: an element of eight bytes takes forty, or thirty-two if an `Option` of it takes no more;
/// and at most half a byte for the headers of the arrays' chunks.
#[test]
fn an_element_costs_at_most_thirty_two_bytes_beyond_its_own() {
    let plain = DelayQueue::new();
    let counted = measure(|| fill(&plain, 0..MANY));
    let each = counted.bytes_current as f64 / MANY as f64;
    assert!((40.0..40.5).contains(&each), "{each}");
    assert!(counted.count_total < MANY / 100, "{counted:?}");

    let with_niche = DelayQueue::new();
    let counted = measure(|| fill(&with_niche, (0..MANY).map(|_| "reference")));
    let each = counted.bytes_current as f64 / MANY as f64;
    assert!((40.0..40.5).contains(&each), "a fat reference: {each}");

    let thin = DelayQueue::new();
    let counted = measure(|| fill(&thin, (0..MANY).map(|_| &7_u8)));
    let each = counted.bytes_current as f64 / MANY as f64;
    assert!((32.0..32.5).contains(&each), "{each}");
}

#[test]
fn a_queue_of_steady_size_allocates_nothing() {
    let clock = ManualClock::new();
    let queue = DelayQueue::with_clock(clock.clone());
    fill(&queue, 0..1_000);
    clock.advance(Duration::from_secs(1));
    let turn_over = || {
        for n in 0..10_000 {
            queue.insert(Duration::ZERO, n).expect("it is open");
            assert!(queue.take().is_some());
            let key = queue.insert(Duration::from_secs(3600 - n % 100), n).expect("it is open");
            assert!(queue.reset(key, Duration::from_secs(n % 7)));
            assert_eq!(queue.remove(key), Some(n));
        }
    };
    turn_over();
    let counted = measure(turn_over);
    assert!(counted.count_total < 100, "chunks come and go with the sorted run: {counted:?}");
}

#[test]
fn memory_is_released() {
    let queue = DelayQueue::new();
    let counted = measure(|| {
        fill(&queue, 0..MANY);
        assert!((0..MANY).all(|n| queue.take().is_some_and(|expired| expired.element == n)));
    });
    assert!(counted.bytes_current < 100_000, "{counted:?}");
}

/// F28: a pending task takes one allocation and, with its slot in the queue, no more than 128 bytes
/// beyond what its closure captures; all of it is released.
#[test]
fn a_pending_task_takes_one_allocation() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = builder.clock(clock).build().expect("the settings are good");
    let schedule = |n: u64| {
        // The deadlines are not in order, so that the heap is measured.
        let delay = Duration::from_secs(3600 + n * 7_919 % MANY);
        drop(executor.schedule(delay, move || n).expect("it is open"));
    };
    let counted = measure(|| (0..MANY).for_each(schedule));
    // The buckets of far entries begin small, and grow a few times.
    assert!(counted.count_total < MANY + MANY / 25, "{counted:?}");
    let each = counted.bytes_current as f64 / MANY as f64;
    assert!(each < 128.0 + 8.0, "{each}");
    let counted = measure(|| drop(executor.shutdown_now()));
    assert!((counted.bytes_current as f64) < -each * 0.99 * MANY as f64, "{counted:?}");
}
