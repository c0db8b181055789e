//! `schedule`, with a future that is cancelled and joined.

use std::{hint::black_box, time::Duration};

use punctual::{Handle, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let closure = move || black_box(captured * ($n));
            if let Ok(future) = executor.schedule(Duration::ZERO, closure) {
                black_box(future.cancel());
                let _ = black_box(future.join());
            }
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
