//! One-shot tasks: with delays, time limits, panics, and further submissions; cancelled before,
//! while and after they run.

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

/// The work of a task's body.
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

/// An admitted task, and the data to check it with.
struct Once {
    what: &'static str,
    future: ScheduledFuture<u64>,
    id: u64,
    due: Instant,
    panics: bool,
}

impl Once {
    /// Waits for the task's end, which must not be a cancellation.
    fn await_end(self, soak: &Soak, dice: &mut Dice) {
        let Self { what, future, id, panics, .. } = self;
        soak.ended(what, id, panics, soak.await_end(dice, future));
    }

    /// Cancels the task, if it is not too late; a pending task's capture is gone at once.
    fn cancel(self, soak: &Soak, dice: &mut Dice) {
        let Self { what, future, id, due, panics } = self;
        let handle = future.task_handle();
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

/// A short delay, or none.
fn soon(dice: &mut Dice) -> Duration {
    if dice.one_in(3) { Duration::ZERO } else { dice.up_to_ms(50) }
}

/// Submits a task that ends by itself unless it is cancelled first.
fn submit(soak: &Arc<Soak>, dice: &mut Dice, delay: Duration) -> Option<Once> {
    let (work, is_bomb) = (Work::any(dice), dice.one_in(30));
    let due = Instant::now() + delay;
    let mut capture = soak.ledger.enter("a one-shot task", Some(due));
    let id = capture.id();
    // A capture that panics beside the body would abort the process.
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

/// A task that is waited for, cancelled at some time, or abandoned.
pub(crate) fn one_shot(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    let delay = soon(dice);
    let task = submit(soak, dice, delay)?;
    match dice.roll(8) {
        0 => task.cancel(soak, dice),
        1 if !task.panics => {
            // Only the ledger and the counts see its end.
            soak.ends.completed.add(1);
        }
        2 | 3 => return Some(Box::new(move |soak, dice| task.cancel(soak, dice))),
        _ => return Some(Box::new(move |soak, dice| task.await_end(soak, dice))),
    }
    None
}

/// A task that is due in an hour, or never, and is always cancelled.
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

/// A task with a time limit, which it may or may not keep.
pub(crate) fn timed(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    const WHAT: &str = "a task with a time limit";
    let (delay, limit, length) = (dice.up_to_ms(5), dice.up_to_ms(5), dice.up_to_ms(6));
    let due = Instant::now() + delay;
    let capture = soak.ledger.enter(WHAT, Some(due));
    let id = capture.id();
    let body = move || {
        capture.begins(due);
        // The sleep ends early if the token is raised.
        _ = current_task().expect("inside a task").token().sleep(length);
        id
    };
    let future = soak.accepted(soak.pool.task().timeout(limit).schedule(delay, body))?;
    Some(Box::new(move |soak, dice| {
        let end = soak.await_end(dice, future);
        let has_timed_out = end.as_ref().is_err_and(TaskError::is_timeout);
        if has_timed_out && Instant::now() < due + limit {
            soak.ledger.complain(format!("{WHAT} timed out before its limit was over"));
        }
        if !has_timed_out {
            return soak.ended(WHAT, id, false, end);
        }
        // The executor counts it as cancelled.
        soak.ends.cancelled.add(1);
        soak.ends.timed_out.add(1);
    }))
}

/// A task that submits another, and perhaps waits for it.
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
            // The last worker that could run the child is refused the wait, and abandons the child.
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
