//! A queue on PostgreSQL, whose jobs others run: this program has no handlers, and claims nothing.

use std::error::Error;

use punctual::Handle;
use punctual_jobs::JobQueue;

/// Opens the queue. Its tables are made if there are none.
#[cfg(feature = "postgres")]
pub(crate) fn open(executor: &Handle, url: &str) -> Result<JobQueue, Box<dyn Error + Send + Sync>> {
    use std::time::Duration;

    use punctual_jobs::{Jobs, Postgres};

    let engine = Postgres::on(executor, url).request_timeout(Duration::from_secs(5));
    // The page says when there is no answer.
    Ok(Jobs::new().open(engine.on_event(|_| ()))?.into())
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn open(_: &Handle, _: &str) -> Result<JobQueue, Box<dyn Error + Send + Sync>> {
    Err("a database needs a program that was built with `--features postgres`".into())
}
