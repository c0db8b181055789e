//! The extensions of a task: the features that only some tasks have, and that decide whether and when a task runs.
//!
//! [`Extensions`] has a field for each feature. It also has a function for each point of a task's life at which
//! features are called; the function has a line for each of these features. So the order of the lines is the order of
//! the calls, and this file is the one place in the core that names the features. A plain task has no extensions. At
//! the end of this file are the functions that the core calls whether or not a task has extensions;
//! [`feature`](crate::feature) covers submission and the pool.
//!
//! | point | when | a feature may |
//! |---|---|---|
//! | [`before_run`](Extensions::before_run) | a worker has taken the task | let the run begin, refuse it, or have user code asked first |
//! | [`after_run`](Extensions::after_run) | the run has ended, or was left out after the worker had taken the closure | take note |
//! | [`on_requeue`](Extensions::on_requeue) | the task is about to be queued again | choose another moment, park the task, or end it |
//! | [`on_put_off`](Extensions::on_put_off) | a gate has put a run off | note until when |
//! | [`on_replan`](Extensions::on_replan) | a request or the gate has moved the task or its plan | adapt |
//! | [`on_end`](Extensions::on_end) | the task has ended; if its body was still running then, once more when the body has returned | release the task, and hand over what is to be dropped |
//!
//! Before a run, the time limit comes first: it refuses a run whose time is up. The control precedes the features that
//! need to know whether the run is an extra run, one that is not part of the schedule. The group precedes the gate: a
//! member holds its permit while its gate is asked. A feature that may refuse a run should come before the
//! features that acquire something for the run; otherwise those features must give it back after a refusal.
//!
//! Features are called under the task's lock, so they call no user code and drop no user value. The worker puts a
//! [`Question`] to user code later, with no lock held. Only [`after_body`](Extensions::after_body) is called with no
//! lock held, and may call user code.
//!
//! By default, a run that a feature puts off is *planned* for the new moment, and the runs after it are planned from
//! there. To keep the original moment, a feature records it, and sets `Run::planned`.

use super::{
    Plan, Task, call::Call, cell::Parts, end::Leftovers, observer::Points, plan::RunOutcome,
    state::Stage, verdict::Verdict,
};
#[cfg(all(test, not(any(shuttle, loom))))]
use crate::feature::RateLimit;
use crate::{
    CancelReason,
    entry::{Requeue, Timing},
    feature::{AtShutdown, Control, GateQuestion, Gated, HeldLease, Membership, TimeLimit},
    sync::Arc,
    time::{Clock, Timestamp},
};

/// The parts of a task that its features see, under its lock.
pub(crate) struct Core<'a> {
    pub(crate) stage: Stage,
    pub(crate) is_periodic: bool,
    pub(crate) plan: Option<&'a mut Plan>,
    pub(crate) name: &'a Option<Arc<str>>,
}

/// A question that the worker, holding no lock, puts to user code before it calls the closure.
pub(crate) enum Question {
    /// To the trigger: when is the next run, now that the wall clock has been set back? The current run does not take
    /// place.
    Trigger,
    Gate(Box<GateQuestion>),
}

impl Question {
    /// Puts the question to user code. The caller holds no lock.
    ///
    /// # Errors
    ///
    /// The outcome of a run that does not take place.
    pub(super) fn ask(self, call: &mut Call<'_>) -> Result<(), RunOutcome> {
        match self {
            Self::Trigger => Err(call.ask_trigger_again()),
            Self::Gate(question) => call.pass_gate(*question),
        }
    }
}

/// Work that features defer until the thread has released the task's lock: work for other tasks, or dropping values.
#[must_use]
#[derive(Default)]
#[allow(clippy::box_collection, clippy::type_complexity, reason = "without work it is one word")]
pub(crate) struct Deferred(pub(crate) Option<Box<Vec<Box<dyn FnOnce()>>>>);

impl Deferred {
    pub(crate) fn push(&mut self, act: impl FnOnce() + 'static) {
        self.0.get_or_insert_default().push(Box::new(act));
    }

    /// Adds work that user code in the other work must not delay, because other tasks wait for it.
    pub(crate) fn push_first(&mut self, act: impl FnOnce() + 'static) {
        self.0.get_or_insert_default().insert(0, Box::new(act));
    }

