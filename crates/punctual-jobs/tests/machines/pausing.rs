//! A kind that is paused, on several machines.

use std::{collections::BTreeSet, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobFilter, JobStage};

use crate::{
    kinds::{Rationed, Work},
    machine::{beats, drained, sender, start, start_that_polls},
    support::{server::Server, wait_until},
};

/// Of a kind with a limit and of one without, with ordering keys and limit keys and without: none begins on any machine, a machine that
/// is started meanwhile included, and all run once when the kinds are resumed. The machine that polls seldom is told.
#[test]
fn a_pause_holds_on_all_machines_and_loses_no_job() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let first = start(&server, 0);
    for kind in ["work", "rationed"] {
        queue.pause_kind(kind, None).unwrap();
    }
    let second = start_that_polls(&server, 1, Duration::from_secs(3600));
    for number in 0..40 {
        let work = queue.now(Work { number, millis: 0 });
        match number % 4 {
            0 => work.enqueue(),
            1 => work.ordering_key(format!("line {number}")).enqueue(),
            2 => work.limit_key(format!("tenant {number}")).enqueue(),
            _ => {
                let rationed = queue.now(Rationed { number, millis: 0 });
                let rationed = rationed.limit_key(format!("tenant {number}"));
                if number % 8 == 3 {
                    rationed.enqueue()
                } else {
                    rationed.ordering_key("line").enqueue()
                }
            }
        }
        .unwrap();
    }
    // Both machines look at them meanwhile, the first one by its poll as well.
    beats(&server, first.process(), 8);
    let paused = queue.list(&JobFilter { paused: true, ..JobFilter::default() }).unwrap();
    assert_eq!(paused.len(), 40);
    assert!(paused.iter().all(|job| job.stage == JobStage::Waiting && job.attempts == 0));
    // A kind that is not paused, and one whose pause has ended by itself, run.
    queue.pause_kind("tick", Some(Duration::from_millis(1).into())).unwrap();
    wait_until("that pause ends", || {
        queue.counts().unwrap().iter().all(|kind| kind.kind != "tick")
    });
    for kind in ["work", "rationed"] {
        assert!(queue.resume_kind(kind).unwrap());
    }
    drained(&server);
    let said = [first, second].into_iter().flat_map(|machine| machine.end());
    let mut ran = Vec::new();
    for said in said.filter(|said| said.word == "ran" || said.word == "rationed") {
        ran.push(said.numbers[0]);
    }
    assert_eq!(ran.len(), 40);
    assert_eq!(ran.into_iter().collect::<BTreeSet<_>>().len(), 40);
}
