//! Outcomes: how many runs have ended how, in this process, since the queue was opened.
//!
//! A monitor wants rates: how many runs of a kind fail in a minute, and how many succeed. The [counts](crate::KindCounts) of
//! jobs do not say, because a job that has succeeded is gone. So each queue counts the ends of its runs, at the one place where
//! it learns what has become of the job: an atomic addition for each end, also if no caller ever looks.
//!
//! # Whose ends they are
//!
//! The numbers are those of one process, and a monitor adds up what all processes say. So each end is counted in one process: in
//! the one that has written it down. An attempt whose machine has died is counted as lost by the machine that finds that out,
//! which is also the one that writes it into the history, if there is one; a machine that was believed dead and comes with an end
//! later counts nothing. So the sums are the rows of the history, but for what a killed process knew and had not told yet, and for
//! answers of the server that never came: an end that may have been written down is counted as what the run was.
//!
//! Kinds that this process handles have a place from the start. The sweep may find lost attempts of others, which get theirs
//! under a lock that nothing else takes but a look.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::JobOutcome;

/// How many runs of one kind have ended how in this process; from [`JobQueue::outcomes`](crate::JobQueue::outcomes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindOutcomes {
    /// The name of the kind.
    pub kind: String,
    runs: [u64; JobOutcome::ALL.len()],
}

impl KindOutcomes {
    /// Returns how many runs have ended so. Those that are [lost](JobOutcome::Lost) were on machines that this one has found dead.
    #[must_use]
    pub fn of(&self, outcome: JobOutcome) -> u64 {
        self.runs[outcome as usize]
    }
}

/// One line for a log, with the outcomes that there were: `"mail" ran 17, failed 2, lost 1`.
impl fmt::Display for KindOutcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        let seen = JobOutcome::ALL.iter().zip(self.runs).filter(|(_, runs)| *runs > 0);
        for (place, ((word, _), runs)) in seen.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma} {word} {runs}")?;
        }
        Ok(())
    }
}

/// The numbers of one kind, in the order of [`JobOutcome::ALL`].
type Tally = [AtomicU64; JobOutcome::ALL.len()];

pub(crate) struct Outcomes {
    handled: BTreeMap<&'static str, Tally>,
    #[cfg_attr(
        not(feature = "postgres"),
        allow(dead_code, reason = "only machines find others dead")
    )]
    others: Mutex<BTreeMap<String, u64>>,
}

impl Outcomes {
    pub(crate) fn of_kinds(names: impl IntoIterator<Item = &'static str>) -> Self {
        let handled = names.into_iter().map(|name| (name, Tally::default())).collect();
        Self { handled, others: Mutex::default() }
    }

    pub(crate) fn note(&self, kind: &str, outcome: JobOutcome) {
        self.add(kind, outcome, 1);
    }

    /// Attempts of machines that have died were found.
    #[cfg(feature = "postgres")]
    pub(crate) fn note_lost(&self, kind: &str, attempts: u64) {
        if !self.add(kind, JobOutcome::Lost, attempts) {
            *self.others.lock().entry(kind.to_owned()).or_default() += attempts;
        }
    }

    /// Returns `false` if this process does not handle the kind.
    fn add(&self, kind: &str, outcome: JobOutcome, runs: u64) -> bool {
        let Some(tally) = self.handled.get(kind) else { return false };
        // Relaxed: each number stands for itself, and nothing is read by it.
        tally[outcome as usize].fetch_add(runs, Ordering::Relaxed);
        true
    }

    pub(crate) fn now(&self) -> Vec<KindOutcomes> {
        let handled = self.handled.iter().map(|(kind, tally)| {
            let runs = std::array::from_fn(|place| tally[place].load(Ordering::Relaxed));
            KindOutcomes { kind: (*kind).to_owned(), runs }
        });
        let mut all: Vec<_> = handled.collect();
        let others = self.others.lock();
        all.extend(others.iter().map(|(kind, lost)| {
            let mut of_kind = KindOutcomes { kind: kind.clone(), ..KindOutcomes::default() };
            of_kind.runs[JobOutcome::Lost as usize] = *lost;
            of_kind
        }));
        drop(others);
        all.sort_unstable_by(|one, other| one.kind.cmp(&other.kind));
        all
    }
}
