//! The two crates as one trait, and what programs on it have in common.

use std::{
    any::Any,
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::patience::{Patience, eventually, next_of, receive};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The fate of waiting jobs when the pool is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    Complete,
    Discard,
}

/// A thread pool of either crate.
pub(crate) trait Pool: Send + Sync + Sized + 'static {
    type Handle: Send + Sync + 'static;

    fn new(threads: usize) -> Self;
    fn with_name(name: &str, threads: usize) -> Self;
    fn build(threads: usize, name: Option<&str>, on_drop: OnDrop) -> Self;
    fn execute(&self, job: impl FnOnce() + Send + 'static) -> Self::Handle;
    fn after(&self, delay: Duration, job: impl FnOnce() + Send + 'static) -> Self::Handle;
    fn repeat(
        &self,
        kind: Kind,
        first: Duration,
        next: Duration,
        job: impl FnMut() + Send + 'static,
    ) -> Self::Handle;
    fn rate(
        &self,
        first: Duration,
        job: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> Self::Handle;
    fn delay(
        &self,
        first: Duration,
        job: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> Self::Handle;
    fn cancel(handle: &Self::Handle);
}

/// The four ways to repeat a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FixedRate,
    DynamicRate,
    FixedDelay,
    DynamicDelay,
}

pub(crate) const KINDS: [Kind; 4] =
    [Kind::FixedRate, Kind::DynamicRate, Kind::FixedDelay, Kind::DynamicDelay];

macro_rules! pool {
    ($krate:ident) => {
        #[allow(deprecated, reason = "it is compared, too")]
        impl Pool for $krate::ScheduledThreadPool {
            type Handle = $krate::JobHandle;

            fn new(threads: usize) -> Self {
                Self::new(threads)
            }

            fn with_name(name: &str, threads: usize) -> Self {
                Self::with_name(name, threads)
            }

            fn build(threads: usize, name: Option<&str>, on_drop: OnDrop) -> Self {
                use $krate::OnPoolDropBehavior::{
                    CompletePendingScheduled, DiscardPendingScheduled,
                };
                let mut stage = Self::builder().num_threads(threads);
                if let Some(name) = name {
                    stage = stage.thread_name_pattern(name);
                }
                if on_drop == OnDrop::Discard {
                    return stage.on_drop_behavior(DiscardPendingScheduled).build();
                }
                // The default is one of the programs' subjects: it is set for names alone.
                if name.is_some() {
                    stage = stage.on_drop_behavior(CompletePendingScheduled);
                }
                stage.build()
            }

            fn execute(&self, job: impl FnOnce() + Send + 'static) -> Self::Handle {
                self.execute(job)
            }

            fn after(&self, delay: Duration, job: impl FnOnce() + Send + 'static) -> Self::Handle {
                self.execute_after(delay, job)
            }

            fn repeat(
                &self,
                kind: Kind,
                first: Duration,
                next: Duration,
                mut job: impl FnMut() + Send + 'static,
            ) -> Self::Handle {
                let dynamic = |mut job: Box<dyn FnMut() + Send>| {
                    move || {
                        job();
                        Some(next)
                    }
                };
                match kind {
                    Kind::FixedRate => self.execute_at_fixed_rate(first, next, move || job()),
                    Kind::FixedDelay => self.execute_with_fixed_delay(first, next, move || job()),
                    Kind::DynamicRate => {
                        self.execute_at_dynamic_rate(first, dynamic(Box::new(job)))
                    }
                    Kind::DynamicDelay => {
                        self.execute_with_dynamic_delay(first, dynamic(Box::new(job)))
                    }
                }
            }

            fn rate(
                &self,
                first: Duration,
                job: impl FnMut() -> Option<Duration> + Send + 'static,
            ) -> Self::Handle {
                self.execute_at_dynamic_rate(first, job)
            }

            fn delay(
                &self,
                first: Duration,
                job: impl FnMut() -> Option<Duration> + Send + 'static,
            ) -> Self::Handle {
                self.execute_with_dynamic_delay(first, job)
            }

            fn cancel(handle: &Self::Handle) {
                handle.cancel();
            }
        }
    };
}

pool!(punctual_thread_pool);
pool!(original);

/// Runs a program on both crates, and asserts that the events are the same, and these.
macro_rules! same {
    ($program:ident($($argument:expr),*), $expected:expr) => {{
        use $crate::subject::on_time;
        let there = on_time(|| $program::<original::ScheduledThreadPool>($($argument),*));
        assert_eq!(there, $expected, "the original does not do what is expected");
        let here = on_time(|| $program::<punctual_thread_pool::ScheduledThreadPool>($($argument),*));
        assert_eq!(here, there, "the drop-in does not do what the original does");
    }};
}
pub(crate) use same;

/// Repeats a program until it has an answer. It has none if the machine was so busy that its submissions
/// alone took longer than the delays that they differ by.
pub(crate) fn on_time<R>(program: impl Fn() -> Option<R>) -> R {
    loop {
        if let Some(events) = program() {
            return events;
        }
    }
}

/// A job that keeps a thread busy, from the moment when this is made until `open` is called.
pub(crate) struct Gate(mpsc::Sender<()>);

impl Gate {
    pub(crate) fn close<P: Pool>(pool: &P) -> Self {
        let (open, opened) = mpsc::channel::<()>();
        let (close, closed) = mpsc::channel();
        pool.execute(move || {
            close.send(()).expect("the test waits for it");
            let _ = opened.recv();
        });
        receive(&closed, "there is a thread");
        Self(open)
    }

    pub(crate) fn open(self) {
        drop(self.0);
    }
}

/// Returns what a channel has received when all its senders, and so the jobs that own them, have been dropped.
pub(crate) fn all<T>(events: &mpsc::Receiver<T>) -> Vec<T> {
    let (mut received, mut patience) = (Vec::new(), Patience::new());
    while let Some(event) = next_of(events, "a job is never dropped") {
        received.push(event);
        patience.go_on("a job is run again and again");
    }
    received
}

/// The message with which the call panics, if it does.
pub(crate) fn panic_of<R>(call: impl FnOnce() -> R) -> Option<String> {
    catch_unwind(AssertUnwindSafe(call)).err().map(|payload| message_of(&*payload))
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref().cloned()).unwrap_or_default()
}

/// A name for threads that no other pool of this process has. Short, for the system shows 15 bytes.
pub(crate) fn unique_name() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("sub{}-", LAST.fetch_add(1, Ordering::Relaxed))
}

/// Waits until no thread of the process has a name that begins like this.
pub(crate) fn wait_for_the_end_of(name: &str) {
    eventually("its threads end", || threads_of(name) == 0);
}

/// How many threads of the process have a name that begins like this.
pub(crate) fn threads_of(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("this is Linux");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

static PANICS: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Keeps what the panic hook is told of threads whose names begin like those of [`unique_name`], and shows
/// the other panics as ever.
pub(crate) fn note_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = thread::current();
            match thread.name().filter(|name| name.starts_with("sub")) {
                Some(name) => {
                    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                    let of_thread = panics.entry(name.to_owned()).or_default();
                    of_thread.push(message_of(info.payload_as_any()));
                }
                None => before(info),
            }
        }));
    });
}

/// Returns what the hook was told of that thread.
pub(crate) fn noted_panics(thread: &str) -> Vec<String> {
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    panics.get(thread).cloned().unwrap_or_default()
}

/// The payload of a hook's panic; the trait is for the name alone.
trait Payload {
    fn payload_as_any(&self) -> &(dyn Any + Send);
}

impl Payload for std::panic::PanicHookInfo<'_> {
    fn payload_as_any(&self) -> &(dyn Any + Send) {
        self.payload()
    }
}
