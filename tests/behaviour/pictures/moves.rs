//! The arrows between the states are the moves that real tasks and executors make: no other, and all of them.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    ops::ControlFlow,
    panic::resume_unwind,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    time::Duration,
};

use punctual::{
    ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor, TaskState, trigger::every,
};

use super::svg::{Element, Point, boxes, picture};

/// Moves, each with the states before and after it.
type Moves = BTreeSet<(String, String)>;

const SECOND: Duration = Duration::from_secs(1);

/// The moves that a picture shows. An arrow from a frame is one from each box inside it.
fn drawn(file: &str) -> Moves {
    let elements = picture(file);
    let mut moves = Moves::new();
    // An arrow is a line and its head.
    for pair in elements.windows(2) {
        let is_arrow = pair.iter().all(|part| part.name == "path");
        if is_arrow && pair[0].has_class("faint-line") && pair[1].has_class("faint") {
            let (start, tip) = (points(&pair[0])[0], points(&pair[1])[1]);
            let to = at_border(&elements, tip);
            moves.extend(
                at_border(&elements, start)
                    .into_iter()
                    .flat_map(|from| to.iter().map(move |to| (from.to_owned(), (*to).to_owned()))),
            );
        }
    }
    moves
}

/// The corners of a path: `M94 62L94 142`.
fn points(path: &Element) -> Vec<Point> {
    let corners =
        path.get("d").expect("a path").split(['M', 'L', 'Z']).filter(|corner| !corner.is_empty());
    let number = |text: &str| text.parse().expect("a number");
    let point = |corner: &str| corner.split_once(' ').map(|(x, y)| (number(x), number(y)));
    corners.map(|corner| point(corner).expect("two numbers")).collect()
}

/// The box at whose border this point is; for that of a frame, the boxes inside.
fn at_border(elements: &[Element], point: Point) -> Vec<&str> {
    let is_at_border = |element: &Element| {
        let ((x, y), (width, height)) = (element.at(), element.size());
        let is_side = point.0 == x || point.0 == x + width || point.1 == y || point.1 == y + height;
        element.has(point) && is_side
    };
    let frame = elements.iter().find(|it| it.has_class("dashed") && is_at_border(it));
    let is_meant =
        |node: &Element| frame.map_or_else(|| is_at_border(node), |frame| frame.has(node.at()));
    boxes(elements).into_iter().filter(|(node, _)| is_meant(node)).map(|(_, name)| name).collect()
}

/// How a run ends.
enum Ends {
    Again,
    Last,
    Panics,
}

/// A series whose runs go on until they are told how to end, on a clock that moves when it is told.
struct Subject {
    clock: ManualClock,
    executor: ScheduledThreadPoolExecutor,
    series: ScheduledFuture<()>,
    begun: Receiver<()>,
    go: SyncSender<Ends>,
}

impl Subject {
    fn new() -> Self {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let executor = builder.core_pool_size(1).build().expect("one worker");
        let ((begin, begun), (go, told)) = (sync_channel(1), sync_channel(1));
        let body = move || {
            begin.send(()).expect("the test listens");
            match told.recv().expect("the test tells it") {
                Ends::Again => ControlFlow::Continue(()),
                Ends::Last => ControlFlow::Break(()),
                // No hook is called for this one, so nothing is printed.
                Ends::Panics => resume_unwind(Box::new("on purpose")),
            }
        };
        let series = executor.repeat(every(SECOND).first_in(SECOND), body).expect("accepted");
        Self { clock, executor, series, begun, go }
    }

    /// Waits until it runs.
    fn runs(&self) {
        self.clock.advance(SECOND);
        self.begun.recv().expect("it begins");
    }

    fn ends(&self, how: Ends) {
        self.go.send(how).expect("it listens");
        self.clock.run_until_idle();
    }
}

/// Takes a subject through these steps, and notes each change of its state.
fn follow<S: Debug + PartialEq>(
    moves: &mut Moves,
    state: impl Fn(&Subject) -> S,
    steps: &[fn(&Subject)],
) {
    let subject = Subject::new();
    for step in steps {
        let before = state(&subject);
        step(&subject);
        let after = state(&subject);
        if before != after {
            moves.insert((format!("{before:?}"), format!("{after:?}")));
        }
    }
}

#[test]
fn the_states_of_a_task_are_drawn_as_they_are() {
    let run: fn(&Subject) = Subject::runs;
    let again: fn(&Subject) = |task| task.ends(Ends::Again);
    let pause: fn(&Subject) = |task| assert!(task.series.pause());
    let cancel: fn(&Subject) = |task| assert!(task.series.cancel());
    let run_now: fn(&Subject) = |task| {
        assert!(task.series.run_now());
        task.begun.recv().expect("it begins");
    };
    let resume: fn(&Subject) = |task| assert!(task.series.resume());
    let histories: [&[fn(&Subject)]; 6] = [
        &[run, again, pause, resume, run, pause, again, run_now, again, cancel],
        &[run, |task| task.ends(Ends::Last)],
        &[run, |task| task.ends(Ends::Panics)],
        &[cancel],
        &[pause, cancel],
        &[run, cancel, again],
    ];
    let mut moves = Moves::new();
    for steps in histories {
        follow(&mut moves, |task| -> TaskState { task.series.state() }, steps);
    }
    assert_eq!(moves, drawn("task-states"));
}

#[test]
fn the_states_of_an_executor_are_drawn_as_they_are() {
    let run: fn(&Subject) = Subject::runs;
    let shutdown: fn(&Subject) = |task| task.executor.shutdown();
    let stop: fn(&Subject) = |task| drop(task.executor.shutdown_now());
    let end: fn(&Subject) = |task| {
        task.go.send(Ends::Last).expect("it listens");
        assert!(task.executor.await_termination(60 * SECOND).expect("no worker waits"));
    };
    let mut moves = Moves::new();
    let histories: [&[fn(&Subject)]; 2] = [&[run, shutdown, stop, end], &[run, stop, end]];
    for steps in histories {
        follow(&mut moves, |task| task.executor.statistics().state, steps);
    }
    assert_eq!(moves, drawn("pool-states"));
}
