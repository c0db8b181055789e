//! Keeping the engine at work, and watching its claims.
//!
//! The engine stops with an error as soon as one of its statements fails, after the jobs that it has claimed
//! have ended. The supervisor starts another one, after a pause that doubles from 50 ms to 5 s and is short
//! again when an engine has lasted for ten seconds. The old one may still wait for a handler that takes long:
//! when it claims nothing although jobs are due and slots are free, it is left to end by itself, and another
//! one begins beside it. Its heartbeat goes on until its last handler has returned.
//!
//! # The watch
//!
//! Once per heartbeat one statement asks which claims stand, and which jobs were cancelled. The lease is
//! counted from before the last question that was answered, so what is believed here to stand is believed by
//! the others, too: they count from a heartbeat that the server has received.

use std::{collections::HashMap, sync::Arc};

use tokio::{
    task::{JoinHandle, JoinSet},
    time::{Duration, Instant, sleep, timeout_at},
};
use tokio_postgres::types::Type;

use super::{engine::Worker, office::Office, settings::Trouble, statements};
use crate::{error::Source, job::with_sources};

const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LASTING: Duration = Duration::from_secs(10);

type Running = JoinHandle<Result<(), Source>>;

/// Keeps an engine at work until the desk is closed, and returns when nothing runs.
pub(super) async fn supervise(office: &Arc<Office>, first: Worker) {
    let watch = tokio::spawn(watch(Arc::clone(office)));
    let mut leaving = JoinSet::new();
    let (mut worker, mut pause) = (Arc::new(first), SHORTEST_PAUSE);
    loop {
        let (begun, runs) = (Instant::now(), Arc::clone(&worker));
        let mut running: Running = tokio::spawn(async move { runs.run().await });
        tokio::select! {
            biased;
            () = office.stop.cancelled() => {
                worker.stop();
                let _ = running.await;
                break;
            }
            result = &mut running => {
                let error = match result {
                    Ok(Ok(())) => "it has ended".to_owned(),
                    Ok(Err(error)) => with_sources(&*error),
                    Err(error) => with_sources(&error),
                };
                office.report(Trouble::EngineStopped { error });
            }
            () = office.restart.notified() => {
                worker.stop();
                leaving.spawn(running);
            }
        }
        if begun.elapsed() > LASTING {
            pause = SHORTEST_PAUSE;
        }
        match another(office, &mut pause).await {
            Some(another) => worker = Arc::new(another),
            None => break,
        }
    }
    while leaving.join_next().await.is_some() {}
    watch.abort();
}

/// Starts another worker, as often as it takes; `None` if the desk is closed.
async fn another(office: &Arc<Office>, pause: &mut Duration) -> Option<Worker> {
    loop {
        tokio::select! {
            biased;
            () = office.stop.cancelled() => return None,
            () = sleep(*pause) => {}
        }
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        match office.new_worker().await {
            Ok(worker) => return Some(worker),
            Err(error) => {
                let error = with_sources(&*error);
                office.report(Trouble::EngineStopped { error });
            }
        }
    }
}

/// What the watch remembers from one look to the next.
#[derive(Default)]
struct Memory {
    looks: u64,
    /// How many runs had begun at the last look.
    begun: u64,
    /// How many looks in a row have found jobs that nobody claims.
    stuck: u32,
}

async fn watch(office: Arc<Office>) {
    let (heartbeat, lease) = (office.settings.heartbeat, office.settings.lease);
    let trusted = lease * 9 / 10;
    let (mut stood, mut memory) = (Instant::now(), Memory::default());
    loop {
        sleep(heartbeat).await;
        let asked = Instant::now();
        if asked > stood + trusted {
            lose_all(&office);
        }
        let deadline = (stood + trusted).max(asked + heartbeat);
        match timeout_at(deadline, look(&office, &mut memory)).await {
            Ok(Ok(())) => stood = asked,
            Ok(Err(error)) => {
                office.report(Trouble::ServerAway { error: with_sources(&error) });
            }
            Err(_) => {
                let error = "there was no answer in time".to_owned();
                office.report(Trouble::ServerAway { error });
            }
        }
    }
}

fn lose_all(office: &Office) {
    let lost = office.claims.lose_all();
    if !lost.is_empty() {
        office.restart.notify_one();
    }
    for id in lost {
        office.report(Trouble::ClaimLost { id });
    }
}

/// Asks the server how the claims stand, and whether anything is left lying.
async fn look(office: &Office, memory: &mut Memory) -> Result<(), tokio_postgres::Error> {
    look_at_claims(office).await?;
    memory.looks += 1;
    if memory.looks % 16 == 0 {
        office.connection.query(statements::FORGET, &[]).await?;
    }
    let (begun, running) = office.claims.counts();
    let has_claimed = std::mem::replace(&mut memory.begun, begun) != begun;
    if has_claimed || running >= office.settings.slots || !is_overdue(office).await? {
        memory.stuck = 0;
        return Ok(());
    }
    memory.stuck += 1;
    if memory.stuck == 3 {
        memory.stuck = 0;
        office.report(Trouble::EngineStuck);
        office.restart.notify_one();
    }
    Ok(())
}

async fn look_at_claims(office: &Office) -> Result<(), tokio_postgres::Error> {
    let claims = office.claims.all_standing();
    if claims.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> = claims.iter().map(|claim| claim.number as i64).collect();
    let ids: Vec<i64> = claims.iter().map(|claim| claim.id).collect();
    let workers: Vec<&str> = claims.iter().map(|claim| &*claim.worker).collect();
    let times: Vec<_> = claims.iter().map(|claim| claim.locked_at).collect();
    let params: super::connection::Params<'_> = &[
        (&numbers, Type::INT8_ARRAY),
        (&ids, Type::INT8_ARRAY),
        (&workers, Type::TEXT_ARRAY),
        (&times, Type::TIMESTAMPTZ_ARRAY),
    ];
    let rows = office.connection.query(statements::WATCH, params).await?;
    let by_number: HashMap<u64, (bool, bool)> =
        rows.iter().map(|row| (row.get::<_, i64>(0) as u64, (row.get(1), row.get(2)))).collect();
    let matching = |is_meant: fn(&(bool, bool)) -> bool| -> Vec<u64> {
        let meant = by_number.iter().filter(|(_, answer)| is_meant(answer));
        meant.map(|(number, _)| *number).collect()
    };
    office.claims.cancel_runs(&matching(|(_, is_cancelled)| *is_cancelled));
    let lost = office.claims.lose(&matching(|(stands, _)| !*stands));
    if !lost.is_empty() {
        office.restart.notify_one();
    }
    for id in lost {
        office.report(Trouble::ClaimLost { id });
    }
    Ok(())
}

/// Returns `true` if jobs of ours have been due for three polls, and could be claimed.
async fn is_overdue(office: &Office) -> Result<bool, tokio_postgres::Error> {
    let kinds = office.definitions.kinds.values().filter(|kind| kind.handler.is_some());
    let names: Vec<&str> = kinds.map(|kind| kind.name).collect();
    let seconds = 3.0 * office.settings.poll.as_secs_f64();
    let params: super::connection::Params<'_> =
        &[(&names, Type::TEXT_ARRAY), (&seconds, Type::FLOAT8)];
    let rows = office.connection.query(statements::OVERDUE, params).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
