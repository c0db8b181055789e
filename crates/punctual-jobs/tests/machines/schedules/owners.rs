//! Schedules that programs declare, and that persons change.

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{
    InMemory, JobQueue, Jobs, OnEdit, OpenError, PostgresQueue, QueueEvent, Schedule,
    ScheduleStatus,
};

use super::{Desk, SECOND, each_second, far};
use crate::{
    kinds::Tick,
    machine::drained,
    support::{LONG, block_on, receive_from_any, receive_until, server::Server},
};

fn open(server: &Server, schedule: impl Fn() -> Schedule) -> Desk {
    Desk::open_with(server, |jobs| jobs.schedule(schedule()))
}

fn close(desk: Desk) {
    desk.queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
}

fn is_kept(event: &QueueEvent) -> bool {
    matches!(event, QueueEvent::ScheduleKept { .. })
}

/// Waits until it is told that the row stays as it is.
fn kept(desk: &Desk) {
    receive_until(&desk.events, "the row is kept", is_kept);
}

/// It was not told when the program was opened, of which the executor has run other things since.
fn was_kept(desk: &Desk) -> bool {
    desk.meanwhile(2);
    desk.events.try_iter().any(|event| is_kept(&event))
}

fn period(desk: &Desk) -> Option<std::time::Duration> {
    desk.status("a").period
}

#[test]
fn a_declared_schedule_ticks_while_a_program_has_declared_it() {
    let server = Server::start();
    let desk = open(&server, || each_second("a"));
    desk.expect("tick");
    assert!(desk.status("a").is_declared && !desk.status("a").is_edited);
    close(desk);
    let other = Desk::open(&server);
    assert!(other.meanwhile(12).is_empty(), "it has not declared it");
    close(other);
    let again = open(&server, || each_second("a"));
    again.expect("tick");
    let status: ScheduleStatus = again.status("a");
    assert!(status.made_up + status.missed > 0, "the row was not written anew: {status}");
}

#[test]
fn the_row_wins_unless_the_code_does() {
    let server = Server::start();
    close(open(&server, || each_second("a")));
    let desk = open(&server, || each_second("a"));
    assert!(!was_kept(&desk), "nothing has changed");
    assert!(desk.put(Schedule::every("a", 2 * SECOND, &Tick {})));
    assert!(desk.status("a").is_edited);
    close(desk);
    let desk = open(&server, || each_second("a"));
    kept(&desk);
    assert_eq!(period(&desk), Some(2 * SECOND), "the row wins");
    desk.queue.schedules().pause("a").call().unwrap();
    close(desk);
    let desk = open(&server, || each_second("a").on_edit(OnEdit::CodeWins));
    assert!(!was_kept(&desk));
    assert_eq!(period(&desk), Some(SECOND), "the code wins");
    let status = desk.status("a");
    assert!(status.is_paused && !status.is_edited, "a pause stays");
}

/// Whether it is put in place of one that no running program declares any more, or of one that was removed.
#[test]
fn what_a_person_puts_ticks_also_where_a_program_had_declared_one() {
    let server = Server::start();
    close(open(&server, || each_second("a")));
    let desk = Desk::open(&server);
    assert!(desk.put(each_second("a")), "the row is there");
    desk.expect("tick");
    assert!(desk.queue.schedules().remove("a").call().unwrap());
    drained(&server);
    drop(desk.said.try_iter().last());
    assert!(!desk.put(each_second("a")), "a removed one is none");
    desk.expect("tick");
}

#[test]
fn a_pause_ends_with_the_schedule() {
    let server = Server::start();
    let desk = open(&server, || each_second("a"));
    let schedules = || desk.queue.schedules();
    for put_again in [true, false] {
        assert!(schedules().pause("a").call().unwrap());
        assert!(schedules().remove("a").call().unwrap());
        if put_again {
            assert!(!desk.put(each_second("a")), "a removed one is none");
            assert!(!desk.status("a").is_paused);
            while desk.said.try_recv().is_ok() {}
            desk.expect("tick");
        }
    }
    let again = open(&server, || each_second("a").on_edit(OnEdit::CodeWins));
    assert!(!again.status("a").is_paused);
    again.until("a", |status| status.enqueued > 0);
}

