//! A snapshot of a queue: what was in it at one moment.

use super::Ticket;
use crate::time::Timestamp;

/// One entry of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotEntry<V> {
    pub(crate) deadline: Timestamp,
    pub(crate) ticket: Ticket,
    /// What the caller asked to see of the element.
    pub(crate) element: V,
}

/// Brings the entries into the order in which they would be taken. The caller holds no lock.
pub(super) fn in_order<V>(mut entries: Vec<SnapshotEntry<V>>) -> Vec<SnapshotEntry<V>> {
    entries.sort_unstable_by_key(|entry| (entry.deadline, entry.ticket.sequence));
    entries
}
