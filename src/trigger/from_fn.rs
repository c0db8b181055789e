//! A schedule that a function makes.

use std::fmt;

use super::{Due, Trigger, TriggerContext};

/// Runs when the function says.
///
/// ```
/// use std::time::Duration;
/// use punctual::trigger::from_fn;
///
/// // One second after the end of a run, and ten after one that has failed.
/// let patient = from_fn(|last| {
///     let wait = if last.failures_in_a_row() == 0 { 1 } else { 10 };
///     Some((last.ended().unwrap_or(last.after()) + Duration::from_secs(wait)).into())
/// });
/// ```
pub fn from_fn<F>(next: F) -> FromFn<F>
where
    F: FnMut(&TriggerContext<'_>) -> Option<Due> + Send + 'static,
{
    FromFn(next)
}

/// A function; from [`from_fn`].
#[derive(Clone)]
pub struct FromFn<F>(F);

impl<F> Trigger for FromFn<F>
where
    F: FnMut(&TriggerContext<'_>) -> Option<Due> + Send + 'static,
{
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        (self.0)(last)
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}
