//! One name of a gate: how a worker asks, and what it does with the answer.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, mpsc},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use punctual::{
    CancellationToken, TaskId,
    gate::{Entry, Lease, RunEnd, RunGate, Tick},
};

use super::{
    Gate, boot_clock,
    event::{GateEvent, Reporter, SkipReason},
    keeper::{Answer, Ask, Grant, Request, fence_of},
    lease::LeaseState,
    retries::{Retries, Retry},
    rules::{OnHolderDeath, Rule},
};

/// The first pause before a row is looked at again that somebody holds, or that could not be looked at. The
/// next ones are twice as long each, up to a third of the lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How much longer than its limit a worker waits, for an answer that comes just in time.
const GRACE: Duration = Duration::from_millis(50);

/// A name that replicas compete for. It is the gate of a task:
/// [`TaskBuilder::gate`](punctual::TaskBuilder::gate) takes it. Made by [`Gate::for_name`].
///
/// It may be the gate of one task of a program, and of one in each replica. Clones are the same name.
#[derive(Clone)]
#[must_use = "a name does nothing before a task has it as its gate"]
pub struct NamedGate {
    gate: Gate,
    name: Arc<str>,
    rule: Rule,
    /// The ticks that could not be asked about, and since when.
    unasked: Arc<Mutex<HashMap<TaskId, (SystemTime, Duration)>>>,
    retries: Arc<Retries>,
}

impl NamedGate {
    pub(super) fn new(gate: Gate, name: Arc<str>) -> Self {
        let rule = Rule::Ticks(gate.0.on_holder_death);
        Self { gate, name, rule, unasked: Arc::default(), retries: Arc::default() }
    }

    /// Sets what becomes of a tick of this name whose replica dies in its run, in place of what
    /// [the gate](super::GateBuilder::on_holder_death) says.
    pub fn on_holder_death(mut self, on_holder_death: OnHolderDeath) -> Self {
        self.rule = Rule::Ticks(on_holder_death);
        self
    }

    /// Makes the name one of runs with a fixed delay between them: over all replicas, a run begins no
    /// sooner than `delay` after the end of the last one, by the database's clock. If a replica dies in its
    /// run, the end of its lease counts as the end of the run.
    ///
    /// The task should be one with the same fixed delay. Its ticks are not claimed: whichever replica asks
    /// first when the delay is over has the next run, and the others go on asking.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::gate::Gate;
    ///
    /// let gate = Gate::postgres("postgres://app@db/app").open()?;
    /// let minute = Duration::from_secs(60);
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let poll = gate.for_name("poll the supplier")?.with_delay(minute);
    /// executor.task().gate(poll).schedule_with_fixed_delay(minute, minute, || { /* poll */ })?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.rule = Rule::Delay(delay);
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends the question to the gate's thread, and waits for the answer.
    fn ask(&self, tick: SystemTime, retry_of: Option<Arc<LeaseState>>) -> Answer {
        let inner = &self.gate.0;
        let (reply, answer) = mpsc::sync_channel(1);
        let deadline = Instant::now() + inner.request_timeout;
        let rule = retry_of.as_ref().map_or(self.rule, |failed| Rule::Retry(failed.fence));
        let (name, deadline) = (Arc::clone(&self.name), deadline.into());
        let ask = Ask { name, tick, rule, retry_of, deadline, reply };
        let late = || Answer::Unreachable("the gate's own thread does not answer".to_owned());
        if inner.requests.send(Request::Ask(ask)).is_err() {
            return late();
        }
        answer.recv_timeout(inner.request_timeout + GRACE).unwrap_or_else(|_| late())
    }

    fn entry(&self, tick: &Tick<'_>, planned: SystemTime, answer: Answer) -> Entry {
        let reporter = &self.gate.0.reporter;
        match answer {
            Answer::Granted(grant) => {
                Reporter::count(&reporter.granted);
                let state = Arc::clone(&grant.state);
                let (task, retries) = (tick.task_id(), Arc::clone(&self.retries));
                let grant = Mutex::new(Some(grant));
                let (tick, reporter) = (planned, Arc::clone(reporter));
                Entry::Hold(Arc::new(HeldLease { state, grant, task, tick, retries, reporter }))
            }
            Answer::Held(left) => {
                Reporter::count(&reporter.postponed);
                Entry::Again(left.min(self.pause(tick.attempt())))
            }
            Answer::Later(span) => {
                Reporter::count(&reporter.postponed);
                Entry::Again(span.min(self.gate.0.lease))
            }
            Answer::Passed => {
                Reporter::count(&reporter.refused);
                Entry::Skip
            }
            Answer::Ahead => self.skip(planned, SkipReason::ClockSetBack),
            Answer::Unreachable(error) => self.unreachable(tick, planned, error),
        }
    }

