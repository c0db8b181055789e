//! Replicas: several executors with the same task behind one gate that claims ticks, as one in a database does.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{
    ManualClock, RejectionReason, RunGate, ScheduledThreadPoolExecutor, Trigger,
    gate::{Entry, Tick},
    trigger::{Due, TriggerContext, every},
};

use crate::support::{Drops, Log, Wrapped, hold, manual, ms};

const MINUTE: Duration = Duration::from_secs(60);
const SPREAD: Duration = Duration::from_secs(40);
const REPLICAS: usize = 8;
const TICKS: u32 = 20;

/// A gate that many processes share: a tick of a name is claimed once, and after it only later ones are. It notes
/// when it was asked about which tick.
#[derive(Clone)]
struct Claims {
    last: Arc<Mutex<BTreeMap<String, SystemTime>>>,
    asked: Log<(SystemTime, SystemTime)>,
}

impl Claims {
    fn new() -> Self {
        Self { last: Arc::default(), asked: Log::new() }
    }
}

impl RunGate for Claims {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        assert!(tick.is_on_wall());
        let planned = tick.planned_wall();
        self.asked.push((planned, tick.clock().wall_time()));
        let mut last = self.last.lock().unwrap();
        let last = last.entry(tick.name().unwrap_or_default().to_owned()).or_insert(UNIX_EPOCH);
        if planned <= *last {
            return Entry::Skip;
        }
        *last = planned;
        Entry::Run
    }
}

/// At each full minute of the wall clock.
#[derive(Clone)]
struct Minutely;

impl Trigger for Minutely {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let since = last.after_wall().duration_since(UNIX_EPOCH).ok()?;
        Some(Due::Wall(UNIX_EPOCH + Duration::from_secs((since.as_secs() / 60 + 1) * 60)))
    }
}

/// Runs the task on all replicas, which are started one after the other, until [`TICKS`] ticks have passed. Returns the
/// moments of the runs on all of them, and what the gate was asked.
fn replicas<G: Trigger>(
    name: Option<&str>,
    trigger: impl Fn(usize) -> G,
) -> (Vec<SystemTime>, Vec<(SystemTime, SystemTime)>) {
    let (gate, clock, runs) = (Claims::new(), ManualClock::new(), Log::new());
    clock.set_wall_time(UNIX_EPOCH + 1_000 * MINUTE);
    let executors: Vec<_> = (0..REPLICAS)
        .map(|number| {
            let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
            let executor = builder.clock(clock.clone()).build().expect("good settings");
            let task = executor.task().gate(gate.clone());
            let task = match name {
                Some(name) => task.name(name),
                None => task,
            };
            let (log, own) = (runs.clone(), clock.clone());
            let body = move || log.push(own.wall_time());
            let task = task.repeat(trigger(number), body).expect("accepted");
            if number % 3 == 1 {
                // The number of its runs, and its plans, differ from those of others.
                task.run_within(ms(0));
            }
            clock.run_for(ms(700));
            executor
        })
        .collect();
    let end = UNIX_EPOCH + (1_000 + TICKS) * MINUTE + SPREAD;
    clock.run_for(end.duration_since(clock.wall_time()).expect("it is to come"));
    drop(executors);
    (runs.entries(), gate.asked.entries())
}

/// With jitter, each tick runs once, and all replicas ask for it at the same moment, which is a function of the name
/// and the tick.
#[test]
fn with_jitter_each_tick_runs_once() {
    type Subject = (Option<&'static str>, fn(usize) -> Wrapped);
    let subjects: [Subject; 3] = [
        (Some("sweep"), |_| Wrapped::new(Minutely.jitter(SPREAD))),
        (Some("sweep"), |_| Wrapped::new(Minutely.jitter(SPREAD).times(1_000))),
        (None, |_| Wrapped::new(Minutely.jitter(SPREAD).name("sweep"))),
    ];
    let mut all = Vec::new();
    for (name, trigger) in subjects {
        let (runs, asked) = replicas(name, trigger);
        let mut spans = BTreeMap::new();
        for (tick, at) in asked.iter().filter(|(tick, _)| is_own(*tick)) {
            let span = at.duration_since(*tick).expect("not before it");
            assert!(span < SPREAD, "{span:?}");
            assert_eq!(*spans.entry(*tick).or_insert(span), span, "the same on each replica");
        }
        assert_eq!(spans.len() as u32, TICKS);
        let expected: Vec<_> = spans.iter().map(|(tick, span)| *tick + *span).collect();
        let asked_of_ticks = asked.iter().filter(|(tick, _)| is_own(*tick)).count();
        assert_eq!(asked_of_ticks, REPLICAS * TICKS as usize, "each replica asks");
        let runs: Vec<_> = runs.into_iter().filter(|run| expected.contains(run)).collect();
        assert_eq!(runs, expected, "each tick runs once");
        assert!(spans.values().any(|span| *span != spans[&expected_tick(1)]), "{spans:?}");
        all.push(spans);
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2], "a task and its jitter of one name have the same spans");
}

