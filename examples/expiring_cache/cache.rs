//! A cache whose entries expire unless they are read.
//!
//! The values are in a map, the names of the entries in a [`DelayQueue`]. Each entry knows its key in the queue, so
//! setting, refreshing and removing one takes no search. One thread takes expired names, and evicts their entries.
//!
//! All changes are made under the map's lock, except that the evicting thread takes from the queue before it
//! holds the lock. So an entry can still be in the map when it is no longer in the queue: then it has
//! expired, and counts as gone. [`DelayQueue::reset`] reports that.

use std::{
    collections::{HashMap, hash_map},
    hash::Hash,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use punctual::{
    Clock, DelayQueue,
    delay_queue::{CheapClone, Expired, InsertError, Key},
};

/// See the [module](self). `K` names an entry, `V` is what is cached.
pub(crate) struct Cache<K, V> {
    shared: Arc<Shared<K, V>>,
    evictor: Option<JoinHandle<()>>,
}

struct Shared<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    expiries: DelayQueue<K>,
}

struct Entry<V> {
    value: V,
    lifetime: Duration,
    key: Key,
}

impl<K, V> Cache<K, V>
where
    K: CheapClone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    /// Creates an empty cache, which passes expired entries to `evicted`.
    pub(crate) fn start(
        clock: impl Into<Clock>,
        mut evicted: impl FnMut(K, V) + Send + 'static,
    ) -> io::Result<Self> {
        let expiries = DelayQueue::with_clock(clock);
        let shared = Arc::new(Shared { entries: Mutex::default(), expiries });
        let evicting = Arc::clone(&shared);
        let evictor = thread::Builder::new().name("evictor".into()).spawn(move || {
            for expired in evicting.expiries.expirations() {
                if let Some((name, value)) = evicting.evict(expired) {
                    evicted(name, value);
                }
            }
        })?;
        Ok(Self { shared, evictor: Some(evictor) })
    }

    /// Sets an entry, which expires when it has not been read for `lifetime`. Returns the value
    /// that it replaces.
    pub(crate) fn set(
        &self,
        name: K,
        lifetime: Duration,
        value: V,
    ) -> Result<Option<V>, InsertError> {
        let mut entries = self.shared.entries();
        let key = self.shared.expiries.insert(lifetime, name.clone());
        let entry = Entry { value, lifetime, key: key.map_err(|refused| refused.error())? };
        Ok(entries.insert(name, entry).map(|old| {
            self.shared.expiries.remove(old.key);
            old.value
        }))
    }

    /// Returns the value of an entry, and restarts its lifetime; also if the lifetime is over and
    /// the evicting thread has not got to the entry yet.
    pub(crate) fn get(&self, name: &K) -> Option<V> {
        let entries = self.shared.entries();
        let entry = entries.get(name)?;
        let is_alive = self.shared.expiries.reset(entry.key, entry.lifetime);
        is_alive.then(|| entry.value.clone())
    }

    pub(crate) fn remove(&self, name: &K) -> Option<V> {
        let mut entries = self.shared.entries();
        let key = entries.get(name)?.key;
        // An expired entry is left to the evicting thread, which announces it.
        self.shared.expiries.remove(key)?;
        entries.remove(name).map(|entry| entry.value)
    }

    /// Returns all entries in the order in which they expire, with that moment; `None` is never.
    pub(crate) fn list(&self) -> Vec<(K, V, Option<Instant>)> {
        let entries = self.shared.entries();
        let listed = self.shared.expiries.iter().filter_map(|queued| {
            let value = entries.get(&queued.element)?.value.clone();
            Some((queued.element, value, queued.deadline))
        });
        listed.collect()
    }
}

impl<K, V> Cache<K, V> {
    /// Closes the cache to new entries, and returns when the last entry has expired.
    pub(crate) fn finish(mut self) {
        self.shared.expiries.close();
        self.join();
    }

    fn join(&mut self) {
        if let Some(evictor) = self.evictor.take() {
            // The thread has panicked if `evicted` has, which is reported on standard error.
            let _ = evictor.join();
        }
    }
}

impl<K, V> Drop for Cache<K, V> {
    /// Drops the remaining entries without passing them to `evicted`.
    fn drop(&mut self) {
        self.shared.expiries.close();
        self.shared.expiries.clear();
        self.join();
    }
}

impl<K: Eq + Hash, V> Shared<K, V> {
    fn entries(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the entry from the map, unless it has been set anew since it expired: then the entry
    /// with this name has another key.
    fn evict(&self, expired: Expired<K>) -> Option<(K, V)> {
        match self.entries().entry(expired.element) {
            hash_map::Entry::Occupied(entry) if entry.get().key == expired.key => {
                let (name, entry) = entry.remove_entry();
                Some((name, entry.value))
            }
            _ => None,
        }
    }
}
