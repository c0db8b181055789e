//! The queue on PostgreSQL, in real time: each case has a database of its own, on one server.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobQueue, Jobs, OpenError, Postgres, PostgresQueue, ShutdownReport};

use crate::{
    support::{LONG, Patience, connected, opened, server::Server},
    world::{SHORT, Scene, World},
};

/// A queue with short times.
pub(crate) struct InTables {
    queue: Option<PostgresQueue>,
    scene: Scene,
    _executor: ScheduledThreadPoolExecutor,
}

/// Returns the address of a database that has the tables and nothing in them.
pub(crate) fn new_database() -> String {
    static TEMPLATE: OnceLock<()> = OnceLock::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = Server::shared();
    TEMPLATE.get_or_init(|| {
        server.sql("create database ready");
        let executor = ScheduledThreadPoolExecutor::new(1);
        opened(|| Postgres::on(&executor, url_of(server, "ready")).migrate());
    });
    let name = format!("case_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    // The connections of the migration may still be about to end.
    crate::support::wait_until("the template is free", || {
        server.value("select count(*) from pg_stat_activity where datname = 'ready'") == "0"
    });
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    server.sql(&format!("create database {name} template ready"));
    url_of(server, &name)
}

fn url_of(server: &Server, name: &str) -> String {
    server.url().replace("dbname=postgres", &format!("dbname={name}"))
}

/// A queue with times that suit a test: it looks often, and nothing of it ends because the machine stands still.
pub(crate) fn quick(executor: &ScheduledThreadPoolExecutor, url: String) -> Postgres {
    Postgres::on(executor, url)
        .poll(Duration::from_millis(50))
        .history(Duration::from_secs(3600))
        .lease(LONG)
        .heartbeat(Duration::from_millis(150))
        .request_timeout(LONG)
}

impl World for InTables {
    const SPANS: &[Duration] =
        &[SHORT, Duration::from_millis(600), Duration::from_secs(4), Duration::from_secs(24)];

    fn try_open(jobs: impl Fn(&Scene) -> Jobs) -> Result<Self, OpenError> {
        let executor = ScheduledThreadPoolExecutor::new(4);
        let scene = Scene::on(&executor);
        let url = new_database();
        // Only a server that is silent is asked again.
        let queue = opened(|| match jobs(&scene).open(quick(&executor, url.clone())) {
            Err(error @ OpenError::Server(_)) => Err(error),
            opened => Ok(opened),
        })?;
        Ok(Self { queue: Some(connected(queue)), scene, _executor: executor })
    }

    fn queue(&self) -> &JobQueue {
        self.queue.as_ref().unwrap()
    }

    fn scene(&self) -> &Scene {
        &self.scene
    }

    fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let mut patience = Patience::new();
        while !condition() {
            assert!(patience.lasts(), "no {what}: {:?}", self.log().lines());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport {
        self.queue().shutdown_within(Grace::patience(patience).then(grace)).unwrap()
    }
}

impl Drop for InTables {
    fn drop(&mut self) {
        self.scene.gate.cancel();
        let _ = self.queue().shutdown_within(Grace::patience(Duration::from_secs(5)));
    }
}
