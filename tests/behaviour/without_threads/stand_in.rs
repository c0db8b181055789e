//! A stand-in for the executor and its builder, with the same methods: it owns a thread in which a
//! [`DrivenExecutor`] is driven by nothing but its public methods.

use std::{
    env, fmt,
    future::poll_fn,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Poll, Waker},
    thread::{self, JoinHandle},
    time::Duration,
};

use real::{
    Clock, ConfigError, Done, DropPolicy, Failure, FailureReport, Handle, Limit, Observer,
    RejectedExecutionHandler, SlowRun, Starvation, Submission, TaskContext, TaskRun, ThreadFactory,
    WouldDeadlock,
};

use crate::with_threads::is_with_threads;

/// An order of the owner for the thread.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Drop the executor.
    Drop,
    /// Drive it to its end.
    Finish,
}

#[derive(Default)]
struct Orders(Mutex<(Option<Order>, Option<Waker>)>);

impl Orders {
    fn give(&self, order: Order) {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.0.get_or_insert(order);
        let waker = orders.1.take();
        drop(orders);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, waker: &Waker) -> Poll<Order> {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.1 = Some(waker.clone());
        orders.0.map_or(Poll::Pending, Poll::Ready)
    }
}

/// An executor in a thread that drives it.
struct Driven {
    handle: Handle,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    on_drop: DropPolicy,
}

impl Driven {
    fn start(builder: real::Builder, on_drop: DropPolicy) -> Result<Self, ConfigError> {
        let (orders, (tell, told)) = (Arc::new(Orders::default()), mpsc::channel());
        let taken = Arc::clone(&orders);
        let thread = thread::spawn(move || drive(builder, &taken, &tell));
        let handle = told.recv().expect("it answers")?;
        Ok(Self { handle, orders, thread: Some(thread), on_drop })
    }

    /// Waits for the end, and for the thread. The clock sees who waits for an order that takes time, and not who
    /// waits for a drop: the thread that drops is no worker of it any more.
    fn finish(&mut self, order: Order) -> Result<(), WouldDeadlock> {
        self.orders.give(order);
        let timeout = if order == Order::Finish { Duration::MAX } else { Duration::ZERO };
        let ended = self.handle.await_termination(timeout);
        if ended.is_ok() {
            self.orders.give(Order::Drop);
            self.thread.take().map(JoinHandle::join);
        }
        self.thread = None;
        ended.map(drop)
    }
}

/// All that the thread does. The handle is told when the clock counts this thread.
fn drive(
    builder: real::Builder,
    orders: &Orders,
    tell: &mpsc::Sender<Result<Handle, ConfigError>>,
) {
    let mut executor = match builder.build_driven() {
        Ok(executor) => executor,
        Err(error) => return tell.send(Err(error)).expect("it is waited for"),
    };
    let mut handle = Some(executor.handle());
    let order = executor.run_until(poll_fn(|context| {
        handle.take().map(|handle| tell.send(Ok(handle)));
        orders.poll(context.waker())
    }));
    if order == Order::Finish {
        let end = executor.termination();
        executor.run_until(end);
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if self.thread.is_none() {
            return;
        }
        let policy = if thread::panicking() { DropPolicy::ShutdownNow } else { self.on_drop };
        if policy == DropPolicy::ShutdownNow {
            drop(self.handle.shutdown_now());
        }
        match policy {
            DropPolicy::Stop | DropPolicy::Close => drop(self.finish(Order::Drop)),
            _ => self.orders.give(Order::Drop),
        }
    }
}

enum Inner {
    Driven(Driven),
    Threads(real::ScheduledThreadPoolExecutor),
}

pub struct ScheduledThreadPoolExecutor(Inner);

impl ScheduledThreadPoolExecutor {
    pub fn new(core_pool_size: usize) -> Self {
        Self::builder().core_pool_size(core_pool_size).build().expect("the settings are good")
    }

    pub fn builder() -> Builder {
        let real = real::ScheduledThreadPoolExecutor::builder();
        Builder { real, is_driven: !is_with_threads(), on_drop: DropPolicy::default() }
    }

    pub fn handle(&self) -> Handle {
        Handle::clone(self)
    }

    pub fn close(self) -> Result<(), WouldDeadlock> {
        match self.0 {
            Inner::Threads(real) => real.close(),
            Inner::Driven(mut driven) => {
                driven.handle.shutdown();
                driven.finish(Order::Finish)
            }
        }
    }

    pub fn close_within(self, limit: impl Into<Limit>) -> Result<(), WouldDeadlock> {
        match self.0 {
            Inner::Threads(real) => real.close_within(limit),
            Inner::Driven(_) => panic!("a test that needs threads: see `with_threads`"),
        }
    }

