//! The payload: the one part of a task that depends on the closure's type.
//!
//! A task is a [`Node`]: one allocation, with a lock that protects the closure and later the result. The submitter
//! makes the node. All other code sees it as a [`Task`], without the types of the closure and the result. The future,
//! however, knows the type of the result. To claim the result, the future passes in a place of that type.
//!
//! This file is compiled for each closure, in the user's crate. So it is small: it moves and drops closures and
//! results, and calls closures. All decisions are made by code that is compiled once and sees only the rest of the node
//! ([`Parts`]).
//!
//! | move | under the lock | with no lock held |
//! |---|---|---|
//! | [`call`](Payload::call) | [`Call::start`] decides, the closure is taken out | [`Call::carry_out`] calls it |
//! | and then | [`Call::publish`] decides, the closure or result is put in | [`Call::release`] drops what is left |
//! | [`end`](Payload::end) | [`End::decide`] decides, the closure or result is taken out | [`End::release`] drops it |
//! | [`claim`](Payload::claim) | [`Claiming::decide`] decides, the result is taken out | the caller gets it |
//!
//! The decision and the move are one step under one lock, so the closure and the state never disagree. While user code
//! runs, the closure is out of the node and no lock is held. The thread that took the closure out owns it alone, and
//! drops it or puts it back.
//!
//! [`cell`](Payload::cell) gives access to everything that does not depend on the closure's type. It returns the node's
//! lock, with the content as a trait object. The trait object needs neither a second allocation nor `unsafe`.
//!
//! # Sixteen bytes
//!
//! If the closure and result of a plain one-shot task take eight bytes each, the node's lock protects sixteen bytes:
//! one word with the state and a tag, then the closure or result. No word is reserved for [`Extras`]. When a task first
//! needs extras, its content moves into a box with them, and its [`Slot`] then holds the box. Because the state moves
//! with it, the deciding code works on a copy of the state. Before releasing the lock, the node writes the decision
//! back and stores new extras.

use super::{
    call::{Call, ToStore},
    cell::{Content, Decided, Extras, Parts, TaskLock},
    end::{Claiming, End},
    hooks::Lent,
    outcome::{Next, Outcome, RunReport},
    plan::Plan,
    state::Stage,
    untaken::{failure_of, is_result},
};
use std::mem::{self, needs_drop};

use crate::{
    Failure,
    sync::{Arc, Mutex, rank},
};

/// A task, as workers, handles and the pool see it: a [`Node`] of any type.
pub(crate) type Task = dyn Payload;

pub(crate) trait Payload: Send + Sync {
    /// Returns the task's lock, with the type of the content erased.
    fn cell(&self) -> &TaskLock<dyn Content>;

