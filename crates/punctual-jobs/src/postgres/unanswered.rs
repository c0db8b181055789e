//! The claims of this machine that it does not know of: the answer to each was lost, or is under way.
//!
//! A worker learns soon of a claim whose answer is under way, or drops it unrun if half a lease has passed meanwhile. So
//! the heartbeat takes a claim for lost once two looks, a lease apart, have found it unknown, and no run of it can begin
//! after that. This machine's monotonic clock measures the time, as for a [dead](super::dead) worker: no step of the
//! server's clock changes it.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

#[derive(Default)]
pub(super) struct Unanswered {
    /// By job and claim, when the first look that found it was answered.
    seen: HashMap<(i64, i64), Instant>,
    /// When the last look was asked for.
    asked: Option<Instant>,
}

impl Unanswered {
    /// Takes in what is unknown now, by a question that was asked at this moment.
    pub(super) fn look(&mut self, unknown: Vec<(i64, i64)>, asked: Instant) {
        let (before, now) = (std::mem::take(&mut self.seen), Instant::now());
        let since = |claim| (claim, before.get(&claim).copied().unwrap_or(now));
        self.seen = unknown.into_iter().map(since).collect();
        self.asked = Some(asked);
    }

    /// Returns the jobs and claims that are lost, with a lease of this length.
    pub(super) fn lost(&self, lease: Duration) -> Vec<(i64, i64)> {
        let silent =
            |since: &Instant| self.asked.map(|asked| asked.saturating_duration_since(*since));
        let lost = self.seen.iter().filter(|(_, since)| silent(since) >= Some(lease));
        lost.map(|(claim, _)| *claim).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_claim_is_lost_when_it_is_unknown_for_the_length_of_the_lease() {
        let (second, lease) = (Duration::from_secs(1), Duration::from_secs(3));
        let mut unanswered = Unanswered::default();
        let looks: [&[(i64, i64)]; 7] =
            [&[(1, 1)], &[(1, 1), (2, 2)], &[(1, 1), (2, 2)], &[(1, 1)], &[(2, 2)], &[(2, 2)], &[]];
        let mut lost = Vec::new();
        for unknown in looks {
            unanswered.look(unknown.to_vec(), Instant::now());
            lost.push(unanswered.lost(lease));
            tokio::time::advance(second).await;
        }
        // The second one became known in between, and counts anew.
        assert_eq!(lost, [vec![], vec![], vec![], vec![(1, 1)], vec![], vec![], vec![]]);
    }
}
