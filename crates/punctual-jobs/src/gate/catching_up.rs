//! Missed ticks of a name: a trigger that goes back for them.
//!
//! A gate is asked about the ticks that a task plans, and a trigger plans none that has passed. So this trigger does: whenever it is
//! asked for the next tick it begins behind the last one that is known to be *settled*, and not at the present. What is
//! settled comes from the row of the name, which the gate's thread reads with each question: the trigger itself asks
//! nothing, and knows nothing of rows.
//!
//! * When a task is submitted, nothing is known. The trigger plans the first tick that the policy has in its window. If
//!   it has run, the gate says so, and the trigger goes on behind the last tick of the row. So a start costs one question more.
//!   A name without a row has missed nothing: such a tick needs a row ([`CatchingUp::needs_row`]).
//! * A tick that was skipped because the database could not be asked is not settled, and is planned again.
//! * After a pause of the process, or of all of them, the tick that was planned before it is late. If one run stands for all,
//!   the gate leaves it out for the last one.
//! * A replica may have planned a tick before the row left an earlier one open: the name had no row, a replica whose clock is
//!   behind made it, and died in its run or gave it back. A claim of the later tick would settle the earlier one. So if each is
//!   to run, the trigger's own rule is applied before a claim to the row that was seen ([`CatchingUp::puts_off`]): if it has an
//!   earlier tick next, that one is planned, and the later one behind it. With the other policies the later one stands for it.
//!
//! The replica that claims a tick counts those that are missed before it, from the row as it was before its claim: what it
//! could not ask about itself may have run on others. If the answer to the claim was lost, it counts them when it finds the
//! claim in the row. If another replica has the row by then, nobody tells of them.
//!
//! All replicas do the same, and plan the same ticks. Each is claimed once, as always: the row decides.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

use super::{
    event::{GateEvent, Reporter},
    rules::{CORRECTION, OnHolderDeath, Row, Rule, Seen, Verdict},
};
use crate::job::catch_up::{CatchUp, ON_TIME, last_between};

type NextAfter = Box<dyn Fn(SystemTime) -> Option<SystemTime> + Send + Sync>;

/// What the trigger of a name and its gate tell each other. One lock protects it, under which nothing is called.
pub(super) struct CatchingUp {
    name: Arc<str>,
    next_after: NextAfter,
    catch_up: CatchUp,
    reporter: Arc<Reporter>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Ticks up to this one have run, or run on another replica.
    settled: Option<SystemTime>,
    /// The first tick that is to be asked about again, until it is: the database could not be asked, or a later tick was
    /// planned although the row leaves this one open.
    unasked: Option<SystemTime>,
    /// When the trigger was asked for the first time.
    born: Option<SystemTime>,
    /// The tick that was planned last, for the count of those that are made up for.
    planned: Option<SystemTime>,
    /// It was late already when it was planned.
    is_late: bool,
}

/// For when the last run was planned, or what was skipped instead.
#[derive(Clone, Copy)]
enum LastPlan {
    /// There was none.
    None,
    /// It was at no tick: a request has moved it.
    Elsewhere,
    Tick(SystemTime),
}

/// How many missed ticks are counted at a time.
const MOST_COUNTED: u64 = 1_000;
const MICROSECOND: Duration = Duration::from_micros(1);
/// A row has moments without what is below a microsecond, and a tick may have some.
const BELOW_MICROSECOND: Duration = Duration::from_nanos(999);

/// A question about a tick, by the clock of the replica, which its trigger plans by.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) tick: SystemTime,
    pub(super) rule: Rule,
    pub(super) now: SystemTime,
}

impl CatchingUp {
    pub(super) fn new(
        name: Arc<str>,
        next_after: NextAfter,
        catch_up: CatchUp,
        reporter: Arc<Reporter>,
    ) -> Self {
        Self { name, next_after, catch_up, reporter, known: Mutex::default() }
    }

