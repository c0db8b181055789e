//! Rows that are put, paused, run, changed, removed and listed.

use std::{
    sync::mpsc,
    time::{Duration, Instant, SystemTime},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{
    CatchUp, JobChange, JobFilter, JobRun, JobStage, Jobs, Overlap, QueueError, QueueEvent,
    Schedule,
};

use super::{Desk, SECOND, each_second, far};
use crate::{
    kinds::{Tick, Wait},
    machine::{beats, drained, postgres, sender},
    support::{LONG, block_on, for_some, opened, receive, server::Server, wait_until},
};

#[test]
fn a_schedule_that_is_put_ticks_and_its_jobs_know_their_ticks() {
    let server = Server::start();
    let desk = Desk::open(&server);
    assert!(!desk.put(each_second("a")), "there was none");
    let first = desk.next_tick().unwrap();
    let mut last = first;
    for _ in 1..3 {
        let next = desk.next_tick().unwrap();
        assert!(next > last, "none twice");
        last = next;
    }
    let seconds = last.duration_since(first).unwrap();
    assert_eq!(seconds.subsec_nanos(), 0, "each is one of the schedule's");
    let status = desk.status("a");
    // Each tick so far has become a job, or the schedule counts it as missed because the machine stood still.
    let so_far = status.last_tick.unwrap().duration_since(first).unwrap().as_secs() + 1;
    assert!(status.enqueued >= 3 && status.enqueued <= so_far, "{so_far}: {status}");
    let fates = status.enqueued + status.missed + status.skipped;
    assert!(fates >= so_far, "{so_far}: {status}");
    assert_eq!(status.kind, "tick");
    assert_eq!(status.period, Some(SECOND));
    assert!(status.last_tick.unwrap() >= last);
    assert!(status.last_job.is_some() && status.last_enqueued.is_some());
    let next = status.next.unwrap().duration_since(SystemTime::now()).unwrap_or_default();
    assert!(next <= SECOND + SECOND / 2, "{next:?}");
}

#[test]
fn a_cron_expression_ticks_at_its_moments() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(Schedule::cron("a", "* * * * * *", "America/New_York", &Tick {}).unwrap());
    let first = desk.next_tick().unwrap();
    let since = desk.next_tick().unwrap().duration_since(first).unwrap();
    assert!(since >= SECOND && since.subsec_nanos() == 0, "{since:?}");
    let status = desk.status("a");
    assert_eq!(status.expression.as_deref(), Some("* * * * * *"));
    assert_eq!(status.zone.as_deref(), Some("America/New_York"));
}

/// From a machine that runs nothing, within a second on one that does.
#[test]
fn changes_are_followed_within_a_second() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    let other = sender(&executor, &server.url());
    let tenth = || Schedule::every("a", SECOND / 10, &Tick {}).overlap(Overlap::Skip);
    // Twice as long as promised. When the machine stands still, or is busy, it may take any time: so it holds once.
    let in_time = |change: &dyn Fn()| {
        drained(&server);
        drop(desk.said.try_iter().last());
        let begun = Instant::now();
        change();
        desk.expect("tick");
        begun.elapsed() < 2 * SECOND
    };
    for_some("it is put", &[1, 2, 3, 4], |_| {
        other.schedules().remove("a").call().unwrap();
        in_time(&|| assert!(!other.schedules().put(tenth()).call().unwrap()))
    });
    let is_silent = || {
        drained(&server);
        drop(desk.said.try_iter().last());
        desk.meanwhile(5).is_empty()
    };
    let long_ago = "update punctual.job_schedule set tick = tick - interval '1 hour'";
    for_some("it is resumed", &[1, 2, 3, 4], |_| {
        assert!(other.schedules().pause("a").call().unwrap());
        assert!(is_silent(), "it is paused");
        assert!(desk.status("a").is_paused && desk.status("a").next.is_none());
        server.sql(long_ago);
        in_time(&|| assert!(other.schedules().resume("a").call().unwrap()))
    });
    // An hour has ten times as many.
    assert!(desk.status("a").missed < 3600, "a pause misses nothing: {}", desk.status("a"));
    assert!(other.schedules().put(far_named("a")).call().unwrap(), "replaced");
    assert!(is_silent(), "it ticks next year");
    assert!(other.schedules().remove("a").call().unwrap());
    assert!(other.schedules().list().call().unwrap().is_empty());
    for answer in [
        other.schedules().pause("a").call(),
        other.schedules().resume("a").call(),
        other.schedules().remove("a").call(),
        other.schedules().run_now("a").call().map(|job| job.is_some()),
    ] {
        assert!(!answer.unwrap(), "there is none");
    }
}