    pub fn close_background(self) {
        match self.0 {
            Inner::Threads(real) => real.close_background(),
            Inner::Driven(mut driven) => {
                driven.handle.shutdown();
                driven.orders.give(Order::Finish);
                driven.thread = None;
            }
        }
    }

    pub fn shutdown_background(self) {
        match self.0 {
            Inner::Threads(real) => real.shutdown_background(),
            Inner::Driven(mut driven) => {
                driven.orders.give(Order::Drop);
                driven.thread = None;
            }
        }
    }
}

impl Deref for ScheduledThreadPoolExecutor {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        match &self.0 {
            Inner::Driven(driven) => &driven.handle,
            Inner::Threads(real) => real,
        }
    }
}

impl fmt::Debug for ScheduledThreadPoolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Driven(driven) => driven.handle.fmt(f),
            Inner::Threads(real) => real.fmt(f),
        }
    }
}

/// The builder, which notes whether one worker will do.
#[derive(Clone, Debug)]
pub struct Builder {
    real: real::Builder,
    is_driven: bool,
    on_drop: DropPolicy,
}

/// Passes settings on: first those that have nothing to do with threads, then those that have.
macro_rules! settings {
    ({ $($name:ident($($argument:ident: $type:ty),*);)* } { $($of:ident($($thread:ident: $its:ty),*);)* }) => {
        $(pub fn $name(mut self, $($argument: $type),*) -> Self {
            self.real = self.real.$name($($argument),*);
            self
        })*
        $(pub fn $of(mut self, $($thread: $its),*) -> Self {
            self.real = self.real.$of($($thread),*);
            self.is_driven = false;
            self
        })*
    };
}

impl Builder {
    settings! {{
        max_pending(tasks: usize);
        rejected_execution_handler(handler: impl RejectedExecutionHandler + 'static);
        thread_name(name: impl Into<String>);
        timer_slack(slack: Duration);
        clock(clock: impl Into<Clock>);
        executes_existing_delayed_tasks_after_shutdown(keep: bool);
        continues_existing_periodic_tasks_after_shutdown(keep: bool);
        before_execute(hook: impl Fn(&TaskContext) + Send + Sync + 'static);
        after_execute(hook: impl Fn(&TaskContext, Result<(), &Failure>) + Send + Sync + 'static);
        terminated(hook: impl Fn() + Send + Sync + 'static);
        failure_handler(handler: impl Fn(&FailureReport<'_>) + Send + Sync + 'static);
        histograms(names: usize);
        submitter_span(follow: bool);
    } {
        keep_alive(keep_alive: Duration);
        allows_core_thread_timeout(allow: bool);
        prestart_core_threads(prestart: bool);
        thread_factory(factory: impl ThreadFactory + 'static);
        stack_size(bytes: usize);
        precise(lead: Duration);
        on_thread_start(callback: impl Fn() + Send + Sync + 'static);
        on_thread_stop(callback: impl Fn() + Send + Sync + 'static);
        observer(observer: impl Observer + 'static);
        // Which look from a thread of their own.
        warn_after(limit: Duration);
        on_slow_run(callback: impl Fn(&SlowRun) + Send + Sync + 'static);
        on_starvation(after: Duration, callback: impl Fn(&Starvation) + Send + Sync + 'static);
    }}

    pub fn decorate_task<D, W>(mut self, decorator: D) -> Self
    where
        D: Fn(&Submission<'_>) -> W + Send + Sync + 'static,
        W: FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static,
    {
        self.real = self.real.decorate_task(decorator);
        self
    }

    pub fn core_pool_size(mut self, size: usize) -> Self {
        self.real = self.real.core_pool_size(size);
        self.is_driven &= size == 1;
        self
    }

    pub fn on_drop(mut self, policy: DropPolicy) -> Self {
        (self.real, self.on_drop) = (self.real.on_drop(policy), policy);
        self
    }

    pub fn build(self) -> Result<ScheduledThreadPoolExecutor, ConfigError> {
        let inner = if self.is_driven {
            if let Some(path) = env::var_os("PUNCTUAL_DRIVEN_LOG") {
                note(path);
            }
            Inner::Driven(Driven::start(self.real, self.on_drop)?)
        } else {
            Inner::Threads(self.real.build()?)
        };
        Ok(ScheduledThreadPoolExecutor(inner))
    }
}

/// Writes down that a test has a driven executor.
fn note(path: std::ffi::OsString) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let thread = thread::current();
    let _ = writeln!(file.expect("it can be written"), "{}", thread.name().unwrap_or("-"));
}
