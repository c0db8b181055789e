//! A schedule of given moments.

use super::{Due, Trigger, TriggerContext};

/// Runs at these moments, which have to be in order. A moment that is not later than
/// [`after`](TriggerContext::after) is left out. They may be moments of the executor's clock, of the wall
/// clock, or of either.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use punctual::{ScheduledThreadPoolExecutor, trigger::at};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// // At 1 January 2100, 00:00 in UTC, and an hour later.
/// let century = UNIX_EPOCH + Duration::from_secs(4_102_444_800);
/// let _fireworks = executor.repeat(at([century, century + Duration::from_secs(3600)]), || ())?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn at<I>(moments: I) -> At<I::IntoIter>
where
    I: IntoIterator<Item: Into<Due>>,
    I::IntoIter: Send + 'static,
{
    At(moments.into_iter())
}

/// Given moments; from [`at`].
#[derive(Clone, Debug)]
pub struct At<I>(I);

impl<I: Iterator<Item: Into<Due>> + Send + 'static> Trigger for At<I> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        // The first run may be at the moment of submission.
        let is_first = last.last.is_none();
        // Not every machine has both clocks.
        let (mut after, mut after_wall) = (None, None);
        self.0.by_ref().map(Into::into).find(|due| match *due {
            Due::OnDemand => true,
            Due::At(moment) => {
                let after = *after.get_or_insert_with(|| last.after());
                moment > after || is_first && moment == after
            }
            Due::Wall(moment) => {
                let after = *after_wall.get_or_insert_with(|| last.after_wall());
                moment > after || is_first && moment == after
            }
        })
    }
}
