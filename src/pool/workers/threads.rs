//! The handles of the threads that have been started, until somebody joins them.
//!
//! A thread that has ended needs no join, but its handle keeps its stack. So the handles of ended
//! threads are dropped from time to time. Doing that at each start would make starting `n` threads
//! take `n²` steps; it is done only when there are twice as many handles as were left the last
//! time. Each thread is then checked twice on average, and at most half of the handles that are
//! kept, and a few more, belong to threads that have ended.

/// The number of handles that are kept without a check, however few there are.
const SPARE: usize = 4;

/// See the [module](self).
pub(super) struct Threads<T> {
    kept: Vec<T>,
    /// The number that were left after the last check.
    left: usize,
}

impl<T> Threads<T> {
    /// Keeps one more handle. Returns those of ended threads, if it was time to check.
    pub(super) fn add(&mut self, thread: Option<T>, mut is_over: impl FnMut(&T) -> bool) -> Vec<T> {
        self.kept.extend(thread);
        if self.kept.len() <= 2 * self.left + SPARE {
            return Vec::new();
        }
        let (gone, kept) =
            std::mem::take(&mut self.kept).into_iter().partition(|thread| is_over(thread));
        self.kept = kept;
        self.left = self.kept.len();
        gone
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        self.left = 0;
        std::mem::take(&mut self.kept)
    }
}

impl<T> Default for Threads<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), left: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starting many threads checks each of them only a few times.
    #[test]
    fn who_lives_is_not_asked_at_each_start() {
        const THREADS: usize = 10_000;
        let (mut threads, mut asked) = (Threads::default(), 0);
        for number in 0..THREADS {
            let gone = threads.add(Some(number), |_| {
                asked += 1;
                false
            });
            assert!(gone.is_empty());
        }
        assert!(asked <= 2 * THREADS, "asked {asked} times");
        assert_eq!(threads.take().len(), THREADS);
    }

    /// Of threads that start and end one after the other only a few are kept, and each is returned
    /// once.
    #[test]
    fn who_has_gone_is_not_kept() {
        let (mut threads, mut gone) = (Threads::default(), Vec::new());
        for number in 0..1_000 {
            gone.append(&mut threads.add(Some(number), |other| *other < number));
            assert!(threads.kept.len() <= 2 + SPARE);
        }
        assert!(threads.add(None, |_| true).is_empty());
        gone.append(&mut threads.take());
        assert_eq!(gone, Vec::from_iter(0..1_000));
    }
}
