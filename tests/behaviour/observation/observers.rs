//! Observers: what they are told, when, and by which thread's clock.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use punctual::{
    EndedRun, Failure, FailureReport, ManualClock, Observer, Points, ScheduledThreadPoolExecutor,
    TaskContext, TaskId, Trigger,
    gate::{self, Entry},
    trigger::every,
};

use crate::support::{LONG, manual_with, ms};

/// Writes down what it is told, each time with its own name.
#[derive(Clone)]
struct Told {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Told {
    fn new(name: &'static str) -> Self {
        Self { name, lines: Arc::default() }
    }

    fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    fn say(&self, line: impl std::fmt::Display) {
        self.lines.lock().unwrap().push(format!("{}: {line}", self.name));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}

impl Observer for Told {
    fn worker_started(&self) {
        self.say("worker started");
    }

    fn worker_ended(&self) {
        self.say("worker ended");
    }

    fn task_taken(&self, _: TaskId, _: Instant, overdue: Duration) {
        self.say(format!("taken {overdue:?} late"));
    }

    fn before_run(&self, run: &TaskContext) {
        self.say(format!("before run {}", run.run_number()));
    }

    fn after_run(&self, run: &TaskContext, outcome: Result<(), &Failure>) {
        self.say(format!("after run {}, {}", run.run_number(), outcome.is_ok()));
    }

    fn run_ended(&self, run: &EndedRun<'_>) {
        let (number, attempt, failed) = (run.run_number(), run.attempt(), run.has_failed());
        let (late, took) = (run.lateness(), run.run_time());
        let name = run.name().unwrap_or("-");
        self.say(format!("{name} {number} {attempt} {failed}: {late:?} late, {took:?}"));
    }

    fn failed(&self, report: &FailureReport<'_>) -> bool {
        self.say(format!("failed: {}", report.message()));
        true
    }

