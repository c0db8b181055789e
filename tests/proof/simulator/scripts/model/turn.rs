//! A turn of the task: a worker takes it, its gate is asked, and its body is called, unless the run does not take place.
//! What comes after it follows from its outcome, and from what was asked for meanwhile.

use std::time::Duration;

use punctual::TaskState;

use super::{Asked, Model, Tick, Wait};
use crate::scripts::{
    Event,
    gate::{Answer, Entry},
    script::{Missed, OnFailure},
};

/// What a worker has taken the task for.
struct Taken {
    tick: Tick,
    is_extra: bool,
    started: Duration,
    /// When the run was asked for that was late already.
    asked: Option<Duration>,
    /// `true` if the tick waits on: its gate has put it off.
    waits: bool,
    /// Whether the run has succeeded, if it was one under a lease.
    leased: Option<bool>,
}

/// The next tick by the schedule, or the end of the task.
type Next = Result<Tick, TaskState>;

impl Model {
    /// A worker takes the task, for this tick.
    pub(super) fn turn(&mut self, tick: Tick) {
        let (is_extra, started) = (self.next_extra().is_some(), self.now);
        let asked = if is_extra { None } else { self.asked.take() };
        self.extra.take_if(|_| is_extra);
        let mut taken = Taken { tick, is_extra, started, asked, waits: false, leased: None };
        self.noted = Some(Asked { plan: is_extra.then_some(self.plan), ..Asked::default() });
        let next = self.carry_out(&mut taken);
        let noted = self.noted.take().unwrap_or_default();
        self.end = self.end.or(next.err());
        self.go_on(&taken, next.unwrap_or_default(), noted);
        if let success @ Some(_) = taken.leased {
            let next = self.next().filter(|next| self.end.is_none() && next.due < Duration::MAX);
            let next = next.filter(|_| !is_extra).map(|next| next.due);
            self.note(Event::Left { success, next });
        }
    }

    /// The task waits for `next`, or for what was asked for meanwhile.
    fn go_on(&mut self, taken: &Taken, next: Tick, noted: Asked) {
        if taken.waits && taken.is_extra {
            self.extra = Some(self.extra.map_or(next, |extra| next.moved_to(extra.due)));
        } else if taken.waits && noted.plan.is_none() {
            self.asked = taken.asked;
        }
        self.plan = noted.plan.unwrap_or(next);
        noted.within.into_iter().for_each(|within| self.hasten(within));
        noted.schedule.into_iter().for_each(|schedule| self.replace(schedule));
        self.settle();
    }

    /// The gate is asked, unless it has replied, and its answer is followed.
    fn carry_out(&mut self, taken: &mut Taken) -> Next {
        let given = self.wait.take().and_then(|wait| wait.given);
        if self.is_overdue(taken) {
            self.leave_unused(given);
            return self.leave_out(taken);
        }
        let entry = given.unwrap_or_else(|| self.question(taken));
        let put_off = match entry {
            Entry::Run | Entry::Hold => return self.begin(entry.has_lease(), taken),
            Entry::Skip => return self.skip(taken),
            Entry::HoldLost => {
                self.leave_unused(Some(entry));
                self.now
            }
            Entry::Again(span) => self.now + span.span(),
            Entry::Never => Duration::MAX,
            Entry::Later => {
                self.wait = Some(Wait { tick: taken.tick, given: None });
                taken.tick.due
            }
        };
        taken.waits = true;
        Ok(Tick { due: put_off, ..taken.tick })
    }

    fn question(&mut self, taken: &mut Taken) -> Entry {
        if self.gate.is_empty() {
            return Entry::Run;
        }
        taken.tick.attempt += 1;
        let Tick { planned, attempt, .. } = taken.tick;
        let number = if self.schedule.is_some() { self.runs as u64 + 1 } else { 1 };
        self.note(Event::Question { at: self.now, planned, on_wall: planned, number, attempt });
        let Answer { takes, asks, entry } = self.gate[self.questions % self.gate.len()];
        self.questions += 1;
        self.now += takes.span();
        asks.iter().for_each(|request| self.ask(request));
        self.has_reply = entry == Entry::Later;
        entry
    }

