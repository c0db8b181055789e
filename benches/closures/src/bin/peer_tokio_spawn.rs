//! `tokio::spawn`.

use std::hint::black_box;

use tokio::runtime::{Builder, Handle};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(runtime: &Handle, captured: u64) {
            drop(runtime.spawn(async move { black_box(captured * ($n)) }));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let built = Builder::new_multi_thread().worker_threads(1).build();
    let Ok(runtime) = built else { return };
    punctual_closures::each!(one, runtime.handle());
}
