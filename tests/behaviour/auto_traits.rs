//! The auto traits of every public type, one line each, so that none is lost by accident: an added
//! field can take one away, and that breaks the crate's users. A public type without a line here
//! fails as well.

use std::{
    any::Any,
    cell::Cell,
    collections::BTreeSet,
    fs,
    marker::{PhantomData, PhantomPinned},
    panic::{self, RefUnwindSafe, UnwindSafe, catch_unwind},
    path::Path,
    rc::Rc,
    time::Duration,
};

use punctual::{
    AbortPolicy, Attempt, Backoff, BlockPolicy, Builder, CallerRunsPolicy, CancelReason,
    CancellationToken, Cancelled, Clock, ConfigError, Debounced, DelayQueue, DiscardOldestPolicy,
    DiscardPolicy, Done, DrainedTask, DrainedTasks, DrivenExecutor, DropPolicy, EndedRun,
    ExecutorCompletionService, ExecutorState, Extender, FailedRun, Failure, FailureKind,
    FailurePolicy, FailureReport, FailureSource, Grace, Group, GroupBuilder, GroupStatistics,
    GroupTermination, Handle, Interval, InvokeError, Limit, LimitReached, ManualClock, MissedRuns,
    PanicLocation, ParseTaskIdError, PendingTask, Points, RejectedExecutionError, RejectedTask,
    Rejection, RejectionReason, RunningTask, ScheduledFuture, ScheduledThreadPoolExecutor,
    ShutdownPolicy, ShutdownReport, Sleep, SlowRun, Starvation, Statistics, Submission,
    TaskBuilder, TaskContext, TaskError, TaskHandle, TaskId, TaskRun, TaskSet, TaskState,
    TaskSummary, Termination, Throttled, TimeoutError, TimerStopped, WaitForCancellation,
    WaitGuard, Worker, WouldDeadlock,
    delay_queue::{self, CheapClone},
    gate, trigger,
};
#[cfg(feature = "histograms")]
use punctual::{Histogram, Histograms, RunHistograms};

/// Determines whether a type has a trait: the type's own constant, where the bound holds, hides the
/// trait's.
struct Ask<T: ?Sized>(PhantomData<T>);

macro_rules! questions {
    ($($question:ident, $otherwise:ident: $bound:ident;)+) => {$(
        trait $otherwise {
            const $question: bool = false;
        }
        impl<T: ?Sized> $otherwise for Ask<T> {}
        impl<T: ?Sized + $bound> Ask<T> {
            const $question: bool = true;
        }
    )+};
}

questions! {
    SEND, NotSend: Send;
    SYNC, NotSync: Sync;
    UNPIN, NotUnpin: Unpin;
    UNWIND_SAFE, NotUnwindSafe: UnwindSafe;
    REF_UNWIND_SAFE, NotRefUnwindSafe: RefUnwindSafe;
}

/// The traits that a line claims for a type, and those that it has.
struct Line {
    of: &'static str,
    said: BTreeSet<&'static str>,
    found: BTreeSet<&'static str>,
}

