//! A layer: a feature that only some tasks have, as the core of a task sees it.
//!
//! A plain task has none and is asked nothing. A task with some is asked at a few points of its life, and each of
//! its layers answers in their order. The core of a task ([`call`](super::call), [`end`](super::end),
//! [`cell`](super::cell)) asks, and knows no layer; a layer knows the core, and as a rule no other layer. Which there are,
//! and in which order, is written in [`layers`](crate::layers).
//!
//! | point | when | a layer may |
//! |---|---|---|
//! | [`before_run`](Layer::before_run) | a worker has taken the task | let the run pass, refuse it, or ask user code first |
//! | [`begins`](Layer::begins) | the layer has let the run pass, and so have those behind it, up to the first that asks user code | note that the run begins |
//! | [`after_run`](Layer::after_run) | the run is over, or was left out after the worker had taken the closure | count it |
//! | [`on_requeue`](Layer::on_requeue) | the task is queued again | choose another moment, park it, or have it end |
//! | [`on_put_off`](Layer::on_put_off) | a run waits on | note until when |
//! | [`on_replan`](Layer::on_replan) | the task, which is in the queue, is due at another moment | follow |
//! | [`on_end`](Layer::on_end) | the task has ended; once more if its body still ran, when that has returned | leave, and leave something to be dropped |
//!
//! Beside these a layer may say when the task expires and when its token is raised, whether it is paused, when it
//! is due next, and whether its entry stays parked. All of these are called
//! under the task's lock, so a layer calls no user code there and drops nothing of the
//! user's. What has to be asked of user code is a [`Question`], which the worker asks with no lock held. A question that
//! lets the run pass [looks again](Call::look_again) before it returns: in one step under the lock the task is seen to
//! be alive, and the layer that had the question is asked again, and those behind it. So what a question has found out
//! holds when the body begins. A layer behind it may still refuse the run, or ask.
//!
//! A run that is refused for another moment is *planned* for that moment from then on, and what follows it by its
//! schedule is, too. A layer whose run is to stay planned for its first moment
//! keeps that moment itself (`Run::plan_for`).

use std::any::Any;

use super::{Plan, call::Call, plan::RunOutcome, state::Stage, verdict::Verdict};
use crate::{
    CancelReason, CancellationToken,
    entry::{Requeue, Timing},
    schedule::Schedule,
    sync::Arc,
    time::Timestamp,
};

/// The parts of its task that a layer sees, under the lock.
pub(crate) struct Core<'a> {
    pub(crate) stage: Stage,
    pub(crate) is_periodic: bool,
    pub(crate) plan: Option<&'a mut Plan>,
    pub(crate) name: &'a Option<Arc<str>>,
    pub(crate) token: &'a mut Option<CancellationToken>,
}

pub(crate) enum NotYet {
    /// It does not: this becomes of the task.
    Refused(Verdict),
    Asks(Box<dyn Question>),
}

/// A question to user code, before the closure is called.
pub(crate) trait Question {
    /// Asks it. The caller holds no lock. Before this returns `Ok` it calls [`Call::be_in_time`] and then
    /// [`Call::look_again`], and returns their errors: nothing else asks the layers behind it, or sees that the task
    /// has ended.
    ///
    /// # Errors
    ///
    /// The outcome of a run that does not take place.
    fn ask(self: Box<Self>, call: &mut Call<'_>) -> Result<(), RunOutcome>;
}

/// A question that is to be asked, and the layer that has it, by its place in the order.
pub(super) struct PlacedQuestion {
    pub(super) layer: u8,
    pub(super) question: Box<dyn Question>,
}

/// The work that layers leave for other tasks, to be done by a thread that has released the task's lock.
#[must_use]
#[derive(Default)]
pub(crate) struct Deferred(Vec<Box<dyn FnOnce()>>);

impl Deferred {
    pub(crate) fn push(&mut self, act: impl FnOnce() + 'static) {
        self.0.push(Box::new(act));
    }

    /// Does it. The caller holds no lock.
    pub(crate) fn run(self) {
        self.0.into_iter().for_each(|act| act());
    }
}

/// How a task is queued again. The layers change it one after the other.
pub(crate) struct Queuing {
    pub(crate) due: Timestamp,
    /// Where its entry waits, unless for that moment.
    pub(crate) elsewhere: Option<Timing>,
    pub(crate) why: Requeue,
    /// Why it is not queued, and ends.
    pub(crate) ends: Option<CancelReason>,
    pub(crate) deferred: Deferred,
    /// The schedule that another has replaced, for the caller to drop when it holds no lock.
    pub(crate) replaced: Option<Schedule>,
    /// `true` if the plan is one that was asked for meanwhile.
    pub(crate) is_replanned: bool,
}

impl Queuing {
    pub(super) fn new(due: Timestamp, why: Requeue) -> Self {
        let (deferred, is_replanned) = (Deferred::default(), false);
        Self { due, elsewhere: None, why, ends: None, deferred, replaced: None, is_replanned }
    }

