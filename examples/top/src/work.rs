//! The jobs that are shown: a queue in memory on the executor of the tasks, which has too much to do now and then.
//!
//! The queue is opened when its page is first looked at, so the page of tasks is without its runs until then.

use std::{error::Error, time::Duration};

use punctual::{Handle, trigger::every};
use punctual_jobs::{InMemory, Job, JobError, JobLimit, JobQueue, JobRun, Jobs};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}
impl Job for Mail {
    const NAME: &'static str = "mail";
}

#[derive(Serialize, Deserialize)]
struct Report {
    month: u32,
}
impl Job for Report {
    const NAME: &'static str = "report";
}

#[derive(Serialize, Deserialize)]
struct Invoice {}
impl Job for Invoice {
    const NAME: &'static str = "invoice";
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Opens the queue and gives it something to do.
pub(crate) fn open(executor: &Handle) -> Result<JobQueue, Box<dyn Error + Send + Sync>> {
    let jobs = Jobs::new()
        .on(|run: &JobRun, mail: Mail| {
            // The first two end one after the other, so that one worker alone asks for the first report.
            if mail.to == "nobody" {
                run.token().sleep(ms(40))?;
                return Err(JobError::new("no such mailbox"));
            }
            Ok(run.token().sleep(ms(30))?)
        })
        .max_attempts::<Mail>(2)
        .backoff::<Mail>(punctual::Backoff::constant(ms(2000)))
        .on(|run: &JobRun, report: Report| {
            Ok(run.token().sleep(ms(1000 * u64::from(report.month)))?)
        })
        .limit::<Report>(JobLimit::at_once(1))
        .on(|_: &JobRun, _: Invoice| Ok(()))
        .every(every(ms(1000)).first_in(ms(1050)), Mail { to: "all".into() })
        // The page shows them.
        .on_discarded(|_| ());
    let queue = jobs.open(InMemory::on(executor))?;
    for to in ["ann", "nobody"] {
        queue.now(Mail { to: to.into() }).enqueue()?;
    }
    for month in [3, 4, 5] {
        queue.now(Report { month }).enqueue()?;
    }
    queue.after(ms(3_600_000), Invoice {}).enqueue()?;
    Ok(queue)
}