    /// Does the work. The caller has called the waker of an entry that it has moved: until then, other threads believe
    /// that its worker searches, and wake none for what they submit.
    pub(crate) fn run(self) {
        self.0.into_iter().flat_map(|acts| *acts).for_each(|act| act());
    }
}

/// How a task is to be queued again. The features change this in turn.
pub(crate) struct Queuing {
    pub(crate) due: Timestamp,
    /// Where the entry is to wait, and until when; `None` if it simply waits until `due`.
    pub(crate) elsewhere: Option<Timing>,
    pub(crate) why: Requeue,
    /// Why the task is to end instead of being queued.
    pub(crate) ends: Option<CancelReason>,
    pub(crate) deferred: Deferred,
    /// Set by the gate: `true` if the gate has postponed its answer, and no worker has taken the answer yet.
    pub(crate) awaits_answer: bool,
    /// `true` if a request has changed the plan while a worker had the task.
    pub(crate) is_replanned: bool,
}

impl Queuing {
    pub(super) fn new(due: Timestamp, why: Requeue) -> Self {
        Self {
            due,
            elsewhere: None,
            why,
            ends: None,
            deferred: Deferred::default(),
            awaits_answer: false,
            is_replanned: false,
        }
    }
}

/// A move of a task or of its plan to another moment.
pub(crate) struct Replan<'a> {
    /// The newly planned moment, even if it is the same as before; `None` if the plan stands.
    pub(crate) plan: Option<Timestamp>,
    pub(crate) due: Option<Timestamp>,
    /// Set by the gate: `true` if the moved task still awaits the gate's answer, as in [`Queuing::awaits_answer`].
    pub(crate) awaits_answer: bool,
    pub(crate) deferred: &'a mut Deferred,
}

/// What the features add to the current run of a task.
#[derive(Clone, Default)]
pub(crate) struct RunExtensions {
    pub(crate) lease: Option<HeldLease>,
}

#[derive(Default)]
pub(crate) struct Extensions {
    pub(crate) limit: Option<Box<TimeLimit>>,
    pub(crate) control: Option<Box<Control>>,
    pub(crate) group: Option<Box<Membership>>,
    pub(crate) gate: Option<Box<Gated>>,
    /// The rule that decides whether a shutdown keeps the task; `None` if the rule for tasks of its kind applies.
    pub(crate) at_shutdown: Option<AtShutdown>,
    #[cfg(all(test, not(any(shuttle, loom))))]
    pub(crate) rate: Option<RateLimit>,
}

impl Extensions {
    pub(crate) fn is_empty(&self) -> bool {
        // All fields by name: a feature that was missing here would be lost for a task without other features.
        let Self {
            limit,
            control,
            group,
            gate,
            at_shutdown,
            #[cfg(all(test, not(any(shuttle, loom))))]
            rate,
        } = self;
        let is_empty = limit.is_none() && control.is_none() && group.is_none() && gate.is_none();
        #[cfg(all(test, not(any(shuttle, loom))))]
        let is_empty = is_empty && rate.is_none();
        is_empty && at_shutdown.is_none()
    }

    /// Asks the features whether the run may begin. Notes in the call a question that user code has to answer first.
    ///
    /// # Errors
    ///
    /// The verdict on the task, if a feature refuses the run.
    pub(super) fn before_run(
        &mut self,
        task: &mut Core<'_>,
        call: &mut Call<'_>,
    ) -> Result<(), Verdict> {
        let Self { limit, control, group, gate, .. } = self;
        limit.as_mut().map_or(Ok(()), |limit| limit.before_run(call))?;
        control.as_mut().map_or(Ok(()), |control| control.before_run(task, call))?;
        if call.has_question() {
            return Ok(());
        }
        group.as_mut().map_or(Ok(()), |group| group.before_run(task, call))?;
        #[cfg(all(test, not(any(shuttle, loom))))]
        self.rate.as_mut().map_or(Ok(()), |rate| rate.before_run(call))?;
        control.iter_mut().for_each(|it| it.begins(call));
        gate.iter_mut().for_each(|it| it.before_run(call));
        if call.hooks.has(Points::ENDED) {
            let group = group.as_ref().map(|it| &it.group.name);
            call.run.worker.note_names(call.run.id, task.name.as_ref(), group);
        }
        Ok(())
    }

    /// Calls the features after the body has returned. The caller holds no lock, since this may call user code.
    pub(super) fn after_body(call: &Call<'_>) {
        if call.run.is_leased() {
            call.leave_leased();
        }
    }

