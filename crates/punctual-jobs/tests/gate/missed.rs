//! Ticks of a name that no replica has run.

use std::{
    cell::Cell,
    sync::mpsc::{self, Receiver},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{
    FailurePolicy, ManualClock, ScheduledThreadPoolExecutor,
    gate::{Entry, RunGate, Tick},
};
use punctual_jobs::{
    CatchUp, aligned,
    gate::{Gate, NamedGate},
};
use rustix::process::Signal;

use crate::{
    outages::{LEDGER, nothing_ran_again},
    runner::{Plan, runs},
    support::{LONG, opened, real_micros, receive, server::Server, wait_until},
    ticks::wait_for_runs,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A replica of this process: a task with a tick each minute, on a clock that the test moves.
struct Machine {
    gate: Gate,
    clock: ManualClock,
    runs: Receiver<u64>,
    /// How many runs had been granted when it was looked last.
    granted: Cell<u64>,
    _executor: ScheduledThreadPoolExecutor,
}

/// The start of a minute some hours ago, so that what the clock of a machine shows has come by the server's clock.
fn past() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    since / 60 * 60 - 10 * 3600
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Has a body learn for which tick it runs.
struct Noting(NamedGate, mpsc::Sender<u64>);

impl RunGate for Noting {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let seconds = tick.planned_wall().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let _ = self.1.send(seconds);
        self.0.enter(tick)
    }
}

impl Machine {
    fn start(name: &str, now: u64, catch_up: CatchUp) -> Self {
        let clock = ManualClock::new();
        clock.set_wall_time(at(now));
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = builder.clock(clock.clone()).build().unwrap();
        let url = Server::shared().url();
        let gate = opened(|| Gate::postgres(&url).lease(LONG).request_timeout(LONG).open());
        let named = gate.for_name(name).unwrap();
        let minutely = aligned(MINUTE);
        let minutely = named.catch_up(move |after| minutely.next_after(after), catch_up);
        let (asks, asked) = mpsc::channel::<u64>();
        let (says, runs) = mpsc::channel();
        let body = move || {
            let last = asked.try_iter().last();
            let _ = says.send(last.unwrap_or(0));
        };
        let task = executor.task().name("gated").gate(Noting(named, asks));
        task.on_failure(FailurePolicy::resume()).repeat(minutely, body).unwrap();
        Self { gate, clock, runs, granted: Cell::new(0), _executor: executor }
    }

    /// Returns the ticks that have run, in minutes after this one, when so many questions were answered, all that were asked
    /// have an answer, and each run that was granted has said its tick.
    fn ran(&self, since: u64, answered: u64) -> Vec<u64> {
        let mut ran = Vec::new();
        let before = self.granted.get();
        wait_until("answers", || {
            // A question that is asked again waits on this clock.
            self.clock.run_for(Duration::from_millis(1));
            ran.extend(self.runs.try_iter().map(|tick| (tick - since) / 60));
            let counts = self.gate.statistics();
            self.granted.set(counts.granted);
            let answers = counts.granted + counts.refused + counts.skipped;
            let is_asked = counts.asked > answers + counts.postponed + counts.unreachable;
            answers >= answered && !is_asked && before + ran.len() as u64 >= counts.granted
        });
        ran
    }
}

#[test]
fn what_a_deploy_has_missed_runs_once_on_one_replica() {
    let (name, begin) = ("missed once", past());
    let before = Machine::start(name, begin - 1, CatchUp::Last(HOUR));
    // A name without a row has missed nothing.
    assert!(before.ran(begin, 1).is_empty());
    before.clock.run_for(MINUTE / 60);
    assert_eq!(before.ran(begin, 2), [0]);
    drop(before);
    let after: Vec<_> =
        (0..3).map(|_| Machine::start(name, begin + 10 * 60 + 30, CatchUp::Last(HOUR))).collect();
    let ran: Vec<_> = after.iter().flat_map(|machine| machine.ran(begin, 1)).collect();
    assert_eq!(ran, [10], "once, for the last of ten");
    let made_up: u64 = after.iter().map(|machine| machine.gate.statistics().made_up).sum();
    assert_eq!(made_up, 1);
    let missed: u64 = after.iter().map(|machine| machine.gate.statistics().missed).sum();
    assert_eq!(missed, 9, "by the one that runs");
    // And then as always.
    after.iter().for_each(|machine| machine.clock.run_for(MINUTE / 2));
    let ran: Vec<_> = after.iter().flat_map(|machine| machine.ran(begin, 2)).collect();
    assert_eq!(ran, [11]);
    let missed: u64 = after.iter().map(|machine| machine.gate.statistics().missed).sum();
    assert_eq!(missed, 9, "what another replica has run is not missed");
}

#[test]
fn each_that_a_deploy_has_missed_runs_in_order() {
    let (name, begin) = ("missed each", past());
    let before = Machine::start(name, begin - 1, CatchUp::None);
    before.clock.run_for(MINUTE / 60);
    assert_eq!(before.ran(begin, 1), [0]);
    drop(before);
    let after = Machine::start(name, begin + 10 * 60 + 30, CatchUp::Each(5 * MINUTE));
    let ran = after.ran(begin, 5);
    assert_eq!(ran, [6, 7, 8, 9, 10]);
    let counts = after.gate.statistics();
    assert_eq!((counts.made_up, counts.missed), (5, 5), "{counts}");
}

#[test]
fn none_and_what_is_beyond_the_window_do_not_run() {
    for (name, catch_up) in [
        ("missed none", CatchUp::None),
        ("missed last", CatchUp::Last(MINUTE / 6)),
        ("missed within", CatchUp::Each(MINUTE / 6)),
    ] {
        let begin = past();
        let before = Machine::start(name, begin - 1, CatchUp::None);
        before.clock.run_for(MINUTE / 60);
        assert_eq!(before.ran(begin, 1), [0]);
        drop(before);
        let after = Machine::start(name, begin + 10 * 60 + 30, catch_up);
        assert!(after.ran(begin, 0).is_empty(), "{catch_up:?}");
        after.clock.run_for(MINUTE / 2);
        assert_eq!(after.ran(begin, 1), [11]);
        let counts = after.gate.statistics();
        assert_eq!((counts.made_up, counts.missed), (0, 10), "{catch_up:?}: {counts}");
    }
}

/// By ten seconds a tick is on time, whether a replica was there or not.
#[test]
fn the_tick_of_a_moment_ago_runs_when_a_replica_starts() {
    let (name, begin) = ("missed by a moment", past());
    let before = Machine::start(name, begin + 59, CatchUp::Last(HOUR));
    assert!(before.ran(begin, 1).is_empty());
    before.clock.run_for(MINUTE / 60);
    assert_eq!(before.ran(begin, 2), [1]);
    drop(before);
    let after = Machine::start(name, begin + 5 * 60 + 3, CatchUp::None);
    assert_eq!(after.ran(begin, 1), [5]);
    let counts = after.gate.statistics();
    assert_eq!((counts.made_up, counts.missed), (0, 3), "{counts}");
}

/// The replica lives, and could not ask for longer than a lease.
#[test]
fn ticks_of_an_outage_are_made_up_for_by_a_replica_that_lives() {
    let mut server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let lease = Duration::from_secs(1);
    let gate = opened(|| Gate::postgres(server.url()).lease(lease).open());
    let named = gate.for_name("outage").unwrap();
    let calendar = aligned(Duration::from_secs(1));
    let each = CatchUp::Each(HOUR);
    let trigger = named.catch_up(move |after| calendar.next_after(after), each);
    let (says, said) = mpsc::channel();
    let row = "select extract(epoch from tick)::int8 from punctual.gate";
    let body = move || says.send(()).unwrap_or_default();
    let task = executor.task().name("outage").gate(named).on_failure(FailurePolicy::resume());
    let task = task.repeat(trigger, body).unwrap();
    receive(&said, "the first run");
    // In this order: the answer to the claim that the row shows may not have been counted yet.
    let granted = gate.statistics().granted;
    let first: i64 = server.value(row).parse().unwrap();
    server.stop();
    // By ten seconds a tick is not late.
    std::thread::sleep(Duration::from_secs(14));
    server.again();
    let ticks_since = || {
        let last: i64 = server.value(row).parse().unwrap();
        (last - first, (gate.statistics().granted - granted) as i64)
    };
    wait_until("it has caught up, with a run for each tick", || {
        let (ticks, runs) = ticks_since();
        ticks > 15 && runs >= ticks
    });
    task.cancel();
    assert!(gate.statistics().made_up > 0, "{}", gate.statistics());
}

/// All replicas stand still, and wake up: one run, and none beside it for the tick that was planned before.
#[test]
fn replicas_that_were_all_frozen_make_up_for_it_once() {
    let server = Server::start();
    // It makes the table.
    drop(opened(|| Gate::postgres(server.url()).open()));
    server.sql(LEDGER);
    let (url, name) = (server.url(), "frozen".to_owned());
    let more = "catches_up=1\n".to_owned();
    let plan = Plan { url, name, period: 1000, lease: 2000, run: 10, more };
    let mut replicas = plan.start_three([0, 7, -7]);
    wait_for_runs(&mut replicas, 3, |_| true);
    replicas.iter().for_each(|replica| replica.signal(Signal::STOP));
    let stopped = real_micros();
    // The clock of one is seven seconds behind, and it has planned the tick after the last one: that is late by its clock, too.
    std::thread::sleep(Duration::from_secs(20));
    let woken = real_micros();
    replicas.iter().for_each(|replica| replica.signal(Signal::CONT));
    // Each replica has made up for what it missed by then.
    wait_for_runs(&mut replicas, 3, |said| said.numbers[0] > woken);
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    let runs = runs(&said);
    // Each replica makes up for the last tick by its clock, of which one is seven seconds behind: that is on time by ten. Neither
    // an earlier one runs, nor the one that was planned before.
    let missed = stopped..woken - 10_000_000;
    let early: Vec<_> =
        runs.iter().filter(|run| run.begin > woken && missed.contains(&run.tick)).collect();
    assert!(early.is_empty(), "{early:?} of {runs:?}");
    nothing_ran_again(&server, &runs);
}