    fn call(&self, call: &mut Call<'_>);

    fn end(&self, end: &mut End<'_>);

    fn claim(&self, claiming: &mut Claiming<'_>);

    fn is_periodic(&self) -> bool;
}

pub(crate) trait Body: Send + Sized + 'static {
    type Value: Send + 'static;

    /// The type of the plan's place: `()` for a closure that runs once and so has no plan.
    type Place: Send + 'static;

    fn plan(_: &mut Self::Place) -> Option<&mut Option<Plan>> {
        None
    }

    /// Calls the closure, which is user code, so the caller holds no lock. Consumes a one-shot closure. Sets `value` if
    /// the run returns the task's result.
    fn run(body: &mut Option<Self>, value: &mut Option<Self::Value>) -> RunReport;

    /// Returns the result of a series whose trigger has no next run; `None` if only a run can return a result.
    fn exhausted() -> Option<Self::Value> {
        None
    }

    /// `true` if the body acts even when its task ends without a run, and so must not simply be dropped.
    const ACTS_UNRUN: bool = false;

    /// Drops the body of a task that was ended while it waited; an alarm goes off instead. Calls user code, so the
    /// caller holds no lock.
    fn will_not_run(self) {}

    /// Carries out the call ([`Call::carry_out`]). An alarm is called without questions, hooks or code around it.
    #[inline]
    fn carry_out(call: &mut Call<'_>, lent: &mut dyn Lent) {
        call.carry_out(lent);
    }
}

/// A closure that runs once. The call consumes the closure and its captures.
pub(crate) struct OneShot<F>(F);

impl<F, T> Body for OneShot<F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Value = T;
    type Place = ();

    #[inline]
    fn run(body: &mut Option<Self>, value: &mut Option<T>) -> RunReport {
        if let Some(Self(closure)) = body.take() {
            *value = Some(closure());
        }
        Ok(Next::Nothing)
    }
}

/// A closure that each run borrows, so that it is still there after a run has panicked.
pub(crate) struct Repeating<F>(F);

impl<F, O> Body for Repeating<F>
where
    F: FnMut() -> O + Send + 'static,
    O: Outcome,
{
    type Value = O::Value;
    type Place = Option<Plan>;

    #[inline]
    fn run(body: &mut Option<Self>, value: &mut Option<O::Value>) -> RunReport {
        let Some(Self(closure)) = body else { return Ok(Next::Nothing) };
        closure().report(value)
    }

    #[inline(always)]
    fn plan(place: &mut Option<Plan>) -> Option<&mut Option<Plan>> {
        Some(place)
    }

    fn exhausted() -> Option<O::Value> {
        O::exhausted()
    }
}

/// The content of a node: the closure, the result, or neither. Each variant has the state, which fits beside the enum's
/// tag and so takes no extra space.
enum Stored<B: Body> {
    Body(Stage, B),
    Value(Stage, B::Value),
    Nothing(Stage),
}

impl<B: Body> Stored<B> {
    #[inline]
    fn stage(&mut self) -> &mut Stage {
        match self {
            Self::Body(stage, _) | Self::Value(stage, _) | Self::Nothing(stage) => stage,
        }
    }
}

/// The place of a node's content. A plain task has no room for [`Extras`]. When the task first needs extras, its
/// content moves into a box with them, and the slot holds the box.
enum Slot<B: Body> {
    Plain(Stored<B>),
    Extended(Box<Extended<B>>),
}

struct Extended<B: Body> {
    extras: Box<Extras>,
    content: Stored<B>,
}

impl<B: Body> Slot<B> {
    #[inline]
    fn split(&mut self) -> (&mut Stored<B>, Option<&mut Extras>) {
        match self {
            Self::Plain(content) => (content, None),
            Self::Extended(extended) => (&mut extended.content, Some(&mut extended.extras)),
        }
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, extras: Box<Extras>) {
        let content = mem::replace(self.split().0, Stored::Nothing(Stage::RUNNING));
        let extended = Self::Extended(Box::new(Extended { extras, content }));
        mem::forget(mem::replace(self, extended));
    }

    #[inline]
    fn keep(&mut self, fresh: Option<Box<Extras>>) {
        if let Some(extras) = fresh {
            self.extend(extras);
        }
    }
}

/// What a node's lock protects: the content, any extras and, if the task is periodic, the plan.
pub(crate) struct Cell<B: Body> {
    slot: Slot<B>,
    plan: B::Place,
}

impl<B: Body> Content for Cell<B> {
    fn open(&mut self) -> Parts<'_> {
        let (content, extras) = self.slot.split();
        Parts::new(*content.stage(), extras, B::plan(&mut self.plan))
    }

    fn close(&mut self, Decided { stage, fresh }: Decided) {
        *self.slot.split().0.stage() = stage;
        self.slot.keep(fresh);
    }
}

pub(crate) struct Node<B: Body>(Mutex<Cell<B>, { rank::OUTERMOST }>);

impl<B: Body> Node<B> {
    #[inline]
    pub(super) fn new(body: B, plan: B::Place) -> Self {
        let slot = Slot::Plain(Stored::Body(Stage::SCHEDULED, body));
        Self(Mutex::new(Cell { slot, plan }))
    }
}

impl<F, T> Node<OneShot<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    #[inline]
    pub(crate) fn once(closure: F) -> Arc<Self> {
        Arc::new(Self::new(OneShot(closure), ()))
    }
}

impl<F, O> Node<Repeating<F>>
where
    F: FnMut() -> O + Send + 'static,
    O: Outcome,
{
    /// Makes a task that runs `closure` repeatedly. The caller still has to give it a plan.
    #[inline]
    pub(crate) fn repeated(closure: F) -> Arc<Self> {
        Arc::new(Self::new(Repeating(closure), None))
    }
}

struct Loan<B: Body> {
    body: Option<B>,
    value: Option<B::Value>,
}

