//! The end of a group: how far it has come, which tasks are kept, its waiters, and the members that it has seen
//! leave.
//!
//! A group ends in two ways. It is shut down itself; or its executor is, and then the group ends with its last
//! member although it was not shut down itself. Once either has begun no pause begins any more, as no task can be
//! paused then: a pause would put off the end without limit.

use super::{AtShutdown, roll::Name};
use crate::{
    CancelReason,
    layers::ShutdownPolicy,
    shutdown_report::{EndedTasks, TaskSummary},
};

/// How far a group has come by its own shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EndStage {
    #[default]
    Open,
    ShuttingDown,
    Stopping,
}

/// Which tasks a shutdown keeps, and why the others end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keeps {
    pub(crate) delayed: bool,
    pub(crate) periodic: bool,
    /// Those whose own policy says so.
    pub(crate) chosen: bool,
    pub(crate) reason: CancelReason,
}

impl Keeps {
    pub(crate) fn none(reason: CancelReason) -> Self {
        Self { delayed: false, periodic: false, chosen: false, reason }
    }

    pub(crate) fn keeps(self, at_shutdown: AtShutdown, is_delayed: bool) -> bool {
        match at_shutdown {
            AtShutdown::OneShot => self.delayed || !is_delayed,
            AtShutdown::Series => self.periodic,
            AtShutdown::Chosen(policy) => self.chosen && policy == ShutdownPolicy::Keep,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberEnd {
    Completed,
    Failed,
    Cancelled,
}

#[derive(Default)]
pub(super) struct GroupEnd {
    pub(super) stage: EndStage,
    /// The tasks that the group keeps since it was shut down.
    keeps: Option<Keeps>,
    /// The tasks that the executor keeps since it was shut down.
    executor_keeps: Option<Keeps>,
    pub(super) joining: usize,
    pub(super) is_terminated: bool,
    log: Option<EndedTasks>,
}

impl GroupEnd {
    pub(super) fn advance(&mut self, stage: EndStage, keeps: Keeps) {
        self.stage = self.stage.max(stage);
        self.keeps = Some(keeps);
    }

    pub(super) fn executor_closes(&mut self, keeps: Keeps) {
        // A policy that is switched on again brings nothing back.
        let before = self.executor_keeps;
        let kept = |is_kept: fn(Keeps) -> bool| before.is_none_or(is_kept) && is_kept(keeps);
        let (delayed, periodic) = (kept(|keeps| keeps.delayed), kept(|keeps| keeps.periodic));
        let chosen = kept(|keeps| keeps.chosen);
        self.executor_keeps = Some(Keeps { delayed, periodic, chosen, reason: keeps.reason });
    }

    pub(super) fn executor_closes_at_once(&mut self) {
        let reason = CancelReason::ShutdownNow;
        self.executor_keeps = Some(Keeps::none(reason));
    }

    pub(super) fn admits_pauses(&self) -> bool {
        self.stage == EndStage::Open && self.executor_keeps.is_none()
    }

    /// Returns why a member has to end that comes too late.
    pub(super) fn refuses(&self, at: AtShutdown, is_delayed: bool) -> Option<CancelReason> {
        let keeps = self.keeps?;
        let is_kept = self.stage < EndStage::Stopping && keeps.keeps(at, is_delayed);
        (!is_kept).then_some(keeps.reason)
    }

    /// Returns why a member has to end that would wait for the end of a pause. The executor was shut down, and
    /// does not keep it.
    pub(super) fn refuses_to_wait(&self, is_paused: bool, at: AtShutdown) -> Option<CancelReason> {
        let keeps = self.executor_keeps.filter(|_| is_paused)?;
        (!keeps.keeps(at, true)).then_some(keeps.reason)
    }

    pub(super) fn open_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// Notes a member that leaves, if a report was asked for.
    pub(super) fn note(&mut self, sequence: u64, ended: MemberEnd, name: impl FnOnce() -> Name) {
        let Some(log) = &mut self.log else { return };
        let list = if ended == MemberEnd::Cancelled { &mut log.cancelled } else { &mut log.ran };
        list.push(TaskSummary::new(sequence, name()));
    }

    pub(super) fn log(&self) -> EndedTasks {
        self.log.clone().unwrap_or_default()
    }

    /// Ends the group, if nothing holds that up. Returns `true` if it has ended.
    pub(super) fn terminate(&mut self, is_empty: bool) -> bool {
        let is_ending = self.stage > EndStage::Open || self.executor_keeps.is_some();
        self.is_terminated |= is_ending && is_empty && self.joining == 0;
        self.is_terminated
    }
}
