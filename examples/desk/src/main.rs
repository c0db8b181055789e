//! Serves the page for a queue of its own, with some jobs to look at: `cargo run --manifest-path examples/desk/Cargo.toml`. With
//! `DATABASE_URL=…` before it the queue is on PostgreSQL, and has schedules as well.

use std::{error::Error, time::Duration};

use desk::desk;
use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{
    InMemory, Job, JobError, JobQueue, JobRun, Jobs, Postgres, PostgresQueue, Schedule,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}
impl Job for Mail {
    const NAME: &'static str = "mail";
}

#[derive(Serialize, Deserialize)]
struct Export {}
impl Job for Export {
    const NAME: &'static str = "export";
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(4);
    let jobs = Jobs::new()
        .on(|_: &JobRun, mail: Mail| match mail.to.as_str() {
            "nobody" => Err(JobError::new("no such mailbox: <nobody@example.org>")),
            _ => Ok(()),
        })
        .max_attempts::<Mail>(2)
        .backoff::<Mail>(punctual::Backoff::constant(Duration::from_secs(2)))
        .on(|run: &JobRun, _: Export| Ok(run.token().sleep(Duration::from_secs(60))?));
    let keep = Duration::from_secs(86_400);
    let queue: JobQueue = match std::env::var("DATABASE_URL") {
        Ok(url) => jobs.open(Postgres::on(&executor, url).history(keep))?.into(),
        Err(_) => jobs.open(InMemory::on(&executor).history(keep))?,
    };
    for to in ["ann", "bob", "nobody"] {
        queue.now(Mail { to: to.into() }).enqueue()?;
        queue
            .after(Duration::from_secs(600), Mail { to: to.into() })
            .key(format!("mail/{to}"))
            .enqueue()?;
    }
    queue.now(Export {}).unique("export").enqueue()?;
    if let Some(queue) = PostgresQueue::of(&queue) {
        let schedules = queue.schedules();
        schedules
            .put(Schedule::cron("nightly", "0 3 * * *", "Europe/Paris", &Export {})?)
            .call()?;
        schedules
            .put(Schedule::every("news", Duration::from_secs(30), &Mail { to: "all".into() }))
            .call()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
        println!("http://{}", listener.local_addr()?);
        Ok(axum::serve(listener, desk(queue)).await?)
    })
}
