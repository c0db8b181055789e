//! The ledger of schedules that are rows: each transaction that has changed one is compared with the row before.
//!
//! The [`Change`] is what was committed: the row before and after, and the jobs that came with it. Nothing of it
//! is taken from the statement that has made the change, which may have a fault. The ticks of a row are the
//! multiples of its period, so that they can be counted here without the code that is looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    caught_ledger::ON_TIME,
    database::Moment,
    ledger::Ledger,
    schedule_rows::{Change, ScheduleRow},
};

/// What was seen of schedules.
#[derive(Default)]
pub(super) struct SeenSchedules {
    /// The ticks that have had a job.
    ticks: BTreeSet<(String, Moment)>,
    /// Up to when no tick of a schedule may have one: it was put, or went on after a pause.
    begin: BTreeMap<String, Moment>,
    /// When each was settled last.
    settled: BTreeMap<String, Moment>,
}

/// What may pass between a statement and its commit, or between two messages.
const SLACK: i64 = 2_000_000;

impl Ledger {
    /// Looks at what was committed since the last time.
    pub(super) fn look_at_schedules(&mut self) {
        for change in std::mem::take(&mut self.database.changes) {
            self.note(|| {
                format!("schedule {}: {:?} -> {:?}", change.name, change.ticks, change.new)
            });
            self.looks_at(&change);
        }
    }

    fn looks_at(&mut self, change: &Change) {
        let Change { name, old, new, at, .. } = change;
        let ticks: Vec<Moment> = change.ticks.iter().copied().flatten().collect();
        if !self.knows_time() {
            return;
        }
        let begin = self.schedules.begin.get(name).copied().unwrap_or(Moment::MIN);
        for &tick in &ticks {
            if !self.schedules.ticks.insert((name.clone(), tick)) {
                self.fail(|| format!("a tick of {name} has two jobs: {tick}"));
            }
            if tick > at + 50_000 {
                self.fail(|| format!("a tick of {name} is {} us too early", tick - at));
            }
            if tick <= begin {
                self.fail(|| format!("a tick of {name} is from {} us before it", begin - tick));
            }
        }
        match (old, new) {
            (Some(old), Some(new)) if !is_put(old, new) => {
                self.is_settled_right(change, old, new, &ticks)
            }
            (_, Some(_)) => drop(self.schedules.begin.insert(name.clone(), at - 50_000)),
            (_, None) => drop(self.schedules.begin.remove(name)),
        }
        if let Some(new) = new.as_ref().filter(|_| !change.ticks.is_empty()) {
            self.overlap_is_kept(change, new);
        }
    }

    /// Whether the clock of the server is believed, and nothing was lost that it has said.
    fn knows_time(&self) -> bool {
        !self.has_lost && self.server_clock >= 0 && !self.was_set_back()
    }

    /// Each tick in between has had one fate, and each fate is one that the policy allows.
    fn is_settled_right(
        &mut self,
        change: &Change,
        old: &ScheduleRow,
        new: &ScheduleRow,
        ticks: &[Moment],
    ) {
        let (name, at) = (&change.name, change.at);
        if old.paused && new.paused && !ticks.is_empty() {
            self.fail(|| format!("{name} ticks while it is paused"));
        }
        self.schedules.settled.insert(name.clone(), at);
        let number = |moment: Moment| (moment + SINCE_1970).div_euclid(old.period);
        let passed = number(new.tick) - number(old.tick);
        let (missed, skipped) = (new.missed - old.missed, new.skipped - old.skipped);
        let enqueued = ticks.len() as i64;
        if passed != enqueued + missed + skipped {
            self.fail(|| {
                format!(
                    "of {passed} ticks of {name} {enqueued} have jobs, {missed} are missed, {skipped} left out"
                )
            });
        }
        if missed == 0 {
            return;
        }
        // The missed ones are the first ones.
        let last_missed = (number(old.tick) + missed) * old.period - SINCE_1970;
        let age = at - last_missed;
        let window = old.window.max(ON_TIME);
        let is_allowed = match old.catch_up.as_str() {
            "each" if old.overlap != "replace" => age >= window,
            // One job for all: the last of them has it, or is left out.
            _ if enqueued + skipped == 1 => new.tick > last_missed,
            "last" | "each" => age >= window,
            _ => age >= ON_TIME,
        };
        if !is_allowed {
            self.fail(|| {
                format!("{missed} ticks of {name} are missed, the last one {} ms ago", age / 1000)
            });
        }
    }

    fn overlap_is_kept(&mut self, change: &Change, row: &ScheduleRow) {
        let all = change.waiting + change.running;
        let most = match row.overlap.as_str() {
            "allow" => row.most as usize,
            // One that has run may wait for its next attempt since.
            "queue" => 2,
            _ => 1,
        };
        if all > most {
            self.fail(|| format!("of {} {all} jobs wait or run by {}", change.name, row.overlap));
        }
    }

    /// When all has been well for long enough, each schedule that is not paused is settled up to now, or has waited for
    /// room until now.
    pub(super) fn schedules_go_on(&mut self) {
        if !self.knows_time() {
            return;
        }
        let now = self.database.now;
        for (name, row) in self.database.schedules.rows().clone() {
            let is_behind = now - row.tick > row.period + row.jitter + SLACK;
            let settled = self.schedules.settled.get(&name).copied().unwrap_or(0);
            let waits = row.catch_up == "each" && now - settled < SLACK;
            if is_behind && !waits && !row.paused && !row.removed {
                self.fail(|| {
                    format!("{name} is settled up to {} ms ago: {row:?}", (now - row.tick) / 1000)
                });
            }
        }
    }
}

/// Whether a row counts its ticks anew.
fn is_put(old: &ScheduleRow, new: &ScheduleRow) -> bool {
    old.period != new.period || old.paused && !new.paused || old.removed != new.removed
}

/// From 1970 to the year 2000, in microseconds.
pub(super) const SINCE_1970: i64 = 946_684_800_000_000;
