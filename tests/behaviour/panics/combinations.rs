//! Combines everything that can panic in a task with everything that can happen to it, in every
//! order: one worker survives it all.

use std::{
    panic::{self, AssertUnwindSafe, panic_any},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Poll, Wake, Waker},
};

use punctual::{ScheduledFuture, TaskError, TaskHandle, TaskState};

use crate::{
    panics::containment::Subject,
    support::{Counter, DropToken, Drops, Elsewhere, elsewhere, hold, ms, poll},
};

/// Counts when it is dropped, and panics if it is armed.
struct Loud {
    armed: bool,
    _token: DropToken,
}

impl Loud {
    fn new(armed: bool, drops: &Drops) -> Self {
        Self { armed, _token: drops.token() }
    }
}

impl Drop for Loud {
    fn drop(&mut self) {
        if self.armed {
            panic_any("a drop");
        }
    }
}

/// Counts how often it is woken, and panics then if it is armed.
struct Bell {
    armed: bool,
    rings: AtomicUsize,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.armed {
            panic_any("a waker");
        }
    }
}

/// The kind of a task, and which of its parts panic.
#[derive(Clone, Copy, Debug)]
struct Faults {
    periodic: bool,
    body: bool,
    capture: bool,
    result: bool,
    waker: bool,
}

/// Whether the task is periodic, and whether body, capture and result panic. The body and the
/// capture of a one-shot task cannot both panic, see F4; a periodic task has no result.
const FAULTS: [(bool, bool, bool, bool); 8] = [
    (false, false, false, false),
    (false, false, false, true),
    (false, false, true, false),
    (false, true, false, false),
    (true, false, false, false),
    (true, false, true, false),
    (true, true, false, false),
    (true, true, true, false),
];

/// An event in the life of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// It is due: the body begins, unless the task has ended.
    Begin,
    /// The body ends.
    End,
    /// The future is polled, and keeps a waker.
    Poll,
    Cancel,
    /// The future is dropped.
    Drop,
    /// A thread joins the future.
    Join,
}

/// Each of the orders with the event inserted, at each position up to the last allowed one.
fn with(orders: &[Vec<Event>], event: Event, last: fn(&[Event]) -> usize) -> Vec<Vec<Event>> {
    let places = orders.iter().flat_map(|order| (0..=last(order)).map(move |place| (order, place)));
    let longer = places.map(|(order, place)| {
        let mut order = order.clone();
        order.insert(place, event);
        order
    });
    longer.collect()
}

fn loss(order: &[Event]) -> usize {
    let is_loss = |event: &Event| matches!(event, Event::Drop | Event::Join);
    order.iter().position(is_loss).expect("the future is lost")
}

/// Every order of a run, the loss of the future by a drop or a join, at most one cancel, and at
/// most one poll while there is a future.
fn orders() -> Vec<Vec<Event>> {
    let run = [vec![Event::Begin, Event::End]];
    let mut orders = with(&run, Event::Drop, <[Event]>::len);
    orders.extend(with(&run, Event::Join, <[Event]>::len));
    orders.extend(with(&orders, Event::Cancel, <[Event]>::len));
    orders.extend(with(&orders, Event::Poll, loss));
    orders
}

/// The state that the parts of one task share.
#[derive(Default)]
struct Stage {
    started: Counter,
    gate: Counter,
    captures: Drops,
    results: Drops,
}

impl Stage {
    /// A body that reports that it runs, and waits until it may continue.
    fn body(&self, panics: bool) -> impl Fn() + Send + 'static {
        let (started, gate) = (self.started.clone(), self.gate.clone());
        move || {
            started.add();
            gate.wait_for(1);
            assert!(!panics, "the body");
        }
    }
}

impl Faults {
    /// The state in which the end of a run leaves a task that was not cancelled.
    fn ending(self) -> TaskState {
        match self {
            Self { body: true, .. } | Self { capture: true, periodic: false, .. } => {
                TaskState::Failed
            }
            Self { periodic: true, .. } => TaskState::Scheduled,
            _ => TaskState::Completed,
        }
    }

    /// Takes one task through its life, and checks what has been dropped.
    fn check(self, order: &[Event], subject: &Subject) {
        let stage = Stage::default();
        let body = stage.body(self.body);
        let capture = Loud::new(self.capture, &stage.captures);
        if self.periodic {
            let future = subject.executor.schedule_with_fixed_delay(ms(1), ms(1), move || {
                hold(&capture);
                body();
            });
            Life::new(self, subject, &stage, future.expect("accepted")).pass(order);
        } else {
            let results = stage.results.clone();
            let future = subject.executor.schedule(ms(1), move || {
                hold(&capture);
                body();
                Loud::new(self.result, &results)
            });
            Life::new(self, subject, &stage, future.expect("accepted")).pass(order);
        }
        assert_eq!(stage.captures.count(), 1, "{self:?}, {order:?}");
        // Today's compilers leak a function's return value if its captures panic after it.
        if self.periodic || !self.capture {
            let has_run = stage.started.get() == 1;
            let has_result = has_run && !self.body && !self.periodic;
            assert_eq!(stage.results.count(), usize::from(has_result), "{self:?}, {order:?}");
        }
    }
}

