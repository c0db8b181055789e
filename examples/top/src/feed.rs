//! A queue that is asked again and again, and never waited for.
//!
//! The questions are futures, and each [`look`](Feed::look) polls what is under way. A new question is put when the last one is
//! answered and a second old, or at once after an order. If a database is silent the last answer stays, the keys work, and
//! [`silence`](Feed::silence) says for how long.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant, SystemTime},
};

use punctual::Clock;
use punctual_jobs::{JobId, JobQueue, KindOutcomes};

use crate::{
    job_order::JobOrder,
    look::{Asked, Look, ask},
    values::short,
};

/// How long the answer to one question is good enough.
const EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take before the view says that there is none.
const SLOW: Duration = Duration::from_secs(2);

pub(crate) struct Feed {
    queue: JobQueue,
    /// Where the jobs are: the first line says it.
    pub(crate) place: &'static str,
    /// They may run on several machines.
    pub(crate) has_machines: bool,
    clock: Clock,
    begun: Instant,
    is_to_ask: bool,
    asked_at: Option<Instant>,
    asked: Option<Asked<Look>>,
    pub(crate) answer: Look,
    answered_at: Option<Instant>,
    trouble: Option<String>,
    ordered: Option<Pin<Box<dyn Future<Output = String> + Send>>>,
    /// The outcome of the last order.
    pub(crate) said: Option<String>,
}

impl Feed {
    pub(crate) fn new(queue: JobQueue, has_machines: bool, clock: Clock) -> Self {
        Self {
            queue,
            place: if has_machines { "in the database" } else { "in memory" },
            has_machines,
            clock,
            begun: Instant::now(),
            is_to_ask: true,
            asked_at: None,
            asked: None,
            answer: Look::default(),
            answered_at: None,
            trouble: None,
            ordered: None,
            said: None,
        }
    }

    /// Takes in what has been answered, and asks again if it is time. Does not block.
    pub(crate) fn look(&mut self) {
        if let Some(said) = self.ordered.as_mut().and_then(now) {
            (self.ordered, self.said, self.is_to_ask) = (None, Some(said), true);
        }
        self.take();
        let is_old = self.asked_at.is_none_or(|asked| asked.elapsed() >= EVERY);
        // A lost question is given up: the queue itself says so after a while, unless its thread has gone.
        let patience = self.queue.request_timeout().saturating_mul(3);
        let is_lost = self.asked_at.is_some_and(|at| at.elapsed() > patience);
        if is_lost || (self.asked.is_none() && (is_old || self.is_to_ask)) {
            self.is_to_ask = false;
            (self.asked, self.asked_at) = (Some(ask(&self.queue)), Some(Instant::now()));
            self.take();
        }
    }

    fn take(&mut self) {
        let Some(answer) = self.asked.as_mut().and_then(now) else { return };
        self.asked = None;
        match answer {
            Ok(answer) => {
                (self.answer, self.answered_at) = (answer, Some(Instant::now()));
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    /// Waits for the answer to a question that is put now, for at most so long.
    pub(crate) fn look_now(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        let before = self.asked.take();
        drop(before);
        self.is_to_ask = true;
        self.look();
        while self.asked.is_some() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
            self.look();
        }
    }

    /// Has the next look ask, however new the last answer is.
    pub(crate) fn is_outdated(&mut self) {
        self.is_to_ask = true;
    }

    pub(crate) fn order(&mut self, order: JobOrder, job: JobId) {
        self.said = Some(format!("job {job}: asked"));
        self.ordered = Some(order.give(&self.queue, job));
    }

    /// Returns for how long there has been no answer, and why, unless all is well.
    pub(crate) fn silence(&self) -> Option<String> {
        let since = self.answered_at.unwrap_or(self.begun).elapsed();
        let is_slow = self.asked.is_some() && since > SLOW;
        if !is_slow && self.trouble.is_none() {
            return None;
        }
        let why = self.trouble.iter().map(|trouble| format!(": {trouble}")).collect::<String>();
        Some(format!("no answer for {}{why}", short(since)))
    }

    pub(crate) fn outcomes(&self) -> Vec<KindOutcomes> {
        self.queue.outcomes()
    }

    /// Returns what the wall clock shows.
    pub(crate) fn wall_time(&self) -> SystemTime {
        self.clock.wall_time()
    }
}

/// Returns what a future has come to, if it has.
fn now<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + 'static>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
