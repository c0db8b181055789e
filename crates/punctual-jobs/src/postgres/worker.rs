//! The worker: it claims jobs for the slots that are free, and has them run.
//!
//! It looks when it is woken: by a notification of the server's that a job is due or an ordering key is free, by a
//! timer for a job that this machine has sent, by the poll, and by the end of a run if the last look has filled all
//! slots. One look claims for all slots that are free.
//!
//! Jobs with an ordering key and jobs without are claimed by two statements. Which of them is asked first changes
//! from look to look, and so does which name comes first, and which ordering key: a backlog of one kind does not
//! keep the others away.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{self, UnboundedSender},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout_at},
};
use tokio_postgres::{Row, error::SqlState, types::Type};

use super::{
    claims::Claimed,
    connection::AskError,
    ending::{self, Ended},
    office::Office,
    running,
    settings::Trouble,
    statements,
};
use crate::job::with_sources;

/// How long the worker waits for more slots to be free, while there is a backlog: one claim for many slots costs
/// less than many for one.
const GATHERING: Duration = Duration::from_millis(1);

/// How often a claim is asked again that another machine has spoiled.
const AGAIN: u32 = 3;

struct Worker {
    office: Arc<Office>,
    /// The kinds that are handled here, the one first that is asked for first.
    names: Vec<&'static str>,
    keys_first: bool,
    /// The ordering key that was served last.
    last_key: String,
    /// Jobs may have become due since the last look.
    marks: bool,
    running: JoinSet<()>,
    tell: UnboundedSender<Ended>,
}

/// Claims and runs until the desk is closed and nothing runs, and all ends are written down.
pub(super) async fn work(office: &Arc<Office>) {
    let (tell, told) = mpsc::unbounded_channel();
    let worker = Worker {
        office: Arc::clone(office),
        names: office.handled_names(),
        keys_first: false,
        last_key: String::new(),
        marks: true,
        running: JoinSet::new(),
        tell,
    };
    tokio::join!(worker.claim_and_run(), ending::write_down(Arc::clone(office), told));
}

impl Worker {
    async fn claim_and_run(mut self) {
        let office = Arc::clone(&self.office);
        let mut poll = interval(office.settings.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut looks, mut is_full) = (false, false);
        loop {
            tokio::select! {
                biased;
                Some(_) = self.running.join_next() => {
                    if is_full {
                        self.gather().await;
                        looks = true;
                    }
                }
                () = office.stop.cancelled() => {
                    while self.running.join_next().await.is_some() {}
                    return;
                }
                () = office.wake.notified() => (looks, self.marks) = (true, true),
                _ = poll.tick() => (looks, self.marks) = (true, true),
            }
            let free = office.settings.slots.saturating_sub(self.running.len());
            if looks && free > 0 {
                looks = false;
                is_full = self.look(free).await == free;
            }
        }
    }

    /// Waits a moment for half of the slots to be free.
    async fn gather(&mut self) {
        let until = Instant::now() + GATHERING;
        while 2 * self.running.len() > self.office.settings.slots
            && timeout_at(until, self.running.join_next()).await.is_ok()
        {}
    }

    /// Claims jobs for so many slots, and has them run. Returns how many there were.
    async fn look(&mut self, free: usize) -> usize {
        let asked = Instant::now();
        let claimed = match self.claim(free).await {
            Ok(claimed) => claimed,
            Err(error) => {
                self.office.report(Trouble::ServerAway { error: with_sources(&error) });
                return 0;
            }
        };
        // An answer that was under way for so long may be about claims that are lost: they are freed by a heartbeat.
        if asked.elapsed() > self.office.settings.lease / 2 {
            return 0;
        }
        for row in &claimed {
            let (office, tell, job) =
                (Arc::clone(&self.office), self.tell.clone(), claimed_by(row));
            self.running.spawn(async move {
                let how = running::run(office, job.clone()).await;
                // It is listened to for as long as something runs.
                let _ = tell.send(Ended { job, how });
            });
        }
        claimed.len()
    }

    async fn claim(&mut self, free: usize) -> Result<Vec<Row>, AskError> {
        self.names.rotate_left(1);
        self.keys_first = !self.keys_first;
        if self.keys_first {
            let mut claimed = self.claim_first(free).await?;
            claimed.append(&mut self.claim_others(free - claimed.len()).await?);
            Ok(claimed)
        } else {
            let mut claimed = self.claim_others(free).await?;
            claimed.append(&mut self.claim_first(free - claimed.len()).await?);
            Ok(claimed)
        }
    }

    /// Claims jobs without an ordering key.
    async fn claim_others(&self, most: usize) -> Result<Vec<Row>, AskError> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let most = most as i64;
        let params = [
            (&self.names as _, Type::TEXT_ARRAY),
            (&self.office.worker as _, Type::TEXT),
            (&most as _, Type::INT8),
        ];
        self.office.claiming.ask(statements::CLAIM, &params).await
    }

    /// Claims the first jobs of ordering keys.
    async fn claim_first(&mut self, most: usize) -> Result<Vec<Row>, AskError> {
        if most == 0 {
            return Ok(Vec::new());
        }
        while std::mem::take(&mut self.marks) {
            let marked = self.office.claiming.ask(statements::MARK_DUE, &[]).await?;
            self.marks = marked.len() == statements::MARKED_AT_MOST;
        }
        let mut claimed = Vec::new();
        let mut tries = 0;
        loop {
            let more = (most - claimed.len()) as i64;
            let params = [
                (&self.names as _, Type::TEXT_ARRAY),
                (&self.office.worker as _, Type::TEXT),
                (&more as _, Type::INT8),
                (&self.last_key as _, Type::TEXT),
            ];
            let rows = match self.office.claiming.ask(statements::CLAIM_FIRST, &params).await {
                Ok(rows) => rows,
                Err(error) if error.is(&SqlState::UNIQUE_VIOLATION) && tries < AGAIN => {
                    tries += 1;
                    continue;
                }
                // What was claimed before has to run.
                Err(_) if !claimed.is_empty() => return Ok(claimed),
                Err(error) => return Err(error),
            };
            let began_at_first = self.last_key.is_empty();
            let served = rows.iter().filter_map(|row| row.get::<_, Option<String>>(7)).max();
            claimed.extend(rows);
            if claimed.len() == most {
                self.last_key = served.unwrap_or_default();
                return Ok(claimed);
            }
            // After the last key the first one comes.
            self.last_key.clear();
            if began_at_first {
                return Ok(claimed);
            }
        }
    }
}

fn claimed_by(row: &Row) -> Claimed {
    let count = |column| u32::try_from(row.get::<_, i32>(column)).unwrap_or(0);
    Claimed {
        id: row.get(0),
        claim: row.get(1),
        name: row.get(2),
        payload: row.get(3),
        begun: count(4),
        attempts: count(5),
        key: row.get(6),
    }
}
