//! What a schedule says of its jobs: a priority, an ordering key, a limit key.

use punctual_jobs::{
    JobFilter, JobStatus, OnEdit, Overlap, Priority, QueueError, Schedule, ScheduleStatus,
};

use super::{Desk, SECOND};
use crate::{
    kinds::{Tick, Wait},
    support::{LONG, server::Server, wait_until},
};

/// A schedule that ticks long after the test has ended.
fn named(name: &str) -> Schedule {
    Schedule::cron(name, "0 0 1 1 *", "UTC", &Tick {}).unwrap()
}

fn job_of(desk: &Desk, name: &str) -> JobStatus {
    desk.queue
        .list(&JobFilter { schedule: Some(name.into()), ..JobFilter::default() })
        .unwrap()
        .remove(0)
}

/// Both a tick and `run_now` enqueue such a job.
#[test]
fn the_job_of_a_tick_has_what_its_schedule_says() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.queue.pause_kind("tick", None).unwrap();
    let often = |name: &str| Schedule::every(name, SECOND / 10, &Tick {});
    desk.put(often("a").priority(Priority::High).overlap(Overlap::Allow(1)));
    desk.put(often("b").ordering_key("line").limit_key("tenant"));
    desk.put(often("c"));
    for name in ["a", "b", "c"] {
        wait_until("a tick", || desk.status(name).enqueued > 0);
    }
    let said = |job: JobStatus| (job.priority, job.ordering_key, job.limit_key);
    assert_eq!(said(job_of(&desk, "a")), (Priority::High, None, None));
    let of_b = (Priority::Normal, Some("line".to_owned()), Some("tenant".to_owned()));
    assert_eq!(said(job_of(&desk, "b")), of_b);
    assert_eq!(said(job_of(&desk, "c")), (Priority::Normal, Some("every c".to_owned()), None));
    let stands = |it: ScheduleStatus| (it.priority, it.ordering_key, it.limit_key);
    assert_eq!(stands(desk.status("a")), (Priority::High, None, None));
    assert_eq!(stands(desk.status("b")), of_b);
    assert_eq!(stands(desk.status("c")), (Priority::Normal, None, None));
    let now = named("d").priority(Priority::Low).limit_key("other").overlap(Overlap::Allow(2));
    desk.put(now);
    assert!(desk.queue.schedules().run_now("d").call().unwrap().is_some());
    assert_eq!(said(job_of(&desk, "d")), (Priority::Low, None, Some("other".to_owned())));
}

/// A job that waits for a later tick becomes what the schedule says by then.
#[test]
fn a_waiting_job_becomes_what_the_schedule_says_with_the_next_tick() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.queue.pause_kind("tick", None).unwrap();
    desk.put(named("a").limit_key("old"));
    let first = desk.queue.schedules().run_now("a").call().unwrap().unwrap();
    desk.put(named("a").limit_key("new").ordering_key("line").priority(Priority::High));
    assert_eq!(desk.queue.schedules().run_now("a").call().unwrap(), Some(first));
    let job = job_of(&desk, "a");
    assert_eq!((job.id, job.priority), (first, Priority::High));
    assert_eq!(
        (job.ordering_key.as_deref(), job.limit_key.as_deref()),
        (Some("line"), Some("new"))
    );
    assert!(desk.queue.resume_kind("tick").unwrap());
    desk.expect("tick");
}

/// Two schedules with one ordering key run one after the other.
#[test]
fn schedules_with_one_ordering_key_do_not_overlap() {
    let server = Server::start();
    let desk = Desk::open(&server);
    for name in ["a", "b"] {
        let schedule = Schedule::every(name, LONG * 100, &Wait { number: 1 }).ordering_key("line");
        desk.put(schedule);
        assert!(desk.queue.schedules().run_now(name).call().unwrap().is_some());
    }
    let running = || {
        let runs =
            JobFilter { stage: Some(punctual_jobs::JobStage::Running), ..JobFilter::default() };
        desk.queue.list(&runs).unwrap()
    };
    wait_until("the first runs", || running().len() == 1);
    desk.queue.now(Tick {}).enqueue().unwrap();
    desk.wait_for("tick");
    let first = running().remove(0);
    assert_eq!(first.schedule.as_deref(), Some("a"));
    desk.queue.discard(first.id).unwrap();
    wait_until("the second runs", || {
        running().first().is_some_and(|job| job.schedule.as_deref() == Some("b"))
    });
}

#[test]
fn a_key_that_no_job_can_have_is_refused_and_a_declared_one_is_written() {
    let server = Server::start();
    let desk = Desk::open_with(&server, |jobs| {
        jobs.schedule(named("declared").limit_key("tenant").on_edit(OnEdit::CodeWins))
    });
    assert_eq!(desk.status("declared").limit_key.as_deref(), Some("tenant"));
    for wrong in [named("a").ordering_key(""), named("a").limit_key("x".repeat(129))] {
        let error = desk.queue.schedules().put(wrong).call().unwrap_err();
        assert!(matches!(error, QueueError::InvalidName(_)), "{error}");
    }
}