    /// Notes what the row of the name says, and returns whether the tick that is asked about is not to be claimed: there is no
    /// row, and it is older than this replica; or the row leaves an earlier one open, and the trigger plans that one now.
    pub(super) fn puts_off(&self, seen: &Seen, verdict: Verdict, asked: Asked) -> bool {
        match &seen.row {
            None if self.needs_row(asked.tick) => {
                self.note_no_row();
                true
            }
            // A row that is not believed says nothing.
            Some(row) if !matches!(verdict, Verdict::SetBack(_)) => {
                self.note_row(row, asked.rule);
                let is_claim = verdict == Verdict::Free && matches!(asked.rule, Rule::Ticks(_));
                is_claim && self.goes_back(asked)
            }
            _ => false,
        }
    }

    /// Notes the ticks that a row settles: also that of a run which has not ended, if it does not run again.
    fn note_row(&self, row: &Row, rule: Rule) {
        if row.is_orphan {
            self.tell_passed_over(row.tick);
        }
        let is_over = rule == Rule::Ticks(OnHolderDeath::Skip) && !row.is_orphan;
        let is_settled = row.done || is_over;
        let last = if is_settled { Some(row.tick) } else { row.tick.checked_sub(MICROSECOND) };
        let settled = last.map(|last| last + BELOW_MICROSECOND);
        let mut known = self.known.lock();
        (known.settled, known.unasked) = (settled, None);
    }

    /// There is no row: nothing was missed before this replica began.
    fn note_no_row(&self) {
        let mut known = self.known.lock();
        (known.settled, known.unasked) = (known.born, None);
    }

    /// Has the trigger plan the first tick that is not settled, and returns `true`, if that is before the one that is asked about.
    fn goes_back(&self, Asked { tick, now, .. }: Asked) -> bool {
        if !matches!(self.catch_up, CatchUp::Each(_)) {
            return false;
        }
        // A moment that was requested is no tick, and does not wait for any.
        let first = self.first_from(tick + BELOW_MICROSECOND);
        let is_tick = first.is_some_and(|first| first < tick + MICROSECOND);
        let settled = self.known.lock().settled.filter(|_| is_tick);
        let next = settled.and_then(|settled| self.choose(settled, LastPlan::Tick(tick), now));
        let earlier = next.filter(|next| *next < tick);
        if earlier.is_some() {
            self.known.lock().unasked = earlier;
        }
        earlier.is_some()
    }

    /// A tick was skipped because the database could not be asked.
    pub(super) fn note_unasked(&self, tick: SystemTime) {
        self.known.lock().unasked.get_or_insert(tick);
    }

    /// Tells of the ticks between the last one that the row had settled and this one, which was claimed: no replica has ended
    /// their run, and none will.
    pub(super) fn tell_passed_over(&self, claimed: SystemTime) {
        let settled = self.known.lock().settled;
        if let (Some(settled), Some(before)) = (settled, claimed.checked_sub(MICROSECOND)) {
            self.tell_missed(self.count(settled, before));
        }
    }

    /// A run of this tick was granted.
    pub(super) fn note_granted(&self, tick: SystemTime) {
        let known = self.known.lock();
        let is_made_up = known.is_late && known.planned == Some(tick);
        drop(known);
        if is_made_up {
            self.reporter.count(|counts| counts.made_up += 1);
        }
    }

    /// Whether a tick is made up for only if the name has a row: it is older than this replica.
    fn needs_row(&self, tick: SystemTime) -> bool {
        self.known.lock().born.is_some_and(|born| tick <= born)
    }

    /// Whether a tick is left out: another one that has come by now stands for it, or it is later than the policy allows.
    pub(super) fn is_left_out(&self, tick: SystemTime, now: SystemTime) -> bool {
        let is_replaced = || {
            matches!(self.catch_up, CatchUp::Last(_))
                && (self.next_after)(tick).is_some_and(|next| next <= now)
        };
        let late = now.duration_since(tick).unwrap_or_default();
        late > ON_TIME && (late > self.window() || is_replaced())
    }

    /// How late a tick may be and run.
    fn window(&self) -> Duration {
        self.catch_up.window().max(ON_TIME)
    }

