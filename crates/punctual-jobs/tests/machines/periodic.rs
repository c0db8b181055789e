//! Ticks over several machines.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobRun, Jobs, aligned};

use crate::{kinds::Tick, machine::postgres, size, support::server::Server};

#[test]
fn each_tick_is_sent_once_over_all_machines() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(6);
    let period = Duration::from_millis(250);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let queues: Vec<_> = (0..3)
        .map(|_| {
            let runs = Arc::clone(&runs);
            let jobs = Jobs::new().on(move |run: &JobRun, _: Tick| {
                runs.lock().unwrap().push((run.id(), SystemTime::now()));
                Ok(())
            });
            jobs.every(aligned(period), Tick {}).open(postgres(&executor, &server.url()).slots(2))
        })
        .map(Result::unwrap)
        .collect();
    std::thread::sleep(size(Duration::from_secs(4), Duration::from_secs(60)));
    drop(queues);
    let mut runs = std::mem::take(&mut *runs.lock().unwrap());
    runs.sort_by_key(|(_, at)| *at);
    let slot = |at: &SystemTime| at.duration_since(UNIX_EPOCH).unwrap().as_millis() / 250;
    let mut slots = HashMap::new();
    for (_, at) in &runs {
        *slots.entry(slot(at)).or_insert(0) += 1;
    }
    let span = slot(&runs[runs.len() - 1].1) - slot(&runs[0].1) + 1;
    // A run may be late by a period, so single slots say little; the sum does not lie.
    assert!(runs.len() as u128 <= span + 1, "{} runs in {span} periods", runs.len());
    assert!(runs.len() as u128 + 3 >= span, "{} runs in {span} periods", runs.len());
    assert_eq!(server.value("select count(*) from punctual.job_tick"), "1");
}
