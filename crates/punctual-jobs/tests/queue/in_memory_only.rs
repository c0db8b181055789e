//! Behaviour of the in-memory queue alone, or exact only there: moments, refusals, and what is released.

use std::time::Duration;

use punctual::{Grace, ManualClock, ScheduledThreadPoolExecutor};
use punctual_jobs::{
    InMemory, Job, JobError, JobRun, JobState, Jobs, OpenError, QueueError, ReleasedJob, aligned,
};
use serde::{Deserialize, Serialize};

use crate::patience::receive;
use crate::world::{Flaky, Hold, InProcess, Note, SHORT, World, standard};

#[derive(Serialize, Deserialize)]
struct Failing {}

impl Job for Failing {
    const NAME: &'static str = "failing";
}

#[test]
fn the_default_delays_are_those_of_the_engine() {
    let clock = ManualClock::new();
    let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let shows = clock.clone();
    let jobs = Jobs::new().on(move |_: &JobRun, _: Failing| {
        tell.send(shows.elapsed())?;
        Err(JobError::new("always"))
    });
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    queue.now(Failing {}).max_attempts(4).enqueue().unwrap();
    clock.run_for(Duration::from_secs(3600));
    let moments: Vec<f64> = told.try_iter().map(|moment| moment.as_secs_f64()).collect();
    let delays: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (delay, exponent) in delays.iter().zip([1.0_f64, 2.0, 3.0]) {
        assert!((delay - exponent.exp()).abs() < 1e-6, "{delays:?}");
    }
    assert_eq!(moments.len(), 4);
}

#[test]
fn jobs_run_at_their_exact_moments() {
    let world = InProcess::open(standard);
    world.queue().after(Duration::from_secs(3600), Note::new("tea")).enqueue().unwrap();
    world.clock().run_for(Duration::from_secs(3600) - Duration::from_nanos(1));
    assert_eq!(world.log().len(), 0);
    world.clock().run_for(Duration::from_nanos(1));
    assert_eq!(world.log().lines(), ["tea"]);
}

#[test]
fn a_wall_time_follows_the_wall_clock() {
    let world = InProcess::open(standard);
    let due = world.wall() + Duration::from_secs(3600);
    world.queue().at(due, Note::new("tea")).enqueue().unwrap();
    world.clock().set_wall_time(due);
    // A worker looks at the wall clock each half minute.
    world.clock().run_for(Duration::from_secs(30));
    assert_eq!(world.log().lines(), ["tea"]);
}

#[test]
fn a_time_limit_counts_from_the_start_of_the_handler() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = builder.clock(clock.clone()).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let sleeps = clock.clone();
    let jobs = Jobs::new()
        .on(move |run: &JobRun, _: Failing| {
            let begun = sleeps.elapsed();
            run.token().wait();
            tell.send(sleeps.elapsed() - begun)?;
            Ok(())
        })
        .timeout::<Failing>(SHORT)
        .max_attempts::<Failing>(1);
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    queue.now(Failing {}).enqueue().unwrap();
    queue.now(Failing {}).enqueue().unwrap();
    clock.run_for(10 * SHORT);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [SHORT, SHORT]);
}

#[test]
fn a_job_without_a_handler_is_refused() {
    let world = InProcess::open(standard);
    let error = world.queue().now(Failing {}).enqueue().unwrap_err();
    assert!(matches!(error, QueueError::NoHandler { name: "failing" }), "{error}");
}

#[test]
fn a_periodic_job_without_a_handler_is_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let jobs = Jobs::new().every(aligned(SHORT), Failing {});
    let error = jobs.open(InMemory::on(&executor)).unwrap_err();
    assert!(error.to_string().contains("handles the periodic job \"failing\""), "{error}");
}

#[derive(Serialize, Deserialize)]
struct Impostor {}

impl Job for Impostor {
    const NAME: &'static str = "failing";
}

#[test]
fn a_name_belongs_to_one_type_and_one_handler() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handler = |_: &JobRun, _: Failing| Ok(());
    let twice = Jobs::new().on(handler).on(handler).open(InMemory::on(&executor));
    assert!(twice.unwrap_err().to_string().contains("\"failing\" is defined twice"));
    let two = Jobs::new().on(handler).max_attempts::<Impostor>(2).open(InMemory::on(&executor));
    assert!(two.unwrap_err().to_string().contains("\"failing\" is defined twice"));
}

