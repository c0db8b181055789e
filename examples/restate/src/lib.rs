//! Schedules that outlive every process: [Restate](https://restate.dev) keeps them, and punctual says when they run and runs them.
//!
//! Restate is a server of its own that records what a handler has done. It has durable delays and no calendars: a moment such
//! as "nine in Paris, from Monday to Friday" has to come from the program. Here it comes from a [`Cron`](punctual::trigger::Cron).
//!
//! * Each schedule is a virtual object, [`Schedule`], whose key is its name. Restate keeps its state, and runs one handler of it
//!   at a time.
//! * Each tick is an invocation that is due at its moment. It computes the moment of the next tick from its own, in a step that
//!   Restate records, and sends that tick before it runs the body.
//! * The body is a closure in the program, and runs on a punctual executor: [`Bodies`].
//! * The key of the tick ([`Tick::key`]) is the idempotency key of its invocation, so a tick that is sent twice is one.
//!
//! # What holds, and what does not
//!
//! Each tick is counted once, and none is lost, while the server and the service are killed: that is tested. A body may run
//! twice for one tick, because its end has to be recorded and the service may be killed before. Such a body has the same key,
//! by which the receiver of its effect recognises it.

mod bodies;
mod plan;
mod schedule;
mod status;

pub use self::{
    bodies::{Bodies, BodyError, Run},
    plan::{Missed, Plan},
    schedule::{Schedule, ScheduleClient},
    status::{Status, Tick},
};
