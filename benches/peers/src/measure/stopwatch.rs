//! Times single calls.

use std::time::Instant;

/// How long calls took: every one, or one of so many where reading the clock would be a large part
/// of the cost. A time includes about one reading of the clock.
pub(super) struct Stopwatch {
    every: u64,
    calls: u64,
    nanos: Vec<i64>,
}

impl Stopwatch {
    /// Times one of `every` calls, of which there will be about `calls`.
    pub(super) fn new(every: u64, calls: u64) -> Self {
        Self { every, calls: 0, nanos: Vec::with_capacity((calls / every) as usize) }
    }

    /// Comes before a call.
    #[inline]
    pub(super) fn begin(&mut self) -> Option<Instant> {
        self.calls += 1;
        self.calls.is_multiple_of(self.every).then(Instant::now)
    }

    /// Comes after it.
    #[inline]
    pub(super) fn end(&mut self, begin: Option<Instant>) {
        if let Some(begin) = begin {
            self.nanos.push(begin.elapsed().as_nanos() as i64);
        }
    }

    pub(super) fn nanos(self) -> Vec<i64> {
        self.nanos
    }
}

/// The times of several threads.
pub(super) fn all(watches: impl IntoIterator<Item = Stopwatch>) -> Vec<i64> {
    watches.into_iter().flat_map(Stopwatch::nanos).collect()
}

#[cfg(test)]
mod tests {
    use super::Stopwatch;

    #[test]
    fn one_of_so_many_calls_is_timed() {
        let mut watch = Stopwatch::new(16, 100);
        for _ in 0..100 {
            let begin = watch.begin();
            watch.end(begin);
        }
        assert_eq!(watch.nanos().len(), 6);
    }
}
