//! The frontier of a claim: behind which job it begins, so that it does not walk over rows that have ended.
//!
//! The server keeps each row that has ended for as long as any transaction might still see it: a report, a dump, a session that was
//! forgotten. Their places in the index come before those of the jobs that wait, so a claim from the beginning of the index gets
//! slower with each job that has run. A claim that begins behind the last job it has claimed reads what it claims.
//!
//! # What comes to lie before the frontier
//!
//! A job may be put there later: it is enqueued for a moment that has passed, or by a transaction that is committed late, or
//! is freed by a machine that shuts down. Two rules find it.
//!
//! * A claim reads what has become due in the last second in any case. There most late commits lie.
//! * A look is *whole*, from the beginning of each index, unless the last whole one was less than [`REST`] times its own length ago: the length
//!   is the second longest of the last four. A look that
//!   was not whole and has left slots free is followed by a whole one as soon as that is allowed. All sources are looked at whole in the same look:
//!   if each had its own turn, two of them could have each other's looks follow without end.
//!
//! So where nothing keeps ended rows, a whole look takes a millisecond or two, and there is one every few dozen of them. Where many are kept, a
//! machine spends no more than one part in `REST` of its time on walking over them, and such a job waits for `REST` times as long
//! as one walk takes, and for a minute at most. The order in which jobs are claimed holds for those behind the frontier; a job before it is claimed later
//! than its moment says, but by no more than that.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// How many times as long as a whole look has taken the next one is put off.
const REST: u32 = 20;

/// The longest time for which it is put off.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// The priorities, in the order in which they are claimed.
pub(super) const LEVELS: [i32; 3] = [-1, 0, 1];

/// The place of a job in the order of its kind and priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// Its moment, in microseconds since the year 2000; `None` before all others.
    pub(super) micros: Option<i64>,
    pub(super) id: i64,
}

/// See the [module](self).
pub(super) struct Frontier {
    /// By name and priority, the last job that was claimed.
    marks: HashMap<(String, i32), Mark>,
    /// By name and priority, when a look began that has left none of its jobs.
    seen: HashMap<(String, i32), Instant>,
}

/// When a look may be whole.
pub(super) struct Looks {
    whole_from: Instant,
    /// How long the last whole ones have taken.
    took: [Duration; 4],
}

impl Looks {
    pub(super) fn new() -> Self {
        Self { whole_from: Instant::now(), took: [Duration::ZERO; 4] }
    }

    /// Returns `true` if a look that begins now is whole.
    pub(super) fn may_be_whole(&self) -> bool {
        Instant::now() >= self.whole_from
    }

    /// Ends a look whose statements have taken so long. Returns after how long a whole one is to follow, if this one was none and has left slots
    /// free.
    pub(super) fn end(
        &mut self,
        is_whole: bool,
        took: Duration,
        is_full: bool,
    ) -> Option<Duration> {
        let now = Instant::now();
        if is_whole {
            // Where rows are kept, most whole looks are long. A single one is long because the server stood still, and others are short because
            // there was no room.
            let before = self.second_longest();
            self.took.rotate_right(1);
            // One that was full may have come to none of them, and says little.
            self.took[0] = if is_full { took.max(before / 2) } else { took };
            self.whole_from = now + (REST * self.second_longest()).min(LONGEST_REST);
            return None;
        }
        let rest = self.whole_from.saturating_duration_since(now);
        (!is_full).then(|| rest.max(Duration::from_millis(1)))
    }

    fn second_longest(&self) -> Duration {
        let mut sorted = self.took;
        sorted.sort_unstable();
        sorted[2]
    }
}

/// Where a statement begins, for each name and priority: the parameters from the fourth on.
#[derive(Default)]
pub(super) struct Begins {
    pub(super) names: Vec<String>,
    pub(super) priorities: Vec<i32>,
    pub(super) micros: Vec<Option<i64>>,
    pub(super) ids: Vec<i64>,
    pub(super) ages: Vec<Option<f64>>,
}

impl Frontier {
    pub(super) fn new() -> Self {
        Self { marks: HashMap::new(), seen: HashMap::new() }
    }

