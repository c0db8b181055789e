//! The numbers of connections by how they ended.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) accepted: AtomicUsize,
    /// The client has left.
    pub(crate) left: AtomicUsize,
    /// The server has hung up, because the client was silent.
    pub(crate) cut: AtomicUsize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [accepted, left, cut] =
            [&self.accepted, &self.left, &self.cut].map(|count| count.load(Ordering::Relaxed));
        let stopped = accepted - left - cut;
        write!(f, "{accepted} connections: {left} left, {cut} cut, {stopped} there at the end")
    }
}
