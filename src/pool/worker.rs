//! The worker: takes a task when it is due, runs it, and puts it back if it is to run again.
//!
//! A worker owns nothing but its thread. It ends when the queue is closed and empty, or when it
//! has been surplus and idle for long enough ([`crew`](super::crew)). Nothing that a task does
//! ends it: the task catches the panics of its closure and its drops, and what is left to drop
//! here is dropped behind the same door.
//!
//! The thread comes from a [`ThreadFactory`], which gets the worker as a thing to be run. What the
//! pool knows of a worker hangs on its [`Member`], which the worker takes along: wherever it is
//! dropped, at the end of the run or by a factory that never ran it, the worker is counted off.

use std::{cell::Cell, fmt, io, rc::Rc};

use super::{
    Pool,
    crew::Turn,
    serving::{self, Role, Serving},
};
use crate::{
    CancelReason,
    queue::Entry,
    sync::{
        Arc, Parker,
        atomic::{AtomicBool, Ordering},
        thread,
    },
    task::{PanicSource, Run, Runnable, Verdict, WorkerContext, WorkerStats},
    time::{Clock, Timestamp, slack},
    trace,
    unwind::{contain, discard, message_of},
};

/// Starts the threads of an executor: set by
/// [`Builder::thread_factory`](crate::Builder::thread_factory). Java: `ThreadFactory`.
///
/// Closures are factories. This one makes threads as the executor would by itself:
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, Worker};
///
/// let executor = ScheduledThreadPoolExecutor::builder()
///     .thread_factory(|worker: Worker| {
///         let mut thread = std::thread::Builder::new().name(worker.name().to_owned());
///         if let Some(bytes) = worker.stack_size() {
///             thread = thread.stack_size(bytes);
///         }
///         thread.spawn(move || worker.run()).map(Some)
///     })
///     .build()?;
/// # assert_eq!(executor.submit(|| 7)?.join()?, 7);
/// # executor.close()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub trait ThreadFactory: Send + Sync {
    /// Starts a thread that [runs](Worker::run) the worker. Called by whoever submits a task, and
    /// by a worker that is about to run one, if others wait and nobody else would take them. No lock
    /// is held. There is one call at a time for each executor, so others that submit, and want a
    /// thread, wait for it. It may submit to its own executor, but must not wait for a task of that,
    /// nor for another thread that submits to it.
    ///
    /// One that gives `Ok` has to see to it that the worker is run. If it is dropped later, and all
    /// others are busy, what waits there does so until one of them is done, or the next submission
    /// starts another.
    ///
    /// Give the thread's handle if there is one: [`close`](crate::ScheduledThreadPoolExecutor::close)
    /// then waits for the very end of the thread, and else for the end of the worker alone.
    ///
    /// # Errors
    ///
    /// Whatever keeps the thread from being started. The submission fails with it if there is no
    /// other worker, and else does not. What a worker was to be started for waits then for those
    /// that there are. A factory that panics, or drops the worker, has failed.
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>>;
}

impl<F> ThreadFactory for F
where
    F: Fn(Worker) -> io::Result<Option<thread::JoinHandle<()>>> + Send + Sync,
{
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
        self(worker)
    }
}

/// Threads of std, with the worker's name and stack size.
pub(super) fn std_thread(worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
    let mut builder = thread::Builder::new().name(worker.name.clone());
    if let Some(size) = worker.stack_size {
        builder = builder.stack_size(size);
    }
    builder.spawn(move || worker.run()).map(Some)
}

/// What a thread of an executor is to do; what a [`ThreadFactory`] gets.
#[must_use = "a worker that is dropped does no work"]
pub struct Worker {
    name: String,
    index: Option<usize>,
    stack_size: Option<usize>,
    work: Box<dyn FnOnce() + Send>,
}

