//! An executor of a replica, on a thread of its own that runs only while the simulation waits for it.
//!
//! A body that lasts has to be left where it stands, and gone on with when its time has come, or when other replicas
//! have done something meanwhile. A thread is the only thing that can do that with a closure. It is never at work at
//! the same time as the simulation or another one: each order is followed by a report.

use std::{
    cell::RefCell,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    task::{Wake, Waker},
    thread,
    time::Duration,
};

use punctual::{DrivenExecutor, Handle};
use tokio::runtime;

use super::wire::News;

type Build = Box<dyn FnOnce() -> DrivenExecutor + Send>;

enum Order {
    Begin(Build, runtime::Handle, Waker),
    /// Run what is due.
    Drive,
    /// Go on with the body.
    Resume,
    /// The process was killed.
    Die,
}

enum Report {
    Begun(Handle),
    /// Nothing is due before so much time is over.
    Idle(Option<Duration>),
    /// A body lasts for so long.
    Lasts(Duration),
    Dead,
}

thread_local! {
    /// The ends of the channels, on the thread of an actor.
    static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) };
    /// The threads that no actor has, on the thread of a simulation.
    static SPARE: RefCell<Vec<Thread>> = const { RefCell::new(Vec::new()) };
}

struct Ends {
    orders: Receiver<Order>,
    reports: Sender<Report>,
    is_dying: bool,
}

struct Thread {
    orders: Sender<Order>,
    reports: Receiver<Report>,
}

/// The value of the panic that ends a body whose process is killed.
struct Killed;

/// Has the body that calls this last for so long.
pub(super) fn last(span: Duration) {
    let is_killed = ENDS.with_borrow_mut(|ends| {
        let ends = ends.as_mut().expect("a body runs on the thread of an actor");
        if !ends.is_dying {
            drop(ends.reports.send(Report::Lasts(span)));
            ends.is_dying = !matches!(ends.orders.recv(), Ok(Order::Resume));
        }
        ends.is_dying
    });
    if is_killed {
        resume_unwind(Box::new(Killed));
    }
}

/// Ends the body that calls this if its process was killed.
pub(super) fn end_if_killed() {
    let is_killed = ENDS.with_borrow(|ends| ends.as_ref().is_some_and(|ends| ends.is_dying));
    if is_killed {
        resume_unwind(Box::new(Killed));
    }
}

fn next_order() -> Option<Order> {
    ENDS.with_borrow(|ends| ends.as_ref().and_then(|ends| ends.orders.recv().ok()))
}

fn report(report: Report) {
    ENDS.with_borrow(|ends| ends.as_ref().map(|ends| ends.reports.send(report)));
}

fn spawn() -> Thread {
    let (give, orders) = channel();
    let (reports, take) = channel();
    let body = move || {
        let ends = Ends { orders, reports, is_dying: false };
        ENDS.set(Some(ends));
        while let Some(order) = next_order() {
            let Order::Begin(build, runtime, waker) = order else { continue };
            ENDS.with_borrow_mut(|ends| ends.as_mut().map(|ends| ends.is_dying = false));
            live(build, &runtime, waker);
            report(Report::Dead);
        }
    };
    thread::Builder::new().stack_size(1 << 20).spawn(body).expect("a thread");
    Thread { orders: give, reports: take }
}

/// Follows orders until the process is killed.
fn live(build: Build, runtime: &runtime::Handle, waker: Waker) {
    // The clock of the runtime is that of the leases.
    let _context = runtime.enter();
    let mut executor = build();
    executor.set_waker(waker);
    report(Report::Begun(executor.handle()));
    while let Some(Order::Drive) = next_order() {
        executor.run_due();
        if ENDS.with_borrow(|ends| ends.as_ref().is_some_and(|ends| ends.is_dying)) {
            break;
        }
        let next = executor.time_until_next();
        report(Report::Idle(next));
    }
    ENDS.with_borrow_mut(|ends| ends.as_mut().map(|ends| ends.is_dying = true));
    drop(executor);
}

struct Woken {
    is_woken: AtomicBool,
    news: Arc<News>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Relaxed);
        self.news.tell();
    }
}

/// See the [module](self).
pub(super) struct Actor {
    thread: Option<Thread>,
    woken: Arc<Woken>,
    pub(super) handle: Handle,
    /// When it is to be driven, or its body goes on, in milliseconds of the simulation.
    next: Option<u64>,
    is_in_body: bool,
}

impl Actor {
    pub(super) fn begin(build: Build, runtime: runtime::Handle, news: &Arc<News>) -> Self {
        let thread = SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(spawn);
        let woken = Arc::new(Woken { is_woken: AtomicBool::new(true), news: Arc::clone(news) });
        let waker = Waker::from(Arc::clone(&woken));
        drop(thread.orders.send(Order::Begin(build, runtime, waker)));
        let Ok(Report::Begun(handle)) = thread.reports.recv() else { panic!("it begins") };
        Self { thread: Some(thread), woken, handle, next: None, is_in_body: false }
    }

    /// Returns when it has something to do; the present if it was woken.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        let is_woken = !self.is_in_body && self.woken.is_woken.load(Relaxed);
        if is_woken { Some(now) } else { self.next }
    }

    /// Does what there is to do at this moment.
    pub(super) fn act(&mut self, now: u64) {
        let order = if self.is_in_body { Order::Resume } else { Order::Drive };
        if !self.is_in_body {
            self.woken.is_woken.store(false, Relaxed);
        }
        let Some(thread) = &self.thread else { return };
        drop(thread.orders.send(order));
        match thread.reports.recv().expect("an actor reports") {
            Report::Idle(next) => {
                self.is_in_body = false;
                self.next = next.map(|span| now + span.as_nanos().div_ceil(1_000_000) as u64);
            }
            Report::Lasts(span) => {
                self.is_in_body = true;
                self.next = Some(now + span.as_millis() as u64);
            }
            Report::Begun(_) | Report::Dead => panic!("an actor lives until it is killed"),
        }
    }
}

impl Drop for Actor {
    /// Kills the process.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        drop(thread.orders.send(Order::Die));
        loop {
            match thread.reports.recv() {
                Ok(Report::Dead) => break,
                Ok(_) => {}
                // The thread has panicked.
                Err(_) => return,
            }
        }
        SPARE.with_borrow_mut(|spare| spare.push(thread));
    }
}
