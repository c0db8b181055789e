//! A `sleep` that is awaited.

use std::{
    hint::black_box,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use punctual::{Handle, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let mut waits = pin!(async move {
                let _ = executor.sleep(Duration::from_secs(60)).await;
                black_box(captured * ($n))
            });
            let _ = black_box(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
