//! `execute` of a closure whose captures have to be dropped.

use std::hint::black_box;

use punctual::{Handle, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: Box<u64>) {
            let _ = executor.execute(move || _ = black_box(*captured * ($n)));
        }
        submit($subject, black_box(Box::new(1)));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
