//! The next moment: the worker sleeps until a job is due, whichever machine has enqueued it.
//!
//! The poll finds each job that is due, but late. So each machine that runs jobs asks for the first moment that comes
//! ([`NEXT`]), and wakes its worker then. It asks again after that moment, and as often as it polls. A job that is enqueued
//! for an earlier moment, or moved to one, is told by a notification that names it; what is further away than a
//! minute is not told, because each machine asks again before it comes. Each question is for what comes after the last one, so no moment
//! passes between a claim and the next question.
//!
//! Moments are the server's. The answer to the question contains the server's time, so a machine knows how long it is until a moment
//! that it hears of, however wrong its own clock is. If the server's clock is set meanwhile, the next question corrects it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::{connection::AskError, machine::Machine, statements::NEXT};

/// How long this is content with an answer, however seldom the queue polls.
const LONGEST: Duration = Duration::from_secs(30);

/// How long it waits after a moment before it asks for the next: many jobs may be due one after the other.
const GATHERING: Duration = Duration::from_millis(2);

/// The earliest moment of which a notification has told, in microseconds since 1970.
#[derive(Default)]
pub(super) struct Coming {
    told: Mutex<Option<i64>>,
    news: Notify,
}

impl Coming {
    /// A job is due at this moment, which may have passed.
    pub(super) fn tell(&self, moment: i64) {
        let mut told = self.told.lock();
        *told = Some(told.map_or(moment, |earliest| earliest.min(moment)));
        drop(told);
        self.news.notify_one();
    }
}

/// The server's time, and when it was at least that.
#[derive(Clone, Copy)]
struct Reading {
    micros: i64,
    at: Instant,
}

impl Reading {
    /// Returns when the server shows this moment, or a little later.
    fn instant_of(self, moment: i64) -> Instant {
        let ahead = u64::try_from(moment.saturating_sub(self.micros)).unwrap_or(0);
        // A longer sleep ends in another question all the same.
        self.at + Duration::from_micros(ahead).min(2 * LONGEST)
    }
}

/// Wakes the worker at each moment until it is aborted.
pub(super) async fn wake_on(machine: Arc<Machine>) {
    let pause = machine.settings.poll.min(LONGEST);
    let mut since = None;
    loop {
        // Without an answer the poll finds what is due.
        let Ok((first, reading)) = machine.next_moment(since).await else {
            sleep(pause).await;
            continue;
        };
        since = Some(reading.micros);
        let mut next = first.map(|moment| reading.instant_of(moment));
        let asks_again = reading.at + pause;
        loop {
            tokio::select! {
                () = sleep_until(next.map_or(asks_again, |next| next.min(asks_again))) => break,
                () = machine.coming.news.notified() => {
                    let told = machine.coming.told.lock().take().map(|told| reading.instant_of(told));
                    next = next.into_iter().chain(told).min();
                }
            }
        }
        if next.is_some_and(|next| next <= Instant::now()) {
            machine.wake.notify_one();
            sleep(GATHERING).await;
        }
    }
}

impl Machine {
    /// Asks for the first moment that comes, or has come since the last question.
    async fn next_moment(&self, since: Option<i64>) -> Result<(Option<i64>, Reading), AskError> {
        let names = self.definitions.handled_names();
        let rows = self.ticking.ask_prepared(NEXT, &[&names, &since]).await?;
        let at = Instant::now();
        let row = rows.first();
        let micros = row.map_or(i64::MAX, |row| row.get(1));
        Ok((row.and_then(|row| row.get(0)), Reading { micros, at }))
    }
}
