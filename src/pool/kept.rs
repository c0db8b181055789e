//! Things that end by themselves, and are kept until then.
//!
//! The handle of a thread that has ended keeps its stack, and the entry of a group that is gone its memory. So what
//! has ended is dropped from time to time. Doing that whenever something is added would make adding `n` things
//! take `n²` steps; it is done only when there are twice as many as were left the last time. Each is then checked
//! twice on average, and at most half of what is kept, and a few more, has ended.

/// The number that are kept without a check, however few there are.
const SPARE: usize = 4;

/// See the [module](self).
pub(super) struct Kept<T> {
    kept: Vec<T>,
    /// The number that were left after the last check.
    left: usize,
}

impl<T> Kept<T> {
    /// Keeps one more. Returns those that are over, if it was time to check.
    pub(super) fn add(&mut self, one: T, mut is_over: impl FnMut(&T) -> bool) -> Vec<T> {
        self.kept.push(one);
        if self.kept.len() <= 2 * self.left + SPARE {
            return Vec::new();
        }
        let (gone, kept) = std::mem::take(&mut self.kept).into_iter().partition(|one| is_over(one));
        self.kept = kept;
        self.left = self.kept.len();
        gone
    }

    /// Iterates over what is kept, in the order in which it was added. Some may be over.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.kept.iter()
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        self.left = 0;
        std::mem::take(&mut self.kept)
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), left: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many that are added each is checked only a few times.
    #[test]
    fn who_lives_is_not_asked_at_each_addition() {
        const MANY: usize = 10_000;
        let (mut kept, mut asked) = (Kept::default(), 0);
        for number in 0..MANY {
            let gone = kept.add(number, |_| {
                asked += 1;
                false
            });
            assert!(gone.is_empty());
        }
        assert!(asked <= 2 * MANY, "asked {asked} times");
        assert_eq!(kept.iter().count(), MANY);
        assert_eq!(kept.take().len(), MANY);
    }

    /// Of those that end one after the other only a few are kept, and each is returned once.
    #[test]
    fn who_has_gone_is_not_kept() {
        let (mut kept, mut gone) = (Kept::default(), Vec::new());
        for number in 0..1_000 {
            gone.append(&mut kept.add(number, |other| *other < number));
            assert!(kept.kept.len() <= 2 + SPARE);
        }
        gone.append(&mut kept.take());
        assert_eq!(gone, Vec::from_iter(0..1_000));
    }
}
