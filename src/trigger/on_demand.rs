//! No schedule: a task that runs when it is asked to.

use super::{Due, Trigger, TriggerContext};

/// Runs only on request: by [`run_now`](crate::ScheduledFuture::run_now), for once; by
/// [`reschedule`](crate::ScheduledFuture::reschedule), for after the last request, however often it is
/// made; or by [`run_within`](crate::ScheduledFuture::run_within), for after the first.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::on_demand};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let save = executor.repeat(on_demand(), || println!("saved"))?;
/// clock.run_for(Duration::from_secs(60));
/// assert_eq!(executor.statistics().runs, 0);
/// save.run_now();
/// clock.run_until_idle();
/// assert_eq!(executor.statistics().runs, 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[must_use]
pub fn on_demand() -> OnDemand {
    OnDemand(())
}

/// No schedule; from [`on_demand`].
#[derive(Clone, Copy, Debug)]
pub struct OnDemand(());

impl Trigger for OnDemand {
    fn next(&mut self, _: &TriggerContext<'_>) -> Option<Due> {
        Some(Due::OnDemand)
    }
}
