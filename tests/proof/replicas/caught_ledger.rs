//! The ledger of a gate that makes up for missed ticks: each grant is compared with the row before.
//!
//! A grant says which tick the row had before, as the database has it. Those between the two have not run and never
//! will, so each of them must be one that the policy leaves out, by its age when the later one was granted. Ticks are
//! the multiples of a period, so that they are counted here without the code that is looked at.

use super::{
    database::Moment,
    gate_rows::Grant,
    ledger::{BEGIN, Ledger},
    plan::Trouble,
    schedule_ledger::SINCE_1970,
};

/// The name of the gate.
pub(super) const CAUGHT: &str = "caught";

/// How long a tick that is due counts as on time.
pub(super) const ON_TIME: Moment = 10_000_000;

/// What may pass between the plan of a run and its claim: two messages over a slow network, a server that is silent, a lease
/// of another replica, and bodies of the same executor.
const SLACK: Moment = 6_000_000;

/// How many missed ticks are counted at a time.
const MOST_COUNTED: u64 = 1_000;

impl Ledger {
    fn period_of_gate(&self) -> Moment {
        self.plan.period as Moment * 1000
    }

    /// Returns the last tick up to a moment.
    pub(super) fn tick_of_gate(&self, moment: Moment) -> Moment {
        moment - (moment + SINCE_1970).rem_euclid(self.period_of_gate())
    }

    /// A run begins: it is one that the policy makes up for, and so is none of those that it leaves out.
    pub(super) fn is_caught_up(&mut self, grant: &Grant) {
        if self.has_lost || self.was_set_back() {
            return;
        }
        let slack = SLACK + self.disagreement();
        let period = self.period_of_gate();
        let (policy, window) =
            (self.plan.caught.catch_up, self.plan.caught.window as Moment * 1000);
        let window = if policy == "none" { ON_TIME } else { window.max(ON_TIME) };
        let age = grant.at - grant.tick;
        if age > window + slack {
            self.fail(|| format!("caught makes up for a tick by {policy} after {} ms", age / 1000));
        }
        if policy == "last" && age > ON_TIME + slack && age - period > slack {
            self.fail(|| {
                format!("caught runs one of {} ms ago, and it is not the last", age / 1000)
            });
        }
        let Some((before, _)) = grant.before else { return };
        // One that was given back without a run has been taken as well.
        if self.tick_of_gate(before + 1) + period >= grant.tick {
            return;
        }
        let youngest = grant.at - (grant.tick - period);
        let is_lost = match policy {
            "each" => youngest < window - slack,
            // Those before the last one that is due; or late ones, if another transaction has locked the row until a tick
            // was late, and the next one that is on time stands for it.
            _ => age - period > slack && youngest < ON_TIME - self.disagreement(),
        };
        if is_lost {
            self.fail(|| {
                format!("a tick of caught of {} ms ago was left out by {policy}", youngest / 1000)
            });
        }
    }

    /// Whether a process has ended before it could tell, or a grant was rolled back, or clocks disagree about what was missed.
    fn may_be_untold(&self) -> bool {
        let is_such = |it: &Trouble| {
            matches!(
                it,
                Trouble::Kill(..)
                    | Trouble::Stop(..)
                    | Trouble::Outage(_)
                    | Trouble::LossyFailover(_)
                    | Trouble::SetClock(..)
                    | Trouble::SetServerClock(_)
            )
        };
        self.plan.has(is_such)
    }

    /// As many ticks were told as missed as grants have left out; fewer if a process has died before it told, or has not heard of its
    /// grant before another one had the next. The tick of a run that was lost is one of them, since it would have run again. Without a
    /// row a replica tells at most what has come since it began.
    pub(super) fn missed_ticks_are_told(&mut self) {
        let period = self.period_of_gate();
        let (mut missed, mut sure, mut without_row) = (0, 0, 0);
        let earliest = BEGIN - self.disagreement();
        let grants = || self.database.grants.iter().filter(|grant| grant.name == CAUGHT);
        let following = grants().skip(1).map(Some).chain([None]);
        for (grant, next) in grants().zip(following) {
            let Some((before, has_ended)) = grant.before else {
                without_row += ((grant.tick - earliest) / period).max(0) as u64;
                continue;
            };
            // The row of one that was given back ends right before it.
            let passed = ((grant.tick - before + period - 1) / period).max(0) as u64;
            let passed = passed.saturating_sub(u64::from(has_ended)).min(MOST_COUNTED);
            missed += passed;
            if next.is_none_or(|next| next.holder == grant.holder) {
                sure += passed;
            }
        }
        let is_calm = self.plan.troubles.is_empty();
        let least = if is_calm { missed } else { sure };
        let told = self.missed_of_gate;
        if told > missed + without_row || !self.may_be_untold() && told < least {
            self.fail(|| format!("{told} ticks of caught were told as missed, of {missed}"));
        }
    }
}
