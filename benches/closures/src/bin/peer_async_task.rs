//! `async_task::spawn`.

use std::hint::black_box;

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit((): (), captured: u64) {
            let (runnable, task) =
                async_task::spawn(async move { black_box(captured * ($n)) }, |later| drop(later));
            runnable.run();
            task.detach();
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    punctual_closures::each!(one, ());
}
