//! The queue on PostgreSQL, in real time: each case has a database of its own, on one server.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobQueue, Jobs, OpenError, Postgres, ShutdownReport};

use crate::{
    support::{LIMIT, server::Server},
    world::{Scene, World},
};

/// A queue with short times.
pub(crate) struct InTables {
    queue: Option<JobQueue>,
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
        Postgres::on(&executor, url_of(server, "ready")).migrate().unwrap();
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

/// A queue with times that suit a test.
pub(crate) fn quick(executor: &ScheduledThreadPoolExecutor, url: String) -> Postgres {
    Postgres::on(executor, url)
        .poll(Duration::from_millis(50))
        .history(Duration::from_secs(3600))
        .lease(Duration::from_secs(4))
        .heartbeat(Duration::from_millis(150))
        .request_timeout(Duration::from_secs(30))
}

impl World for InTables {
    fn try_open(jobs: impl FnOnce(&Scene) -> Jobs) -> Result<Self, OpenError> {
        let executor = ScheduledThreadPoolExecutor::new(4);
        let scene = Scene::on(&executor);
        let queue = jobs(&scene).open(quick(&executor, new_database()))?;
        Ok(Self { queue: Some(queue), scene, _executor: executor })
    }

    fn queue(&self) -> &JobQueue {
        self.queue.as_ref().unwrap()
    }

    fn scene(&self) -> &Scene {
        &self.scene
    }

    fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !condition() {
            assert!(Instant::now() < deadline, "no {what}: {:?}", self.log().lines());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport {
        self.queue().shutdown_within(patience, grace).unwrap()
    }
}

impl Drop for InTables {
    fn drop(&mut self) {
        self.scene.gate.cancel();
        let _ = self.queue().shutdown_within(Duration::from_secs(5), Duration::ZERO);
    }
}
