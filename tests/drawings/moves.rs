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

use crate::{
    descriptions::DIAGRAMS,
    diagram::{Diagram, End},
};

/// Moves, each with the states before and after it.
type Moves = BTreeSet<(String, String)>;

const SECOND: Duration = Duration::from_secs(1);

/// The moves that a picture shows. An arrow from a frame is one from each box inside it.
fn drawn(file: &str) -> Moves {
    let diagram = DIAGRAMS.into_iter().find(|diagram| diagram.file == file).expect("a picture");
    let mut moves = Moves::new();
    for arrow in diagram.arrows {
        if let (End::Of(from, ..), End::Of(to, ..)) = (arrow.from, arrow.to) {
            let from = if from.is_empty() { inside(&diagram) } else { vec![from] };
            moves.extend(from.into_iter().map(|from| (from.to_owned(), to.to_owned())));
        }
    }
    moves
}

/// The boxes inside the frame.
fn inside(diagram: &Diagram) -> Vec<&'static str> {
    let frame = diagram.boxes.iter().find(|node| node.name.is_empty()).expect("a frame");
    let is_inside =
        |at: f32, size: f32, (outer, room): (f32, f32)| at > outer && at + size < outer + room;
    let boxes = diagram.boxes.iter().filter(|node| {
        is_inside(node.at.0, node.size.0, (frame.at.0, frame.size.0))
            && is_inside(node.at.1, node.size.1, (frame.at.1, frame.size.1))
    });
    boxes.map(|node| node.name).collect()
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