impl Line {
    fn new(of: &'static str, said: &'static str, found: [(&'static str, bool); 5]) -> Self {
        let all = "Send Sync Unpin UnwindSafe RefUnwindSafe";
        let said = if said == "all" { all } else { said };
        let found = found.into_iter().filter(|(_, has)| *has).map(|(name, _)| name);
        Self { of, said: said.split_whitespace().collect(), found: found.collect() }
    }

    /// The type without its parameters.
    fn name(&self) -> &'static str {
        self.of.split(['<', ' ']).next().unwrap_or_default()
    }
}

/// `Type: Trait Trait ...;` for each, or `Type: all;`.
macro_rules! lines {
    ($($type:ty: $($has:ident)*;)+) => {vec![$(
        Line::new(stringify!($type), stringify!($($has)*), [
            ("Send", Ask::<$type>::SEND),
            ("Sync", Ask::<$type>::SYNC),
            ("Unpin", Ask::<$type>::UNPIN),
            ("UnwindSafe", Ask::<$type>::UNWIND_SAFE),
            ("RefUnwindSafe", Ask::<$type>::REF_UNWIND_SAFE),
        ])
    ),+]};
}

fn assert_true(lines: &[Line]) {
    let wrong = lines.iter().filter(|line| line.said != line.found);
    let wrong: Vec<_> = wrong
        .map(|line| format!("{}: {:?}, and not {:?}", line.of, line.found, line.said))
        .collect();
    assert!(wrong.is_empty(), "traits found, and traits listed:\n{}", wrong.join("\n"));
}

/// Every public type; generic types have a parameter with all of the traits.
fn public_types() -> Vec<Line> {
    let mut lines = always_public();
    lines.extend(calendar_types());
    lines.extend(histogram_types());
    lines
}

#[cfg(feature = "histograms")]
fn histogram_types() -> Vec<Line> {
    lines! {
        Histogram: all;
        Histograms: all;
        RunHistograms: all;
    }
}

#[cfg(not(feature = "histograms"))]
fn histogram_types() -> Vec<Line> {
    Vec::new()
}

#[cfg(feature = "cron")]
fn calendar_types() -> Vec<Line> {
    lines! {
        trigger::Cron: all;
        trigger::CronError: all;
        trigger::CronErrorKind: all;
        trigger::Missing: all;
        trigger::Repeated: all;
    }
}

#[cfg(not(feature = "cron"))]
fn calendar_types() -> Vec<Line> {
    Vec::new()
}

/// The types that are there without the feature `cron`.
fn always_public() -> Vec<Line> {
    lines! {
        AbortPolicy: all;
        Attempt: all;
        Backoff: all;
        BlockPolicy: all;
        Builder: all;
        CallerRunsPolicy: all;
        TaskHandle: all;
        Debounced: all;
        Extender: all;
        Throttled: all;
        CancelReason: all;
        CancellationToken: all;
        Cancelled: all;
        Clock: all;
        ConfigError: all;
        DelayQueue<u32>: all;
        DiscardOldestPolicy: all;
        DiscardPolicy: all;
        Done<'static>: all;
        DrivenExecutor: Unpin UnwindSafe RefUnwindSafe;
        DropPolicy: all;
        EndedRun<'static>: all;
        Points: all;
        ShutdownPolicy: all;
        ExecutorCompletionService<u32>: all;
        ExecutorState: all;
        FailedRun: all;
        Grace: all;
        Group: all;
        GroupBuilder<'static>: all;
        GroupStatistics: all;
        GroupTermination: all;
        Handle: all;
        Interval: all;
        InvokeError<u32>: all;
        Limit: all;
        LimitReached: all;
        ManualClock: all;
        MissedRuns: all;
        TaskRun<'static>: Unpin UnwindSafe RefUnwindSafe;
        Failure: all;
        FailureKind: all;
        PanicLocation: all;
        FailurePolicy: all;
        FailureReport<'static>: all;
        FailureSource: all;
        ParseTaskIdError: all;
        DrainedTask: all;
        DrainedTasks: all;
        PendingTask: all;
        RejectedExecutionError: all;
        RejectionReason: all;
        RejectedTask<'static>: all;
        Rejection: all;
        ScheduledFuture<u32>: all;
        ScheduledThreadPoolExecutor: all;
        RunningTask: all;
        ShutdownReport: all;
        SlowRun: all;
        Starvation: all;
        Sleep: all;
        Statistics: all;
        Submission<'static>: all;
        TaskBuilder<'static>: all;
        TaskContext: all;
        TaskError: all;
        TaskId: all;
        TaskSet<u32>: all;
        TaskState: all;
        TaskSummary: all;
        Termination: all;
        TimeoutError: all;
        TimerStopped: all;
        WaitForCancellation: all;
        WaitGuard<'static>: all;
        Worker: Send Unpin UnwindSafe RefUnwindSafe;
        WouldDeadlock: all;
        trigger::Backoff: all;
        trigger::Due: all;
        trigger::Every: all;
        trigger::Jitter<trigger::Every>: all;
        trigger::Tolerance<trigger::Every>: all;
        trigger::Retry<trigger::Every>: all;
        trigger::Times<trigger::Every>: all;
        trigger::TriggerContext<'static>: all;
        trigger::Until<trigger::Every>: all;
        delay_queue::ExpirationStream<'static, u32>: all;
        delay_queue::Expired<u32>: all;
        delay_queue::InsertError: all;
        delay_queue::Iter<u32>: all;
        delay_queue::Key: all;
        delay_queue::NextExpired<'static, u32>: all;
        delay_queue::Queued<u32>: all;
        delay_queue::Refused<u32>: all;
        gate::Entry: Send Sync Unpin;
        gate::PendingEntry: Send Sync Unpin;
        gate::Reply: Send Sync Unpin;
        gate::RunEnd<'static>: all;
        gate::Tick<'static>: all;
    }
}

/// A type with none of the traits.
struct Bare(
    #[allow(dead_code, reason = "it is there for its traits")] (PhantomPinned, Rc<Cell<u32>>),
);

/// A type with all of the traits but those of unwinding.
type Loose = Box<dyn Any + Send + Sync>;

#[test]
fn every_public_type_has_the_auto_traits_that_are_listed() {
    assert_true(&public_types());
}

/// The traits that the generic types have whatever their parameter is, and those that they take
/// from it.
#[test]
fn generic_types_require_only_the_bounds_they_need() {
    assert_true(&lines! {
        Bare: ;
        Loose: Send Sync Unpin;
        DelayQueue<Bare>: ;
        DelayQueue<Cell<u32>>: all;
        DelayQueue<Loose>: Send Sync Unpin;
        ExecutorCompletionService<Bare>: all;
        InvokeError<Bare>: ;
        ScheduledFuture<Bare>: all;
        TaskSet<Bare>: all;
        delay_queue::ExpirationStream<'static, Bare>: Unpin;
        delay_queue::ExpirationStream<'static, Cell<u32>>: all;
        delay_queue::ExpirationStream<'static, Loose>: Send Sync Unpin;
        delay_queue::Expired<Bare>: ;
        delay_queue::Expired<Loose>: Send Sync Unpin;
        delay_queue::Iter<Bare>: ;
        delay_queue::Iter<Cell<u32>>: Send Unpin UnwindSafe;
        delay_queue::Iter<Loose>: Send Sync Unpin;
        delay_queue::NextExpired<'static, Bare>: Unpin;
        delay_queue::NextExpired<'static, Cell<u32>>: all;
        delay_queue::NextExpired<'static, Loose>: Send Sync Unpin;
        delay_queue::Queued<Bare>: ;
        delay_queue::Queued<Loose>: Send Sync Unpin;
        delay_queue::Refused<Bare>: ;
        delay_queue::Refused<Loose>: Send Sync Unpin;
    });
}

/// Every public type needs a line above.
#[test]
fn every_public_type_has_a_line() {
    let listed: BTreeSet<_> = public_types().iter().map(|line| line.name().to_owned()).collect();
    let mut missing = BTreeSet::new();
    let mut public = BTreeSet::new();
    let mut all = String::new();
    read_all(&root().join("src"), &mut all);
    for (file, module) in MODULES {
        let mut text = fs::read_to_string(root().join(file)).expect("a source");
        if cfg!(not(feature = "cron")) {
            text = text.replace("#[cfg(feature = \"cron\")]\npub use ", "");
        }
        if cfg!(not(feature = "histograms")) {
            text = text.replace("#[cfg(feature = \"histograms\")]\npub use ", "");
        }
        let names = exported(&text).filter(|name| is_type(&all, name)).chain(defined(&text));
        for name in names {
            let path = format!("{module}{name}");
            if !listed.contains(&path) {
                missing.insert(path.clone());
            }
            public.insert(path);
        }
    }
    assert!(missing.is_empty(), "give each a line in `public_types`: {missing:?}");
    let gone: Vec<_> = listed.difference(&public).collect();
    assert!(gone.is_empty(), "no longer public, or not found: {gone:?}");
}

/// The root and the public modules.
const MODULES: [(&str, &str); 4] = [
    ("src/lib.rs", ""),
    ("src/delay_queue.rs", "delay_queue::"),
    ("src/feature/gate.rs", "gate::"),
    ("src/trigger.rs", "trigger::"),
];

/// No other module is public, so there are no more types to look for.
#[test]
fn no_other_module_is_public() {
    let read = |file: &str| fs::read_to_string(root().join(file)).expect("a source");
    let text = read("src/lib.rs") + &read("src/feature.rs");
    let modules: Vec<_> = text.lines().filter(|line| line.starts_with("pub mod ")).collect();
    assert_eq!(modules, ["pub mod delay_queue;", "pub mod trigger;", "pub mod gate;"]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names that a file exports by `pub use`: types, traits and functions.
fn exported(text: &str) -> impl Iterator<Item = &str> {
    let lists = text.split("\npub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let words = lists.flat_map(|(list, _)| list.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(char::is_uppercase))
}

/// The types that a public module defines itself, if it is one that does.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["pub struct ", "pub enum "];
    let defines = text.contains("\npub fn ");
    let lines = text.lines().filter(move |_| defines);
    let rest =
        lines.filter_map(move |line| starts.iter().find_map(|start| line.strip_prefix(start)));
    rest.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
}

/// Returns `true` if the name is a struct's or an enum's; otherwise it must be a trait's.
fn is_type(sources: &str, name: &str) -> bool {
    let declared = |kind: &str| {
        let ends = ['<', ' ', ';', '(', ':'];
        ends.iter().any(|end| sources.contains(&format!("\npub {kind} {name}{end}")))
    };
    let is_type = ["struct", "enum", "type"].into_iter().any(declared);
    assert!(is_type || declared("trait"), "{name} is neither struct, enum, alias nor trait");
    is_type
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&fs::read_to_string(path).expect("a source"));
        }
    }
}