impl Worker {
    /// What the thread is to be called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which worker of its executor it is, counted from 1 in the order in which they were to be
    /// started; no number is used twice, so one that comes for another has a number of its own.
    /// `None` for the thread that watches over [timeouts](crate::TaskBuilder::timeout), which runs
    /// no tasks.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, Worker};
    ///
    /// # fn pin_to(_core: usize) {}
    /// # fn cores() -> usize { 2 }
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .core_pool_size(cores())
    ///     .thread_factory(|worker: Worker| {
    ///         let name = match worker.index() {
    ///             Some(number) => format!("mail #{number}"),
    ///             None => "mail timeouts".to_owned(),
    ///         };
    ///         let thread = std::thread::Builder::new().name(name);
    ///         let work = move || {
    ///             if let Some(number) = worker.index() {
    ///                 pin_to((number - 1) % cores()); // one worker on each core
    ///             }
    ///             worker.run();
    ///         };
    ///         thread.spawn(work).map(Some)
    ///     })
    ///     .build()?;
    /// let name = executor.submit(|| std::thread::current().name().map(str::to_owned))?;
    /// assert_eq!(name.join()?.as_deref(), Some("mail #1"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// The stack size that the executor was built with, in bytes; `None` for the usual one.
    #[must_use]
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Works, and returns when the executor has no more use for the thread: at its end, or when
    /// the pool becomes smaller.
    pub fn run(self) {
        (self.work)();
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .field("index", &self.index)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// One worker, as the pool counts it: until this is dropped.
struct Member {
    pool: Arc<Pool>,
    number: usize,
    stats: Arc<WorkerStats>,
    name: String,
    /// Whether others may rely on it to look for a task: it has been idle, or is coming.
    is_relied_on: Cell<bool>,
    /// Whether it is coming, as the crew knows, and has not looked yet.
    is_coming: Cell<bool>,
}

impl Member {
    /// All that a worker does.
    fn serve(self) {
        // To the very end: what is told of the end must not wait for this thread either.
        let _serving = Serving::begin(&self.pool, Role::Worker);
        self.pool.count_on(self.number);
        let callbacks = &self.pool.config.callbacks;
        let parker = Parker::current();
        let before = self.pool.clock().worker_begins(&parker);
        slack::set(self.pool.config.timer_slack);
        trace::worker("started", &self.name);
        callbacks.call(PanicSource::ThreadStart);
        self.work();
        callbacks.call(PanicSource::ThreadStop);
        trace::worker("ended", &self.name);
        drop(self);
        // The thread may be somebody's who goes on with it.
        Clock::worker_leaves(&parker, before);
    }

    /// Takes and runs tasks until there is nothing more to do here.
    fn work(&self) {
        let pool = &*self.pool;
        let worker = Rc::new(WorkerContext {
            clock: pool.clock().clone(),
            stop: pool.stop.clone(),
            hooks: pool.config.callbacks.hooks.clone(),
            stats: Arc::clone(&self.stats),
            keeps_limits: true,
        });
        let limit = |since| {
            self.has_looked();
            pool.idle_limit(self.number, since)
        };
        let parker = || {
            self.is_relied_on.set(true);
            Parker::current()
        };
        while let Some((entry, now)) = pool.queue.take_until_by(parker, limit) {
            pool.leave_room();
            // Before the task, which may take long.
            self.turn_away();
            self.process(&worker, entry, now);
        }
    }

    fn process(&self, worker: &Rc<WorkerContext>, entry: Entry<Arc<dyn Runnable>>, now: Timestamp) {
        let (pool, Entry { deadline, sequence, element }) = (&*self.pool, entry);
        let run = Run::new(Rc::clone(worker), element, sequence, deadline, now);
        let task = run.task();
        match task.run(&run) {
            Verdict::Again(next) => {
                self.turn_back();
                if !pool.rearm(task, sequence, next) {
                    self.turn_away();
                    pool.end_periodic(task, sequence, &worker.stats);
                }
            }
            Verdict::Ended => pool.record.ended(sequence, &**task),
            Verdict::TimedOut(found) => {
                pool.note_timed_out(&**task, sequence, found);
                pool.record.ended(sequence, &**task);
            }
            Verdict::CalledOff => {
                pool.end_taken(&**task, sequence, CancelReason::Requested, &worker.stats);
            }
            Verdict::TooLate => {}
        }
        // It may be the last to hold a result that nobody wants.
        worker.hooks.drops(sequence).discard(run);
    }

    /// It is about to put a task back, and to look for one then: nobody need be started for that.
    #[inline]
    fn turn_back(&self) {
        if self.pool.crew.settled() < self.pool.crew.wanted() {
            self.pool.crew.turn_back(self.number);
            self.is_coming.set(true);
            self.is_relied_on.set(true);
        }
    }

    /// It has looked for a task, and is idle now as the queue knows, or has found one.
    fn has_looked(&self) {
        if self.is_coming.take() {
            self.pool.crew.has_looked(self.number);
        }
    }

    /// It is about to do something that may take long. Who has relied on it is relieved.
    #[inline]
    fn turn_away(&self) {
        if self.is_relied_on.get() {
            self.be_relieved();
        }
    }

    #[cold]
    fn be_relieved(&self) {
        self.is_relied_on.set(false);
        self.has_looked();
        self.pool.relieve().unwrap_or_else(|error| trace::spawn_failed(&error));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.pool.crew.dismiss(self.number);
        self.pool.release();
        self.pool.clock().worker_ended();
    }
}

impl Pool {
    /// Starts a worker if there are fewer than `wanted`. Whether it did.
    pub(super) fn start_worker(self: &Arc<Self>, wanted: impl Fn() -> usize) -> io::Result<bool> {
        if serving::starts_for(self) {
            // The thread factory submits something: for that as well a worker is being started.
            let has_worker = self.crew.settled() > 0;
            return if has_worker { Ok(false) } else { Err(factory_error("uses its executor")) };
        }
        let Some(turn) = self.crew.turn(|settled| settled < wanted()) else { return Ok(false) };
        let has_started = self.start_in(turn)?;
        // Who wanted to start one as well, and did not wait for the turn, has left it to this thread.
        self.relieve().unwrap_or_else(|error| trace::spawn_failed(&error));
        Ok(has_started)
    }

    /// Starts a worker. Whether it did: not if the pool is at its end.
    pub(super) fn start_in(self: &Arc<Self>, turn: Turn<'_>) -> io::Result<bool> {
        if !self.lifecycle.hold() {
            return Ok(false);
        }
        self.clock().worker_starts();
        let (number, stats) = turn.hire();
        let name = format!("{}-{number}", self.thread_name());
        let (is_relied_on, is_coming) = (Cell::new(true), Cell::new(true));
        let (pool, own_name) = (Arc::clone(self), name.clone());
        let member = Member { pool, number, stats, name: own_name, is_relied_on, is_coming };
        self.start_thread(turn, name, Some(number), || member.serve())?;
        Ok(true)
    }

    /// A worker can be relied on from now on.
    fn count_on(&self, number: usize) {
        if self.crew.settle(number) {
            self.queue.reconsider();
        }
    }

    /// Has the factory start a thread; for the worker of this number, if it is for one.
    pub(super) fn start_thread(
        &self,
        turn: Turn<'_>,
        name: String,
        number: Option<usize>,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let began = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&began);
        let work = Box::new(move || {
            // Ordering: read by who has the last handle.
            begins.store(true, Ordering::Relaxed);
            work();
        });
        let index = number;
        let worker = Worker { name, index, stack_size: self.config.stack_size, work };
        let starting = Serving::begin(self, Role::Starter);
        let factory = self.thread_factory.get();
        let started = contain(|| factory.new_thread(worker));
        discard(factory);
        drop(starting);
        let was_dropped = Arc::into_inner(began).is_some_and(|began| !began.into_inner());
        match started {
            Ok(Ok(thread)) if !was_dropped => {
                if let Some(number) = number {
                    self.count_on(number);
                }
                turn.succeed(thread);
                Ok(())
            }
            Ok(Ok(_)) => Err(factory_error("dropped the worker")),
            Ok(Err(error)) => Err(error),
            Err(payload) => {
                // First: what the payload does when it is dropped may need a turn.
                drop(turn);
                let error = factory_error(&format!("panicked: {}", message_of(&*payload)));
                discard(payload);
                Err(error)
            }
        }
    }
}

pub(super) fn factory_error(what: &str) -> io::Error {
    io::Error::other(format!("the thread factory {what}"))
}