fn far_named(name: &str) -> Schedule {
    Schedule::cron(name, "0 0 1 1 *", "UTC", &Tick {}).unwrap()
}

#[test]
fn a_schedule_is_run_at_once_also_while_it_is_paused() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(far());
    let job = desk.queue.schedules().run_now("far").call().unwrap().unwrap();
    assert_eq!(desk.next_tick(), None, "no tick");
    assert_eq!(desk.status("far").last_job, Some(job));
    desk.queue.schedules().pause("far").call().unwrap();
    desk.queue.schedules().run_now("far").call().unwrap().unwrap();
    assert_eq!(desk.next_tick(), None);
    assert_eq!(desk.status("far").enqueued, 2);
}

#[test]
fn what_a_transaction_changes_is_so_if_it_commits() {
    let server = Server::start();
    let desk = Desk::open(&server);
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        desk.queue.schedules().put(far()).call_in(&transaction).await.unwrap();
        assert_eq!(desk.queue.schedules().list().call_in(&transaction).await.unwrap().len(), 1);
        assert!(desk.queue.schedules().list().call_async().await.unwrap().is_empty());
        transaction.rollback().await.unwrap();
        assert!(desk.queue.schedules().list().call_async().await.unwrap().is_empty());
        let transaction = client.transaction().await.unwrap();
        desk.queue.schedules().put(far()).call_in(&transaction).await.unwrap();
        transaction.commit().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        desk.queue.schedules().run_now("far").call_in(&transaction).await.unwrap();
        transaction.commit().await.unwrap();
    });
    desk.expect("tick");
}

/// Its ticks wait, and those of others do not. A verb is asked again until its limit.
#[test]
fn a_row_that_a_transaction_holds_is_passed_over() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let tenth = |name: &str| Schedule::every(name, SECOND / 10, &Tick {});
    desk.put(tenth("a"));
    desk.put(tenth("b"));
    desk.until("a", |status| status.enqueued > 1);
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let hold = "select from punctual.job_schedule where name = 'a' for update";
        transaction.batch_execute(hold).await.unwrap();
        let (a, b) = (desk.status("a"), desk.status("b"));
        desk.until("b", |status| status.enqueued > b.enqueued + 5);
        assert_eq!(desk.status("a").enqueued, a.enqueued);
        let pause = desk.queue.schedules().pause("a").call_async();
        let b = desk.status("b");
        desk.until("b", |status| status.enqueued > b.enqueued + 5);
        transaction.rollback().await.unwrap();
        assert!(pause.await.unwrap());
    });
    assert!(desk.status("a").is_paused);
}

#[test]
fn the_bounds_of_a_schedule_are_kept() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let now: f64 = server.value("select extract(epoch from clock_timestamp())").parse().unwrap();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(now as u64 + 3);
    let schedule = each_second("a").from(begin).until(begin + 2 * SECOND);
    // Also those that are late, and beside each other.
    desk.put(schedule.catch_up(CatchUp::Each(3600 * SECOND)).overlap(Overlap::Allow(9)));
    let mut ticks: Vec<_> = (0..3).map(|_| desk.next_tick().unwrap()).collect();
    ticks.sort();
    assert_eq!(ticks, [0, 1, 2].map(|number| begin + number * SECOND));
    desk.until("a", |status| status.next.is_none());
    assert!(desk.meanwhile(5).iter().all(|said| said == "tick"), "only what was said before");
    assert!(desk.ticks.try_recv().is_err(), "it is over");
    assert_eq!(desk.status("a").enqueued, 3);
}

