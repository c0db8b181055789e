//! The layers: what only some tasks have, one file and one type each.
//!
//! A plain task has none and is asked nothing. A task with some is asked at a few points of its life, and each of
//! its layers answers in the order in which they stand [below](Layers). The core of a task ([`call`](super::call),
//! [`end`](super::end), [`cell`](super::cell)) calls these points, and names no layer; a layer knows the core,
//! and no other layer.
//!
//! | point | when | a layer may |
//! |---|---|---|
//! | [`before_run`](Layer::before_run) | a worker has taken the task | let the run pass, refuse it, or ask user code first |
//! | [`begins`](Layer::begins) | the layer has let the run pass, and so have those behind it, up to the first that asks user code | note that the run begins |
//! | [`after_run`](Layer::after_run) | the run is over, or was left out | count it |
//! | [`on_requeue`](Layer::on_requeue) | the task is queued again | choose another moment, or park it |
//! | [`on_put_off`](Layer::on_put_off) | a run waits on | note until when |
//! | [`on_replan`](Layer::on_replan) | the task, which is in the queue, is due at another moment | follow |
//! | [`on_end`](Layer::on_end) | the task has ended; once more if its body still ran, when that has returned | leave, and leave something to be dropped |
//!
//! Beside these a layer may say when the task expires, whether its entry stays parked, until when its run was put off, and whether its
//! moment is an estimate. All of these are called under the task's lock, so a layer calls no user code there and drops nothing of the
//! user's. What has to be asked of user code is a [`Question`], which the worker asks with no lock held; the layer that
//! had it is then asked again, and those behind it, in one step under the lock in which the task is seen to be
//! alive. So what a question has found out holds when the body begins. A layer behind it may still refuse the run, or ask.
//!
//! A run that is refused for another moment is *planned* for that moment from then on, and what follows it by its
//! schedule is, too. A layer that is to keep the tick notes it, as the gate does.
//!
//! # Another layer
//!
//! It is a file with a type that implements [`Layer`], and a line in the order below. Where it stands decides what it
//! comes before: a layer that may refuse a run stands before those that have something to give back. `layers/tests/rate.rs` is
//! an eighth: at most so many runs in a minute. The seam is not public: what is called under a lock must not be the
//! user's. A [gate](crate::gate) is the layer that asks the user.

mod calls;
mod control;
mod gate;
mod limit;
mod membership;
#[cfg(all(test, not(any(shuttle, loom))))]
#[path = "layers/tests/rate.rs"]
mod rate;
#[cfg(feature = "histograms")]
mod recorded;
mod wall;

#[cfg(feature = "histograms")]
pub(crate) use self::recorded::Recorded;
pub(crate) use self::{
    calls::Pace,
    control::{Change, Changed, body_begins},
    gate::Gated,
    membership::Membership,
    wall::OnWall,
};
use self::{control::Control, limit::TimeLimit};
use super::{Plan, call::Call, period::Period, plan::RunOutcome, state::Stage, verdict::Verdict};
use crate::{
    CancellationToken,
    entry::{Requeue, Timing},
    sync::Arc,
    time::Timestamp,
};

/// What a layer sees of its task, under the lock.
pub(crate) struct Core<'a> {
    pub(super) stage: Stage,
    pub(super) is_periodic: bool,
    /// The plan of a periodic task, unless a worker has it or the task has ended.
    pub(super) plan: Option<&'a mut Plan>,
    pub(super) name: &'a Option<Arc<str>>,
    pub(super) token: &'a mut Option<CancellationToken>,
}

/// Why a run does not begin yet.
pub(crate) enum NotYet {
    /// It does not: this becomes of the task.
    Refused(Verdict),
    /// User code has to be asked first.
    Asks(Box<dyn Question>),
}

/// A question to user code, before the closure is called.
pub(crate) trait Question {
    /// Asks it. The caller holds no lock.
    ///
    /// # Errors
    ///
    /// What follows if the run does not take place.
    fn ask(self: Box<Self>, call: &mut Call<'_>) -> Result<(), RunOutcome>;
}

/// A question that is to be asked, and the place of the layer that has it.
pub(super) type PlacedQuestion = (usize, Box<dyn Question>);

/// What layers want to have done about other tasks, by a thread that has released the task's lock.
#[must_use]
#[derive(Default)]
pub(crate) struct Deferred(Vec<Box<dyn FnOnce()>>);

impl Deferred {
    pub(super) fn push(&mut self, act: impl FnOnce() + 'static) {
        self.0.push(Box::new(act));
    }

