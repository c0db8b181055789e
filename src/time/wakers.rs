//! Lists of wakers: of waiters, and of alarms.
//!
//! A waker on a list is woken for its moment, and among equal moments the one that came first is first. A waiter that is woken
//! for something else than a moment has a moment that is the same for its whole list.
//!
//! A waker comes and leaves in O(log n), from wherever it stands: thousands of futures may lose their `select` at once.

use std::{
    collections::BTreeMap,
    mem,
    ops::{Deref, DerefMut},
    task::Waker,
};

use super::Timestamp;

/// Identifies a waker on its list: its moment, and a number that is never zero.
pub(crate) type WakerId = (Timestamp, u64);

#[derive(Debug, Default)]
pub(crate) struct Wakers {
    list: BTreeMap<WakerId, Waker>,
    /// Zero until there has been a waker.
    last_number: u64,
}

impl Wakers {
    pub(crate) fn add(&mut self, moment: Timestamp, waker: Waker) -> WakerId {
        self.last_number += 1;
        let id = (moment, self.last_number);
        self.list.insert(id, waker);
        id
    }

    pub(crate) fn was_never_used(&self) -> bool {
        self.last_number == 0
    }

    /// Returns the first moment; never if there is no waker.
    pub(crate) fn first(&self) -> Timestamp {
        self.list.first_key_value().map_or(Timestamp::NEVER, |((first, _), _)| *first)
    }

    /// Takes the wakers whose moment has come by `now`.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.list.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
        due
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        mem::take(&mut self.list).into_values().collect()
    }
}

impl Deref for Wakers {
    type Target = BTreeMap<WakerId, Waker>;

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl DerefMut for Wakers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.list
    }
}