#[test]
fn another_expression_counts_from_when_it_is_put() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(each_second("a").until(SystemTime::now() + 3600 * SECOND));
    desk.until("a", |status| status.enqueued > 1);
    // The row is as it was an hour ago, and nothing has settled it since.
    desk.queue.schedules().pause("a").call().unwrap();
    server.sql("update punctual.job_schedule set tick = tick - interval '1 hour'");
    let before = desk.status("a");
    desk.put(Schedule::every("a", 2 * SECOND, &Tick {}));
    server.sql("update punctual.job_schedule set paused = false, next_at = clock_timestamp()");
    desk.until("a", |status| status.enqueued > before.enqueued + 1);
    let status = desk.status("a");
    // There were 1800 in that hour, and some more if the machine stands still.
    assert!(status.missed < 900 && status.made_up <= 1, "{status}");
}

#[test]
fn a_schedule_by_plain_sql_ticks_and_one_that_is_not_understood_is_told() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let insert = "insert into punctual.job_schedule (name, expression, zone, kind, payload) values";
    server.sql(&format!("{insert} ('a', '* * * * * *', 'UTC', 'tick', '{{}}')"));
    desk.expect("tick");
    server.sql(&format!("{insert} ('b', '* * * * * *', 'Atlantis/Old_Town', 'tick', '{{}}')"));
    let event = desk.event();
    let QueueEvent::ScheduleUnreadable { schedule, error } = &event else { panic!("{event}") };
    assert!(schedule == "b" && error.contains("Atlantis"), "{event}");
    assert!(desk.status("b").unreadable.unwrap().contains("Atlantis"));
    server.sql("update punctual.job_schedule set zone = 'UTC', revision = nextval('punctual.job_claim') where name = 'b'");
    desk.until("b", |status| status.enqueued > 0);
    let again = |event| matches!(event, QueueEvent::ScheduleUnreadable { .. });
    assert!(!desk.events.try_iter().any(again), "told once");
}

/// Each machine that can read it draws a new revision with each of its ticks.
#[test]
fn a_row_that_is_not_understood_is_told_once_whatever_others_do_with_it() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let insert = "insert into punctual.job_schedule (name, expression, zone, kind, payload) values";
    server.sql(&format!("{insert} ('a', '* * * * * *', 'Atlantis/Old_Town', 'tick', '{{}}')"));
    let settled = "update punctual.job_schedule set revision = nextval('punctual.job_claim') \
                   where name = 'a'";
    let told = desk.event();
    assert!(matches!(told, QueueEvent::ScheduleUnreadable { .. }), "{told}");
    for _ in 0..3 {
        server.sql(settled);
        desk.meanwhile(6);
        let is_it = |event: &QueueEvent| matches!(event, QueueEvent::ScheduleUnreadable { .. });
        let again: Vec<_> = desk.events.try_iter().filter(is_it).collect();
        assert!(again.is_empty(), "{again:?}");
    }
}

/// An executor without room takes no event: it comes again.
#[test]
fn what_is_told_of_a_row_waits_for_room() {
    let server = Server::start();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).max_pending(1);
    let executor = builder.build().unwrap();
    let (tells, events) = mpsc::channel();
    let _queue = opened(|| {
        let (settings, tells) = (postgres(&executor, &server.url()), tells.clone());
        let settings = settings.on_event(move |event| drop(tells.send(event.clone())));
        Jobs::new().on(|_: &JobRun, _: Tick| Ok(())).open(settings)
    });
    let far = executor.schedule(3600 * SECOND, || ()).unwrap();
    server.sql(
        "insert into punctual.job_schedule (name, expression, zone, kind, payload) \
         values ('a', '* * * * * *', 'Atlantis/Old_Town', 'tick', '{}')",
    );
    // It looks each second at least, and has four heartbeats in one.
    beats(&server, std::process::id(), 12);
    assert!(events.try_recv().is_err(), "there is no room");
    assert!(far.cancel());
    let event = receive(&events, "an event");
    assert!(matches!(event, QueueEvent::ScheduleUnreadable { .. }), "{event}");
}