/// Handles, futures and queues can be used inside `catch_unwind` as they are, and work after a
/// panic.
#[test]
fn handles_used_inside_catch_unwind_work_afterwards() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, queue) = (executor.handle(), DelayQueue::new());
    let future = catch_unwind(|| handle.submit(|| 1)).expect("no panic").expect("it is open");
    assert_eq!(catch_unwind(|| future.join()).expect("no panic").expect("it ran"), 1);
    let thrown = catch_unwind(|| {
        let _abandoned = handle.submit(|| 2);
        queue.insert(Duration::ZERO, 3).expect("it is open");
        panic!("the caller's own panic");
    });
    assert!(thrown.is_err());
    assert_eq!(queue.take().map(|expired| expired.element), Some(3));
    assert_eq!(executor.submit(|| 4).expect("it is open").join().expect("it ran"), 4);
    catch_unwind(|| executor.close()).expect("no panic").expect("another thread than a worker");
}

/// The one piece of user code that runs under a lock only reads; if it breaks its contract and
/// panics, the queue stays intact.
#[test]
fn a_clone_that_panics_leaves_the_queue_whole() {
    struct Fragile(u32);
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            panic!("it has promised not to");
        }
    }
    impl CheapClone for Fragile {}
    let queue = DelayQueue::new();
    queue.insert_all([2, 1].map(|n| (Duration::from_nanos(n.into()), Fragile(n)))).ok();
    assert!(catch_unwind(|| queue.peek()).is_err());
    assert!(catch_unwind(|| queue.to_vec()).is_err());
    assert_eq!(queue.len(), 2);
    let taken = [queue.take(), queue.take()].map(|taken| taken.map(|expired| expired.element.0));
    assert_eq!(taken, [Some(1), Some(2)]);
}

/// A wrapper can catch a panic, but cannot suppress it.
#[test]
fn a_wrapper_may_catch_and_resume_a_panic() {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = builder.decorate_task(|_: &Submission<'_>| {
        |next: TaskRun<'_>| match catch_unwind(|| next.run()) {
            Ok(done) => done,
            Err(payload) => panic::resume_unwind(payload),
        }
    });
    let executor = executor.build().expect("the settings are good");
    let failed = executor.submit(|| panic!("of the task's")).expect("it is open").join();
    assert!(failed.expect_err("it panicked").is_panic());
    assert_eq!(executor.submit(|| 1).expect("it is open").join().expect("it ran"), 1);
}
