//! One name of a gate: how a worker asks, and what it does with the answer.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use punctual::{
    CancellationToken, TaskId,
    gate::{self, Entry, Lease, RunEnd, RunGate, Tick},
};
use tokio::sync::mpsc::error::SendError;

use super::{
    CaughtUp, Gate,
    catching_up::CatchingUp,
    event::{GateEvent, Reporter, SkipReason},
    keeper::{Answer, Ask, Grant, Request, fence_of},
    lease::LeaseState,
    retries::{Retries, Retry},
    rules::{OnHolderDeath, Rule},
};
use crate::CatchUp;

/// The first pause before a row is looked at again that a replica holds, or that could not be looked at. The
/// next ones are twice as long each, up to a third of the lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

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
    /// Set if the name makes up for missed ticks.
    catching_up: Arc<Mutex<Option<Arc<CatchingUp>>>>,
}

impl NamedGate {
    pub(super) fn new(gate: Gate, name: Arc<str>) -> Self {
        let rule = Rule::Ticks(gate.0.on_holder_death);
        Self {
            gate,
            name,
            rule,
            unasked: Arc::default(),
            retries: Arc::default(),
            catching_up: Arc::default(),
        }
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
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::fixed_delay};
    /// use punctual_jobs::gate::Gate;
    ///
    /// let gate = Gate::postgres("postgres://app@db/app").open()?;
    /// let minute = Duration::from_secs(60);
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let poll = gate.for_name("poll the supplier")?.with_delay(minute);
    /// executor.task().gate(poll).repeat(fixed_delay(minute), || { /* poll */ })?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.rule = Rule::Delay(delay);
        self
    }

    /// Makes up for the ticks of this name that no replica has run: none was there, all were frozen, or none could reach the
    /// database. Returns the trigger for the task, in place of the one that `next_after` is taken from: it says which tick is
    /// the first one after a moment, and has to say the same on each replica.
    ///
    /// A replica begins at its start, after an outage of the database, and after a pause, behind the last tick that has run. So after a
    /// deploy of ten minutes what was missed runs once, or each of it, on one replica. A name that has never run has missed
    /// nothing from before a replica began. Missed ticks, which no replica has run, are [counted](super::Gate::statistics) and [told](super::GateEvent::TicksMissed) by
    /// the replica that has the next run, a thousand at most; a run of a late tick is counted as made up for. A tick whose replica
    /// died in its run is one of the missed if it would have run again ([`OnHolderDeath::Rerun`]) and does not.
    ///
    /// Replicas need not have begun at the same time, or have clocks that agree: with [`CatchUp::Each`] one that has planned a tick
    /// runs an earlier one first if no replica has run that by then and it is within the window.
    ///
    /// The task should have the default policy for missed runs, [`Coalesce`](punctual::MissedRuns::Coalesce);
    /// [`Skip`](punctual::MissedRuns::Skip) would leave out what is made up for.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use punctual::{FailurePolicy, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{CatchUp, aligned, gate::Gate};
    ///
    /// let gate = Gate::postgres("postgres://app@db/app").open()?;
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (hour, hourly) = (Duration::from_secs(3600), aligned(Duration::from_secs(3600)));
    /// let sweep = gate.for_name("sweep")?;
    /// let hourly = sweep.catch_up(move |after| hourly.next_after(after), CatchUp::Last(2 * hour));
    /// let task = executor.task().name("sweep").gate(sweep).on_failure(FailurePolicy::resume());
    /// task.repeat(hourly, || { /* sweep */ })?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn catch_up(
        &self,
        next_after: impl Fn(SystemTime) -> Option<SystemTime> + Send + Sync + 'static,
        catch_up: CatchUp,
    ) -> CaughtUp {
        let (name, reporter) = (Arc::clone(&self.name), Arc::clone(&self.gate.0.reporter));
        let made = CatchingUp::new(name, Box::new(next_after), catch_up, reporter);
        let made = Arc::new(made);
        *self.catching_up.lock() = Some(Arc::clone(&made));
        CaughtUp(made)
    }

    fn catching_up(&self) -> Option<Arc<CatchingUp>> {
        self.catching_up.lock().clone()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl RunGate for NamedGate {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        self.gate.0.reporter.count(|counts| counts.asked += 1);
        let mut question = Question {
            named: self.clone(),
            task: tick.task_id(),
            tick: whole_micros(tick.planned_wall()),
            now: tick.clock().wall_time(),
            is_on_wall: tick.is_on_wall(),
            attempt: tick.attempt(),
            retry_of: None,
        };
        if matches!(self.rule, Rule::Ticks(_)) && !tick.is_on_wall() {
            let Some(retry) = self.retries.find(tick) else {
                return question.skip(SkipReason::NotOnWallClock);
            };
            (question.tick, question.retry_of) = (retry.tick, Some(retry.failed));
        } else if let Some(catching_up) = self.catching_up() {
            if catching_up.is_left_out(question.tick, question.now) {
                return Entry::Skip;
            }
        }
        question.ask()
    }
}