#[test]
fn a_row_that_the_server_refuses_to_settle_holds_up_no_other() {
    let server = Server::start();
    let desk = Desk::open(&server);
    server.sql(
        "create function refuse() returns trigger language plpgsql as \
         $$ begin raise exception 'refused by a trigger'; end $$; \
         create trigger refuse before insert on punctual.job for each row \
         when (new.schedule = 'a') execute function refuse()",
    );
    desk.put(each_second("a"));
    desk.put(each_second("b"));
    desk.until("b", |status| status.enqueued > 2);
    let event = desk.event();
    let QueueEvent::ServerRefused { error } = &event else { panic!("{event}") };
    assert!(error.contains("refused by a trigger"), "{event}");
    server.sql("drop trigger refuse on punctual.job");
    desk.until("a", |status| status.enqueued > 0);
}

/// It draws no revision. Here it is committed after the machine has read both rows, and before it settles the second one.
#[test]
fn a_pause_by_plain_sql_holds_from_its_commit_on() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let day = 24 * 3600 * SECOND;
    for name in ["a", "b"] {
        desk.put(Schedule::every(name, day / 4, &Tick {}).catch_up(CatchUp::Last(day)));
    }
    server.sql(
        "create function pause() returns trigger language plpgsql as \
         $$ begin update punctual.job_schedule set paused = true where name = 'b'; return null; end $$",
    );
    server.sql(
        "create trigger pause after update on punctual.job_schedule for each row \
         when (new.name = 'a' and new.enqueued > old.enqueued) execute function pause()",
    );
    let due = "tick = clock_timestamp() - interval '7 hours', revision = nextval('punctual.job_claim'), \
               next_at = clock_timestamp() - interval '1 second' * case name when 'a' then 2 else 1 end";
    server.sql(&format!("update punctual.job_schedule set {due}"));
    desk.until("a", |status| status.enqueued > 0);
    desk.meanwhile(3);
    let b = server.sql("select paused, enqueued from punctual.job_schedule where name = 'b'");
    assert_eq!(b, [["t", "0"]], "it is paused, and has had no job");
}

/// A job that runs keeps the shutdown from its end meanwhile.
#[test]
fn a_queue_that_is_shut_down_runs_no_schedule_and_keeps_answering_until_it_has_ended() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(far());
    desk.queue.now(Wait { number: 1 }).enqueue().unwrap();
    desk.wait_for("waits 1");
    let is_refused = |error: QueueError| assert!(matches!(error, QueueError::ShutDown), "{error}");
    std::thread::scope(|scope| {
        let closing =
            scope.spawn(|| desk.queue.shutdown_within(Grace::patience(LONG).then(SECOND)).unwrap());
        wait_until("it has begun", || {
            desk.queue.after(LONG, Wait { number: 2 }).key("k").enqueue().is_err()
        });
        is_refused(desk.queue.schedules().run_now("far").call().unwrap_err());
        assert!(desk.put(far()), "what needs no job is still done");
        let job = desk
            .queue
            .list(&JobFilter { stage: Some(JobStage::Running), ..JobFilter::default() })
            .unwrap()[0]
            .id;
        assert_eq!(desk.queue.discard(job).unwrap(), JobChange::Signalled);
        closing.join().unwrap();
    });
    is_refused(desk.queue.schedules().run_now("far").call().unwrap_err());
    is_refused(desk.queue.schedules().put(far()).call().unwrap_err());
    is_refused(desk.queue.schedules().list().call().unwrap_err());
    let never = "select enqueued from punctual.job_schedule where name = 'far'";
    assert_eq!(server.value(never), "0");
}