    fn terminated(&self) {
        self.say("terminated");
    }
}

fn end(clock: &ManualClock, executor: &ScheduledThreadPoolExecutor) {
    executor.shutdown();
    clock.run_until_idle();
    executor.await_termination(LONG).unwrap();
}

/// Every point, in its order, with the moments that the worker has read.
#[test]
fn an_observer_is_told_of_everything_in_its_order() {
    let told = Told::new("it");
    let (clock, executor) = manual_with(|builder| builder.observer(told.clone()));
    let time = clock.clone();
    let mut ends = [Ok(()), Err("no")].into_iter();
    let body = move || {
        time.advance(ms(3));
        ends.next().unwrap_or(Ok(()))
    };
    executor.task().name("sweep").repeat(every(ms(10)).first_in(ms(1)).times(2), body).unwrap();
    clock.advance(ms(2));
    clock.run_until_idle();
    clock.advance(ms(9));
    clock.run_until_idle();
    end(&clock, &executor);
    let expected = [
        "worker started",
        "taken 1ms late",
        "before run 1",
        "after run 1, true",
        "sweep 1 1 false: 1ms late, 3ms",
        "taken 3ms late",
        "before run 2",
        "after run 2, false",
        "failed: no",
        "sweep 2 1 true: 3ms late, 3ms",
        "worker ended",
        "terminated",
    ];
    assert_eq!(told.take(), expected.map(|line| format!("it: {line}")));
}

/// Each of several is told, in their order, whatever another does; and the closures of the verbs come last.
#[test]
fn several_observers_are_told_although_one_panics() {
    struct Panics;
    impl Observer for Panics {
        fn worker_started(&self) {
            panic!("at the start");
        }
        fn task_taken(&self, _: TaskId, _: Instant, _: Duration) {
            panic!("at the taking");
        }
        fn after_run(&self, _: &TaskContext, _: Result<(), &Failure>) {
            panic!("after the run");
        }
        fn run_ended(&self, _: &EndedRun<'_>) {
            panic!("at the end");
        }
        fn failed(&self, _: &FailureReport<'_>) -> bool {
            panic!("in the report");
        }
        fn terminated(&self) {
            panic!("at the very end");
        }
    }
    let told = Told::new("one");
    let (also, hook) = (told.named("two"), told.named("verb"));
    let (clock, executor) = manual_with(|builder| {
        let builder = builder.before_execute(move |_| hook.say("before"));
        builder.observer(Panics).observer(told.clone()).observer(also)
    });
    assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
    end(&clock, &executor);
    let lines = told.take();
    for (point, reason) in [
        ("worker started", "at the start"),
        ("taken 0ns late", "at the taking"),
        ("after run 1, true", "after the run"),
        ("- 1 1 false: 0ns late, 0ns", "at the end"),
        ("terminated", "at the very end"),
    ] {
        let reports = ["one", "two"].map(|name| format!("{name}: failed: {reason}"));
        let tellings = ["one", "two"].map(|name| format!("{name}: {point}"));
        let place = lines.iter().position(|line| *line == reports[0]).expect(reason);
        assert_eq!(lines[place..place + 4], [reports, tellings].concat(), "{point}");
    }
    let before = lines.iter().position(|line| line == "one: before run 1").unwrap();
    assert_eq!(lines[before + 1..before + 3], ["two: before run 1", "verb: before"]);
}

/// The first that panics before a run keeps it from taking place, and no other is asked then.
#[test]
fn a_panic_before_a_run_fails_it() {
    struct Refuses;
    impl Observer for Refuses {
        fn before_run(&self, _: &TaskContext) {
            panic!("refused");
        }
    }
    let told = Told::new("it");
    let (clock, executor) = manual_with(|builder| builder.observer(Refuses).observer(told.clone()));
    let error = executor.submit(|| 7).unwrap().join().unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    end(&clock, &executor);
    let lines = told.take();
    assert!(!lines.iter().any(|line| line.contains("run 1")), "{lines:?}");
    assert!(lines.contains(&"it: - 1 1 true: 0ns late, 0ns".to_owned()), "{lines:?}");
}

/// A run that its gate has put off keeps its plan, and says when it was due.
#[test]
fn a_run_that_was_put_off_is_late_by_its_plan() {
    struct Moments(mpsc::Sender<[Option<Instant>; 4]>);
    impl Observer for Moments {
        fn run_ended(&self, run: &EndedRun<'_>) {
            let moments = [run.planned(), run.due(), run.started(), run.ended()];
            self.0.send(moments).unwrap();
        }
    }
    let (tell, moments) = mpsc::channel();
    let (clock, executor) = manual_with(|builder| builder.observer(Moments(tell)));
    let begin = clock.now();
    let mut asked = 0;
    let answers = Mutex::new(move || {
        asked += 1;
        if asked == 1 { Entry::Again(ms(4)) } else { Entry::Run }
    });
    let gate = gate::from_fn(move |_: &gate::Tick<'_>| answers.lock().unwrap()());
    let time = clock.clone();
    executor.task().gate(gate).schedule(ms(2), move || time.advance(ms(1))).unwrap();
    clock.run_for(ms(20));
    let [planned, due, started, ended] = moments.recv().unwrap();
    let at = |moment: Option<Instant>| moment.unwrap().saturating_duration_since(begin);
    assert_eq!([at(planned), at(due), at(started), at(ended)], [2, 6, 6, 7].map(ms));
    assert!(moments.try_recv().is_err(), "a question is no run");
}

/// An observer is told at the points that it has named, and at no others; its executor has it by its type.
#[test]
fn an_observer_is_told_at_its_points_alone() {
    struct Some(Told);
    impl Observer for Some {
        fn points(&self) -> Points {
            Points::TAKEN | Points::AFTER
        }

        fn task_taken(&self, _: TaskId, _: Instant, overdue: Duration) {
            self.0.say(format!("taken {overdue:?} late"));
        }

        fn before_run(&self, run: &TaskContext) {
            self.0.before_run(run);
        }

        fn after_run(&self, run: &TaskContext, outcome: Result<(), &Failure>) {
            self.0.after_run(run, outcome);
        }

        fn run_ended(&self, run: &EndedRun<'_>) {
            self.0.run_ended(run);
        }
    }
    let (clock, executor) = manual_with(|builder| builder.observer(Some(Told::new("it"))));
    executor.execute(|| ()).unwrap();
    clock.run_until_idle();
    let told = executor.observer().map(|it: &Some| it.0.take()).unwrap();
    assert_eq!(told, ["it: taken 0ns late", "it: after run 1, true"]);
    assert!(executor.observer::<Told>().is_none());
}

/// The name of a task and that of its group are told of its own runs, and groups with one name are told apart.
#[test]
fn a_run_is_told_with_its_names() {
    type Heard = (Option<String>, Option<Arc<str>>);
    #[derive(Clone, Default)]
    struct Names(Arc<Mutex<Vec<Heard>>>);
    impl Observer for Names {
        fn run_ended(&self, run: &EndedRun<'_>) {
            let names = (run.name().map(str::to_owned), run.group_name().cloned());
            self.0.lock().unwrap().push(names);
        }
    }
    let seen = Names::default();
    let (clock, executor) = manual_with(|builder| builder.observer(seen.clone()));
    let name: Arc<str> = "mail".into();
    let groups = [(); 2].map(|()| executor.group(Arc::clone(&name)).build().unwrap());
    for group in &groups {
        group.task().name("letter").execute(|| ()).unwrap();
    }
    let skips = gate::from_fn(|_| Entry::Skip);
    executor.task().name("skipped").gate(skips).execute(|| ()).unwrap();
    executor.execute(|| ()).unwrap();
    clock.run_until_idle();
    let seen = seen.0.lock().unwrap();
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names, [Some("letter"), Some("letter"), None]);
    let [(_, Some(one)), (_, Some(other)), (_, None)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&**one, &**other), ("mail", "mail"));
    assert!(!Arc::ptr_eq(one, other));
}
