//! Rows that were written by a clock which has been set back since.

use std::{
    sync::mpsc,
    time::{Duration, Instant, SystemTime},
};

use punctual::{ManualClock, ScheduledThreadPoolExecutor, current_task};
use punctual_jobs::{
    aligned,
    gate::{Gate, GateEvent, SkipReason},
};

use crate::{
    rows::{fencing_token, once},
    support::{LONG, for_some, opened, receive, receive_until, server::Server, wait_until},
};

const HOUR: Duration = Duration::from_secs(3600);

/// A gate that hands over its events.
fn gate(server: &Server, lease: Duration) -> (Gate, mpsc::Receiver<GateEvent>) {
    let (sender, events) = mpsc::channel();
    let gate = opened(|| {
        let (gate, sender) = (Gate::postgres(server.url()), sender.clone());
        let gate = gate.lease(lease).request_timeout(lease);
        gate.on_event(move |event| drop(sender.send(event.clone()))).open()
    });
    (gate, events)
}

/// Writes a row whose run has ended, with a change of it.
fn write(name: &str, change: &str) {
    Server::shared().sql(&format!(
        "insert into punctual.gate values ('{name}', clock_timestamp() - interval '1 minute', true, \
         nextval('punctual.gate_fence'), 0, 'another', '1 s', clock_timestamp() - interval '1 minute');
         update punctual.gate set {change} where name = '{name}'"
    ));
}

#[test]
fn a_tick_that_was_claimed_a_day_ahead_does_not_silence_its_name() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, events) = gate(Server::shared(), LONG);
    write("a day ahead", "tick = clock_timestamp() + interval '1 day'");
    let named = gate.for_name("a day ahead").unwrap();
    let (_task, ran) = once(&executor, named, SystemTime::now(), fencing_token);
    receive(&ran, "it runs");
    match receive(&events, "an event") {
        GateEvent::ClockSetBack { by, .. } => assert!(by > 23 * HOUR, "{by:?}"),
        event => panic!("{event:?}"),
    }
    assert_eq!(gate.statistics().set_back, 1);
}

#[test]
fn a_tick_that_was_claimed_half_a_minute_ahead_is_not_run_twice_and_told_as_skipped() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, events) = gate(Server::shared(), LONG);
    write("half a minute ahead", "tick = clock_timestamp() + interval '30 s'");
    let named = gate.for_name("half a minute ahead").unwrap();
    let (task, ran) = once(&executor, named, SystemTime::now(), fencing_token);
    task.join().unwrap();
    assert!(ran.try_recv().is_err(), "it does not run");
    let event = receive(&events, "an event");
    let is_told = matches!(event, GateEvent::Skipped { reason: SkipReason::ClockSetBack, .. });
    assert!(is_told, "{event:?}");
}

#[test]
fn a_lease_that_was_written_a_day_ahead_is_over_after_a_whole_lease() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, events) = gate(Server::shared(), Duration::from_secs(1));
    write("lease ahead", "done = false, lease_until = clock_timestamp() + interval '1 day'");
    let asked = Instant::now();
    let named = gate.for_name("lease ahead").unwrap();
    let (_task, ran) = once(&executor, named, SystemTime::now(), fencing_token);
    receive(&ran, "it runs");
    assert!(asked.elapsed() >= Duration::from_secs(1), "after {:?}", asked.elapsed());
    is_set_right(&events);
}

/// Waits until the row was set right. Before that the gate may not have had an answer.
fn is_set_right(events: &mpsc::Receiver<GateEvent>) {
    let is_it = |event: &GateEvent| matches!(event, GateEvent::ClockSetBack { .. });
    receive_until(events, "the clock was set back", is_it);
}

#[test]
fn a_holder_that_lives_keeps_a_lease_that_was_set_right() {
    // Long enough that it is not renewed before the other has asked, and is renewed before it is over.
    for_some("it keeps it", &[6, 24, 60].map(Duration::from_secs), |lease| {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let ((holder, lost), (other, events)) =
            (gate(Server::shared(), lease), gate(Server::shared(), lease));
        let name = format!("set right {lease:?}");
        let (sender, started) = mpsc::channel();
        let named = holder.for_name(&*name).unwrap();
        let (_task, ran) = once(&executor, named, SystemTime::now(), move || {
            sender.send(()).unwrap();
            let is_kept = current_task().unwrap().token().sleep(lease * 4 / 3).is_ok();
            (is_kept, Instant::now())
        });
        receive(&started, "it runs");
        Server::shared().sql(&format!(
            "update punctual.gate set lease_until = lease_until + interval '1 day' where name = '{name}'"
        ));
        let named = other.for_name(name).unwrap();
        let (_next, next) = once(&executor, named, SystemTime::now(), Instant::now);
        let (is_kept, ended) = receive(&ran, "it ends");
        let begun = receive(&next, "the next one runs");
        // A renewal may have set it right before the other one has asked.
        let is_set_right =
            events.try_iter().any(|event| matches!(event, GateEvent::ClockSetBack { .. }));
        if is_kept {
            assert!(begun >= ended, "one after the other");
            assert!(lost.try_recv().is_err(), "nothing was lost");
        }
        is_kept && is_set_right
    });
}

#[test]
fn a_delay_from_an_end_that_is_a_day_ahead_counts_from_now() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, events) = gate(Server::shared(), Duration::from_secs(1));
    write("delay ahead", "lease_until = clock_timestamp() + interval '1 day'");
    let named = gate.for_name("delay ahead").unwrap().with_delay(Duration::from_millis(100));
    let (_task, ran) = once(&executor, named, SystemTime::now(), fencing_token);
    receive(&ran, "it runs");
    is_set_right(&events);
}

/// G7: all clocks were a day ahead, and are set back together.
#[test]
fn a_day_that_all_clocks_have_shown_too_early_silences_nothing() {
    let server = Server::start_with_clock();
    let (gate, events) = gate(&server, LONG);
    server.set_clock(24 * 3600);
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    let executor = builder.build().unwrap();
    clock.set_wall_time(SystemTime::now() + 24 * HOUR);
    let (sender, ran) = mpsc::channel();
    let body = move || {
        let planned = current_task().unwrap().planned_wall();
        let _ = sender.send(planned > SystemTime::now() + 12 * HOUR);
    };
    let second = Duration::from_secs(1);
    let named = gate.for_name("all ahead").unwrap();
    let _task = executor.task().gate(named).repeat(aligned(second), body).unwrap();
    let runs_with = |is_ahead| {
        wait_until("it runs", || {
            clock.run_for(second / 10);
            ran.try_recv() == Ok(is_ahead)
        });
    };
    runs_with(true);
    server.set_clock(0);
    clock.set_wall_time(SystemTime::now());
    runs_with(false);
    is_set_right(&events);
}