#[test]
fn one_schedule_is_asked_for_by_its_name() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let (from, until) = (SystemTime::UNIX_EPOCH + 100 * SECOND, SystemTime::now() + 3600 * SECOND);
    desk.put(far().from(from).until(until).jitter(5 * SECOND));
    desk.put(each_second("other"));
    let status = desk.queue.schedules().get("far").call().unwrap().unwrap();
    assert_eq!((status.name.as_str(), status.from, status.jitter), ("far", Some(from), 5 * SECOND));
    let micros = until.duration_since(status.until.unwrap()).unwrap_or_default();
    assert!(micros < SECOND / 1_000_000, "the server keeps microseconds");
    assert!(desk.queue.schedules().get("unknown").call().unwrap().is_none());
}

/// As many as a machine reads at a time.
#[test]
fn rows_that_a_transaction_holds_do_not_stand_before_others() {
    let server = Server::start();
    drop(Desk::open(&server));
    server.sql(
        "insert into punctual.job_schedule (name, period_us, kind, payload, next_at) \
         select 'a' || number, 1000000, 'tick', '{}', now() - interval '1 hour' \
           from generate_series(1, 250) number",
    );
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let hold = "select from punctual.job_schedule for update";
        transaction.batch_execute(hold).await.unwrap();
        let desk = Desk::open(&server);
        desk.put(each_second("b"));
        desk.until("b", |status| status.enqueued > 1);
        transaction.rollback().await.unwrap();
    });
}

/// An error would end the transaction.
#[test]
fn a_verb_in_a_transaction_waits_for_a_row_that_another_one_holds() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(far());
    block_on(async {
        let (mut holding, mut changing) = (server.connect().await, server.connect().await);
        let holds = holding.transaction().await.unwrap();
        let hold = "select from punctual.job_schedule for update";
        holds.batch_execute(hold).await.unwrap();
        let transaction = changing.transaction().await.unwrap();
        let schedules = desk.queue.schedules();
        let change = async {
            assert!(schedules.pause("far").call_in(&transaction).await.unwrap());
            let job = schedules.run_now("far").call_in(&transaction).await.unwrap();
            assert!(job.is_some());
            assert!(schedules.remove("far").call_in(&transaction).await.unwrap());
        };
        let release = async {
            server.has_one_wait().await;
            holds.rollback().await.unwrap();
        };
        tokio::join!(change, release);
        transaction.commit().await.unwrap();
    });
    desk.expect("tick");
    assert!(desk.queue.schedules().list().call().unwrap().is_empty());
}

#[test]
fn what_no_machine_can_tick_is_no_row() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(far());
    block_on(async {
        let client = server.connect().await;
        for wrong in [
            "max_attempts = 0",
            "overlap_most = 0",
            "expression = null, zone = null, period_us = 9999",
        ] {
            let change = format!("update punctual.job_schedule set {wrong}");
            let error = client.batch_execute(&change).await.unwrap_err();
            let state = error.code().map(|state| state.code().to_owned());
            assert_eq!(state.as_deref(), Some("23514"), "{wrong}");
        }
    });
}

/// The database takes no moment of the far future or past.
#[test]
fn bounds_that_no_database_keeps_are_clamped() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let never = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 60);
    desk.put(each_second("a").from(SystemTime::UNIX_EPOCH - SECOND).until(never));
    desk.expect("tick");
}

#[test]
fn what_no_queue_accepts_is_refused() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let put = |name: &str| desk.queue.schedules().put(each_second(name)).call();
    for name in ["", "a\0", &"a".repeat(129)] {
        assert!(matches!(put(name), Err(QueueError::InvalidName(_))), "{name:?}");
        let paused = desk.queue.schedules().pause(name).call();
        assert!(matches!(paused, Err(QueueError::InvalidName(_))), "{name:?}");
    }
    assert!(!put(&"a".repeat(128)).unwrap());
    wait_until("it ticks", || desk.said.try_recv().is_ok());
}