#[test]
fn a_declared_schedule_that_is_removed_stays_so_unless_the_code_wins() {
    let server = Server::start();
    let desk = open(&server, || each_second("a"));
    desk.expect("tick");
    assert!(desk.queue.schedules().remove("a").call().unwrap());
    close(desk);
    let desk = open(&server, || each_second("a"));
    kept(&desk);
    assert!(desk.queue.schedules().list().call().unwrap().is_empty());
    close(desk);
    // As if that had been an hour ago.
    server.sql("update punctual.job_schedule set tick = tick - interval '1 hour'");
    let desk = open(&server, || each_second("a").on_edit(OnEdit::CodeWins));
    desk.expect("tick");
    assert!(desk.status("a").missed < 1800, "it counts from now: {}", desk.status("a"));
}

/// Two versions of a program side by side, which are started in turns.
#[test]
fn the_version_that_was_started_last_says_what_the_row_is() {
    let server = Server::start();
    let old = open(&server, || Schedule::every("a", SECOND, &Tick {}));
    old.expect("tick");
    let new = open(&server, || Schedule::every("a", SECOND / 2, &Tick {}));
    assert_eq!(period(&new), Some(SECOND / 2));
    let mut ticks: Vec<_> =
        (0..4).map(|_| receive_from_any(&[&old.ticks, &new.ticks], "a tick")).collect();
    ticks.extend(new.ticks.try_iter());
    ticks.extend(old.ticks.try_iter());
    close(old);
    ticks.push(new.next_tick());
    ticks.extend(new.ticks.try_iter());
    let all = ticks.len();
    ticks.sort();
    ticks.dedup();
    assert_eq!(ticks.len(), all, "no tick is taken twice");
    // The old one is started once more: it was not edited by a person.
    let old = open(&server, || Schedule::every("a", SECOND, &Tick {}));
    assert_eq!(period(&old), Some(SECOND));
}

#[test]
fn what_a_person_has_put_is_not_taken_over() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(Schedule::every("a", 2 * SECOND, &Tick {}));
    let declares = open(&server, || each_second("a"));
    kept(&declares);
    assert_eq!(period(&declares), Some(2 * SECOND));
    assert!(!declares.status("a").is_declared);
    desk.expect("tick");
}

/// A transaction that holds the row does not keep a program from opening that finds it as it is.
#[test]
fn a_row_that_stays_as_it_is_is_not_waited_for() {
    let server = Server::start();
    close(open(&server, || each_second("a")));
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let hold = "select from punctual.job_schedule where name = 'a' for update";
        transaction.batch_execute(hold).await.unwrap();
        close(open(&server, || each_second("a")));
        transaction.rollback().await.unwrap();
    });
}

#[test]
fn eight_programs_that_start_at_once_declare_it_once() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| close(open(&server, far)));
        }
    });
    assert_eq!(server.value("select count(*) from punctual.job_schedule"), "1");
}

#[test]
fn two_schedules_of_one_name_and_those_in_memory_are_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let twice = Jobs::new().schedule(far()).schedule(far()).open(InMemory::on(&executor));
    assert!(matches!(twice, Err(OpenError::Definition(what)) if what.contains("two schedules")));
    let in_memory = Jobs::new().schedule(far()).open(InMemory::on(&executor));
    assert!(matches!(in_memory, Err(OpenError::Setting(_))));
    let queue = Jobs::new().open(InMemory::on(&executor)).unwrap();
    assert!(PostgresQueue::of(&queue).is_none(), "it has no such verbs");
}

#[test]
fn a_queue_that_is_any_queue_is_found_again_as_the_one_on_postgresql() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(far());
    let any: JobQueue = desk.queue.clone().into();
    let found = PostgresQueue::of(&any).expect("it is on PostgreSQL");
    assert_eq!(found.schedules().list().call().unwrap().len(), 1);
}