/// Without a name of its own each replica may have a seed of its own: the ticks are claimed nevertheless.
#[test]
fn with_a_seed_of_its_own_on_each_replica_each_tick_runs_once() {
    let (runs, asked) =
        replicas(Some("sweep"), |number| Minutely.jitter(SPREAD).seed(number as u64));
    let of_ticks = |moments: Vec<SystemTime>| {
        let first = expected_tick(1);
        moments.into_iter().filter(|moment| *moment >= first).count()
    };
    assert_eq!(of_ticks(runs), TICKS as usize);
    let ticks: std::collections::BTreeSet<_> =
        asked.iter().map(|(tick, _)| *tick).filter(|tick| is_own(*tick)).collect();
    assert_eq!(ticks.len(), TICKS as usize);
}

fn expected_tick(number: u32) -> SystemTime {
    UNIX_EPOCH + (1_000 + number) * MINUTE
}

/// A tick of the trigger, and not one that was asked for.
fn is_own(tick: SystemTime) -> bool {
    let since = tick.duration_since(UNIX_EPOCH).expect("it is later");
    since.as_nanos() % MINUTE.as_nanos() == 0
}

/// Where the spans cannot be the same on each replica, the submission is refused; nothing is lost, and nothing is
/// asked or run.
#[test]
fn a_jitter_that_cannot_be_shared_is_refused() {
    let (clock, executor) = manual(1);
    let gate = Claims::new();
    let drops = Drops::new();
    let token = drops.token();
    let task = executor.task().gate(gate.clone());
    let refused = task.repeat(Minutely.jitter(SPREAD), move || hold(&token)).expect_err("no name");
    assert!(matches!(refused.reason(), RejectionReason::UnsharedTrigger));
    assert_eq!(
        refused.reason().to_string(),
        "the task was rejected: behind a gate its jitter has to be the same on every replica; \
         give the task a name, or the jitter a name or a seed",
    );
    assert_eq!((drops.count(), executor.pending_count()), (0, 0));
    // The closure is in the error, and runs by hand.
    refused.into_task().run();
    assert_eq!(drops.count(), 1);
    // So is a trigger of the user's that says so, however deep it is.
    struct Private;
    impl Trigger for Private {
        fn next(&mut self, _: &TriggerContext<'_>) -> Option<Due> {
            unreachable!("it is not asked")
        }

        fn share(&mut self, name: Option<&str>) -> bool {
            assert_eq!(name, Some("private"));
            false
        }
    }
    let task = executor.task().name("private").gate(gate.clone());
    let refused = task.repeat(Private.times(3).until(clock.now()).jitter(ms(1)), || ());
    let refused = refused.expect_err("it cannot be shared");
    assert!(matches!(refused.reason(), RejectionReason::UnsharedTrigger));
    clock.run_for(MINUTE);
    assert_eq!((executor.statistics().runs, gate.asked.entries().len()), (0, 0));
}

/// A trigger that replaces the first one later has to be shared, too.
#[test]
fn another_trigger_is_refused_likewise() {
    let (clock, executor) = manual(1);
    clock.set_wall_time(UNIX_EPOCH + 1_000 * MINUTE);
    let gate = Claims::new();
    let plain = executor.task().gate(gate.clone()).repeat(Minutely, || ()).expect("accepted");
    assert!(!plain.set_trigger(Minutely.jitter(SPREAD)), "the task has no name");
    assert_eq!(plain.delay(), Some(MINUTE));
    assert!(plain.set_trigger(Minutely.jitter(SPREAD).seed(1)));
    let named = executor.task().name("a").gate(gate.clone());
    let named = named.repeat(Minutely, || ()).expect("accepted");
    let same = executor.task().name("a").gate(gate).repeat(Minutely.jitter(SPREAD), || ());
    assert!(named.set_trigger(Minutely.jitter(SPREAD)));
    assert_eq!(named.delay(), same.expect("accepted").delay());
    let open = executor.repeat(Minutely, || ()).expect("accepted");
    assert!(open.set_trigger(Minutely.jitter(SPREAD)), "without a gate it need not be");
}

/// On the executor's clock a tick is the trigger's own moment as well, and a panic in `share` is the submitter's.
#[test]
fn a_tick_is_the_moment_of_the_trigger_on_either_clock() {
    let (clock, executor) = manual(1);
    let ticks = Log::new();
    let (log, begin) = (ticks.clone(), clock.now());
    let gate = punctual::gate::from_fn(move |tick| {
        let planned = tick.planned().expect("it is near").duration_since(begin);
        log.push((planned, tick.attempt()));
        if tick.attempt() == 1 { Entry::Again(ms(5)) } else { Entry::Run }
    });
    let trigger = every(MINUTE).first_in(MINUTE).jitter(SPREAD);
    let task = executor.task().name("poll").gate(gate).repeat(trigger, || ()).expect("accepted");
    clock.run_for(3 * MINUTE);
    let expected = [(MINUTE, 1), (MINUTE, 2), (2 * MINUTE, 1), (2 * MINUTE, 2)];
    assert_eq!(ticks.entries()[..4], expected);
    // A run that was asked for is a tick of its own, without a span.
    assert!(task.reschedule(ms(0)));
    let now = clock.elapsed();
    clock.run_until_idle();
    assert!(ticks.entries().contains(&(now, 1)), "{:?}", ticks.entries());
}
