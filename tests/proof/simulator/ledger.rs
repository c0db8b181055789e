//! The history of a run, and what must not happen in it: the safety properties of every scenario.
//!
//! Each thread reports its steps to the ledger, which is under a lock that the model checker does
//! not know: taking notes is no step. Violations are written down rather than thrown, because a
//! panic in a task would be one more fault to contain.

use std::time::Duration;

use punctual::{CancelReason, FailureKind, ScheduledFuture, TaskError, TaskHandle, gate::Tick};

use crate::{
    calls::CallRecord,
    driver::DriverRecord,
    groups::GroupRecord,
    liveness::Waits,
    scenario::{Answer, Kind, Steps, TaskPlan, Verb, When},
    tasks::Receipt,
    triggers::{TickRecord, Ticks},
};

/// A future of either kind.
pub(crate) enum Future {
    Once(ScheduledFuture<Receipt>),
    Periodic(ScheduledFuture<()>),
}

impl Future {
    pub(crate) fn task_handle(&self) -> TaskHandle {
        match self {
            Self::Once(future) => future.task_handle(),
            Self::Periodic(future) => future.task_handle(),
        }
    }
}

/// How a task ended, according to its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Completed,
    Panicked,
    OverLimit,
    Cancelled(CancelReason),
}

/// Everything that is known of one task.
pub(crate) struct Record {
    pub(crate) plan: TaskPlan,
    /// The earliest time that the first run may be planned for.
    pub(crate) low: Duration,
    /// The latest such time, once the task has been admitted.
    pub(crate) high: Duration,
    /// The position among all events at which it was about to be submitted.
    pub(crate) opened: u64,
    /// The position among all events at which the submission had returned.
    pub(crate) admitted: Option<u64>,
    refused: bool,
    pub(crate) starts: u32,
    pub(crate) is_running: bool,
    /// Set just before the body panics: a second panic in a capture would abort the process.
    pub(crate) is_panicking: bool,
    pub(crate) has_panicked: bool,
    last_end: Duration,
    pub(crate) drops: u32,
    /// `true` once a thread has called `cancel`, even if the call has not returned yet.
    pub(crate) is_being_cancelled: bool,
    /// The number of `cancel` calls that reported success.
    cancels: u32,
    /// `true` if it was cancelled before it was due.
    must_not_start: bool,
    /// How many threads ask something of it just now, and whether there were two at once.
    asking: u32,
    was_asked_by_two: bool,
    /// `true` once something has been asked of it that moves its runs.
    pub(crate) is_moved: bool,
    /// `true` once somebody has paused it, even if it was resumed since.
    pub(crate) is_paused: bool,
    began_to_ask: Duration,
    /// When its submission has returned.
    submitted: Duration,
    pub(crate) gate: GateRecord,
    pub(crate) calls: CallRecord,
    pub(crate) ticks: TickRecord,
    /// The round of the driver in which it last started.
    pub(crate) round: u64,
    /// `true` once somebody has begun to end its whole group.
    pub(crate) is_ended_with_group: bool,
    fate: Option<Fate>,
    pub(crate) future: Option<Future>,
    pub(crate) handle: Option<TaskHandle>,
}

/// The gate of a task, and the tick that it was asked about.
#[derive(Default)]
pub(crate) struct GateRecord {
    questions: u32,
    pub(crate) is_asked: bool,
    /// `true` from an answer that lets a run pass until the run begins.
    lets_through: bool,
    has_skipped: bool,
    /// The tick that was put off: for when it was planned, how often it was asked about, and the time before
    /// which it is not asked about again.
    put_off: Option<(Duration, u32, Duration)>,
    leases: u32,
    left: u32,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) tasks: Vec<Record>,
    pub(crate) violations: Vec<String>,
    /// The number of events so far.
    pub(crate) events: u64,
    /// The event at which each advance of the clock began, and the time it led to.
    pub(crate) advances: Vec<(u64, Duration)>,
    /// The event at which a body last ended on a worker.
    last_end: u64,
    /// `true` once a thread has begun to shut the pool down.
    pub(crate) is_stopping: bool,
    /// `true` if the order in which the threads took their tasks is unknown.
    pub(crate) has_many_workers: bool,
    pub(crate) groups: Vec<GroupRecord>,
    /// `true` if a task may have to make room for another.
    pub(crate) discards: bool,
    /// `true` if a hook may have failed a run before its body began.
    pub(crate) hooks_panic: bool,
    /// The number of waits that the passage of time ends.
    pub(crate) sleepers: usize,
    /// The number of threads that hold tasks returned by the pool.
    pub(crate) holders: usize,
    pub(crate) results_alive: usize,
    pub(crate) threads_started: usize,
    pub(crate) threads_stopped: usize,
    pub(crate) terminations: usize,
    pub(crate) hook_calls: usize,
    pub(crate) spawns: usize,
    /// How many starts of threads have failed, or are under way.
    pub(crate) failed_starts: usize,
    pub(crate) driver: DriverRecord,
    pub(crate) waits: Waits,
    pub(crate) ticks: Ticks,
    /// How often user code has called back.
    pub(crate) backs: usize,
}

