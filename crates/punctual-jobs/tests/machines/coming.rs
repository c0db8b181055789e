//! Jobs that fall due on a machine that has not enqueued them, and does not poll meanwhile.

use std::time::{Duration, SystemTime};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::JobChange;

use crate::{
    kinds::{Rationed, Work},
    machine::{sender, start, start_that_polls},
    support::{replica::Said, server::Server},
};

/// No test waits for it.
const HOUR: Duration = Duration::from_secs(3600);

/// The jobs are sent by a process that runs none, from the latest to the earliest, and before the machine listens.
#[test]
fn a_job_of_another_machine_is_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let work = |number| Work { number, millis: 0 };
    queue.after(Duration::from_secs(3), work(0)).enqueue().unwrap();
    let mut machine = start_that_polls(&server, 0, HOUR);
    let after = |number: i64| Duration::from_millis(2000 - 300 * number.unsigned_abs());
    queue.after(after(1), work(1)).unique("one").enqueue().unwrap();
    queue.after(after(2), work(2)).ordering_key("line").enqueue().unwrap();
    queue.after(after(3), work(3)).key("three").enqueue().unwrap();
    queue.after(HOUR, work(4)).key("four").enqueue().unwrap();
    assert_eq!(queue.reschedule("four", after(4)).unwrap(), JobChange::Done);
    queue.after(after(5), Rationed { number: 5, millis: 0 }).limit_key("k").enqueue().unwrap();
    for number in [5, 4, 3, 2, 1, 0] {
        let begun = |said: &Said| {
            matches!(said.word.as_str(), "begins" | "rationed") && said.numbers[0] == number
        };
        machine.has_said("each job begins", begun);
    }
}

/// A job of plain SQL tells of nothing. A machine that looks at the tables when it starts knows its moment.
#[test]
fn a_machine_that_starts_knows_the_next_moment() {
    let server = Server::start();
    drop(start(&server, 0).end());
    let insert = "insert into punctual.job (name, payload, run_at) values";
    let payload = |number: i64| format!(r#"{{"number": {number}, "millis": 0}}"#);
    for number in 1..=3 {
        let at = format!("now() + {number} * interval '1 second'");
        server.sql(&format!("{insert} ('work', '{}', {at})", payload(number)));
    }
    let mut machine = start_that_polls(&server, 1, HOUR);
    for number in 1..=3 {
        assert_eq!(machine.wait_for("begins")[0], number);
    }
}

/// Each is too late for the claim of the one before, and may have come before the next question.
#[test]
fn moments_that_follow_each_other_closely_are_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start_that_polls(&server, 0, HOUR);
    let moment = SystemTime::now() + Duration::from_secs(2);
    for number in 0..40_u32 {
        let work = Work { number: number.into(), millis: 0 };
        queue.at(moment + number * Duration::from_micros(1300), work).enqueue().unwrap();
    }
    for number in 0..40 {
        machine.has_said("each job begins", |said: &Said| {
            said.word == "begins" && said.numbers[0] == number
        });
    }
}

#[test]
fn the_moments_of_a_batch_are_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start_that_polls(&server, 0, HOUR);
    let job = |number| queue.after(Duration::from_secs(2), Work { number, millis: 0 });
    queue.enqueue_all([job(0), job(1).key("one"), job(2).unique("two")]).unwrap();
    for number in 0..3 {
        machine.has_said("each job begins", |said: &Said| {
            said.word == "begins" && said.numbers[0] == number
        });
    }
}
