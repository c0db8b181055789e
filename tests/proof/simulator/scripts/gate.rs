//! The gate of a [script](super::script): what it answers, in turn, at once or by a reply.

use std::fmt;

use proptest::{collection::vec, option::weighted, prelude::*};

use super::script::{Request, request, steps};
use crate::steps::Steps;

/// What a gate does that is asked: it takes some time, asks something of its task, and answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) takes: Steps,
    pub(super) asks: Option<Request>,
    pub(super) entry: Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Run,
    Hold,
    /// With a lease that is lost before the body begins.
    HoldLost,
    Skip,
    Again(Steps),
    /// Again, after `Duration::MAX`.
    Never,
    /// By a reply, which a step of the script sends, or none does.
    Later,
}

impl Entry {
    pub(super) fn has_lease(self) -> bool {
        matches!(self, Self::Hold | Self::HoldLost)
    }
}

/// Returns the answers of a gate. There is none if the task has no gate.
///
/// A run beside the schedule that a gate has put off is the next run of a task that it puts off for ever then, and loses its
/// tick by that. So a gate that answers with a moment that never comes puts nothing else off.
pub(super) fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let never = prop_oneof![
        2 => Just(Entry::Run),
        1 => Just(Entry::Hold),
        1 => Just(Entry::Skip),
        2 => Just(Entry::Never),
    ];
    prop_oneof![
        3 => Just(Vec::new()),
        1 => vec(answer(never), 1..5),
        5 => vec(answer(entry()), 1..5),
    ]
}

/// An extra run that is asked for by the gate itself, at the very moment for which the run in question was planned, takes
/// the reply to that question for one of its own. None is drawn.
fn answer(entry: impl Strategy<Value = Entry>) -> impl Strategy<Value = Answer> {
    let takes = prop_oneof![4 => Just(Steps(0)), 1 => steps(9)];
    let is_taken_over =
        |asks: &Request, entry| entry == Entry::Later && matches!(asks, Request::RunNow);
    (takes, weighted(0.1, request()), entry).prop_map(move |(takes, asks, entry)| Answer {
        takes,
        asks: asks.filter(|asks| !is_taken_over(asks, entry)),
        entry,
    })
}

/// Returns an answer that is given at once or by a reply.
pub(super) fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        4 => Just(Entry::Run),
        2 => Just(Entry::Hold),
        1 => Just(Entry::HoldLost),
        3 => Just(Entry::Skip),
        4 => steps(9).prop_map(Entry::Again),
        3 => Just(Entry::Later),
    ]
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("Entry::Run"),
            Self::Hold => f.write_str("Entry::Hold(lease)"),
            Self::HoldLost => f.write_str("Entry::Hold(lost_lease)"),
            Self::Skip => f.write_str("Entry::Skip"),
            Self::Again(span) => write!(f, "Entry::Again({span})"),
            Self::Never => f.write_str("Entry::Again(Duration::MAX)"),
            Self::Later => f.write_str("gate::later().1"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { takes, asks, entry } = self;
        write!(f, "clock.advance({takes});")?;
        asks.iter().try_for_each(|request| write!(f, " task.{request};"))?;
        write!(f, " {entry}")
    }
}
