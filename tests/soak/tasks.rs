//! Tasks that run once: with delays, time limits, panics, others that they submit; cancelled
//! before, while and after they run.

use std::{
    hint,
    panic::panic_any,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use punctual::{ScheduledFuture, TaskError, current_task};

use crate::{
    dice::Dice,
    ledger::Meant,
    soak::{Settle, Soak},
};

/// What the body of a task does.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Work {
    Nothing,
    Spin(u64),
    Sleep(Duration),
    Panic,
}

impl Work {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.roll(20) {
            0..=11 => Self::Nothing,
            12..=16 => Self::Spin(dice.roll(5_000)),
            17 | 18 => Self::Sleep(dice.up_to_ms(2)),
            _ => Self::Panic,
        }
    }

    pub(crate) fn act(self) {
        match self {
            Self::Nothing => {}
            Self::Spin(times) => (0..times).for_each(|_| hint::spin_loop()),
            Self::Sleep(time) => thread::sleep(time),
            Self::Panic => panic_any(Meant),
        }
    }
}

/// A task that was admitted, and what is known of it.
struct Once {
    what: &'static str,
    future: ScheduledFuture<u64>,
    id: u64,
    due: Instant,
    panics: bool,
}

impl Once {
    /// Waits for its end, which is not that it was cancelled.
    fn await_end(self, soak: &Soak, dice: &mut Dice) {
        let Self { what, future, id, panics, .. } = self;
        soak.ended(what, id, panics, soak.await_end(dice, future));
    }

    /// Cancels it, if it is not too late; what waited is gone at once.
    fn cancel(self, soak: &Soak, dice: &mut Dice) {
        let Self { what, future, id, due, panics } = self;
        let handle = future.cancel_handle();
        match dice.roll(5) {
            0 => _ = future.cancel(),
            1 => _ = future.cancel_and_signal(),
            2 => _ = handle.cancel(),
            3 => _ = soak.pool.remove(&future) || future.cancel(),
            _ => drop(future.cancel_on_drop()),
        }
        let is_cancelled = handle.is_cancelled();
        if Instant::now() < due && (!is_cancelled || soak.ledger.has(id)) {
            soak.ledger.complain(format!("{what} was cancelled in time, and is not gone"));
        }
        soak.ended_as(what, handle.state(), panics);
    }
}

/// Now, or soon.
fn soon(dice: &mut Dice) -> Duration {
    if dice.one_in(3) { Duration::ZERO } else { dice.up_to_ms(50) }
}

/// Submits one that ends by itself, unless it is cancelled first.
fn submit(soak: &Arc<Soak>, dice: &mut Dice, delay: Duration) -> Option<Once> {
    let (work, is_bomb) = (Work::any(dice), dice.one_in(30));
    let due = Instant::now() + delay;
    let mut capture = soak.ledger.enter("a one-shot task", Some(due));
    let id = capture.id();
    // A capture that panics beside the body would end the process, as Rust has it.
    if is_bomb && work != Work::Panic {
        capture = capture.armed();
    }
    let panics = is_bomb || work == Work::Panic;
    let future = soak.accepted(soak.pool.schedule(delay, move || {
        capture.begins(due);
        work.act();
        id
    }))?;
    Some(Once { what: "a one-shot task", future, id, due, panics })
}

/// One that is waited for, cancelled at some time, or let go of.
pub(crate) fn one_shot(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    let delay = soon(dice);
    let task = submit(soak, dice, delay)?;
    match dice.roll(8) {
        0 => task.cancel(soak, dice),
        1 if !task.panics => {
            // Nobody sees that it ends, but the ledger and the counts.
            soak.ends.completed.add(1);
        }
        2 | 3 => return Some(Box::new(move |soak, dice| task.cancel(soak, dice))),
        _ => return Some(Box::new(move |soak, dice| task.await_end(soak, dice))),
    }
    None
}

/// One that is due in an hour, or never, and is always cancelled.
pub(crate) fn far(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    const WHAT: &str = "a task that is far off";
    let delay = dice.any(&[Duration::from_secs(3_600), Duration::MAX]);
    let due = Instant::now() + Duration::from_secs(3_600);
    let capture = soak.ledger.enter(WHAT, None);
    let id = capture.id();
    let future = soak.accepted(soak.pool.schedule(delay, move || {
        capture.begins(due);
        id
    }))?;
    let task = Once { what: WHAT, future, id, due, panics: false };
    Some(Box::new(move |soak, dice| task.cancel(soak, dice)))
}

/// One with a time limit, which it may or may not keep to.
pub(crate) fn timed(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    const WHAT: &str = "a task with a time limit";
    let (delay, limit, length) = (dice.up_to_ms(5), dice.up_to_ms(5), dice.up_to_ms(6));
    let due = Instant::now() + delay;
    let capture = soak.ledger.enter(WHAT, Some(due));
    let id = capture.id();
    let body = move || {
        capture.begins(due);
        // Ends early if the token is raised.
        _ = current_task().expect("inside a task").token().sleep(length);
        id
    };
    let future = soak.accepted(soak.pool.task().timeout(limit).schedule(delay, body))?;
    Some(Box::new(move |soak, dice| {
        let end = soak.await_end(dice, future);
        let is_struck = end.as_ref().is_err_and(TaskError::is_timeout);
        if is_struck && Instant::now() < due + limit {
            soak.ledger.complain(format!("{WHAT} was struck before its time was over"));
        }
        if !is_struck {
            return soak.ended(WHAT, id, false, end);
        }
        // To the executor it was cancelled.
        soak.ends.cancelled.add(1);
        soak.ends.timed_out.add(1);
    }))
}

/// One that submits another, and perhaps waits for it.
pub(crate) fn nested(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    const WHAT: &str = "a task that submits another";
    let (delay, mut inside) = (dice.up_to_ms(5), dice.split());
    let due = Instant::now() + delay;
    let capture = soak.ledger.enter(WHAT, Some(due));
    let (id, shared) = (capture.id(), Arc::clone(soak));
    let future = soak.accepted(soak.pool.schedule(delay, move || {
        capture.begins(due);
        let delay = inside.up_to_ms(2);
        if let Some(child) = submit(&shared, &mut inside, delay) {
            // Who is the last that could run it is not let wait, and gives it up.
            if inside.one_in(2) && child.future.wait().is_ok() {
                child.await_end(&shared, &mut inside);
            } else {
                child.cancel(&shared, &mut inside);
            }
        }
        id
    }))?;
    let task = Once { what: WHAT, future, id, due, panics: false };
    Some(Box::new(move |soak, dice| task.await_end(soak, dice)))
}
