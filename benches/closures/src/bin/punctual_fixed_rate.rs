//! `schedule_at_fixed_rate`.

use std::{hint::black_box, time::Duration};

use punctual::{Handle, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let (initial_delay, period) = (Duration::from_secs(60), Duration::from_secs(60));
            let closure = move || _ = black_box(captured * ($n));
            drop(executor.schedule_at_fixed_rate(initial_delay, period, closure));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
