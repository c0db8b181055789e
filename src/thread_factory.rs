//! The thread factory, the worker that is passed to it, and the settings of a pool's threads.

use std::{fmt, io, time::Duration};

use crate::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        thread,
    },
    unwind::{PanicPayload, Replaceable, contain, discard, message_of},
};

/// Starts the threads of an executor. Set by
/// [`Builder::thread_factory`](crate::Builder::thread_factory). Java: `ThreadFactory`.
///
/// Closures are factories. This one starts threads as the executor does by default:
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
    /// Starts a thread that [runs](Worker::run) the worker. Called by a thread that submits a task, and by a worker
    /// that is about to run one, if no worker would take the tasks that are due. No lock is held. Each executor makes
    /// one call at a time, so other submitters that need a thread wait for it. The factory may submit to its own
    /// executor, but must not wait for a task of that executor, nor for another thread that submits to it.
    ///
    /// A factory that returns `Ok` has to ensure that the worker is run. If the worker is dropped later while all
    /// others are busy, due tasks wait until one of them is done, or until the next submission starts another. Once the
    /// executor is shut down, no submission follows, and workers that all [wait for tasks](crate::WouldDeadlock) are
    /// never done: then the drop of a worker calls the factory again if tasks are left for which there is no worker. So
    /// does the drop of the worker that expires timeouts, as long as the executor has not terminated.
    ///
    /// Return the handle of the thread if there is one: [`close`](crate::ScheduledThreadPoolExecutor::close) then
    /// waits until the thread itself has ended, and otherwise only until the worker has.
    ///
    /// # Errors
    ///
    /// Whatever keeps the thread from being started. The submission fails with it if there is no other worker;
    /// otherwise its task waits for the workers that exist. A factory that panics or drops the worker has failed.
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>>;
}

impl<F: Fn(Worker) -> io::Result<Option<thread::JoinHandle<()>>> + Send + Sync> ThreadFactory
    for F
{
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
        self(worker)
    }
}

impl<T: ThreadFactory + ?Sized> ThreadFactory for Arc<T> {
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
        (**self).new_thread(worker)
    }
}

pub(crate) fn std_thread(worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
    let mut builder = thread::Builder::new().name(worker.name.clone());
    if let Some(size) = worker.stack_size {
        builder = builder.stack_size(size);
    }
    let work: ThreadBody = Box::new(|| worker.run());
    builder.spawn(work).map(Some)
}

/// The body of a thread. It is one type for all bodies, so that `spawn` is compiled once.
pub(crate) type ThreadBody = Box<dyn FnOnce() + Send>;

/// The work of one of an executor's threads, as handed to a [`ThreadFactory`].
#[must_use = "a worker that is dropped does no work"]
pub struct Worker {
    name: String,
    index: Option<usize>,
    stack_size: Option<usize>,
    work: Box<dyn FnOnce() + Send>,
}

impl Worker {
    /// Returns the name that the thread is to have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the worker within its executor, from 1, by which a factory can bind each to a core. No
    /// number is used twice, so a worker that replaces another has a number of its own. `None` for the thread that
    /// expires [timeouts](crate::TaskBuilder::timeout), which runs no tasks.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns the stack size that the executor was built with, in bytes; `None` for the default of the standard
    /// library.
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Runs the worker. Blocks until the executor has no more use for the thread: at its termination, or when the
    /// pool becomes smaller.
    pub fn run(self) {
        (self.work)();
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

pub(crate) struct Spawner {
    pub(crate) factory: Replaceable<dyn ThreadFactory>,
    /// The prefix of the threads' names.
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    /// How much later than requested the system may wake a thread.
    pub(crate) timer_slack: Duration,
}

impl Spawner {
    /// Asks the factory to start a thread. If the factory panics, the error comes with the panic's payload, whose drop
    /// is user code.
    pub(crate) fn new_thread(
        &self,
        name: String,
        index: Option<usize>,
        work: Box<dyn FnOnce() + Send>,
    ) -> Result<Option<thread::JoinHandle<()>>, (io::Error, Option<PanicPayload>)> {
        let began = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&began);
        let work = Box::new(move || {
            // Ordering: read by the holder of the last reference.
            begins.store(true, Ordering::Relaxed);
            work();
        });
        let worker = Worker { name, index, stack_size: self.stack_size, work };
        let factory = self.factory.get();
        let made = contain(|| factory.new_thread(worker));
        discard(factory);
        let was_dropped = Arc::into_inner(began).is_some_and(|began| !began.into_inner());
        match made {
            Ok(Ok(_)) if was_dropped => Err((factory_error("dropped the worker"), None)),
            Ok(made) => made.map_err(|error| (error, None)),
            Err(payload) => {
                let what = format!("panicked: {}", message_of(&*payload));
                Err((factory_error(&what), Some(payload)))
            }
        }
    }
}

pub(crate) fn factory_error(what: &str) -> io::Error {
    io::Error::other(format!("the thread factory {what}"))
}