#[test]
fn waiting_jobs_are_released_and_can_be_sent_again() {
    let world = InProcess::open(standard);
    world.queue().after(SHORT, Note::new("a")).key("k").enqueue().unwrap();
    world.queue().now(Hold::new("job")).ordering_key("s").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    world.queue().now(Note::new("in line")).ordering_key("s").enqueue().unwrap();
    world.clock().run_until_idle();
    let report = world.shutdown(Duration::ZERO, SHORT);
    let texts = ["a", "in line", "job"].map(|text| format!(r#""text":"{text}""#));
    let is_of = |(job, text): (&ReleasedJob, &String)| job.payload.contains(text);
    assert_eq!(report.released.len(), 3);
    assert!(report.released.iter().zip(&texts).all(is_of), "{report:?}");
    assert_eq!(report.released[0].key.as_deref(), Some("k"));
}

#[test]
fn an_executor_that_ends_takes_the_jobs_with_it() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let jobs = Jobs::new().on(|_: &JobRun, _: Failing| Ok(()));
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    let ticket = queue.after(Duration::MAX, Failing {}).key("k").enqueue().unwrap();
    drop(executor.shutdown_now());
    assert_eq!(queue.state(ticket.id).unwrap(), JobState::Gone);
    let error = queue.now(Failing {}).enqueue().unwrap_err();
    assert!(matches!(error, QueueError::Refused(_)), "{error}");
}

#[test]
fn dropping_the_last_queue_closes_it() {
    let mut world = InProcess::open(standard);
    let executor = world.scene().executor.clone();
    world.queue().after(SHORT, Note::new("never")).enqueue().unwrap();
    assert_eq!(executor.statistics().pending, 1);
    drop(world.queue().clone());
    assert_eq!(executor.statistics().pending, 1);
    assert_eq!(world.close_queue(), 0);
}

/// A handler that shuts its own queue down would wait for itself: it is refused, and the queue goes on. Elsewhere the
/// same call answers, also in a handler of another queue.
#[test]
fn a_handler_cannot_shut_its_own_queue_down() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    let executor = builder.clock(clock.clone()).build().unwrap();
    let other = Jobs::new().open(InMemory::on(&executor)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new().on(move |run: &JobRun, _: Failing| {
        let own = run.queue().shutdown_within(Grace::patience(SHORT).then(SHORT));
        let others = other.shutdown_within(Grace::patience(SHORT).then(SHORT));
        tell.send((own.is_err(), others.is_ok()))?;
        Ok(())
    });
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    let waits = queue.after(Duration::from_secs(3600), Failing {}).enqueue().unwrap();
    for _ in 0..2 {
        queue.now(Failing {}).enqueue().unwrap();
        clock.run_until_idle();
        assert_eq!(told.recv().unwrap(), (true, true));
    }
    assert!(matches!(queue.state(waits.id), Ok(JobState::Waiting { .. })), "it goes on");
    let report = queue.shutdown_within(Grace::patience(SHORT).then(SHORT)).unwrap();
    assert_eq!(report.released.len(), 1, "{report}");
}

/// Reports are lines for a log.
#[test]
fn reports_are_lines() {
    let world = InProcess::open(standard);
    let (soon, job) = (SHORT, "job");
    let waits = world.queue().after(100 * soon, Note::new("a")).key("k").enqueue().unwrap();
    let runs = world.queue().now(Hold::new(job)).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let report = world.shutdown(Duration::ZERO, 100 * soon);
    assert_eq!(report.to_string(), "0 ran, 2 released");
    let mut lines: Vec<_> = report.released.iter().map(ToString::to_string).collect();
    lines.sort_by_key(|line| line.len());
    let shown = [
        format!("{} \"hold\", failed attempts: 0", runs.id),
        format!("{} \"note\" with the key \"k\", failed attempts: 0", waits.id),
    ];
    assert_eq!(lines, shown);
}

/// A job that is discarded, and of which no callback is told, is one line on standard error; with a callback there is
/// none. This is a program of its own, which is this test again.
#[test]
fn a_job_that_is_discarded_is_not_silent() {
    const CHILD: &str = "PUNCTUAL_TEST_CHILD";
    if let Ok(with_callback) = std::env::var(CHILD) {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = builder.clock(clock.clone()).build().unwrap();
        let mut jobs = Jobs::new().on(|_: &JobRun, _: Failing| Err(JobError::new("no\nroute")));
        if with_callback == "true" {
            jobs = jobs.on_discarded(|_| ());
        }
        let queue = jobs.open(InMemory::on(&executor)).unwrap();
        queue.now(Failing {}).max_attempts(2).enqueue().unwrap();
        clock.run_for(Duration::from_secs(3600));
        return;
    }
    for (with_callback, lines) in [("false", 1), ("true", 0)] {
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let test = "in_memory_only::a_job_that_is_discarded_is_not_silent";
        program.args(["--exact", test, "--nocapture"]).env(CHILD, with_callback);
        let output = program.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        let told: Vec<_> =
            text.lines().filter(|line| line.starts_with("punctual-jobs: ")).collect();
        assert_eq!(told.len(), lines, "{text}");
        let end = "\"failing\" was discarded after 2 attempts: no\\nroute";
        assert!(told.iter().all(|line| line.ends_with(end)), "{text}");
    }
}

#[test]
fn a_failed_attempt_under_a_manual_clock_takes_no_real_time() {
    let world = InProcess::open(|scene| standard(scene).max_attempts::<Flaky>(25));
    world.queue().now(Flaky::new("call", 24)).enqueue().unwrap();
    world.until("the last", || world.log().has("call 25"));
}

/// The moments of a token bucket, to the microsecond, by the executor's clock.
#[test]
fn a_window_is_kept_exactly() {
    let (gap, jobs) = (Duration::from_millis(100), 12);
    let world = InProcess::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        let begun = clock.now();
        let jobs = Jobs::new().on(move |_: &JobRun, _: Failing| {
            log.say((clock.now() - begun).as_micros().to_string());
            Ok(())
        });
        jobs.limit::<Failing>(punctual_jobs::JobLimit::in_window(3, 3 * gap))
    });
    let send = |count| {
        for _ in 0..count {
            world.queue().now(Failing {}).enqueue().unwrap();
        }
    };
    send(jobs);
    world.clock().run_for(gap * jobs);
    let pauses = 2;
    world.clock().run_for(gap * pauses);
    send(4);
    world.clock().run_for(gap * jobs);
    let micros = |gaps: u32| (gaps * gap).as_micros().to_string();
    let mut expected: Vec<_> = [0, 0].map(micros).into();
    expected.extend((0..jobs - 2).map(micros));
    // The last of those began nine gaps after the first, and the bucket is full again three gaps later.
    expected.extend([14, 14, 14, 15].map(micros));
    assert_eq!(world.log().lines(), expected);
    assert_eq!(world.scene().executor.statistics().pending, 0, "no timer is left");
}

