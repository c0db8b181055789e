//! `task().submit` of a group.

use std::hint::black_box;

use punctual::{Group, ScheduledThreadPoolExecutor};

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(group: &Group, captured: u64) {
            drop(group.task().submit(move || black_box(captured * ($n))));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let Ok(group) = executor.group("tenant").limit(1).build() else { return };
    punctual_closures::each!(one, &group);
}
