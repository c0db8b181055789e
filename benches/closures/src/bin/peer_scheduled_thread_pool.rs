//! `ScheduledThreadPool::execute_after`.

use std::{hint::black_box, time::Duration};

use scheduled_thread_pool::ScheduledThreadPool;

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(pool: &ScheduledThreadPool, captured: u64) {
            let closure = move || _ = black_box(captured * ($n));
            drop(pool.execute_after(Duration::ZERO, closure));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let pool = ScheduledThreadPool::new(1);
    punctual_closures::each!(one, &pool);
}
