//! A table of the simulated database: rows that others see when they are committed, and that are locked until then.

use std::collections::BTreeMap;

/// A transaction.
pub(super) type Transaction = u64;

/// Rows by their keys.
#[derive(Clone)]
pub(super) struct Table<K, R> {
    committed: BTreeMap<K, R>,
    /// What was written and not committed, and by which transaction. `None` is a row that is deleted.
    written: BTreeMap<K, (Transaction, Option<R>)>,
    /// The rows that transactions have locked `for key share`.
    shared: Vec<(K, Transaction)>,
}

impl<K, R> Default for Table<K, R> {
    fn default() -> Self {
        let (committed, written) = (BTreeMap::new(), BTreeMap::new());
        Self { committed, written, shared: Vec::new() }
    }
}

impl<K: Ord + Clone, R: Clone> Table<K, R> {
    /// Returns the rows as a statement sees them that locks nothing.
    pub(super) fn rows(&self) -> &BTreeMap<K, R> {
        &self.committed
    }

    /// Returns a row that no transaction has written, which is what `for no key update skip locked` finds.
    pub(super) fn unlocked(&self, key: &K) -> Option<&R> {
        self.committed.get(key).filter(|_| !self.written.contains_key(key))
    }

    /// Returns a row that no transaction has locked in any way, which is what `for update skip locked` finds.
    pub(super) fn free(&self, key: &K) -> Option<&R> {
        self.unlocked(key).filter(|_| !self.shared.iter().any(|(shared, _)| shared == key))
    }

    /// Returns what was written and is not committed.
    pub(super) fn uncommitted(&self) -> impl Iterator<Item = (&K, Option<&R>)> {
        self.written.iter().map(|(key, (_, row))| (key, row.as_ref()))
    }

    pub(super) fn write(&mut self, transaction: Transaction, key: K, row: R) {
        self.written.insert(key, (transaction, Some(row)));
    }

    pub(super) fn delete(&mut self, transaction: Transaction, key: K) {
        self.written.insert(key, (transaction, None));
    }

    pub(super) fn share(&mut self, transaction: Transaction, key: K) {
        self.shared.push((key, transaction));
    }

    pub(super) fn commit(&mut self, transaction: Transaction) {
        let all = std::mem::take(&mut self.written);
        for (key, (writer, row)) in all {
            match row {
                _ if writer != transaction => drop(self.written.insert(key, (writer, row))),
                Some(row) => drop(self.committed.insert(key, row)),
                None => drop(self.committed.remove(&key)),
            }
        }
        self.shared.retain(|(_, holder)| *holder != transaction);
    }

    /// Forgets what a transaction has written.
    pub(super) fn roll_back(&mut self, transaction: Transaction) {
        self.written.retain(|_, (writer, _)| *writer != transaction);
        self.shared.retain(|(_, holder)| *holder != transaction);
    }

    /// Returns what a transaction has written and not committed.
    pub(super) fn written_by(&self, transaction: Transaction) -> impl Iterator<Item = &R> {
        let written = self.written.values().filter(move |(writer, _)| *writer == transaction);
        written.filter_map(|(_, row)| row.as_ref())
    }

    /// Returns the rows that a transaction has written and not committed, and `None` for those that it has deleted.
    pub(super) fn changed_by(&self, transaction: Transaction) -> Vec<(K, Option<R>)> {
        let written = self.written.iter().filter(|(_, (writer, _))| *writer == transaction);
        written.map(|(key, (_, row))| (key.clone(), row.clone())).collect()
    }

    /// Goes back to what was committed then, and forgets what is not committed.
    pub(super) fn go_back(&mut self, committed: BTreeMap<K, R>) {
        self.committed = committed;
        self.roll_back_all();
    }

    /// Forgets what is not committed.
    pub(super) fn roll_back_all(&mut self) {
        self.written.clear();
        self.shared.clear();
    }
}