    pub(super) fn after_run(&mut self, call: &Call<'_>) {
        self.control.iter_mut().for_each(|it| it.after_run(call));
        self.group.iter_mut().for_each(|it| it.after_run(call));
    }

    pub(super) fn on_requeue(&mut self, task: &mut Core<'_>, queuing: &mut Queuing) {
        self.control.iter_mut().for_each(|it| it.on_requeue(task, queuing));
        self.gate.iter_mut().for_each(|it| it.on_requeue(task, queuing));
        self.group.iter_mut().for_each(|it| it.on_requeue(task, queuing));
        if let Some(at_shutdown) = self.at_shutdown {
            queuing.why = at_shutdown.reason(queuing.why);
        }
    }

    /// Notes that the gate has put the run off until `until`.
    pub(crate) fn on_put_off(&mut self, call: &Call<'_>, until: Timestamp) {
        self.control.iter_mut().for_each(|it| it.on_put_off(call, until));
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan<'_>) {
        self.limit.iter_mut().for_each(|it| it.on_replan(replan));
        self.gate.iter_mut().for_each(|it| it.on_replan(replan));
        self.group.iter_mut().for_each(|it| it.on_replan(replan));
    }

    pub(super) fn on_end(&mut self, task: &Core<'_>, left: &mut Leftovers) {
        self.limit.iter_mut().for_each(|it| it.on_end(left));
        self.group.iter_mut().for_each(|it| it.on_end(task, left));
        self.gate.iter_mut().for_each(|it| it.on_end(left));
    }

    /// Returns when the task is due next: at `next`, as its plan says, unless a request has changed that.
    pub(super) fn next_due(&self, next: Timestamp) -> Timestamp {
        self.control.as_ref().map_or(next, |control| control.next_due(next))
    }

    pub(super) fn is_paused(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.is_paused)
    }

    /// Returns `true` if the timer thread has cancelled the token of a series' current run, or is about to do so.
    pub(super) fn has_run_over_limit(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit.is_run_over)
    }

    /// Returns `true` if the queued task stays parked even when due, because it waits for its group or its gate.
    pub(super) fn keeps_parked(&self) -> bool {
        let waits_for_turn = self.group.as_ref().is_some_and(|group| group.keeps_parked());
        waits_for_turn || self.gate.as_ref().is_some_and(|gate| gate.is_awaiting())
    }
}

impl Task {
    /// Returns when the task is due. Its entry may be due earlier, at `entry`, to have a worker check the wall clock.
    pub(crate) fn due_by(&self, entry: Timestamp) -> Timestamp {
        if !self.is_periodic() {
            return entry;
        }
        let due = self.with(|parts| {
            let plan = parts.plan()?.schedule.view_wall()?.due;
            let control = parts.extensions().and_then(|it| it.control.as_ref());
            Some(control.map_or(plan, |control| control.due_by(entry, plan)))
        });
        due.unwrap_or(entry)
    }

    /// Takes the task out of its group, and drops its gate's answer, since the task will be run by hand, or not at all.
    pub(crate) fn leave_schedule(&self) {
        self.leave_group();
        self.leave_gate();
    }
}

impl Parts<'_> {
    /// Returns when a worker has to check the wall clock; `None` if the next run is not planned on that clock.
    pub(super) fn look(&mut self) -> Option<Timestamp> {
        let look = self.plan()?.schedule.view_wall()?.look;
        let control = self.extensions().and_then(|it| it.control.as_ref());
        (!control.is_some_and(|control| control.is_extra_next)).then_some(look)
    }

    /// Returns when the time of a one-shot task is up; `None` for a series, a task without a limit, or a run by hand.
    pub(crate) fn expiry(&mut self) -> Option<Timestamp> {
        self.extensions()?.limit.as_ref()?.expiry()
    }

    pub(crate) fn is_over(&mut self, clock: &Clock) -> bool {
        self.expiry().is_some_and(|moment| moment <= clock.read())
    }

    /// Returns when a time limit will cancel the task's token; `None` if none will.
    pub(super) fn token_limit(&mut self) -> Option<Timestamp> {
        self.extensions()?.limit.as_ref()?.token_limit()
    }

    pub(crate) fn has_other_limit(&mut self, limit: Timestamp) -> bool {
        let own = self.extensions().and_then(|it| it.limit.as_ref());
        own.is_some_and(|own| own.has_moved(limit))
    }
}