impl<B: Body> Lent for Loan<B> {
    fn run(&mut self) -> RunReport {
        B::run(&mut self.body, &mut self.value)
    }

    fn exhaust(&mut self) -> bool {
        self.value = B::exhausted();
        self.value.is_some()
    }

    fn drop_body(&mut self) {
        drop(self.body.take());
    }

    fn drop_value(&mut self) -> Option<Failure> {
        let failure = self.value.as_ref().and_then(failure_of);
        drop(self.value.take());
        failure
    }
}

impl<B: Body> Node<B> {
    /// Calls `decide` and then, under the same lock, `carry_out`, which moves the content as decided.
    #[inline(always)]
    fn decide<D, R>(
        &self,
        decide: impl FnOnce(&mut Parts<'_>) -> D,
        carry_out: impl FnOnce(D, Stage, &mut Stored<B>) -> R,
    ) -> R {
        let mut cell = self.0.lock_briefly();
        let Cell { slot, plan } = &mut *cell;
        let (content, extras) = slot.split();
        let mut parts = Parts::new(*content.stage(), extras, B::plan(plan));
        let decision = decide(&mut parts);
        let Decided { stage, fresh } = parts.decided();
        let moved = carry_out(decision, stage, content);
        slot.keep(fresh);
        moved
    }

    /// Takes out what the node holds, if `is_taken` returns `true`. Writes the state back in any case.
    #[inline(always)]
    fn take_if(&self, is_taken: impl FnOnce(&mut Parts<'_>) -> bool) -> Stored<B> {
        self.decide(is_taken, |is_taken, stage, content| {
            let mut taken = Stored::Nothing(stage);
            if is_taken {
                mem::swap(content, &mut taken);
            } else {
                *content.stage() = stage;
            }
            taken
        })
    }

    // Not inlined, so that nodes of the same layout share the code.
    #[inline(never)]
    fn start(&self, call: &mut Call<'_>) -> Option<B> {
        match self.take_if(|parts| call.start(parts)) {
            Stored::Body(_, body) => Some(body),
            _ => None,
        }
    }

    /// Publishes the outcome, and puts the closure or result into the node. Returns `false` if the node keeps neither.
    #[inline(never)]
    fn put(&self, call: &mut Call<'_>, loan: &mut Loan<B>) -> bool {
        let publish = |parts: &mut Parts<'_>| call.publish(parts);
        self.decide(publish, |keeps, stage, content| {
            let kept = match keeps {
                ToStore::Body => loan.body.take().map(|body| Stored::Body(stage, body)),
                ToStore::Value => loan.value.take().map(|value| Stored::Value(stage, value)),
                ToStore::Nothing => None,
            };
            let is_kept = kept.is_some();
            debug_assert!(matches!(content, Stored::Nothing(_)), "a worker has the closure");
            // An assignment would check at each run whether there is something to drop.
            mem::forget(mem::replace(content, kept.unwrap_or(Stored::Nothing(stage))));
            is_kept
        })
    }
}

impl<B: Body> Payload for Node<B> {
    fn cell(&self) -> &TaskLock<dyn Content> {
        &self.0
    }

    fn call(&self, call: &mut Call<'_>) {
        let body @ Some(_) = self.start(call) else { return };
        let mut loan = Loan::<B> { body, value: None };
        B::carry_out(call, &mut loan);
        if !self.put(call, &mut loan) {
            call.release(&mut loan);
        }
    }

    fn end(&self, end: &mut End<'_>) {
        let mut taken = Some(self.take_if(|parts| end.decide(parts)));
        if !needs_drop::<Stored<B>>() && !is_result::<B::Value>() && !B::ACTS_UNRUN {
            return end.release_without_drop();
        }
        end.release(&mut || match taken.take()? {
            Stored::Value(_, value) => failure_of(&value),
            Stored::Body(_, body) => {
                body.will_not_run();
                None
            }
            Stored::Nothing(_) => None,
        });
    }

    fn claim(&self, claiming: &mut Claiming<'_>) {
        if let Stored::Value(_, value) = self.take_if(|parts| claiming.decide(parts)) {
            if let Some(place) = claiming.place.downcast_mut::<Option<B::Value>>() {
                *place = Some(value);
            }
        }
    }

    fn is_periodic(&self) -> bool {
        size_of::<B::Place>() > 0
    }
}