impl Ledger {
    pub(crate) fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    pub(crate) fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Records the beginning of a submission, and returns the number of the task.
    pub(crate) fn open(&mut self, plan: TaskPlan, now: Duration) -> usize {
        let opened = self.event();
        let low = now.saturating_add(plan.not_before());
        self.tasks.push(Record {
            plan,
            low,
            high: Duration::MAX,
            opened,
            admitted: None,
            refused: false,
            starts: 0,
            is_running: false,
            is_panicking: false,
            has_panicked: false,
            last_end: Duration::ZERO,
            drops: 0,
            is_being_cancelled: false,
            cancels: 0,
            must_not_start: false,
            asking: 0,
            was_asked_by_two: false,
            is_moved: false,
            is_paused: false,
            began_to_ask: Duration::ZERO,
            submitted: Duration::MAX,
            gate: GateRecord::default(),
            calls: CallRecord::default(),
            ticks: TickRecord::default(),
            round: 0,
            is_ended_with_group: false,
            fate: None,
            future: None,
            handle: None,
        });
        self.tasks.len() - 1
    }

    /// Records that the submission has been accepted.
    pub(crate) fn admitted(&mut self, id: usize, now: Duration, future: Future) {
        let event = self.event();
        let record = &mut self.tasks[id];
        record.high = now.saturating_add(record.plan.first_in());
        record.submitted = now;
        record.admitted = Some(event);
        record.future = Some(future);
    }

    pub(crate) fn refused(&mut self, id: usize) {
        self.tasks[id].refused = true;
    }

    /// Records that the clock is about to be moved.
    pub(crate) fn advance_begins(&mut self) -> u64 {
        self.event()
    }

    pub(crate) fn advanced(&mut self, began: u64, now: Duration) {
        self.advances.push((began, now));
    }

    /// Records that a body begins: not early, not twice, not beside another run of the same task.
    pub(crate) fn starts(&mut self, id: usize, now: Duration, is_worker: bool) {
        self.event();
        let one_worker_order = is_worker.then(|| self.overtaken_by(id)).flatten();
        if is_worker {
            self.starts_in_group(id);
        }
        if let Some(other) = one_worker_order {
            self.violation(format!("task {id} has overtaken task {other}"));
        }
        let record = &mut self.tasks[id];
        let mut wrong = Vec::new();
        let earliest = record.earliest();
        if is_worker && now < earliest {
            wrong.push(format!("task {id} is early: {now:?} < {earliest:?}"));
        }
        if record.is_running {
            wrong.push(format!("two runs of task {id} overlap"));
        }
        if is_worker && record.must_not_start {
            wrong.push(format!("task {id} starts, and was cancelled in time"));
        }
        if record.drops > 0 {
            wrong.push(format!("task {id} starts, and its capture has been dropped"));
        }
        if is_worker && record.plan.gate.is_some() && !record.gate.lets_through {
            wrong.push(format!("task {id} starts, and its gate has not let it through"));
        }
        record.gate.lets_through = false;
        record.starts += 1;
        if matches!(record.plan.kind, Kind::Once) && record.starts > 1 {
            wrong.push(format!("task {id} starts twice"));
        }
        record.is_running = true;
        self.violations.append(&mut wrong);
    }