/// One task on its way, and what is known about it.
struct Life<'a, T> {
    faults: Faults,
    subject: &'a Subject,
    stage: &'a Stage,
    handle: TaskHandle,
    future: Option<ScheduledFuture<T>>,
    joining: Option<Elsewhere<Result<T, TaskError>>>,
    bell: Arc<Bell>,
    /// How often the waker must have been woken at the end.
    rings: usize,
    /// A poll has taken the result.
    is_taken: bool,
    state: TaskState,
}

impl<'a, T: Send + 'static> Life<'a, T> {
    fn new(
        faults: Faults,
        subject: &'a Subject,
        stage: &'a Stage,
        future: ScheduledFuture<T>,
    ) -> Self {
        Self {
            faults,
            subject,
            stage,
            handle: future.task_handle(),
            future: Some(future),
            joining: None,
            bell: Arc::new(Bell { armed: faults.waker, rings: AtomicUsize::new(0) }),
            rings: 0,
            is_taken: false,
            state: TaskState::Scheduled,
        }
    }

    fn pass(mut self, order: &[Event]) {
        for event in order {
            self.meet(*event);
            assert_eq!(
                self.handle.state(),
                self.state,
                "{event:?} of {order:?}, {:?}",
                self.faults
            );
        }
        // A periodic task continues until it is cancelled.
        let goes_on = self.state == TaskState::Scheduled;
        assert_eq!(self.handle.cancel(), goes_on, "{order:?}, {:?}", self.faults);
        if goes_on {
            self.state = TaskState::Cancelled;
        }
        if let Some(joining) = self.joining.take() {
            let joined = joining.get();
            self.look_at(joined, self.is_taken, order);
        }
        let rings = self.bell.rings.load(Ordering::SeqCst);
        assert_eq!(rings, self.rings, "{order:?}, {:?}", self.faults);
        assert_eq!(Arc::strong_count(&self.bell), 1, "{order:?}, {:?}", self.faults);
        self.subject.assert_worker_lives();
    }

    fn meet(&mut self, event: Event) {
        let is_over = self.state.is_done();
        match event {
            Event::Begin => {
                self.subject.clock.advance(ms(1));
                if !is_over {
                    self.stage.started.wait_for(1);
                    self.state = TaskState::Running;
                }
            }
            Event::End => {
                self.stage.gate.add();
                self.subject.assert_worker_lives();
                if !is_over {
                    self.state = self.faults.ending();
                }
            }
            Event::Poll => self.poll(),
            Event::Cancel => {
                assert_eq!(self.handle.cancel(), !is_over);
                if !is_over {
                    self.state = TaskState::Cancelled;
                }
            }
            Event::Drop => {
                self.future = None;
                // There is no waker to wake.
                self.rings = if is_over { self.rings } else { 0 };
            }
            Event::Join => {
                let future = self.future.take().expect("it is lost once");
                self.joining = Some(elsewhere(move || future.join()));
            }
        }
    }

    fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.bell));
        let polled = poll(self.future.as_mut().expect("it is polled before"), &waker);
        self.is_taken = self.state.is_done();
        self.rings = usize::from(!self.is_taken);
        match polled {
            Poll::Pending => assert!(!self.is_taken),
            Poll::Ready(outcome) => self.look_at(outcome, false, &[Event::Poll]),
        }
    }

    /// An outcome matches the state; a value and a panic can be taken once.
    fn look_at(&self, outcome: Result<T, TaskError>, is_taken: bool, order: &[Event]) {
        let is_right = match (&outcome, self.state) {
            (Err(TaskError::Cancelled(_)), TaskState::Cancelled) => true,
            (Err(TaskError::ResultTaken), TaskState::Completed | TaskState::Failed) => is_taken,
            (Ok(_), TaskState::Completed) => !is_taken,
            (Err(TaskError::Failed(_)), TaskState::Failed) => !is_taken,
            _ => false,
        };
        assert!(is_right, "{order:?}, {:?}: {:?}", self.faults, outcome.map(drop));
        let is_loud = self.faults.result && outcome.is_ok();
        let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(outcome)));
        assert_eq!(dropped.is_err(), is_loud, "{order:?}, {:?}", self.faults);
    }
}

/// F1, F2, F3, F4, F5, F6, F8, F31, F37, F49, G14, G26, M40: whatever panics, and in whichever
/// order a task is run, polled, cancelled, and its future dropped or joined, it ends in one way,
/// which every observer sees; capture and result are dropped once, a waker is woken once or
/// dropped, and the worker survives.
#[test]
fn one_worker_survives_every_combination() {
    let (subject, orders) = (Subject::new(), orders());
    let mut cells = 0;
    for (periodic, body, capture, result) in FAULTS {
        for order in &orders {
            let is_polled = order.contains(&Event::Poll);
            for waker in [false, true].into_iter().take(1 + usize::from(is_polled)) {
                let faults = Faults { periodic, body, capture, result, waker };
                faults.check(order, &subject);
                cells += 1;
            }
        }
    }
    assert_eq!((orders.len(), cells), (102, 1_392));
}