#[test]
fn two_schedules_of_one_name_are_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let hourly = || aligned(Duration::from_secs(3600));
    let jobs = || Jobs::new().on(|_: &JobRun, _: Failing| Ok(())).every(hourly(), Failing {});
    let error = jobs().every(hourly(), Failing {}).open(InMemory::on(&executor)).unwrap_err();
    assert!(
        matches!(&error, OpenError::Definition(what) if what.contains("the name \"failing\"")),
        "{error}"
    );
    for name in ["", "a\0b", &"a".repeat(129)] {
        let error = jobs().every_named(name, hourly(), Failing {}).open(InMemory::on(&executor));
        assert!(matches!(error, Err(OpenError::InvalidName(_))), "{name:?}");
    }
    let named = jobs().every_named("a".repeat(128), hourly(), Failing {});
    assert!(named.open(InMemory::on(&executor)).is_ok());
}

/// Its moments are those of the trigger inside, and each run is later by its span.
#[test]
fn the_jitter_of_a_schedule_is_kept() {
    let hour = Duration::from_secs(3600);
    let world = InProcess::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        let spread = punctual::Trigger::jitter(aligned(hour), hour / 2).name("spread");
        Jobs::new()
            .on(move |_: &JobRun, _: Failing| {
                let since = clock.wall_time().duration_since(std::time::UNIX_EPOCH)?;
                log.say((since.as_nanos() % hour.as_nanos() > 0).to_string());
                Ok(())
            })
            .every(spread, Failing {})
    });
    world.clock().run_for(3 * hour);
    assert!(world.log().len() >= 2 && world.log().lines().iter().all(|line| line == "true"));
}

/// No caller waits for the submission of a later attempt, so the callback for discarded jobs is told of its refusal.
#[test]
fn a_job_whose_next_attempt_is_refused_is_discarded() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).core_pool_size(1);
    let executor = builder.max_pending(1).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let fills = executor.handle();
    let jobs = Jobs::new()
        .on(move |_: &JobRun, _: Failing| {
            let _far = fills.schedule(Duration::from_secs(3600), || ())?;
            Err(JobError::new("once"))
        })
        .on_discarded(move |job| _ = tell.send((job.id, job.attempts, job.last_error.clone())));
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    let job = queue.now(Failing {}).key("k").enqueue().unwrap();
    clock.run_until_idle();
    let (id, attempts, error) = receive(&told, "it is told");
    assert_eq!((id, attempts), (job.id, 1));
    assert!(error.contains("refused"), "{error}");
    assert!(matches!(queue.state(id).unwrap(), JobState::Discarded { .. }));
    assert_eq!(queue.cancel("k").unwrap(), punctual_jobs::JobChange::Unknown);
    assert!(queue.now(Failing {}).enqueue().is_err(), "the caller is told");
    assert!(told.try_recv().is_err());
}

/// A job that waits is dropped to make room for a task of the program's.
#[test]
fn a_job_that_makes_room_is_discarded() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock).max_pending(1);
    let executor =
        builder.rejected_execution_handler(punctual::DiscardOldestPolicy).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new()
        .on(|_: &JobRun, _: Failing| Ok(()))
        .on_discarded(move |job| _ = tell.send((job.id, job.attempts)));
    let queue = jobs.open(InMemory::on(&executor)).unwrap();
    let job = queue.after(Duration::from_secs(60), Failing {}).enqueue().unwrap();
    let _other = executor.schedule(Duration::from_secs(60), || ()).unwrap();
    assert_eq!(receive(&told, "it is told"), (job.id, 0));
}