    /// Notes how late a run starts. What was asked of a task may be late since then, and may be beside its schedule.
    /// A calendar's first moment that has passed when it is submitted means then.
    pub(crate) fn is_late(&mut self, id: usize, late: Duration, began: Duration, is_worker: bool) {
        let record = &self.tasks[id];
        let is_first = matches!(record.plan.kind, Kind::Calendar(..)) && record.starts == 1;
        let late = if is_first { late.min(began.saturating_sub(record.submitted)) } else { late };
        let is_bound = is_worker && !record.is_moved && !matches!(record.plan.kind, Kind::Once);
        let is_bound = is_bound && !record.plan.kind.is_called();
        // By the wall clock, once it was set, the run may be on time.
        let is_on_wall = matches!(record.plan.kind, Kind::Calendar(..));
        let is_bound = is_bound && !(is_on_wall && self.ticks.is_set);
        let most = record.plan.within.map(Steps::span).or_else(|| record.plan.skips_from());
        let most = most.filter(|_| is_bound);
        if let Some(most) = most.filter(|most| late > *most) {
            self.violation(format!("task {id} starts {late:?} late, and {most:?} is the most"));
        }
    }

    /// Records that a body has ended or is about to panic.
    pub(crate) fn ends(&mut self, id: usize, now: Duration, is_worker: bool, panics: bool) {
        let event = self.event();
        if is_worker {
            self.last_end = event;
        }
        if let Some(group) = self.tasks[id].plan.group.filter(|_| is_worker) {
            self.groups[group].ends();
        }
        let record = &mut self.tasks[id];
        record.is_running = false;
        record.last_end = now;
        record.has_panicked |= panics;
        record.is_panicking = panics;
    }

    /// Returns, for a pool with one worker, a task that should have been taken before this one and
    /// has not been. It was in the queue when the worker looked, and is due earlier.
    fn overtaken_by(&self, id: usize) -> Option<usize> {
        let taken = &self.tasks[id];
        if self.is_stopping || self.discards || self.has_many_workers || taken.starts > 0 {
            return None;
        }
        // The worker looked after the last body had ended, and not before this task was due.
        let low = taken.low;
        let is_due = self.advances.iter().find(|(_, now)| *now >= low);
        let looked = self.last_end.max(is_due.map_or(0, |(began, _)| *began));
        self.tasks.iter().position(|other| {
            let may_have_run = self.hooks_panic && other.plan.resumes;
            // A task may have been put off or skipped by its gate, or have to wait for its group.
            let may_wait = other.plan.gate.is_some() || other.plan.group.is_some();
            // Or it was overdue, and has been left out.
            let may_wait = may_wait || other.plan.within.is_some() || other.plan.skips;
            let may_wait = may_wait || self.ticks.is_set;
            let has_begun = other.starts > 0 || may_have_run || may_wait;
            let waits = !has_begun && other.drops == 0 && !other.is_being_cancelled;
            let was_there = other.admitted.is_some_and(|event| event < looked);
            waits && was_there && other.high < low && other.plan.timeout.is_none()
        })
    }

    /// Records that the capture is dropped. Returns `true` if its task is panicking just now.
    pub(crate) fn dropped(&mut self, id: usize) -> bool {
        self.event();
        let record = &mut self.tasks[id];
        record.drops += 1;
        let is_panicking = std::mem::take(&mut record.is_panicking);
        if record.drops > 1 {
            self.violation(format!("the capture of task {id} is dropped twice"));
        }
        is_panicking
    }

    pub(crate) fn cancel_begins(&mut self, id: usize) {
        self.tasks[id].is_being_cancelled = true;
    }

    pub(crate) fn cancelled(&mut self, id: usize, did_it: bool, now: Duration) {
        let record = &mut self.tasks[id];
        if !did_it {
            return;
        }
        record.cancels += 1;
        let is_in_time = now < record.low && record.starts == 0;
        record.must_not_start |= is_in_time || record.gate.is_asked;
    }

