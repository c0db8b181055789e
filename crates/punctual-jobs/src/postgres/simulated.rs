//! A queue on a simulated database: the engine without a thread of its own, on a runtime that the simulation drives.

use std::{sync::Arc, time::Duration};

use punctual::Handle;
use tokio::{runtime, time::sleep};

use super::{engine::PostgresEngine, schedules::Declared, settings::Postgres};
use crate::{
    JobQueue, OpenError, OpenQueue,
    jobs::{Opening, sealed::Sealed},
    replicas::Network,
};

/// The engine on which a queue of the simulation is opened.
pub(crate) struct Simulated {
    pub(crate) settings: Postgres,
    /// Notes the ticks of schedules.
    pub(crate) planner: Handle,
    pub(crate) runtime: runtime::Handle,
    pub(crate) network: Arc<Network>,
}

impl Sealed for Simulated {}

impl OpenQueue for Simulated {
    fn open_queue(self, opening: Opening) -> Result<JobQueue, OpenError> {
        let Self { settings, planner, runtime, network } = self;
        let (executor, mut settings) = settings.checked()?;
        settings.address.simulated = Some(network);
        let definitions = opening.definitions;
        let declared = Declared::of(opening.declared, |kind, default| {
            definitions.max_attempts(kind, default)
        })?;
        let engine =
            PostgresEngine::new(executor, settings, &definitions, declared, runtime.clone());
        let queue = JobQueue::owning(Arc::clone(&engine) as _, definitions);
        let mut periodic = opening.periodic.into_iter();
        periodic.try_for_each(|periodic| engine.begin_periodic(&planner, periodic))?;
        runtime.spawn(async move {
            // A real queue would not open, and its process would be started again.
            while engine.declare().await.is_err() || engine.beat().await.is_err() {
                sleep(Duration::from_millis(100)).await;
            }
            engine.run().await;
        });
        Ok(queue)
    }
}
