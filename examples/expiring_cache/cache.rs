//! A cache whose entries expire unless somebody asks for them.
//!
//! The values are in a map, the names of the entries in a [`DelayQueue`]. Each entry knows its key
//! in the queue, so that setting, refreshing and removing one takes no search. One thread takes
//! from the queue what has expired, and evicts it.
//!
//! All changes are made under the map's lock; only the thread that evicts takes from the queue
//! before it has the lock. So an entry can be in the map and not in the queue any more: then it
//! has expired, and is as good as gone. [`DelayQueue::reset`] tells.

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
    delay_queue::{CheapClone, Expired, InsertError, Key, Refused},
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

/// What is in a cache, as it is listed.
pub(crate) struct Listed<K, V> {
    pub(crate) name: K,
    pub(crate) value: V,
    /// None for never.
    pub(crate) expires: Option<Instant>,
}

impl<K, V> Cache<K, V>
where
    K: CheapClone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    /// An empty cache, which tells `evicted` what has expired.
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

    /// Sets an entry, which expires when nobody has asked for it for `lifetime`. Gives the value
    /// that it replaces.
    pub(crate) fn set(
        &self,
        name: K,
        lifetime: Duration,
        value: V,
    ) -> Result<Option<V>, InsertError> {
        let mut entries = self.shared.entries();
        let key = self.shared.expiries.insert(lifetime, name.clone());
        let key = key.map_err(Refused::into_error)?;
        let old = entries.insert(name, Entry { value, lifetime, key });
        Ok(old.map(|old| {
            self.shared.expiries.remove(old.key);
            old.value
        }))
    }

    /// The value of an entry, whose lifetime begins anew; also if that is over, and the evictor has
    /// not got to it yet.
    pub(crate) fn get(&self, name: &K) -> Option<V> {
        let entries = self.shared.entries();
        let entry = entries.get(name)?;
        let is_alive = self.shared.expiries.reset(entry.key, entry.lifetime);
        is_alive.then(|| entry.value.clone())
    }

    pub(crate) fn remove(&self, name: &K) -> Option<V> {
        let mut entries = self.shared.entries();
        let key = entries.get(name)?.key;
        // One that has expired is left to the evictor, which announces it.
        self.shared.expiries.remove(key)?;
        entries.remove(name).map(|entry| entry.value)
    }

    /// All entries; first the one that expires first.
    pub(crate) fn list(&self) -> Vec<Listed<K, V>> {
        let entries = self.shared.entries();
        let listed = self.shared.expiries.iter().filter_map(|queued| {
            let value = entries.get(&queued.element)?.value.clone();
            Some(Listed { name: queued.element, value, expires: queued.deadline })
        });
        listed.collect()
    }
}

impl<K, V> Cache<K, V> {
    /// Lets nothing in any more, and returns when the last entry has expired.
    pub(crate) fn finish(mut self) {
        self.shared.expiries.close();
        self.join();
    }

    fn join(&mut self) {
        if let Some(evictor) = self.evictor.take() {
            // It has panicked if `evicted` has, which has been said on standard error.
            let _ = evictor.join();
        }
    }
}

impl<K, V> Drop for Cache<K, V> {
    /// What is left is dropped, and is not called evicted.
    fn drop(&mut self) {
        self.shared.expiries.close();
        self.shared.expiries.clear();
        self.join();
    }
}

impl<K, V> Shared<K, V> {
    fn entries(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> Shared<K, V> {
    /// Takes the entry out of the map, unless it has been set anew since it expired: then the
    /// entry with this name has another key.
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