    /// Records that the gate of a task is asked: not beside a run, not beside another question, not after the
    /// end, and about the tick that it has put off. Returns how often it has been asked.
    pub(crate) fn asks_gate(
        &mut self,
        id: usize,
        planned: Duration,
        tick: &Tick<'_>,
        now: Duration,
    ) -> u32 {
        self.event();
        let record = &mut self.tasks[id];
        let mut wrong = Vec::new();
        if record.is_running || record.gate.is_asked {
            wrong.push(format!("the gate of task {id} is asked beside something"));
        }
        if record.drops > 0 {
            wrong.push(format!("the gate of task {id} is asked, and its capture has been dropped"));
        }
        if planned > now {
            wrong.push(format!("the gate of task {id} is asked early: {now:?} < {planned:?}"));
        }
        let is_another = record.is_moved || record.plan.kind.is_called() || record.plan.skips;
        let put_off = record.gate.put_off.take().filter(|_| !is_another && !self.ticks.is_set);
        // A tick that is overdue meanwhile is left out.
        let is_bound = !matches!(record.plan.kind, Kind::Once);
        let most = record.plan.within.filter(|_| is_bound).map_or(Duration::MAX, Steps::span);
        let put_off = put_off.filter(|(planned, ..)| now.saturating_sub(*planned) <= most);
        let expected = put_off.map(|(planned, attempts, _)| (planned, attempts + 1));
        if expected.is_some_and(|expected| expected != (planned, tick.attempt())) {
            let asked = (planned, tick.attempt());
            wrong.push(format!("the gate of task {id} is asked about {asked:?}, not {expected:?}"));
        }
        if put_off.is_some_and(|(_, _, earliest)| now < earliest) {
            wrong.push(format!("the gate of task {id} is asked again too early"));
        }
        record.gate.questions += 1;
        record.gate.is_asked = true;
        record.gate.put_off = Some((planned, tick.attempt(), now));
        let questions = record.gate.questions;
        self.violations.append(&mut wrong);
        questions
    }

    /// Records what the gate answers.
    pub(crate) fn gate_answers(&mut self, id: usize, answer: Answer, now: Duration) {
        self.event();
        let gate = &mut self.tasks[id].gate;
        gate.is_asked = false;
        gate.lets_through = matches!(answer, Answer::Run | Answer::Hold | Answer::InTurn);
        gate.has_skipped |= matches!(answer, Answer::Skip);
        gate.leases += u32::from(matches!(answer, Answer::Hold | Answer::InTurn));
        let asked = gate.put_off.take();
        if let (Answer::Again(steps), Some((planned, attempt, _))) = (answer, asked) {
            gate.put_off = Some((planned, attempt, now + steps.span()));
        }
    }

    /// Returns `true` if the gate was asked so late that the run may come later than all time that passes.
    pub(crate) fn is_put_off_by_gate(&self, id: usize, now: Duration) -> bool {
        let gate = &self.tasks[id].gate;
        gate.is_asked || gate.put_off.is_some_and(|(_, _, earliest)| earliest > now)
    }

    /// Records that a lease is left.
    pub(crate) fn leaves(&mut self, id: usize, has_run: bool) {
        self.event();
        let record = &mut self.tasks[id];
        record.gate.left += 1;
        record.gate.lets_through &= has_run;
        let is_wrong =
            record.is_running || has_run && record.gate.lets_through && !self.hooks_panic;
        if is_wrong || record.gate.left > record.gate.leases {
            self.violation(format!("a lease of task {id} is left at the wrong time"));
        }
    }

    /// Records that something is about to be asked of a task. From now on it may run then.
    pub(crate) fn asks(&mut self, id: usize, verb: Verb, now: Duration) {
        let record = &mut self.tasks[id];
        record.is_moved = true;
        record.was_asked_by_two |= record.asking > 0;
        record.asking += 1;
        record.began_to_ask = now;
        record.is_paused |= matches!(verb, Verb::Pause);
        let asked_for = match verb {
            Verb::Reschedule(steps) | Verb::RunWithin(steps) | Verb::SetPeriod(steps) => {
                now + steps.span()
            }
            _ => now,
        };
        record.low = record.low.min(asked_for);
        // It may be later from now on. What is known is said when the call has returned.
        record.high = Duration::MAX;
    }

    /// Records that the call has returned. If no other was under way, the runs of a one-shot task are
    /// known again.
    pub(crate) fn asked(&mut self, id: usize, verb: Verb, had_effect: bool, now: Duration) {
        let event = self.event();
        let record = &mut self.tasks[id];
        record.asking -= 1;
        let is_known = had_effect && !record.was_asked_by_two && !record.is_paused;
        let Verb::Reschedule(steps) = verb else { return };
        if is_known && matches!(record.plan.kind, Kind::Once) {
            record.low = record.began_to_ask + steps.span();
            record.high = now + steps.span();
            record.admitted = Some(event);
        }
    }

