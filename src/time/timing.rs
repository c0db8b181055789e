//! When an entry of a queue can be taken, and when it is due.

use super::Timestamp;

/// How an entry stands in time. The two moments are the same unless something other than time keeps the
/// entry: one that is *held* has a deadline that never comes, and is due all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// When it can be taken.
    pub(crate) deadline: Timestamp,
    /// When it would be, if it were not held.
    pub(crate) due: Timestamp,
}

impl Timing {
    /// Returns that of an entry which is held.
    pub(crate) fn held(due: Timestamp) -> Self {
        Self { deadline: Timestamp::NEVER, due }
    }

    pub(crate) fn is_held(self) -> bool {
        self.deadline != self.due
    }
}

impl From<Timestamp> for Timing {
    fn from(deadline: Timestamp) -> Self {
        Self { deadline, due: deadline }
    }
}
