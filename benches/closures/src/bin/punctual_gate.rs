//! A task with a gate.

use std::{hint::black_box, time::Duration};

use punctual::{
    Handle, ScheduledThreadPoolExecutor,
    gate::{Entry, RunGate, Tick},
};

struct Open;

impl RunGate for Open {
    fn enter(&self, _: &Tick<'_>) -> Entry {
        Entry::Run
    }
}

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit(executor: &Handle, captured: u64) {
            let closure = move || black_box(captured * ($n));
            drop(executor.task().gate(Open).schedule(Duration::ZERO, closure));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    punctual_closures::each!(one, &executor);
}