    /// The gate is shut when it cannot be asked. It is asked again for as long as a lease lasts.
    fn unreachable(&self, tick: &Tick<'_>, planned: SystemTime, error: String) -> Entry {
        let Gate(inner) = &self.gate;
        let name = Arc::clone(&self.name);
        inner.reporter.report(&GateEvent::Unreachable { name, tick: planned, error });
        let now = boot_clock::now();
        let since = {
            let mut unasked = self.unasked.lock();
            let entry = unasked.entry(tick.task_id()).or_insert((planned, now));
            // A request for another moment has made another tick of it.
            if entry.0 != planned && tick.is_on_wall() {
                *entry = (planned, now);
            }
            entry.1
        };
        if now.saturating_sub(since) < inner.lease {
            return Entry::Again(self.pause(tick.attempt()).min(inner.request_timeout));
        }
        self.unasked.lock().remove(&tick.task_id());
        self.skip(planned, SkipReason::Unreachable)
    }

    fn skip(&self, tick: SystemTime, reason: SkipReason) -> Entry {
        let name = Arc::clone(&self.name);
        self.gate.0.reporter.report(&GateEvent::Skipped { name, tick, reason });
        Entry::Skip
    }

    fn pause(&self, attempt: u32) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        doubled.min(self.gate.0.lease / 3)
    }
}

impl RunGate for NamedGate {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let reporter = &self.gate.0.reporter;
        Reporter::count(&reporter.asked);
        let mut planned = whole_micros(tick.planned_wall());
        let mut retry_of = None;
        if matches!(self.rule, Rule::Ticks(_)) && !tick.is_on_wall() {
            let Some(retry) = self.retries.find(tick) else {
                return self.skip(planned, SkipReason::NotOnWallClock);
            };
            (planned, retry_of) = (retry.tick, Some(retry.failed));
        }
        let answer = self.ask(planned, retry_of);
        if !matches!(answer, Answer::Unreachable(_)) {
            self.unasked.lock().remove(&tick.task_id());
        }
        self.entry(tick, planned, answer)
    }
}

impl fmt::Debug for NamedGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedGate")
            .field("name", &self.name)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

/// The lease of one run, as its task sees it.
struct HeldLease {
    state: Arc<LeaseState>,
    /// Until the run is left.
    grant: Mutex<Option<Grant>>,
    task: TaskId,
    tick: SystemTime,
    retries: Arc<Retries>,
    reporter: Arc<Reporter>,
}

impl Lease for HeldLease {
    fn fencing_token(&self) -> Option<u64> {
        Some(fence_of(self.state.fence))
    }

    fn is_lost(&self) -> bool {
        self.state.is_lost()
    }

    fn watch(&self, token: CancellationToken) {
        self.state.watch(token);
    }

    fn leave(&self, end: RunEnd<'_>, next: Option<Instant>) {
        // A retry that did not take place is one still.
        if !matches!(end, RunEnd::NotRun) {
            let after_failure = next.filter(|_| matches!(end, RunEnd::Failed(_)));
            let (tick, failed) = (self.tick, &self.state);
            let retry = after_failure.map(|at| Retry { tick, failed: Arc::clone(failed), at });
            self.retries.note(self.task, retry);
        }
        let grant = self.grant.lock().take();
        match (grant, end) {
            (Some(grant), RunEnd::NotRun) => drop(grant),
            (Some(grant), _) => grant.leave(),
            (None, _) => {}
        }
        if let (RunEnd::Failed(failure), None) = (end, next) {
            let (name, fence) = (Arc::clone(&self.state.name), fence_of(self.state.fence));
            let error = failure.message().to_owned();
            self.reporter.report(&GateEvent::Ended { name, fence, error });
        }
    }
}

/// Returns a moment as the database has it: without what is below a microsecond.
fn whole_micros(moment: SystemTime) -> SystemTime {
    let Ok(since) = moment.duration_since(UNIX_EPOCH) else { return moment };
    moment - Duration::from_nanos(u64::from(since.subsec_nanos() % 1000))
}