/// A question about one tick, on its way to the gate's thread and back.
struct Question {
    named: NamedGate,
    task: TaskId,
    tick: SystemTime,
    /// What the clock of this replica shows.
    now: SystemTime,
    is_on_wall: bool,
    attempt: u32,
    /// The failed run of the same tick, if it is asked for once more.
    retry_of: Option<Arc<LeaseState>>,
}

impl Question {
    /// Sends the question to the gate's thread, which answers.
    fn ask(self) -> Entry {
        let NamedGate { gate, name, rule, .. } = &self.named;
        let (gate, name) = (gate.clone(), Arc::clone(name));
        let catching_up = self.named.catching_up();
        let (requests, retry_of) = (gate.0.requests.clone(), self.retry_of.clone());
        let (tick, now) = (self.tick, self.now);
        let rule = retry_of.as_ref().map_or(*rule, |failed| Rule::Retry(failed.fence));
        let deadline = tokio::time::Instant::now() + gate.0.request_timeout;
        let (reply, entry) = gate::later();
        let reply = Box::new(move |answer| reply.send(self.entry(answer)));
        let ask = Ask { name, tick, rule, now, retry_of, catching_up, deadline, reply, gate };
        if let Err(SendError(Request::Ask(ask))) = requests.send(Request::Ask(ask)) {
            (ask.reply)(Answer::Unreachable("the gate's own thread has ended".to_owned()));
        }
        entry
    }

    fn entry(&self, answer: Answer) -> Entry {
        let NamedGate { gate: Gate(inner), unasked, .. } = &self.named;
        if !matches!(answer, Answer::Unreachable(_)) {
            unasked.lock().remove(&self.task);
        }
        let reporter = &inner.reporter;
        match answer {
            Answer::Granted(grant) => {
                reporter.count(|counts| counts.granted += 1);
                if let Some(catching_up) = self.named.catching_up() {
                    catching_up.note_granted(self.tick);
                }
                let state = Arc::clone(&grant.state);
                let (task, tick, reporter) = (self.task, self.tick, Arc::clone(reporter));
                let (retries, grant) = (Arc::clone(&self.named.retries), Mutex::new(Some(grant)));
                Entry::Hold(Arc::new(HeldLease { state, grant, task, tick, retries, reporter }))
            }
            Answer::Held(left) => {
                reporter.count(|counts| counts.postponed += 1);
                Entry::Again(left.min(self.pause()))
            }
            Answer::Later(span) => {
                reporter.count(|counts| counts.postponed += 1);
                Entry::Again(span.min(inner.lease))
            }
            Answer::Passed => {
                reporter.count(|counts| counts.refused += 1);
                Entry::Skip
            }
            Answer::Ahead => self.skip(SkipReason::ClockSetBack),
            Answer::Unreachable(error) => self.unreachable(error),
        }
    }

    /// The gate is shut when it cannot be asked. It is asked again for as long as a lease lasts.
    fn unreachable(&self, error: String) -> Entry {
        let NamedGate { gate: Gate(inner), name, unasked, .. } = &self.named;
        let (name, tick) = (Arc::clone(name), self.tick);
        inner.reporter.report(&GateEvent::Unreachable { name, tick, error });
        let now = (inner.clock)();
        let since = {
            let mut unasked = unasked.lock();
            let entry = unasked.entry(self.task).or_insert((tick, now));
            // A request for another moment has made another tick of it.
            if entry.0 != tick && self.is_on_wall {
                *entry = (tick, now);
            }
            entry.1
        };
        if now.saturating_sub(since) < inner.lease {
            return Entry::Again(self.pause().min(inner.request_timeout));
        }
        unasked.lock().remove(&self.task);
        if let Some(catching_up) = self.named.catching_up() {
            catching_up.note_unasked(self.tick);
        }
        self.skip(SkipReason::Unreachable)
    }

    fn skip(&self, reason: SkipReason) -> Entry {
        let NamedGate { gate, name, .. } = &self.named;
        let (name, tick) = (Arc::clone(name), self.tick);
        gate.0.reporter.report(&GateEvent::Skipped { name, tick, reason });
        Entry::Skip
    }

    fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.attempt.saturating_sub(1).min(20));
        doubled.min(self.named.gate.0.lease / 3)
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
pub(super) fn whole_micros(moment: SystemTime) -> SystemTime {
    let Ok(since) = moment.duration_since(UNIX_EPOCH) else { return moment };
    moment - Duration::from_nanos(u64::from(since.subsec_nanos() % 1000))
}