    /// Returns where a statement begins for these kinds, or limit keys of one kind, and priorities.
    pub(super) fn begins(&self, names: &[&str], priorities: &[i32], is_whole: bool) -> Begins {
        let now = Instant::now();
        let mut begins = Begins::default();
        for priority in priorities {
            for name in names {
                let key = ((*name).to_owned(), *priority);
                let mark = self.marks.get(&key).filter(|_| !is_whole);
                let seen = self.seen.get(&key).filter(|_| !is_whole);
                begins.names.push(key.0);
                begins.priorities.push(*priority);
                begins.micros.push(mark.and_then(|mark| mark.micros));
                begins.ids.push(mark.map_or(i64::MIN, |mark| mark.id));
                begins.ages.push(seen.map(|seen| (now - *seen).as_secs_f64()));
            }
        }
        begins
    }

    /// Notes what a statement of a look has claimed that was asked at this moment: the jobs by name and priority. Of some names it has
    /// left no job that it might have claimed.
    pub(super) fn note(
        &mut self,
        (begins, is_whole): (&Begins, bool),
        asked: Instant,
        claimed: impl Iterator<Item = ((String, i32), Mark)>,
        has_left_none: impl Fn(&str) -> bool,
    ) {
        let mut last = HashMap::new();
        for (name, mark) in claimed {
            let of_name = last.entry(name).or_insert(mark);
            *of_name = (*of_name).max(mark);
        }
        for (name, mark) in last {
            // There may be more behind a job that lay before the frontier: it goes back there.
            let goes_back = is_whole && !has_left_none(&name.0);
            if goes_back {
                self.seen.remove(&name);
            }
            let before = self.marks.get(&name).copied().filter(|_| !goes_back);
            self.marks.insert(name, before.map_or(mark, |before| before.max(mark)));
        }
        let all = begins.names.iter().zip(&begins.priorities);
        for (name, priority) in all.filter(|(name, _)| has_left_none(name)) {
            self.seen.insert((name.clone(), *priority), asked);
        }
    }

    /// Forgets the jobs of other names.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.marks.retain(|(name, _), _| is_kept(name));
        self.seen.retain(|(name, _), _| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 1] = ["kind"];

    fn mark(micros: i64) -> Mark {
        Mark { micros: Some(micros), id: micros }
    }

    /// A machine with one source.
    struct Source(Looks, Frontier);

    impl Source {
        fn new() -> Self {
            Self(Looks::new(), Frontier::new())
        }

        /// A look that takes a second and claims these jobs.
        async fn look(&mut self, claimed: &[i64], is_full: bool) -> Option<Duration> {
            let Self(looks, frontier) = self;
            let is_whole = looks.may_be_whole();
            let (begins, asked) = (frontier.begins(&KINDS, &LEVELS, is_whole), Instant::now());
            tokio::time::advance(Duration::from_secs(1)).await;
            let claimed = claimed.iter().map(|micros| (("kind".to_owned(), 0), mark(*micros)));
            frontier.note((&begins, is_whole), asked, claimed, |_| !is_full);
            looks.end(is_whole, asked.elapsed(), is_full)
        }

        fn begins(&self) -> (Option<i64>, Option<f64>) {
            let begins = self.1.begins(&KINDS, &LEVELS, self.0.may_be_whole());
            (begins.micros[1], begins.ages[1])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_look_is_followed_by_others_that_begin_behind_it() {
        let mut source = Source::new();
        assert_eq!(source.begins(), (None, None));
        assert_eq!(source.look(&[], false).await, None);
        assert_eq!(source.begins(), (None, None), "a single long one says nothing");
        assert_eq!(source.look(&[7, 9, 8], true).await, None);
        assert_eq!(source.begins().0, Some(9));
        // It is not whole, and has left no job: a whole one is to come.
        assert_eq!(source.look(&[12], false).await, Some(Duration::from_secs(19)));
        assert_eq!(source.begins(), (Some(12), Some(1.0)));
        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(source.begins(), (None, None));
        assert_eq!(source.look(&[], false).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_look_that_finds_many_before_the_frontier_takes_it_back() {
        let mut source = Source::new();
        source.look(&[], true).await;
        source.look(&[100], false).await;
        tokio::time::advance(Duration::from_secs(20)).await;
        source.look(&[3, 4], true).await;
        assert_eq!(source.begins(), (Some(4), None));
        // One that is not whole does not.
        source.look(&[2], true).await;
        assert_eq!(source.begins(), (Some(4), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_look_is_put_off_for_a_minute_at_most() {
        let mut looks = Looks::new();
        for _ in 0..2 {
            assert!(looks.may_be_whole());
            looks.end(true, Duration::from_secs(3600), true);
        }
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!looks.may_be_whole());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(looks.may_be_whole());
    }
}