    /// Does it. The caller holds no lock.
    pub(super) fn run(self) {
        self.0.into_iter().for_each(|act| act());
    }
}

/// How a task is queued again. The layers change it one after the other.
pub(crate) struct Queuing {
    /// When the task is due.
    pub(super) due: Timestamp,
    /// Where its entry waits, unless for that moment.
    pub(super) elsewhere: Option<Timing>,
    pub(super) why: Requeue,
    pub(super) deferred: Deferred,
    /// The schedule that another has replaced, for the caller to drop when it holds no lock.
    pub(super) replaced: Option<Period>,
}

impl Queuing {
    pub(super) fn new(due: Timestamp, why: Requeue) -> Self {
        Self { due, elsewhere: None, why, deferred: Deferred::default(), replaced: None }
    }

    pub(super) fn timing(&self) -> Timing {
        self.elsewhere.unwrap_or_else(|| self.due.into())
    }
}

/// What the layers say of another moment for which a task waits.
#[derive(Default)]
pub(crate) struct Replan {
    /// The plan, if it is another one.
    pub(super) plan: Option<Timestamp>,
    /// When the task is due.
    pub(super) due: Option<Timestamp>,
    /// The answer: when the task has to have ended, if that has moved.
    pub(super) expiry: Option<Timestamp>,
    pub(super) deferred: Deferred,
}

/// What the layers of a task leave that has ended.
#[derive(Default)]
pub(crate) struct Left {
    pub(super) deferred: Deferred,
    /// Values of the user's, for the caller to drop one by one when it holds no lock.
    pub(super) values: Vec<Box<dyn Send>>,
}

impl Left {
    /// Keeps a value of the user's, if there is one.
    pub(super) fn keep(&mut self, value: Option<impl Send + 'static>) {
        if let Some(value) = value {
            self.values.push(Box::new(value));
        }
    }
}

/// One of the layers; see the [module](self).
pub(crate) trait Layer: Send + 'static {
    /// May this run begin?
    fn before_run(&mut self, _: &mut Core<'_>, _: &mut Call<'_>) -> Result<(), NotYet> {
        Ok(())
    }

