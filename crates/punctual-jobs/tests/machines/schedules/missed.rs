//! Ticks that no machine has taken.

use std::time::{Duration, Instant, SystemTime};

use punctual_jobs::{CatchUp, Overlap, QueueEvent, Schedule};

use super::{Desk, SECOND, each_second};
use crate::{
    kinds::{Tick, Work},
    machine::sender,
    support::{receive_until, server::Server, wait_until},
};

const HOUR: Duration = Duration::from_secs(3600);

/// Sets back when a schedule was last settled, as if no machine had run since.
fn missed_for(server: &Server, schedule: Schedule, ago: &str) {
    let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    queue.schedules().put(schedule).call().unwrap();
    let set = format!("set tick = clock_timestamp() - interval '{ago}'");
    server.sql(&format!("update punctual.job_schedule {set}"));
}

fn told(desk: &Desk) -> u64 {
    match desk.event() {
        QueueEvent::TicksMissed { ticks, .. } => ticks,
        other => panic!("{other}"),
    }
}

/// Ticks each hour, and not within twenty minutes of this one: none is on time, and none comes during the test.
fn hourly() -> Schedule {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let far = (since / 60 + 25) % 60;
    Schedule::cron("a", &format!("{far} * * * *"), "UTC", &Tick {}).unwrap()
}

/// Three machines start after a deploy of ten hours.
#[test]
fn what_a_deploy_has_missed_runs_once_on_one_machine() {
    let server = Server::start();
    missed_for(&server, hourly().catch_up(CatchUp::Last(HOUR)), "10 hours");
    let desks: Vec<_> = (0..3).map(|_| Desk::open(&server)).collect();
    desks[0].until("a", |status| status.enqueued == 1);
    let missed = || desks.iter().flat_map(|desk| desk.events.try_iter()).map(ticks_of).sum::<u64>();
    let mut told = 0;
    wait_until("it is told", || {
        told += missed();
        told >= 9
    });
    // All machines have looked once more by then, and have run what they had.
    let ran: Vec<_> = desks.iter().flat_map(|desk| desk.meanwhile(3)).collect();
    let runs: Vec<_> = desks.iter().flat_map(|desk| desk.ticks.try_iter()).collect();
    assert_eq!(runs.len(), 1, "{runs:?} {ran:?}");
    let status = desks[0].status("a");
    assert_eq!((status.enqueued, status.made_up, status.missed), (1, 1, 9), "{status}");
    assert_eq!(told + missed(), 9, "one machine has told it");
}

fn ticks_of(event: QueueEvent) -> u64 {
    if let QueueEvent::TicksMissed { ticks, .. } = event { ticks } else { panic!("{event}") }
}

#[test]
fn none_makes_up_for_nothing_and_counts() {
    let server = Server::start();
    missed_for(&server, hourly().catch_up(CatchUp::None), "10 hours");
    let desk = Desk::open(&server);
    assert_eq!(told(&desk), 10);
    let status = desk.status("a");
    assert_eq!((status.enqueued, status.missed), (0, 10), "{status}");
}

#[test]
fn beyond_the_window_nothing_is_made_up_for() {
    let server = Server::start();
    missed_for(&server, hourly().catch_up(CatchUp::Last(Duration::from_secs(1))), "10 hours");
    let desk = Desk::open(&server);
    assert_eq!(told(&desk), 10);
    assert_eq!(desk.status("a").enqueued, 0);
}

/// One after the other, in order, although ticks that are on time would be left out.
#[test]
fn each_is_made_up_for_in_order_and_never_beside_another() {
    let server = Server::start();
    let schedule = hourly().catch_up(CatchUp::Each(24 * HOUR)).overlap(Overlap::Skip);
    missed_for(&server, schedule, "8 hours");
    let desk = Desk::open(&server);
    let ticks: Vec<_> = (0..8).map(|_| desk.next_tick().unwrap()).collect();
    for pair in ticks.windows(2) {
        assert_eq!(pair[1].duration_since(pair[0]).unwrap(), HOUR, "{ticks:?}");
    }
    let status = desk.status("a");
    assert_eq!((status.enqueued, status.made_up, status.missed), (8, 8, 0), "{status}");
}

/// A day of seconds: what is within the window is made up for, with never more jobs than there is room for.
#[test]
fn thousands_of_ticks_are_bounded_and_counted() {
    let server = Server::start();
    let window = Duration::from_secs(1000);
    let job = Work { number: 0, millis: 0 };
    let schedule = Schedule::every("a", SECOND, &job).catch_up(CatchUp::Each(window));
    missed_for(&server, schedule.overlap(Overlap::Allow(50)), "1 day");
    let begun = Instant::now();
    let desk = Desk::open(&server);
    desk.until("a", |status| {
        assert!(status.outstanding <= 50, "{status}");
        status.made_up > 900
    });
    let status = desk.status("a");
    println!("900 made up for within {:?}: {status}", begun.elapsed());
    assert!((85_000..=86_000).contains(&status.missed), "{status}");
    assert_eq!(status.skipped, 0, "{status}");
}

#[test]
fn ticks_while_the_server_is_away_are_made_up_for_when_it_is_back() {
    let mut server = Server::start();
    let desk = Desk::open(&server);
    desk.put(each_second("a").catch_up(CatchUp::Each(HOUR)));
    let first = desk.next_tick().unwrap();
    server.stop();
    std::thread::sleep(12 * SECOND);
    server.again();
    for number in 1..12 {
        let tick = desk.next_tick().unwrap();
        assert_eq!(tick, first + number * SECOND);
    }
}

/// The server's clock was set back by an hour since the row was settled.
#[test]
fn a_row_in_the_future_silences_no_schedule() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(each_second("a"));
    desk.expect("tick");
    let ahead = "tick + interval '1 hour', next_at = next_at + interval '1 hour'";
    server.sql(&format!("update punctual.job_schedule set tick = {ahead}"));
    let is_ahead = |event: &QueueEvent| matches!(event, QueueEvent::TickInFuture { .. });
    receive_until(&desk.events, "a row in the future", is_ahead);
    drop(desk.said.try_iter().last());
    desk.expect("tick");
}
