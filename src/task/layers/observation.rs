//! The layer that keeps the submitter's span of a task, and the place where its runs are recorded.

#[cfg(feature = "histograms")]
use super::NotYet;
use super::{Core, Layer, Left};
#[cfg(feature = "histograms")]
use crate::{histogram::Recorders, sync::Arc, task::call::Call};
use crate::{task::Task, trace::SubmitterSpan};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Observation {
    /// The span in which it was submitted.
    pub(crate) submitter: Option<SubmitterSpan>,
    /// Where its runs are recorded, if that is not the worker's own recorder.
    #[cfg(feature = "histograms")]
    pub(crate) recorders: Option<Arc<Recorders>>,
}

impl Observation {
    pub(crate) fn is_any(&self) -> bool {
        let is_any = self.submitter.is_some();
        #[cfg(feature = "histograms")]
        let is_any = is_any || self.recorders.is_some();
        is_any
    }
}

impl Layer for Observation {
    #[cfg(feature = "histograms")]
    fn before_run(&mut self, _: &mut Core<'_>, call: &mut Call<'_>) -> Result<(), NotYet> {
        call.run.record_in(self.recorders.as_ref());
        Ok(())
    }

    fn on_end(&mut self, _: &Core<'_>, left: &mut Left) {
        if let Some(span) = self.submitter.take() {
            left.values.push(Box::new(span));
        }
    }
}

impl Task {
    /// Returns the span in which the task was submitted, if it is kept.
    pub(crate) fn submitter(&self) -> Option<SubmitterSpan> {
        self.with(|parts| parts.layers()?.get::<Observation>()?.submitter.clone())
    }
}
