//! What a seed draws of limits: of the kind `metered`, of a kind of schedules, and in the program of one replica.

use std::time::Duration;

use punctual_jobs::JobLimit;

use super::{
    plan::{Millis, REPLICAS},
    random::Random,
};

/// How many jobs begin in a window: so many tokens, and one more after each gap.
pub(super) type Window = Option<(u32, Millis)>;

/// The limits of a seed that has some.
#[derive(Clone, Debug)]
pub(super) struct DrawnLimits {
    /// How many jobs of the kind run at once, by the program of each replica: they may be of two versions.
    pub(super) of_kind: [Option<u32>; REPLICAS],
    /// How many of each limit key, in all programs.
    pub(super) of_key: Option<u32>,
    pub(super) window: Window,
    pub(super) key_window: Window,
    /// How many jobs of the kind are enqueued while there is trouble, and as many at once afterwards.
    pub(super) jobs: u64,
    /// Within how long they are enqueued, if not in all the time of trouble; then none of them has an ordering key.
    pub(super) within: Option<Millis>,
    /// How many jobs of schedules that are rows run at once.
    pub(super) of_rows: Option<u32>,
}

impl DrawnLimits {
    /// Returns what has so many jobs, and no limit yet.
    pub(super) fn none(jobs: u64) -> Self {
        let of_kind = [None; REPLICAS];
        let (window, key_window) = (None, None);
        Self { of_kind, of_key: None, window, key_window, jobs, within: None, of_rows: None }
    }

    pub(super) fn of(random: &mut Random) -> Self {
        let mut some = |times| random.once_in(times).then(|| random.between(1, 3) as u32);
        let (of_kind, of_key, of_rows) = (some(2), some(2), some(3));
        let mut of_kind = [of_kind; REPLICAS];
        if of_kind[0].is_some() && random.once_in(3) {
            of_kind[REPLICAS - 1] = Some(random.between(1, 3) as u32);
        }
        let mut window =
            || random.once_in(3).then(|| (random.between(1, 3) as u32, random.between(20, 600)));
        let (window, key_window) = (window(), window());
        let (jobs, within) = (random.between(1, 8), None);
        Self { of_kind, of_key, window, key_window, jobs, within, of_rows }
    }

    /// Returns how long the tokens for all jobs take, at most.
    pub(super) fn span(&self) -> Millis {
        let gaps = self.window.into_iter().chain(self.key_window).map(|(_, gap)| gap);
        2 * self.jobs * gaps.max().unwrap_or(0)
    }

    /// Returns the limits of the kind in the program of a replica.
    pub(super) fn settings(&self, replica: usize) -> Vec<JobLimit> {
        let limit = |at_once: Option<u32>, window: Window| {
            let spans = window.map(|(burst, gap)| (burst, Duration::from_millis(gap) * burst));
            match (at_once, spans) {
                (Some(jobs), Some((burst, span))) => {
                    Some(JobLimit::at_once(jobs).and_in_window(burst, span))
                }
                (Some(jobs), None) => Some(JobLimit::at_once(jobs)),
                (None, Some((burst, span))) => Some(JobLimit::in_window(burst, span)),
                (None, None) => None,
            }
        };
        let of_key = limit(self.of_key, self.key_window).map(JobLimit::for_each_key);
        limit(self.of_kind[replica], self.window).into_iter().chain(of_key).collect()
    }
}
