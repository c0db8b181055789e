//! The worker: takes a task when it is due, runs it, and puts it back if it is to run again.
//!
//! A worker owns nothing but its thread. It ends when the queue is closed and empty. Nothing
//! that a task does ends it: the task catches the panics of its closure and its drops, and what
//! is left to drop here is dropped behind the same door.

use std::{io, rc::Rc, thread};

use super::{
    Pool,
    serving::{Role, Serving},
};
use crate::{
    queue::Entry,
    sync::{Arc, Parker},
    task::{Ground, Run, Runnable, Verdict},
    time::{Deadline, slack},
    trace,
    unwind::discard,
};

/// Starts the worker with this number.
pub(super) fn start(pool: &Arc<Pool>, number: usize) -> io::Result<thread::JoinHandle<()>> {
    let name = format!("{}-{number}", pool.thread_name());
    let mut builder = thread::Builder::new().name(name.clone());
    if let Some(size) = pool.config.stack_size {
        builder = builder.stack_size(size);
    }
    let pool = Arc::clone(pool);
    builder.spawn(move || {
        // To the very end: what is told of the end must not wait for this thread either.
        let _serving = Serving::begin(&pool, Role::Worker);
        pool.clock().worker_begins(&Parker::current());
        slack::set(pool.config.timer_slack);
        trace::worker("started", &name);
        work(&pool);
        trace::worker("ended", &name);
        pool.worker_ended();
    })
}

fn work(pool: &Pool) {
    let ground = Rc::new(Ground { clock: pool.clock().clone(), stop: pool.stop.clone() });
    while let Some((entry, now)) = pool.queue.take() {
        process(pool, &ground, entry, now);
    }
}

fn process(pool: &Pool, ground: &Rc<Ground>, entry: Entry<Arc<dyn Runnable>>, now: Deadline) {
    let Entry { deadline, sequence, element } = entry;
    let run = Run::new(Rc::clone(ground), element, sequence, deadline, now);
    if let Verdict::Again(next) = run.task().run(&run) {
        pool.rearm(run.task(), sequence, next);
    }
    discard(run);
}
