//! Which elements a queue admits, and what becomes of one that it does not.

/// Who is still let in. It only ever goes down the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    /// Every element.
    Open,
    /// Only elements that had been admitted before and taken out: periodic ones between two runs.
    Returning,
    /// None.
    Closed,
}

/// An element that was not admitted.
#[derive(Debug)]
pub(crate) struct Refused<E> {
    pub(crate) why: Refusal,
    /// The number that it would have had; nobody else gets it.
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    Full,
}