    fn is_late(&self, tick: SystemTime, now: SystemTime) -> bool {
        now.duration_since(tick).is_ok_and(|late| late > ON_TIME)
    }

    fn tell_missed(&self, ticks: u64) {
        if ticks > 0 {
            let name = Arc::clone(&self.name);
            self.reporter.report(&GateEvent::TicksMissed { name, ticks });
        }
    }

    /// Returns the next tick, by a clock that shows `now`. It follows from `last`, the tick that the last run was planned for or
    /// skipped at, and from what the gate has noted: the same question has the same answer.
    fn next(&self, last: LastPlan, now: SystemTime) -> Option<SystemTime> {
        let next = self.choose(self.since(last, now), last, now);
        let is_late = next.is_some_and(|next| self.is_late(next, now));
        let mut known = self.known.lock();
        (known.planned, known.is_late) = (next, is_late);
        next
    }

    /// Returns the moment up to which ticks are settled.
    fn since(&self, last: LastPlan, now: SystemTime) -> SystemTime {
        let before_window = now.checked_sub(self.window()).unwrap_or(now);
        let mut known = self.known.lock();
        known.born.get_or_insert(now);
        let unasked = known.unasked.and_then(|tick| tick.checked_sub(MICROSECOND));
        let last = match last {
            LastPlan::None => before_window,
            LastPlan::Elsewhere => now,
            LastPlan::Tick(tick) => tick,
        };
        let begin = unasked.unwrap_or(last);
        let since = known.settled.map_or(begin, |settled| settled.max(begin));
        // A clock that was set back by more than a correction is followed.
        let is_ahead = since.duration_since(now).is_ok_and(|ahead| ahead > CORRECTION);
        if is_ahead { now } else { since }
    }

    /// Returns the next tick after a moment by the policy.
    fn choose(&self, since: SystemTime, last: LastPlan, now: SystemTime) -> Option<SystemTime> {
        let first = (self.next_after)(since);
        let is_past = |first: SystemTime| match last {
            LastPlan::None => first <= now,
            LastPlan::Elsewhere | LastPlan::Tick(_) => self.is_late(first, now),
        };
        if !first.is_some_and(is_past) {
            return first;
        }
        let begin = now.checked_sub(self.window()).unwrap_or(now).max(since);
        // Late runs of a busy worker are the task's own affair.
        let chosen = match self.catch_up {
            CatchUp::Each(_) => self.first_from(begin.max(since + MICROSECOND)),
            CatchUp::None | CatchUp::Last(_) => last_between(&self.next_after, begin, now),
        };
        chosen.or_else(|| (self.next_after)(now))
    }

    /// Returns the first tick at a moment or later.
    fn first_from(&self, moment: SystemTime) -> Option<SystemTime> {
        (self.next_after)(moment.checked_sub(MICROSECOND)?)
    }

    fn count(&self, after: SystemTime, until: SystemTime) -> u64 {
        let (mut moment, mut count) = (after, 0);
        while count < MOST_COUNTED {
            match (self.next_after)(moment).filter(|tick| *tick <= until) {
                Some(tick) => (moment, count) = (tick, count + 1),
                None => break,
            }
        }
        count
    }
}

/// The trigger of a task whose gate makes up for missed ticks; from [`NamedGate::catch_up`](super::NamedGate::catch_up).
#[must_use = "a trigger does nothing before a task has it"]
pub struct CaughtUp(pub(super) Arc<CatchingUp>);

impl Trigger for CaughtUp {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let tick = match (last.planned(), last.planned_wall()) {
            (None, _) => LastPlan::None,
            (Some(_), None) => LastPlan::Elsewhere,
            (Some(_), Some(tick)) => LastPlan::Tick(tick),
        };
        self.0.next(tick, last.after_wall()).map(Due::Wall)
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }
}

impl fmt::Debug for CaughtUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CatchingUp { name, catch_up, .. } = &*self.0;
        f.debug_struct("CaughtUp").field("name", name).field("catch_up", catch_up).finish()
    }
}

#[cfg(test)]
mod tests;
