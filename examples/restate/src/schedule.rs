//! A schedule, as a virtual object of Restate.
//!
//! **Why no tick is lost:** the invocation of a tick sends the next one before it runs the body. Restate repeats the invocation
//! until it has ended, so the next tick is sent whatever becomes of the body.
//!
//! **Why no tick comes twice:** the moment of the next tick is recorded before it is sent, so each attempt of an invocation sends
//! the same one, and Restate takes an invocation with the same key once. A schedule that is put again with the same plan is left
//! alone. One that is changed has another revision, and a tick of an earlier revision ends at once.

#![allow(missing_docs, reason = "the attribute of the SDK makes methods without any")]

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use restate_sdk::prelude::*;

use crate::{Bodies, Plan, Run, Status, Tick};

/// Where the state of a schedule is kept.
const STATE: &str = "state";

/// How often a body that fails is tried, before its tick counts as failed.
const ATTEMPTS: u32 = 5;

/// A schedule, whose name is the key of the object.
#[derive(Clone, Debug)]
pub struct Schedule {
    bodies: Arc<Bodies>,
}

// Unless it is told otherwise, Restate pauses an invocation after seventy attempts, about an hour, until a person resumes it. A
// schedule waits for its service however long that is away.
#[object(invocation_retry_policy(
    initial_interval = "100ms",
    factor = 2.0,
    max_interval = "10s",
    max_attempts = 4_000_000_000,
    on_max_attempts = "pause",
))]
impl Schedule {
    /// Starts or changes the schedule. With the plan that it has already, nothing happens: each service may put its schedules
    /// whenever it starts.
    #[handler]
    async fn put(&self, ctx: ObjectContext<'_>, plan: Json<Plan>) -> HandlerResult<()> {
        let Json(plan) = plan;
        let before = state(ctx.get(STATE).await?);
        if before.plan.as_ref() == Some(&plan) {
            return Ok(());
        }
        if !self.bodies.has(&plan.body) {
            return Err(refused(format!("this service has no body {:?}", plan.body)).into());
        }
        let now = self.bodies.now();
        let first = plan.next_after(now, now).map_err(|error| refused(error.to_string()));
        let first = async || Ok(Json(seconds(first?)));
        let Json(first) = ctx.run(first).name("first").await?;
        let after = before.change(Some(plan));
        send(&ctx, after.revision, first);
        ctx.set(STATE, Json(after));
        Ok(())
    }

    /// Ends the schedule. A body that is running has ended before.
    #[handler]
    async fn remove(&self, ctx: ObjectContext<'_>) -> HandlerResult<Json<Status>> {
        let before = state(ctx.get(STATE).await?);
        ctx.set(STATE, Json(before.change(None)));
        Ok(Json(before))
    }

    /// Returns what is known of the schedule, also while a body runs.
    #[handler]
    async fn status(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<Status>> {
        Ok(Json(state(ctx.get(STATE).await?)))
    }

    /// A moment of the schedule has come. Only a schedule itself calls this.
    #[handler(ingress_private)]
    async fn tick(&self, ctx: ObjectContext<'_>, tick: Json<Tick>) -> HandlerResult<()> {
        let Json(tick) = tick;
        let mut status = state(ctx.get(STATE).await?);
        let Some(plan) = status.plan.clone().filter(|_| status.revision == tick.revision) else {
            return Ok(());
        };
        let run = Run { key: tick.key(), moment: tick.moment };
        let next = async || Ok(Json(seconds(plan.next_after(run.at(), self.bodies.now())?)));
        let Json(next) = ctx.run(next).name("next").await?;
        send(&ctx, tick.revision, next);
        let body = self.bodies.run(&plan.body, run.clone());
        let ended = ctx.run(async || Ok(body.await?)).name("body").retry_policy(retries()).await;
        status.count(tick.moment, ended.is_err());
        ctx.set(STATE, Json(status));
        Ok(())
    }
}

impl Schedule {
    /// Returns the object that runs these bodies, to be bound to an endpoint.
    pub fn new(bodies: Bodies) -> Self {
        Self { bodies: Arc::new(bodies) }
    }
}

fn state(stored: Option<Json<Status>>) -> Status {
    stored.map(|Json(status)| status).unwrap_or_default()
}

fn seconds(moment: Option<SystemTime>) -> Option<u64> {
    Some(moment?.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// The answer to a plan with which a schedule would never run.
fn refused(why: String) -> TerminalError {
    TerminalError::new_with_code(400, why)
}

/// Sends the tick of that moment, which Restate holds until then. The delay is computed anew in each attempt, and Restate takes
/// the one of the first that it records.
fn send(ctx: &ObjectContext<'_>, revision: u64, moment: Option<u64>) {
    let Some(moment) = moment else { return };
    let tick = Tick { schedule: ctx.key().to_owned(), revision, moment };
    let due = UNIX_EPOCH + Duration::from_secs(moment);
    let delay = due.duration_since(punctual::Clock::system().wall_time()).unwrap_or_default();
    let key = tick.key();
    let object = ctx.object_client::<ScheduleClient<'_>>(ctx.key());
    let _ = object.tick(Json(tick)).idempotency_key(key).send_after(delay);
}

fn retries() -> RunRetryPolicy {
    let first = Duration::from_millis(100);
    RunRetryPolicy::new().initial_delay(first).exponentiation_factor(3.0).max_attempts(ATTEMPTS)
}