    pub(super) fn timing(&self) -> Timing {
        self.elsewhere.unwrap_or_else(|| self.due.into())
    }
}

/// The answer of the layers about another moment for which a task waits.
#[derive(Default)]
pub(crate) struct Replan {
    /// The plan, if it is another one, or the same moment was asked for.
    pub(crate) plan: Option<Timestamp>,
    pub(crate) due: Option<Timestamp>,
    /// The answer: when the task has to have ended, if that has moved.
    pub(crate) expiry: Option<Timestamp>,
    pub(crate) deferred: Deferred,
}

/// The remains of the layers of a task that has ended.
#[derive(Default)]
pub(crate) struct Left {
    pub(crate) deferred: Deferred,
    /// Values of the user's, for the caller to drop one by one when it holds no lock.
    pub(crate) values: Vec<Box<dyn Send>>,
}

impl Left {
    pub(crate) fn keep(&mut self, value: Option<impl Send + 'static>) {
        if let Some(value) = value {
            self.values.push(Box::new(value));
        }
    }
}

/// A layer as a value of its own type, for code that knows the type.
pub(crate) trait AsAny: Any {
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<L: Any> AsAny for L {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub(crate) trait Layer: AsAny + Send {
    fn place(&self) -> u8;

    fn before_run(&mut self, _: &mut Core<'_>, _: &mut Call<'_>) -> Result<(), NotYet> {
        Ok(())
    }

    /// The layer has let the run pass, and so have those behind it, up to the first that asks user code.
    fn begins(&mut self, _: &Call<'_>) {}

    /// The run is over, or was left out after the worker had taken the closure. A run that a layer refuses before that has
    /// no such call: the task is queued again ([`on_requeue`](Self::on_requeue)), or it ends ([`on_end`](Self::on_end)).
    fn after_run(&mut self, _: &mut Call<'_>) {}

    fn on_requeue(&mut self, _: &mut Core<'_>, _: &mut Queuing) {}

    fn on_put_off(&mut self, _: &Call<'_>, _until: Timestamp) {}

    fn on_replan(&mut self, _: &mut Replan) {}

    fn on_end(&mut self, _: &Core<'_>, _: &mut Left) {}

    fn expiry(&self) -> Option<Timestamp> {
        None
    }

    fn token_limit(&self) -> Option<Timestamp> {
        None
    }

    /// Returns `true` if the token stands for the present run alone, whose time is up: that it is raised is no request to the
    /// task.
    fn has_run_over_limit(&self) -> bool {
        false
    }

    fn has_moved(&self, _limit: Timestamp) -> bool {
        false
    }

    fn is_paused(&self) -> bool {
        false
    }

    /// Returns when the task, which a worker has, is due next, by what was asked of it meanwhile, if its plan says `next`.
    fn next_due(&self, next: Timestamp) -> Timestamp {
        next
    }

    /// Returns `true` if the entry of the task, which is in the queue, stays parked whenever it is due.
    fn keeps_parked(&self) -> bool {
        false
    }
}

#[derive(Default)]
pub(crate) struct Layers(Vec<Box<dyn Layer>>);

impl Layers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a layer, if there is one. It is of a type of which the task has none.
    pub(crate) fn add(&mut self, layer: Option<impl Layer>) {
        let Some(layer) = layer else { return };
        let index = self.0.partition_point(|other| other.place() < layer.place());
        self.0.insert(index, Box::new(layer));
    }

    pub(crate) fn get<L: Layer>(&mut self) -> Option<&mut L> {
        self.all().find_map(|layer| layer.as_any().downcast_mut())
    }

    /// Returns the layer of this type, which the task has from now on.
    pub(crate) fn get_or_default<L: Layer + Default>(&mut self) -> &mut L {
        if self.get::<L>().is_none() {
            self.add(Some(L::default()));
        }
        self.get().unwrap_or_else(|| unreachable!("the task has it"))
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut dyn Layer> {
        self.0.iter_mut().map(|layer| &mut **layer)
    }

    /// Asks the layers whether a run may begin: all of them, or those from the one on whose question was `answered`.
    /// Returns the question that one of them has. The layers before it have let the run pass, and are told so.
    ///
    /// # Errors
    ///
    /// The outcome of the run, if one of them refuses it.
    pub(super) fn before_run(
        &mut self,
        answered: Option<u8>,
        task: &mut Core<'_>,
        call: &mut Call<'_>,
    ) -> Result<Option<PlacedQuestion>, Verdict> {
        let first = answered.unwrap_or(0);
        let mut asking = None;
        for layer in self.all().skip_while(|layer| layer.place() < first) {
            call.extras().has_answer = answered == Some(layer.place());
            match layer.before_run(task, call) {
                Ok(()) => {}
                Err(NotYet::Refused(verdict)) => return Err(verdict),
                Err(NotYet::Asks(question)) => {
                    asking = Some(PlacedQuestion { layer: layer.place(), question });
                    break;
                }
            }
        }
        let end = asking.as_ref().map_or(u8::MAX, |asking| asking.layer);
        let passed = self.all().filter(|layer| (first..end).contains(&layer.place()));
        passed.for_each(|layer| layer.begins(call));
        Ok(asking)
    }
}
