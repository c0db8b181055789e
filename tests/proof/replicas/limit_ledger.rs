//! The ledger of limits: the claims that stand, and those that were committed, are counted.
//!
//! Nothing is taken from `limit_claim` and the buckets of the database, which the statements keep: a fault may be in
//! them.

use std::collections::BTreeMap;

use super::{
    database::Moment,
    job_rows::JobRow,
    ledger::Ledger,
    limits::{DrawnLimits, Window},
    plan::{Millis, Trouble},
};

/// The name of the kind with limits.
pub(super) const METERED: &str = "metered";

/// How long a job may wait that might begin: some messages between the machines and the server, and another look of a machine.
const SOON: Millis = 400;

impl Ledger {
    /// Looks at the claims that stand, after a commit.
    pub(super) fn look_at_limits(&mut self) {
        let Some(limits) = self.plan.limits.clone() else { return };
        let most = limits.of_kind.iter().flatten().max().copied();
        let of_kind = self.claims_of(METERED);
        self.is_within(METERED, most, of_kind.values().sum());
        for (key, claims) in of_kind {
            self.is_within(&format!("the limit key {key:?}"), limits.of_key, claims);
        }
        self.is_within("rowed", limits.of_rows, self.claims_of("rowed").values().sum());
    }

    /// Returns how many jobs of each limit key of a kind have a claim.
    fn claims_of(&self, name: &str) -> BTreeMap<String, u32> {
        let mut claims = BTreeMap::new();
        for row in self.database.jobs.rows().values() {
            if row.name == name && row.claim.is_some() {
                *claims.entry(row.limit_key.clone()).or_default() += 1;
            }
        }
        claims
    }

    /// Looks whether a job waits although the limits have room for it and a machine has a slot. It may wait until a machine has heard of that.
    pub(super) fn look_for_room(&mut self) {
        let Some(limits) = self.plan.limits.clone().filter(|_| self.is_calm) else { return };
        if self.has_lost || self.has_set_clocks() {
            return;
        }
        let (now, claims) = (self.database.now, self.claims_of(METERED));
        let least = limits.of_kind.iter().flatten().min();
        let has_room = least.is_none_or(|least| claims.values().sum::<u32>() < *least)
            && self.has_token(limits.window, |_| true)
            && self.a_machine_is_free();
        let rows = self.database.jobs.rows().iter().filter(|(id, row)| {
            let of_key = claims.get(&row.limit_key).copied().unwrap_or(0);
            has_room
                && row.name == METERED
                && row.waits()
                && row.ordering_key.is_none()
                // Of others the machines may not have heard.
                && row.due
                && row.run_at <= now
                && self.database.jobs.unlocked(id).is_some()
                && limits.of_key.is_none_or(|most| of_key < most)
                && self.has_token(limits.key_window, |key| key == row.limit_key)
        });
        let ids: Vec<_> = rows.map(|(id, _)| *id).collect();
        self.might_begin.retain(|id, _| ids.contains(id));
        for id in ids {
            let since = *self.might_begin.entry(id).or_insert(self.now);
            if self.now - since > SOON {
                self.fail(|| format!("job {id} of metered waits, and there is room"));
            }
        }
    }

    /// Whether a machine whose lease stands has fewer claims than slots.
    fn a_machine_is_free(&self) -> bool {
        let jobs = self.database.jobs.rows();
        self.database.workers.rows().iter().any(|(worker, row)| {
            let is_its = |job: &&JobRow| job.claim.is_some() && job.worker.as_ref() == Some(worker);
            let claims = jobs.values().filter(is_its).count();
            row.until > self.database.now && (claims as i64) < row.slots
        })
    }

    /// Whether the claims of these limit keys have left a token.
    fn has_token(&self, window: Window, is_such: impl Fn(&str) -> bool) -> bool {
        let Some((burst, gap)) = window else { return true };
        let gap = gap as Moment * 1000;
        let claims = self.database.metered.iter().filter(|(key, _)| is_such(key));
        let mut moments: Vec<_> = claims.map(|(_, at)| *at).collect();
        moments.sort_unstable();
        let full_at = moments.into_iter().fold(Moment::MIN, |full_at, at| full_at.max(at) + gap);
        full_at <= self.database.now + (Moment::from(burst) - 1) * gap
    }

    fn is_within(&mut self, what: &str, most: Option<u32>, claims: u32) {
        if most.is_some_and(|most| claims > most) {
            self.fail(|| format!("{claims} jobs of {what} have a claim, of {most:?} at most"));
        }
    }

    /// Looks whether all jobs of the kind have ended. That no poll comes to their help is what this is for: whoever finds no token
    /// looks again when there is one, and the end of a run has the next one begin.
    pub(super) fn metered_jobs_are_done(&mut self) {
        let rows = self.database.jobs.rows().iter();
        let waits = |row: &JobRow| row.name == METERED && (row.waits() || row.claim.is_some());
        let left = rows.filter(|(_, row)| waits(row)).map(|(id, _)| *id).next();
        if let Some(id) = left.filter(|_| !self.has_set_clocks()) {
            self.fail(|| format!("job {id} of metered waits for longer than the tokens say"));
        }
    }

    fn has_set_clocks(&self) -> bool {
        self.plan.has(|it| matches!(it, Trouble::SetServerClock(_)))
    }

    /// Looks at all claims that were committed.
    pub(super) fn windows_are_kept(&mut self) {
        let Some(DrawnLimits { window, key_window, .. }) = self.plan.limits else { return };
        // A standby may not know what was spent, and a clock that is set back shows a moment a second time.
        if self.has_lost || self.was_set_back() {
            return;
        }
        let mut of_key = BTreeMap::<String, Vec<Moment>>::new();
        for (key, at) in &self.database.metered {
            of_key.entry(key.clone()).or_default().push(*at);
        }
        self.is_kept("the kind", window, of_key.values().flatten().copied().collect());
        for (key, moments) in of_key {
            self.is_kept(&format!("the limit key {key:?}"), key_window, moments);
        }
    }

    /// Each claim but the first `burst` of a span has a token that came in it.
    fn is_kept(&mut self, what: &str, window: Window, mut moments: Vec<Moment>) {
        let Some((burst, gap)) = window else { return };
        moments.sort_unstable();
        for (first, begin) in moments.iter().enumerate() {
            for (last, end) in moments.iter().enumerate().skip(first + burst as usize) {
                let more = (last - first + 1) as i64 - i64::from(burst);
                if more * gap as i64 * 1000 > end - begin {
                    let (jobs, span) = (last - first + 1, (end - begin) / 1000);
                    return self.fail(|| {
                        format!("{jobs} jobs of {what} were claimed in {span} ms, by {window:?}")
                    });
                }
            }
        }
    }
}