    /// Records how a task ended, according to its future. A future whose result has been taken adds
    /// nothing.
    pub(crate) fn learns(&mut self, id: usize, outcome: &Result<(), TaskError>) {
        let record = &mut self.tasks[id];
        let fate = match outcome {
            Ok(()) => Fate::Completed,
            Err(TaskError::Failed(failure)) => match failure.kind() {
                FailureKind::TimeLimit => Fate::OverLimit,
                _ => Fate::Panicked,
            },
            Err(TaskError::Cancelled(reason)) => Fate::Cancelled(*reason),
            Err(TaskError::ResultTaken) if record.fate.is_some() => return,
            Err(other) => return self.violation(format!("the future of task {id}: {other}")),
        };
        if let Some(before) = record.fate.replace(fate).filter(|before| *before != fate) {
            self.violation(format!("task {id} ended twice: {before:?}, {fate:?}"));
        }
    }

    /// The numbers of the admitted tasks, for [`missing`](Self::missing).
    pub(crate) fn all_admitted(&self) -> Vec<usize> {
        (0..self.tasks.len()).filter(|id| self.tasks[*id].admitted.is_some()).collect()
    }

    /// The one-shot tasks among these that were due by now and are still pending.
    pub(crate) fn missing(&self, tasks: &[usize], now: Duration) -> Vec<usize> {
        let is_missing = |id: &usize| {
            let record = &self.tasks[*id];
            let is_due = matches!(record.plan.kind, Kind::Once) && record.high <= now;
            is_due && !self.is_put_off_by_gate(*id, now) && record.drops == 0 && !record.is_running
        };
        tasks.iter().copied().filter(is_missing).collect()
    }

    /// The largest number of runs of any task.
    pub(crate) fn most_runs(&self) -> u32 {
        self.tasks.iter().map(|record| record.starts).max().unwrap_or(0)
    }

    /// Checks, when everything has ended, that each task ended in one way and that nothing of it is
    /// left.
    pub(crate) fn check_the_end(&mut self, captures_panic: bool) {
        let mut wrong = Vec::new();
        for (id, record) in self.tasks.iter().enumerate() {
            let mut say = |what: &str| wrong.push(format!("task {id} {what}"));
            if record.drops != 1 {
                say("keeps its capture");
            }
            if record.is_running {
                say("runs after the end");
            }
            if record.admitted.is_some() == record.refused {
                say("was admitted and refused, or neither");
            }
            if record.refused && record.starts > 0 {
                say("was refused and runs");
            }
            if record.gate.left != record.gate.leases {
                say(&format!("keeps a lease: {} of {}", record.gate.left, record.gate.leases));
            }
            if record.gate.is_asked {
                say("is asked about after the end");
            }
            if record.cancels > 1 {
                say("was cancelled by two");
            }
            let was_requested = record.fate == Some(Fate::Cancelled(CancelReason::Requested));
            let is_by_group = record.is_ended_with_group && record.cancels == 0;
            let is_known = record.fate.is_some() && !is_by_group;
            if is_known && was_requested != (record.cancels == 1) {
                say(&format!("was cancelled by {}, ended {:?}", record.cancels, record.fate));
            }
            let may_panic = record.has_panicked || self.hooks_panic || captures_panic;
            match record.fate {
                Some(Fate::Completed) if record.starts != 1 => say("completed without a run"),
                Some(Fate::Panicked) if !may_panic => say("panicked without a panic"),
                Some(Fate::OverLimit) if record.plan.timeout.is_none() => say("has no limit"),
                Some(Fate::Cancelled(CancelReason::TimedOut)) if record.plan.timeout.is_none() => {
                    say("timed out without a timeout");
                }
                Some(Fate::Cancelled(CancelReason::SkippedByGate)) if !record.gate.has_skipped => {
                    say("was skipped without a skip");
                }
                _ => {}
            }
        }
        for (what, count, expected) in [
            ("results alive", self.results_alive, 0),
            ("threads that have not stopped", self.threads_started - self.threads_stopped, 0),
            ("terminations", self.terminations, 1),
        ] {
            if count != expected {
                wrong.push(format!("{what}: {count}"));
            }
        }
        self.violations.append(&mut wrong);
    }
}

impl Record {
    /// The time before which the next run must not begin.
    fn earliest(&self) -> Duration {
        match self.plan.kind {
            Kind::Rate(_) | Kind::Delay(_) if self.is_moved => Duration::ZERO,
            Kind::Calendar(..) | Kind::Debounce(..) | Kind::Throttle(_) => self.low,
            _ if matches!(self.plan.when, When::Never) && !self.is_moved => Duration::MAX,
            Kind::Delay(delay) if self.starts > 0 => self.last_end + delay.span(),
            Kind::Rate(period) => self.low + self.starts * period.span(),
            _ => self.low,
        }
    }
}