    /// The layer has let the run pass, and so have those behind it, up to the first that asks user code.
    fn begins(&mut self, _: &Call<'_>) {}

    /// The run is over, or has turned out not to take place.
    fn after_run(&mut self, _: &mut Call<'_>) {}

    /// The task is queued again.
    fn on_requeue(&mut self, _: &mut Core<'_>, _: &mut Queuing) {}

    /// The run waits on, until this moment.
    fn on_put_off(&mut self, _: &Call<'_>, _until: Timestamp) {}

    /// The task is in the queue, and due at another moment.
    fn on_replan(&mut self, _: &mut Replan) {}

    /// The task has ended.
    fn on_end(&mut self, _: &Core<'_>, _: &mut Left) {}

    /// Returns when the task has to have ended.
    fn expiry(&self) -> Option<Timestamp> {
        None
    }

    /// Returns when the token of the task is raised by itself.
    fn token_limit(&self) -> Option<Timestamp> {
        None
    }

    /// Returns `true` if what has found the task to have expired at this moment was armed for a limit that has moved.
    fn has_moved(&self, _limit: Timestamp) -> bool {
        false
    }

    /// Returns `true` if the task waits until somebody resumes it.
    fn is_paused(&self) -> bool {
        false
    }

    /// Returns `true` if the entry of the task, which is in the queue, stays parked whenever it is due.
    fn keeps_parked(&self) -> bool {
        false
    }

    /// Returns until when the planned run was put off.
    fn put_off_until(&self) -> Option<Timestamp> {
        None
    }

    /// Returns `true` if the moment at which the task is due is an estimate, which the pool has to follow.
    fn is_estimated(&self, _: &Core<'_>) -> bool {
        false
    }
}

/// A layer that stands in the order.
pub(crate) trait Ordered: Layer + Sized {
    fn place(layers: &mut Layers) -> &mut Option<Box<Self>>;
}

macro_rules! layers {
    ($($(#[$attribute:meta])* $name:ident: $layer:ty,)*) => {
        /// The layers of one task, in the order in which they are asked.
        #[derive(Default)]
        pub(crate) struct Layers {
            $($(#[$attribute])* $name: Option<Box<$layer>>,)*
            /// One of them is there, or was.
            has_any: bool,
        }

        $($(#[$attribute])* impl Ordered for $layer {
            fn place(layers: &mut Layers) -> &mut Option<Box<Self>> {
                &mut layers.$name
            }
        })*

        impl Layers {
            /// Returns the place of each layer, in the order.
            fn places(&mut self) -> impl Iterator<Item = Option<&mut dyn Layer>> {
                [$(
                    $(#[$attribute])*
                    self.$name.as_deref_mut().map(|layer| layer as &mut dyn Layer),
                )*]
                .into_iter()
            }
        }
    };
}

// The order, written once. A run that is beside the schedule is known as such before it is asked about. Who asks for
// a permit holds it during a question, so the group comes before the gate.
layers! {
    limit: TimeLimit,
    control: Control,
    wall: OnWall,
    membership: Membership,
    gate: Gated,
    #[cfg(all(test, not(any(shuttle, loom))))]
    rate: rate::RateLimit,
    #[cfg(feature = "histograms")]
    recorded: Recorded,
}

impl Layers {
    /// Returns `false` if the task has never had a layer.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any
    }

    /// Returns the layers that the task has, in the order.
    fn all(&mut self) -> impl Iterator<Item = &mut dyn Layer> {
        self.places().flatten()
    }

    /// Asks the layers whether a run may begin: all of them, or those from the one on whose question was `answered`.
    /// Returns the question that one of them has, and which one that is. The layers before it have let the run pass,
    /// and are told so.
    ///
    /// # Errors
    ///
    /// What becomes of the task if one of them refuses the run.
    pub(super) fn before_run(
        &mut self,
        answered: Option<usize>,
        task: &mut Core<'_>,
        call: &mut Call<'_>,
    ) -> Result<Option<PlacedQuestion>, Verdict> {
        let first = answered.unwrap_or(0);
        let mut question = None;
        for (number, place) in self.places().enumerate().skip(first) {
            let Some(layer) = place else { continue };
            call.note_answer(answered == Some(number));
            match layer.before_run(task, call) {
                Ok(()) => {}
                Err(NotYet::Refused(verdict)) => return Err(verdict),
                Err(NotYet::Asks(asked)) => {
                    question = Some((number, asked));
                    break;
                }
            }
        }
        let end = question.as_ref().map_or(usize::MAX, |(number, _)| *number);
        let passed = self.places().enumerate().take_while(|(number, _)| *number < end).skip(first);
        passed.filter_map(|(_, place)| place).for_each(|layer| layer.begins(call));
        Ok(question)
    }

    pub(super) fn after_run(&mut self, call: &mut Call<'_>) {
        self.all().for_each(|layer| layer.after_run(call));
    }

    pub(super) fn on_requeue(&mut self, task: &mut Core<'_>, queuing: &mut Queuing) {
        self.all().for_each(|layer| layer.on_requeue(task, queuing));
    }

    pub(super) fn on_put_off(&mut self, call: &Call<'_>, until: Timestamp) {
        self.all().for_each(|layer| layer.on_put_off(call, until));
    }

    pub(super) fn on_replan(&mut self, replan: &mut Replan) {
        self.all().for_each(|layer| layer.on_replan(replan));
    }

    pub(super) fn on_end(&mut self, task: &Core<'_>) -> Left {
        let mut left = Left::default();
        self.all().for_each(|layer| layer.on_end(task, &mut left));
        left
    }

    /// Returns when the task has to have ended.
    pub(super) fn expiry(&mut self) -> Option<Timestamp> {
        self.all().filter_map(|layer| layer.expiry()).min()
    }

    pub(super) fn token_limit(&mut self) -> Option<Timestamp> {
        self.all().find_map(|layer| layer.token_limit())
    }

    pub(super) fn has_moved(&mut self, limit: Timestamp) -> bool {
        self.all().any(|layer| layer.has_moved(limit))
    }

    pub(super) fn is_paused(&mut self) -> bool {
        self.all().any(|layer| layer.is_paused())
    }

    /// Returns `true` if the entry of the task, which is in the queue, stays parked.
    pub(super) fn keep_parked(&mut self) -> bool {
        self.all().any(|layer| layer.keeps_parked())
    }

    /// Returns until when the planned run was put off.
    pub(super) fn put_off_until(&mut self) -> Option<Timestamp> {
        self.all().find_map(|layer| layer.put_off_until())
    }

    /// Returns `true` if the moment at which the task is due is an estimate.
    pub(super) fn is_estimated(&mut self, task: &Core<'_>) -> bool {
        self.all().any(|layer| layer.is_estimated(task))
    }

    /// Returns a layer, if the task has it.
    pub(super) fn get<L: Ordered>(&mut self) -> Option<&mut L> {
        L::place(self).as_deref_mut()
    }

    /// Returns a layer, which the task has from now on.
    pub(super) fn get_or_default<L: Ordered + Default>(&mut self) -> &mut L {
        self.has_any = true;
        L::place(self).get_or_insert_default()
    }

    /// Gives a task that is not queued yet a layer, if there is one.
    pub(crate) fn add_if<L: Ordered>(&mut self, layer: Option<L>) {
        self.has_any |= layer.is_some();
        *L::place(self) = layer.map(Box::new);
    }
}
