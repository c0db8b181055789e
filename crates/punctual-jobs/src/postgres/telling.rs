//! Telling of discarded jobs: to the program's callback, once for each over all machines.
//!
//! The statement that discards a job marks it as untold. A worker that handles jobs asks for those that are its own or
//! a dead worker's ([`TELL`](statements::TELL)), calls the callback on the executor, and writes down that it has
//! ([`TOLD`](statements::TOLD)). So nothing depends on an answer that arrives: what was discarded and not told is in
//! the table, and whatever went wrong is made up for at the next heartbeat.
//!
//! * **Once**: a job that this worker is telling of is in a map until it is written down that it was told. The
//!   questions follow each other ([`turn`](super::told::Telling::turn)), so the answer to one is known before the next is asked.
//! * **At least once**: a process that dies between the callback and the note leaves a job that another one tells of
//!   again. The same happens if its lease is over meanwhile.
//! * **Never for a job that was cancelled** or replaced: such a job is removed when its attempt ends.
//!
//! An executor that takes no task has the job wait for the next heartbeat. A shutdown waits for the callbacks, within
//! its limits; what is left is another machine's, or told at the next start.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;

use super::{
    connection::{AskError, Param},
    dead::Dead,
    machine::Machine,
    refused::Picks,
    statements,
    told::Told,
};
use crate::{
    DiscardedJob, JobId,
    job::payload::Payload,
    queue::{engine::Engine, handling::Handling},
};

const TELL: Picks = (statements::TELL, "the telling of the job");
const TOLD: Picks = (statements::TOLD, "the note that was told of the job");

/// The task that calls the callback.
struct Call {
    machine: Arc<Machine>,
    id: i64,
    attempts: i32,
    has_begun: bool,
}

impl Machine {
    /// Writes down which discarded jobs were told, and tells of the others.
    pub(super) async fn tell_of_discarded(&self) -> Result<(), AskError> {
        let _turn = self.telling.turn.lock().await;
        self.write_told().await?;
        let Dead { workers, untils } = self.watch.lock().dead();
        let until = Instant::now() + self.settings.heartbeat / 4;
        loop {
            let known: Vec<i64> = self.telling.jobs.lock().keys().copied().collect();
            let first: [Param<'_>; 4] = [&self.worker, &workers, &untils, &known];
            let (rows, is_all) = self.ask_in_parts(&self.pulse, TELL, (&first, &[]), 100).await?;
            rows.iter().for_each(|row| self.begin_telling(discarded(row)));
            // After many refused rows the next heartbeat tells of the others.
            if is_all || Instant::now() > until {
                return Ok(());
            }
        }
    }

    /// Tells of the untold discarded jobs, soon. What fails is made up for by a heartbeat.
    pub(super) fn tell_soon(&self) {
        if let Some(me) = self.me.upgrade() {
            self.runtime.spawn(async move {
                let _ = me.tell_of_discarded().await;
            });
        }
    }

    /// Tells of the untold discarded jobs, and waits until it is written down, for as long as a verb may take.
    pub(super) async fn finish_telling(&self) {
        let finish = async {
            self.tell_of_discarded().await?;
            while self.telling.jobs.lock().values().any(|told| !told.is_called) {
                self.telling.ended.notified().await;
            }
            let _turn = self.telling.turn.lock().await;
            self.write_told().await
        };
        // Another machine tells of the jobs that are left by then.
        let _ = timeout_at(Instant::now() + self.settings.request_timeout, finish).await;
    }

    /// The caller has the turn.
    async fn write_told(&self) -> Result<(), AskError> {
        let (told, attempts) = self.telling.told();
        if told.is_empty() {
            return Ok(());
        }
        let forget = |written: Vec<Row>| {
            let mut jobs = self.telling.jobs.lock();
            for row in written {
                jobs.remove(&row.get(0));
            }
        };
        let first: [Param<'_>; 3] = [&self.worker, &told, &attempts];
        self.ask_all(TOLD, &first, told.len(), forget).await
    }

    fn begin_telling(&self, discarded: DiscardedJob) {
        let (id, Some(machine)) = (discarded.id.0, self.me.upgrade()) else { return };
        let attempts = i32::try_from(discarded.attempts).unwrap_or(i32::MAX);
        self.telling.jobs.lock().insert(id, Told { attempts, is_called: false });
        let call = Call { machine, id, attempts, has_begun: false };
        let task = self.executor.task().abort_if_rejected();
        // The task of a refusal is dropped here, and gives the job back.
        let _ = task.execute(move || call.run(&discarded));
    }
}

impl Call {
    fn run(mut self, discarded: &DiscardedJob) {
        // A callback that panics was called: it is not called again.
        self.has_begun = true;
        let machine = Arc::clone(&self.machine) as Arc<dyn Engine>;
        let _handling = Handling::begin(&machine);
        self.machine.definitions.tell_discarded(discarded);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let telling = &self.machine.telling;
        if self.has_begun {
            telling.jobs.lock().insert(self.id, Told { attempts: self.attempts, is_called: true });
            self.machine.tell_soon();
        } else {
            telling.jobs.lock().remove(&self.id);
        }
        telling.ended.notify_one();
    }
}

fn discarded(row: &Row) -> DiscardedJob {
    DiscardedJob {
        id: JobId(row.get(0)),
        name: row.get(1),
        payload: row.get::<_, Payload>(2).to_text(),
        attempts: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
        last_error: row.get(4),
    }
}
