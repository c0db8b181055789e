//! Jitter: the moments are those of the trigger inside, and each run is due a span after its own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual::{
    MissedRuns, ScheduledFuture, Trigger, current_task,
    trigger::{Due, TriggerContext, every, from_fn},
};

use crate::support::{Log, Wrapped, manual, ms};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// At each full hour of the wall clock.
#[derive(Clone)]
struct Hourly(Log<Option<SystemTime>>);

impl Hourly {
    fn new() -> Self {
        Self(Log::new())
    }

    fn number(moment: SystemTime) -> u64 {
        moment.duration_since(UNIX_EPOCH).expect("it is later").as_secs() / 3600
    }
}

impl Trigger for Hourly {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.0.push(last.planned_wall());
        let next = Self::number(last.after_wall()) + 1;
        Some(Due::Wall(UNIX_EPOCH + Duration::from_secs(3600 * next)))
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::Wall(from), Due::Wall(to)) = (from, to) else { return 0 };
        Self::number(to).saturating_sub(Self::number(from))
    }
}

type Bring = fn(&ScheduledFuture<()>);

/// A run that is brought forward inside its jitter is that moment's run: the moment does not come again, and the
/// next one has its own.
#[test]
fn a_moment_runs_once_though_it_is_brought_forward_inside_its_jitter() {
    let brings: [Bring; 2] = [
        |task| assert!(task.reschedule(Duration::ZERO)),
        |task| assert!(task.run_within(Duration::ZERO)),
    ];
    let policies =
        [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Within(MINUTE)];
    for (seed, bring) in (0..6).flat_map(|seed| brings.map(|bring| (seed, bring))) {
        for policy in policies {
            let (clock, executor) = manual(1);
            clock.set_wall_time(UNIX_EPOCH + 100 * HOUR - MINUTE);
            let (runs, own) = (Log::new(), clock.clone());
            let log = runs.clone();
            let body = move || log.push(own.wall_time());
            let task = executor.task().missed_runs(policy);
            let trigger = Hourly::new().jitter(50 * MINUTE).seed(seed);
            let task = task.repeat(trigger, body).expect("accepted");
            // To the middle of the span of the first run.
            let span = task.delay().expect("it is pending") - MINUTE;
            clock.run_for(MINUTE + span / 2);
            bring(&task);
            clock.run_until_idle();
            let first = clock.wall_time();
            assert_eq!(runs.entries(), [first], "{policy:?} {seed}");
            assert_eq!(Hourly::number(first), 100);
            clock.run_for(3 * HOUR);
            let hours: Vec<_> = runs.entries().into_iter().map(Hourly::number).collect();
            assert!(hours.starts_with(&[100, 101, 102]), "{policy:?} {seed} {hours:?}");
            assert!(hours.is_sorted_by(|one, next| one < next), "{policy:?} {seed} {hours:?}");
        }
    }
}

/// A run on time is not late, and has missed nothing, although its jitter is longer than the period; and the trigger
/// inside is shown its own moments.
#[test]
fn jitter_is_not_lateness() {
    for policy in [MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Within(Duration::ZERO)] {
        let (clock, executor) = manual(1);
        clock.set_wall_time(UNIX_EPOCH + 100 * HOUR);
        let told = Log::new();
        let log = told.clone();
        let inside = Hourly::new();
        let task = executor.task().missed_runs(policy);
        let trigger = inside.clone().jitter(50 * MINUTE).seed(7);
        let body = move || {
            let task = current_task().expect("inside a task");
            log.push((task.lateness(), task.missed_runs()));
        };
        let _task = task.repeat(trigger, body).expect("accepted");
        clock.run_for(5 * HOUR + 50 * MINUTE);
        assert_eq!(told.entries(), [(Duration::ZERO, 0); 5], "{policy:?}");
        let planned: Vec<_> = (101..=105).map(|hour| Some(UNIX_EPOCH + hour * HOUR)).collect();
        assert_eq!(inside.0.entries()[1..], planned, "{policy:?}");
    }
}

/// The spans are a function of seed and moment on the wall clock, and of seed and number of the run on the other.
#[test]
fn the_same_seed_makes_the_same_spans() {
    let spans = |seed: u64, begin: u32, brought: bool| {
        let (clock, executor) = manual(1);
        clock.set_wall_time(UNIX_EPOCH + begin * HOUR + ms(1));
        let (runs, own) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || log.push(own.wall_time());
        let trigger = Hourly::new().jitter(50 * MINUTE).seed(seed);
        let task = executor.repeat(trigger, body).expect("accepted");
        if brought {
            assert!(task.run_now());
        }
        clock.run_for((20 - begin) * HOUR);
        runs.entries().into_iter().filter(|run| Hourly::number(*run) >= 15).collect::<Vec<_>>()
    };
    let usual = spans(3, 1, false);
    assert_eq!(usual.len(), 5);
    assert_eq!(spans(3, 1, true), usual, "the number of the run does not matter");
    assert_eq!(spans(3, 11, false), usual, "nor does the submission");
    assert_ne!(spans(4, 1, false), usual);
}

/// A trigger around a jittered one has the offsets of that one, whether it is one of the crate's or not.
#[test]
fn combinators_pass_the_jitter_on() {
    let runs = |trigger: Box<dyn Fn(&punctual::ManualClock) -> Wrapped>| {
        let (clock, executor) = manual(1);
        let (runs, own) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || log.push(own.elapsed());
        let trigger = trigger(&clock);
        let _task = executor.repeat(trigger, body).expect("accepted");
        clock.run_for(5 * HOUR);
        runs.entries()
    };
    let hourly = || every(HOUR).first_in(HOUR).jitter(50 * MINUTE).seed(5);
    let usual = runs(Box::new(move |_| Wrapped::new(hourly())));
    assert!(usual.iter().any(|run| run.as_secs() % 3600 > 0));
    assert_eq!(runs(Box::new(move |_| Wrapped::new(hourly().times(3))))[..], usual[..3]);
    let third = usual[2];
    let until = move |end: Duration| {
        runs(Box::new(move |clock| Wrapped::new(hourly().until(clock.now() + end))))
    };
    assert_eq!(until(third)[..], usual[..3], "a run at exactly the end takes place");
    assert_eq!(
        until(third - ms(1))[..],
        usual[..2],
        "the end is for the run and not for its moment"
    );
    let twice = runs(Box::new(move |_| Wrapped::new(hourly().jitter(MINUTE).seed(6))));
    let later: Vec<_> = twice.iter().zip(&usual).map(|(two, one)| *two - *one).collect();
    assert!(later.iter().all(|span| *span < MINUTE) && later.iter().any(|span| !span.is_zero()));
    let never = runs(Box::new(|_| Wrapped::new(from_fn(|_| Some(Due::OnDemand)).jitter(HOUR))));
    assert_eq!(never, [Duration::ZERO; 0]);
}
