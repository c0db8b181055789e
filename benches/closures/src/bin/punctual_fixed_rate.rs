//! `schedule_at_fixed_rate`.

use std::{hint::black_box, time::Duration};

use punctual::{Handle, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let minute = Duration::from_secs(60);
            let closure = move || _ = black_box(captured * ($n));
            drop(executor.schedule_at_fixed_rate(minute, minute, closure));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