    /// The gate lets the run through. The task may have ended meanwhile, or be late by the time that the gate took.
    fn begin(&mut self, is_leased: bool, taken: &mut Taken) -> Next {
        taken.started = self.now;
        let is_overdue = self.is_overdue(taken);
        if self.end.is_none() && !is_overdue {
            return self.run(is_leased, taken);
        }
        self.leave_unused(is_leased.then_some(Entry::Hold));
        if is_overdue { self.leave_out(taken) } else { Ok(taken.tick) }
    }

    fn run(&mut self, is_leased: bool, taken: &mut Taken) -> Next {
        let Tick { planned, .. } = taken.tick;
        let missed = self.count_missed(taken);
        self.note(Event::Run { at: self.now, planned, missed, attempt: self.in_a_row + 1 });
        let body = self.bodies[self.runs % self.bodies.len()];
        self.runs += 1;
        self.now += body.takes.span();
        body.asks.iter().for_each(|request| self.ask(request));
        // What a task that runs once returns, it leaves to its future.
        let fails = body.fails && self.schedule.is_some();
        taken.leased = is_leased.then_some(!fails);
        self.follow(fails, taken)
    }

    /// Returns how many runs were missed just before this one. An extra run stands for no moment of the schedule.
    fn count_missed(&mut self, taken: &Taken) -> u64 {
        if taken.is_extra {
            return 0;
        }
        let covered = self.schedule.map_or(0, |schedule| match self.missed {
            Missed::Coalesce | Missed::Delay => schedule.between(taken.tick.planned, taken.started),
            _ => 0,
        });
        let missed = self.skipped + covered;
        self.all_missed += missed - self.counted;
        missed
    }

    /// The run has ended: what follows it?
    fn follow(&mut self, fails: bool, taken: &Taken) -> Next {
        let Some(schedule) = &mut self.schedule else { return Err(TaskState::Completed) };
        self.in_a_row = if fails { self.in_a_row + 1 } else { 0 };
        self.failed += u64::from(fails);
        // Attempts are failures in a row, and an extra run may have succeeded in between.
        if !taken.is_extra {
            schedule.failed = schedule.failed.min(self.in_a_row.saturating_sub(1));
        }
        let goes_on = match self.on_failure {
            // A failure does not end what is to be tried again.
            None => schedule.retry.is_some(),
            Some(OnFailure::Resume) => true,
            Some(OnFailure::StopAfter(most)) => self.in_a_row < most,
        };
        match fails {
            true if !goes_on => Err(TaskState::Failed),
            false if self.is_call => Err(TaskState::Completed),
            _ if taken.is_extra => Ok(self.plan),
            _ => self.next_tick(taken, Some(fails)).ok_or(TaskState::Failed),
        }
    }

    fn is_overdue(&self, taken: &Taken) -> bool {
        let planned = taken.tick.planned;
        let from = taken.asked.map_or(planned, |asked| asked.max(planned));
        let schedule = self.schedule.filter(|_| !taken.is_extra);
        schedule.is_some_and(|schedule| schedule.is_overdue(from, self.now, self.missed))
    }

    /// The run does not take place, and counts as missed at once.
    fn leave_out(&mut self, taken: &Taken) -> Next {
        let (before, counted) = (self.skipped + 1, self.counted);
        let next = self.next_tick(taken, None);
        self.skipped += before;
        self.counted = self.skipped;
        self.all_missed += self.skipped - counted;
        self.or_end(next)
    }

    /// The gate skips the run, which is no run, and no failure.
    fn skip(&mut self, taken: &Taken) -> Next {
        self.gate_skips += 1;
        if self.schedule.is_none() {
            return Err(TaskState::Cancelled);
        }
        if taken.is_extra {
            return Ok(self.plan);
        }
        self.count_missed(taken);
        let next = self.next_tick(taken, None);
        self.or_end(next)
    }

    /// A series ends without a run to come as its last run has ended.
    fn or_end(&self, next: Option<Tick>) -> Next {
        next.ok_or(if self.in_a_row > 0 { TaskState::Failed } else { TaskState::Completed })
    }

    /// Returns the next tick of the schedule, after a run that `fails` or not, or did not take place.
    fn next_tick(&mut self, taken: &Taken, fails: Option<bool>) -> Option<Tick> {
        (self.skipped, self.counted) = (0, 0);
        let (schedule, planned) = (self.schedule.as_mut()?, taken.tick.planned);
        let next = schedule.next((planned, taken.started), self.now, self.missed, fails)?;
        if self.missed.has_deadline() {
            self.skipped = schedule.between(planned, next).saturating_sub(1);
        }
        Some(Tick::at(next))
    }
}
