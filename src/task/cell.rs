//! What a task's lock protects: the content of its node, and the parts that only some tasks have.
//!
//! The type of the content depends on the user's closure. [`Content::open`] hides that type behind [`Parts`]: the
//! [`Extras`], the plan of a periodic task, and a copy of the state. [`Content::close`] writes back the state, and any
//! new extras, as the caller has decided ([`Decided`]).
//!
//! This file only moves values. It neither drops user values nor calls wakers; the callers do so after releasing the
//! lock. A thread that holds a task's lock may also take the locks of a manual clock, of an extension and, through a
//! [`MoveEntry`](crate::entry::MoveEntry) or an [`Enqueue`], of the queue. It takes no other lock.

use std::task::Waker;

use super::{
    around::Around,
    extensions::{Core, Extensions},
    failure::FailedRun,
    plan::Plan,
    state::Stage,
    verdict::{Enqueue, Requeued},
};
use crate::{
    CancellationToken, Failure, TaskError,
    entry::{Requeue, Timing},
    sync::{Arc, Mutex, rank},
    trace::SubmitterSpan,
    wait::WaitList,
};

pub(crate) type TaskLock<C> = Mutex<C, { rank::OUTERMOST }>;

pub(crate) trait Content: Send {
    fn open(&mut self) -> Parts<'_>;

    fn close(&mut self, decided: Decided);
}

/// A locked task, apart from its closure and its result.
pub(crate) struct Parts<'a> {
    pub(crate) stage: Stage,
    extras: Option<&'a mut Extras>,
    /// The extras made since the task was locked, if it had none before.
    fresh: Option<Box<Extras>>,
    /// The place of a periodic task's plan. The plan is there whenever the closure is in the node.
    pub(crate) plan: Option<&'a mut Option<Plan>>,
}

#[must_use]
pub(crate) struct Decided {
    pub(crate) stage: Stage,
    pub(super) fresh: Option<Box<Extras>>,
}

impl<'a> Parts<'a> {
    #[inline]
    pub(super) fn new(
        stage: Stage,
        extras: Option<&'a mut Extras>,
        plan: Option<&'a mut Option<Plan>>,
    ) -> Self {
        Self { stage, extras, fresh: None, plan }
    }

    #[inline]
    pub(super) fn decided(self) -> Decided {
        Decided { stage: self.stage, fresh: self.fresh }
    }
}

#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) submitter: Option<SubmitterSpan>,
    pub(crate) token: Option<CancellationToken>,
    /// The code around each run, while no worker has that code.
    pub(crate) around: Option<Around>,
    pub(super) waiters: WaitList,
    /// The waker of the async task that awaits the future.
    pub(super) awaiting: Option<Waker>,
    pub(super) is_abandoned: bool,
    /// `true` if code outside the pool holds the task and may run it.
    pub(super) is_given_away: bool,
    /// The queue slot of a one-shot task, if the task was moved or queued again.
    slot: Option<u32>,
    pub(super) last_failure: Option<FailedRun>,
    /// The failure with which the task has ended, until a call claims it.
    pub(super) failure: Option<Failure>,
    pub(crate) extensions: Extensions,
}

impl Parts<'_> {
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.extras.is_none() && self.fresh.is_none()
    }

    /// Returns `true` if the task has extras that concern its runs, and not only its waiters.
    #[inline]
    pub(super) fn concerns_runs(&mut self) -> bool {
        self.extras_if_any().is_some_and(|extras| {
            let Extras { extensions, name, token, around, .. } = extras;
            !extensions.is_empty() || name.is_some() || token.is_some() || around.is_some()
        })
    }

    pub(crate) fn extras(&mut self) -> &mut Extras {
        match &mut self.extras {
            Some(extras) => extras,
            None => self.fresh.get_or_insert_default(),
        }
    }

    #[inline]
    pub(super) fn extras_if_any(&mut self) -> Option<&mut Extras> {
        match &mut self.extras {
            Some(extras) => Some(extras),
            None => self.fresh.as_deref_mut(),
        }
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns the plan of a periodic task, unless a worker has the plan or the task has ended.
    pub(crate) fn plan(&mut self) -> Option<&mut Plan> {
        self.plan.as_deref_mut()?.as_mut()
    }

    // The extensions.

    pub(crate) fn extensions(&mut self) -> Option<&mut Extensions> {
        Some(&mut self.extras_if_any()?.extensions)
    }

    pub(super) fn split(&mut self) -> (&mut Extensions, Core<'_>) {
        let extras = match &mut self.extras {
            Some(extras) => &mut **extras,
            None => &mut **self.fresh.get_or_insert_default(),
        };
        let Extras { extensions, name, .. } = extras;
        let (stage, is_periodic) = (self.stage, self.plan.is_some());
        let plan = self.plan.as_deref_mut().and_then(Option::as_mut);
        (extensions, Core { stage, is_periodic, plan, name })
    }

    pub(crate) fn name(&mut self) -> Option<Arc<str>> {
        self.extras_if_any().and_then(|extras| extras.name.clone())
    }

    pub(crate) fn keeps_parked(&mut self) -> bool {
        self.extensions().is_some_and(|extensions| extensions.keeps_parked())
    }

    pub(crate) fn is_given_away(&mut self) -> bool {
        self.extras_if_any().is_some_and(|extras| extras.is_given_away)
    }

    // The place in the queue.

    /// Queues the task again, unless it has ended or the queue refuses it.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        timing: Timing,
        why: Requeue,
        enqueue: &mut Enqueue<'_>,
    ) -> Requeued {
        if !self.stage.is_scheduled() {
            return Err(None);
        }
        self.set_slot(enqueue(timing, why).ok_or(None)?);
        Ok(())
    }

    /// Returns the entry's slot; `None` if the task was never moved or queued again, or if its plan is out of the node.
    pub(crate) fn slot(&mut self) -> Option<u32> {
        let moved = self.extras_if_any().and_then(|extras| extras.slot);
        self.plan().and_then(|plan| plan.slot).or(moved)
    }

    pub(crate) fn set_slot(&mut self, slot: u32) {
        match self.plan() {
            Some(plan) => plan.slot = Some(slot),
            None => self.extras().slot = Some(slot),
        }
    }

    // The end.

    /// Returns `true` if the task's own token was cancelled, other than by the time limit of a single run.
    pub(crate) fn is_called_off(&mut self) -> bool {
        let token = self.extras_if_any().and_then(|extras| extras.token.as_ref());
        token.is_some_and(CancellationToken::is_raised_itself)
            && !self.extensions().is_some_and(|extensions| extensions.has_run_over_limit())
    }

    pub(super) fn is_abandoned(&mut self) -> bool {
        self.extras_if_any().is_some_and(|extras| extras.is_abandoned)
    }

    /// Claims the result, which after `Ok` the caller takes out of the node; `None` if the task has not ended.
    ///
    /// # Errors
    ///
    /// Why there is no result.
    #[inline]
    pub(super) fn claim(&mut self) -> Option<Result<(), TaskError>> {
        let claimed = self.stage.claim()?;
        let failure = self.extras_if_any().and_then(|extras| extras.failure.take());
        Some(failure.map_or(claimed, |failure| Err(TaskError::Failed(failure))))
    }
}
