//! `repeat`, with a body that returns a `Result`.

use std::{hint::black_box, io, time::Duration};

use punctual::{Handle, ScheduledThreadPoolExecutor, trigger};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let body = move || match black_box(captured * ($n)) {
                0 => Err(io::Error::other("nothing")),
                _ => Ok(()),
            };
            drop(executor.repeat(trigger::every(Duration::from_secs(60)), body));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
