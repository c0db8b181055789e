//! The ledger of ticks: each is enqueued once, by whichever machine comes first.
//!
//! A periodic task of the executor runs on every machine, at the moments that its trigger names on the wall
//! clock. At each of these the machine asks for the tick in one statement: the row of the periodic job has the
//! last tick that was taken, and only a later one is. The job is added in the same statement, so a tick that
//! is taken is a job that is stored, and no process can die between.
//!
//! The database's clock decides when a tick has come. A machine whose clock is ahead is told by how much it
//! is too early, and asks again then. If the server cannot be asked, it asks each second for a minute.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use punctual::trigger::Due;
use tokio_postgres::types::Type;

use super::{connection::AskError, engine::PostgresEngine, settings::QueueEvent, statements};
use crate::{OpenError, in_memory::tick_job, job::with_sources, jobs::Periodic, payload::Payload};

/// For how often, and how far apart, a tick is asked for while the server is away.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// The job that each tick enqueues.
struct Ticked {
    name: &'static str,
    row: String,
    payload: Payload,
    ordering_key: Option<String>,
    max_attempts: i32,
}

impl PostgresEngine {
    /// Starts a periodic task. `rows` counts the periodic jobs of each name: each has a row of its own.
    pub(super) fn begin_periodic(
        &self,
        periodic: Periodic,
        rows: &mut HashMap<&'static str, u32>,
    ) -> Result<(), OpenError> {
        let name = periodic.name;
        let payload = periodic.payload.map_err(|error| OpenError::Refused(Box::new(error)))?;
        let new_job = tick_job(name, payload, self.definitions.max_attempts(name));
        let count = rows.entry(name).or_insert(0);
        *count += 1;
        let row = if *count == 1 { name.to_owned() } else { format!("{name} #{count}") };
        let ticked = Arc::new(Ticked {
            name,
            row,
            payload: new_job.payload,
            ordering_key: new_job.ordering_key,
            max_attempts: i32::try_from(new_job.max_attempts).unwrap_or(i32::MAX),
        });
        let (trigger, tick) = periodic.trigger.ticking();
        let (me, shows) = (self.me.clone(), tick.clone());
        let body = move || {
            if let (Some(engine), Some(time)) = (me.upgrade(), shows.wall()) {
                let (asks, ticked) = (Arc::clone(&engine), Arc::clone(&ticked));
                engine.runtime.spawn(async move { asks.take(&ticked, time).await });
            }
        };
        let task = self.executor.task().name(name).repeat(trigger, body);
        let task = task.map_err(|error| OpenError::Refused(error.to_string().into()))?;
        let is_on_wall = !matches!(tick.get(), Some(Due::At(_) | Due::OnDemand));
        if is_on_wall {
            self.periodic.lock().push(task.task_handle());
            return Ok(());
        }
        task.cancel();
        Err(OpenError::NotOnWallClock { name })
    }

    /// Takes a tick and enqueues its job, unless another machine has done so.
    async fn take(&self, ticked: &Ticked, time: SystemTime) {
        let mut last_error = None;
        for _ in 0..TRIES {
            if self.claims.is_closing() {
                return;
            }
            match self.ask_for(ticked, time).await {
                Ok(None) => return,
                Ok(Some(early)) => tokio::time::sleep(early).await,
                Err(error) => {
                    last_error = Some(with_sources(&error));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if let Some(error) = last_error {
            self.report(QueueEvent::TickNotSent { name: ticked.name, error });
        }
    }

    /// Returns by how much it was too early; `None` if the tick is taken now, by us or by another machine.
    async fn ask_for(
        &self,
        ticked: &Ticked,
        time: SystemTime,
    ) -> Result<Option<Duration>, AskError> {
        let params = [
            (&ticked.row as _, Type::TEXT),
            (&time as _, Type::TIMESTAMPTZ),
            (&ticked.name as _, Type::TEXT),
            (&ticked.payload as _, Type::TEXT),
            (&ticked.ordering_key as _, Type::TEXT),
            (&ticked.max_attempts as _, Type::INT4),
        ];
        let rows = self.verbs.ask(statements::TICK, &params).await?;
        let early: f64 = rows.first().map_or(0.0, |row| row.get(0));
        // In steps of an hour at most, in case that one of the clocks is set.
        Ok((early > 0.0).then(|| Duration::from_secs_f64(early.min(3600.0))))
    }
}
