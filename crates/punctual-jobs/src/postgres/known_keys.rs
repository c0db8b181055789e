//! The limit keys of a kind that a machine remembers, so that a claim does not search the index for them.
//!
//! A search goes from key to key in an index, and passes all jobs of each key that have ended and that the server keeps
//! ([`frontier`](super::frontier)). So a claim searches only in a whole look. In the others it looks at the keys that the machine
//! remembers, from the last job on that it has claimed of each, and at those of the jobs that have become due since its last look, and
//! in the second before.
//!
//! A machine remembers a key also while none of its jobs wait, because the place of its last job is of use when the next one comes. If there are
//! too many keys it remembers those that have jobs; if these are too many as well, each look searches.
//!
//! A key that is missing here is found by the next whole look: the key of a job that was enqueued for a moment that has passed, or that
//! was freed, or that came with a thousand others in one second.

use std::time::Duration;

use tokio::time::Instant;

/// How many keys are remembered.
const MOST: usize = 64;

/// See the [module](self).
#[derive(Default)]
pub(super) struct KnownKeys {
    /// `None` if a look has to search for them.
    keys: Option<Vec<String>>,
    /// When the last look was asked for that has learned of keys.
    looked: Option<Instant>,
}

impl KnownKeys {
    /// Returns the names that a statement is asked with: of the jobs without a limit key, and of these.
    pub(super) fn names(&self) -> Vec<&str> {
        let known = self.keys.iter().flatten().map(String::as_str);
        std::iter::once("").chain(known).collect()
    }

    /// Returns `true` if a look that is not whole has to search as well.
    pub(super) fn are_too_many(&self) -> bool {
        self.keys.is_none()
    }

    /// Returns for how many keys a search asks: one more than there may be.
    pub(super) fn asked_for(is_whole: bool) -> i64 {
        if is_whole { MOST as i64 + 1 } else { 0 }
    }

    /// Returns how many seconds ago a job was due whose key the last look may not have learned.
    pub(super) fn age(&self) -> f64 {
        let age = self.looked.map_or(Duration::ZERO, |looked| looked.elapsed());
        (age + Duration::from_secs(1)).as_secs_f64()
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        key.is_empty() || self.keys.iter().flatten().any(|known| known == key)
    }

    /// Learns what a statement that was asked at this moment has found: all keys that have jobs, if the look was whole, or those that have
    /// come.
    pub(super) fn learn(&mut self, found: Vec<String>, is_whole: bool, asked: Instant) {
        self.looked = Some(asked);
        let too_many = |keys: &Vec<String>| keys.len() > MOST;
        let known =
            if is_whole { Some(self.keys.take().unwrap_or_default()) } else { self.keys.take() };
        let Some(mut known) = known else { return };
        known.extend(found.iter().filter(|key| !known.contains(key)).cloned().collect::<Vec<_>>());
        self.keys = if is_whole && too_many(&known) { Some(found) } else { Some(known) };
        self.keys.take_if(|keys| too_many(keys));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|key| key.to_string()).collect()
    }

    #[test]
    fn keys_are_remembered_while_there_are_few() {
        let (mut known, now) = (KnownKeys::default(), Instant::now());
        // What has come is not all, as long as no whole look has found the others.
        known.learn(keys(0..1), false, now);
        assert!(known.are_too_many() && known.contains("") && !known.contains("0"));
        known.learn(keys(0..2), true, now);
        known.learn(keys(1..3), false, now);
        assert_eq!(known.names(), ["", "0", "1", "2"]);
        known.learn(Vec::new(), true, now);
        assert!(known.contains("2"), "its next job may come");
        // Those that have jobs are remembered, and if these are too many none.
        known.learn(keys(10..10 + MOST), true, now);
        assert!(!known.contains("2") && known.contains("10"));
        known.learn(keys(0..1), false, now);
        assert!(known.are_too_many());
        known.learn(keys(0..MOST + 1), true, now);
        assert!(known.are_too_many());
        known.learn(keys(0..1), true, now);
        assert_eq!(known.names(), ["", "0"]);
    }
}
