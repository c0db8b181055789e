//! The rules, once more: what becomes of one task whose bodies take no time. All moments and spans are in seconds.
//!
//! They are written from the public documentation of the calls and of [`MissedRuns`](punctual::MissedRuns), and not from the code.

use super::script::{Answer, Call, Kind, Missed, Task};

/// The lateness after which `Skip` leaves a run out whose successor is not due.
const SKIP_AFTER: u64 = 10;

/// One run: when it was, and for when it was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) at: u64,
    pub(super) planned: u64,
}

pub(super) struct Model {
    now: u64,
    kind: Kind,
    missed_runs: Missed,
    plan: u64,
    is_paused: bool,
    /// When a run beside the schedule was asked for.
    extra: Option<u64>,
    /// From when the lateness of the planned run counts, if it was asked for when it was due.
    asked: u64,
    is_over: bool,
    pub(super) missed: u64,
    /// How many were left out since the last run.
    skipped: u64,
    pub(super) runs: Vec<Ran>,
    pub(super) is_wrong_about_run_now: bool,
}

impl Model {
    pub(super) fn new(task: Task) -> Self {
        Self {
            now: 0,
            kind: task.kind,
            missed_runs: task.missed_runs,
            plan: task.first,
            is_paused: false,
            extra: None,
            asked: 0,
            is_over: false,
            missed: 0,
            skipped: 0,
            runs: Vec::new(),
            is_wrong_about_run_now: false,
        }
    }

    /// When it runs next, as the task says; `None` if it has ended, or for no moment.
    fn next(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        match self.extra.filter(|extra| self.is_paused || *extra <= self.plan) {
            Some(extra) => Some(extra),
            None => (!self.is_paused).then_some(self.plan),
        }
    }

    /// When the executor wants to be called next.
    pub(super) fn next_call(&self) -> Option<u64> {
        self.next().map(|next| next.max(self.now))
    }

    pub(super) fn call(&mut self, call: Call) -> Answer {
        match call {
            Call::Advance(span) => self.now += span,
            Call::Drive => self.drive(),
            _ if self.is_over => return Answer::No,
            Call::Pause if self.is_paused => return Answer::No,
            Call::Pause => self.is_paused = true,
            Call::Resume if !self.is_paused => return Answer::No,
            Call::Resume => self.is_paused = false,
            Call::RunNow => self.run_now(),
            Call::RunWithin(span) if self.plan < self.now + span => self.asked = self.now + span,
            Call::RunWithin(span) => self.plan = self.now + span,
            Call::Reschedule(span) => (self.plan, self.asked) = (self.now + span, 0),
            Call::SetEvery(_) if self.kind == Kind::Once => return Answer::No,
            Call::SetEvery(period) => {
                self.kind = Kind::Rate(period);
                // It begins anew: what the schedule before has left out counts with no run.
                (self.plan, self.asked, self.skipped) = (self.now, 0, 0);
            }
            Call::Cancel => self.is_over = true,
        }
        Answer::Yes
    }

    fn run_now(&mut self) {
        let is_due = |moment: Option<u64>| moment.is_some_and(|moment| moment <= self.now);
        let knows_rule = !self.is_wrong_about_run_now;
        if is_due(self.extra) && self.next() == self.extra && knows_rule {
            // That run is the one that was asked for.
        } else if is_due(self.next()) && knows_rule {
            self.asked = self.now;
        } else if self.kind == Kind::Once {
            (self.plan, self.is_paused) = (self.now, false);
        } else {
            self.extra = Some(self.now);
        }
    }

    fn drive(&mut self) {
        while let Some(next) = self.next().filter(|next| *next <= self.now) {
            if self.extra == Some(next) {
                self.extra = None;
                self.runs.push(Ran { at: self.now, planned: next });
            } else {
                self.run_as_planned();
            }
        }
    }

    fn run_as_planned(&mut self) {
        let planned = self.plan;
        let late = self.now - planned.max(self.asked).min(self.now);
        let is_left_out = self.kind != Kind::Once && self.leaves_out(late);
        self.asked = 0;
        // What was left out before counts with this run, and beside one that is left out everything does at once.
        self.missed += std::mem::take(&mut self.skipped) + u64::from(is_left_out);
        if !is_left_out {
            self.runs.push(Ran { at: self.now, planned });
        }
        match self.kind {
            Kind::Once => self.is_over = true,
            Kind::Delay(pause) => self.plan = self.now + pause,
            Kind::Rate(period) => self.plan = self.next_of_grid(planned, period),
        }
        if is_left_out {
            self.missed += std::mem::take(&mut self.skipped);
        }
    }

    fn leaves_out(&self, late: u64) -> bool {
        let is_next_due = matches!(self.kind, Kind::Rate(period) if late >= period);
        match self.missed_runs {
            Missed::Burst | Missed::Coalesce | Missed::Delay => false,
            Missed::Within(limit) => late > limit,
            Missed::Skip => late > SKIP_AFTER || late > 0 && is_next_due,
        }
    }

    /// The next run of a rate, after one that was planned for that moment; counts those between the two.
    fn next_of_grid(&mut self, planned: u64, period: u64) -> u64 {
        let late_ones = (self.now - planned) / period;
        match self.missed_runs {
            Missed::Burst => {}
            Missed::Coalesce => self.missed += late_ones,
            Missed::Skip => self.skipped = late_ones,
            Missed::Delay if late_ones > 0 => {
                self.missed += late_ones;
                return self.now + period;
            }
            Missed::Delay => {}
            // Those that are too late when this run has ended.
            Missed::Within(limit) => {
                let is_too_late = |n: &u64| planned + n * period + limit < self.now;
                self.skipped = (1..=late_ones).filter(is_too_late).count() as u64;
            }
        }
        let left_out = match self.missed_runs {
            Missed::Burst | Missed::Delay => 0,
            Missed::Coalesce => late_ones,
            Missed::Skip | Missed::Within(_) => self.skipped,
        };
        planned + (left_out + 1) * period
    }
}
