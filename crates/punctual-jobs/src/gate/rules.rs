//! The rules: the decision of a replica about a tick, given the row of its name and the database's clock.
//!
//! [`decide`] is a function of its arguments and of nothing else. It is all that the gate knows about
//! ticks, leases and delays: the statements around it compare and stamp, and decide nothing. So the rules
//! can be tested alone, on a clock that a test moves, against a model of several replicas.
//!
//! # Why an answer may be out of date, and does no harm
//!
//! The row was read a moment ago, without a lock. A replica acts on [`Verdict::Free`] by a statement
//! that changes the row only if it is still the one that was read: its fencing token, the end of its lease and
//! whether its run has ended are compared under the row's lock. Each change of a row changes one of the three.
//! The other half of a decision is the time, and each rule that frees a row stays true when time
//! passes: a tick that was due stays due, and a lease that was over stays over. If the server's clock is set
//! back in between, one lease is wrong by the step; the fencing token is not.
//!
//! # A clock that was set back
//!
//! A claim is of a tick that is due, so a tick in the row that is not due yet was claimed by a clock that has been set
//! back since, and the ticks up to it have run. They do not run again, and are told as skipped, if the step was a
//! *correction*: of a minute at most, as for the ticks of [`Jobs::every`](crate::Jobs::every). After a longer step the name would be
//! silent for longer than a correction is meant to last, so the row is set right, and ticks run again by the new time.
//!
//! A lease that ends later than the whole lease from now was written by such a clock as well. It is set right at
//! once, to a whole lease from now: its holder has asked for it before, and trusts it no longer than that. The same
//! holds for the end of a run from which a delay is counted, and which cannot be later than now.

use std::time::{Duration, SystemTime};

/// How much earlier than planned a tick may be claimed, by the database's clock.
pub(crate) const TOLERANCE: Duration = Duration::from_millis(50);
/// By how much the database's clock may be set back without a tick that has run running again.
pub(crate) const CORRECTION: Duration = Duration::from_secs(60);

/// The policy for a tick whose holder did not end it: it died, or was cut off from the database.
///
/// The lease of the holder has to end first, either way: until then it may be alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHolderDeath {
    /// Another replica runs the tick again. The body has to bear that: what the first run did before it
    /// died stays done.
    #[default]
    Rerun,
    /// The tick is over, and the next one runs.
    Skip,
}

/// The rule that tells one run of a name from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The planned moment: each is claimed once.
    Ticks(OnHolderDeath),
    /// A planned moment once more, since its run failed under this fence: until another one is claimed.
    Retry(i64),
    /// The end of the last run: the next is claimed no sooner than this much later.
    Delay(Duration),
}

/// The row of a name, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The last tick that was claimed.
    pub(crate) tick: SystemTime,
    /// Whether its run has ended.
    pub(crate) done: bool,
    pub(crate) fence: i64,
    /// How long the lease is that its holder has asked for.
    pub(crate) lease: Duration,
    /// Once the run has ended, when that was.
    pub(crate) lease_until: SystemTime,
    /// Whether the claim is this replica's own, and its answer never arrived: no replica runs it.
    pub(crate) is_orphan: bool,
}

/// The row of a name, if there is one, and what the database's clock showed after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) now: SystemTime,
    pub(crate) row: Option<Row>,
}

/// The decision of a replica about a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may take the row, if that is still the one that was read.
    Free,
    /// It is too early by so much: the tick is not due, or the delay is not over.
    Early(Duration),
    /// A replica holds the row, for so much longer at least.
    Held(Duration),
    /// The tick has been claimed, and its run has ended; or a later one has been claimed.
    Passed,
    /// A later one has been claimed, which by this clock is not due yet: the clock was set back.
    Ahead,
    /// The clock was set back by so much at least, and the row has to be set right before anything can be said.
    SetBack(Duration),
}

impl Seen {
    /// Returns by how much a tick or a lease is ahead of the latest that this clock can have written, if that is
    /// more than can be waited for.
    fn set_back(&self, rule: Rule) -> Option<Duration> {
        let row = self.row.as_ref()?;
        // The ticks of a delay are by the clocks of the replicas.
        let tick = match rule {
            Rule::Ticks(_) | Rule::Retry(_) => span(self.now, row.tick),
            Rule::Delay(_) => Duration::ZERO,
        };
        let latest = if row.done { self.now } else { later(self.now, row.lease) };
        let lease = span(latest, row.lease_until);
        (tick > CORRECTION || lease > TOLERANCE).then(|| tick.max(lease))
    }
}

/// Returns the decision of a replica about the tick that is planned for `tick`.
pub(crate) fn decide(seen: &Seen, tick: SystemTime, rule: Rule) -> Verdict {
    // A tick that has not come sets nothing right: if it is the server's clock that is wrong for a while, what has been
    // claimed would be forgotten, and could be claimed again when that clock is right.
    let has_come = !matches!(rule, Rule::Ticks(_)) || span(seen.now, tick) <= TOLERANCE;
    if let Some(by) = seen.set_back(rule).filter(|_| has_come) {
        return Verdict::SetBack(by);
    }
    match rule {
        Rule::Ticks(lost) => decide_tick(seen, tick, lost),
        Rule::Retry(fence) => decide_retry(seen, tick, fence),
        Rule::Delay(delay) => decide_delay(seen, delay),
    }
}

fn decide_tick(seen: &Seen, tick: SystemTime, lost: OnHolderDeath) -> Verdict {
    let early = span(seen.now, tick);
    if early > TOLERANCE {
        return Verdict::Early(early - TOLERANCE);
    }
    let Some(row) = &seen.row else { return Verdict::Free };
    if row.tick > tick || row.tick == tick && row.done {
        let is_ahead = span(seen.now, row.tick) > TOLERANCE;
        return if is_ahead { Verdict::Ahead } else { Verdict::Passed };
    }
    if row.done || row.is_orphan {
        return Verdict::Free;
    }
    // A run has not ended: that of this tick, or of an earlier one.
    match span(seen.now, row.lease_until) {
        _ if row.tick == tick && lost == OnHolderDeath::Skip => Verdict::Passed,
        Duration::ZERO => Verdict::Free,
        left => Verdict::Held(left),
    }
}

/// A retry has been due already, and does not wait: a replica that holds the row has claimed another tick since.
fn decide_retry(seen: &Seen, tick: SystemTime, fence: i64) -> Verdict {
    let Some(row) = &seen.row else { return Verdict::Passed };
    // A claim that was given back leaves the row at a moment before its tick.
    let is_given_back = row.done && row.tick < tick;
    let is_last =
        row.tick == tick && (row.done && row.fence == fence || !row.done && row.is_orphan);
    if is_given_back || is_last { Verdict::Free } else { Verdict::Passed }
}

fn decide_delay(seen: &Seen, delay: Duration) -> Verdict {
    let Some(row) = &seen.row else { return Verdict::Free };
    if row.is_orphan && !row.done {
        return Verdict::Free;
    }
    // When a holder died is not known; it was alive no longer than its lease.
    match span(seen.now, later(row.lease_until, delay)) {
        Duration::ZERO => Verdict::Free,
        left if row.done => Verdict::Early(left),
        left => Verdict::Held(left),
    }
}

fn later(moment: SystemTime, span: Duration) -> SystemTime {
    moment.checked_add(span).unwrap_or(moment)
}

/// Returns how long it is from one moment to a later one; zero if that is not later.
fn span(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests;
