//! User code that the executor calls at any place, and that calls the executor: hooks, wakers, and the drops of
//! captures, results and leases.

use std::{
    io,
    sync::{
        Arc, Mutex as Notes, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use proptest::prelude::*;
use punctual::{Builder, Worker};
use shuttle::thread;

use crate::{
    ledger::Ledger,
    pairs,
    scenario::{GroupVerb, Scenario, Verb, When, plain},
    world::{ROLE, Role, World, notes},
};

/// What user code does to the executor that is called by it at any place, a few times in a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Back {
    Nothing,
    Cancel(usize),
    Ask(usize, Verb),
    Call(usize),
    Submit(When),
    Group(usize, GroupVerb),
    Shutdown,
    Look,
}

/// The calls that wakers, hooks, drops of results, ends of leases and triggers make to the executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callbacks {
    pub(crate) waker: Back,
    pub(crate) hook: Back,
    pub(crate) other: Back,
}

pub(crate) fn callbacks() -> impl Strategy<Value = Callbacks> {
    let one = || prop_oneof![2 => Just(Back::Nothing), 1 => pairs::back()];
    (one(), one(), one()).prop_map(|(waker, hook, other)| Callbacks { waker, hook, other })
}

/// How often a scenario's user code calls back, at most: a hook that submits a task is called for that task, too.
const MOST: usize = 6;

impl World {
    /// Does something to the executor in code that the executor calls.
    pub(crate) fn call_back(self: &Arc<Self>, back: Back) {
        if matches!(back, Back::Nothing) || !self.note(|ledger, _| ledger.calls_back()) {
            return;
        }
        match back {
            Back::Nothing => {}
            Back::Cancel(task) => self.cancel(task),
            Back::Ask(task, verb) => self.ask(task, verb),
            Back::Call(task) => self.call(task),
            Back::Submit(when) => self.submit(plain(when)),
            Back::Group(group, verb) => self.ask_group(group, verb),
            Back::Shutdown => self.shutdown(),
            Back::Look => drop(self.handle.pending_tasks()),
        }
    }
}

impl Ledger {
    /// Returns `true` if user code may call back once more.
    fn calls_back(&mut self) -> bool {
        self.backs += 1;
        self.backs <= MOST
    }
}

/// Installs every hook and a thread factory, with their faults. `home` has the world, once it is there.
pub(crate) fn with_hooks(
    builder: Builder,
    scenario: &Scenario,
    ledger: &Arc<Notes<Ledger>>,
    has_faults: &Arc<AtomicBool>,
    home: &Arc<OnceLock<Weak<World>>>,
) -> Builder {
    let (faults, back) = (scenario.faults, scenario.callbacks.hook);
    let hook = |count: fn(&mut Ledger), back: Back| {
        let (ledger, has_faults, home) =
            (Arc::clone(ledger), Arc::clone(has_faults), Arc::clone(home));
        move || {
            let mut noted = notes(&ledger);
            count(&mut noted);
            noted.hook_calls += 1;
            let (panics, calls) = (noted.hook_calls % 3 == 2, noted.hook_calls % 3 == 1);
            drop(noted);
            if let Some(world) = home.get().and_then(Weak::upgrade).filter(|_| calls) {
                world.call_back(back);
            }
            let panics = panics && faults.hooks && has_faults.load(Ordering::SeqCst);
            assert!(!panics, "a hook panics");
        }
    };
    let start = hook(
        |ledger| {
            ROLE.with(|role| role.set(Role::Worker));
            ledger.threads_started += 1;
        },
        back,
    );
    let (before, after) = (hook(|_| (), back), hook(|_| (), back));
    // A factory that uses its executor is refused what it asks for.
    let spawns = hook(|ledger| ledger.spawns += 1, Back::Nothing);
    let (fails, has_faults, counts) = (faults.spawn, Arc::clone(has_faults), Arc::clone(ledger));
    builder
        .on_thread_start(start)
        .on_thread_stop(hook(|ledger| ledger.threads_stopped += 1, back))
        .before_execute(move |_| before())
        .after_execute(move |_, _| after())
        .terminated(hook(|ledger| ledger.terminations += 1, back))
        .thread_factory(move |worker: Worker| {
            notes(&counts).failed_starts += 1;
            spawns();
            let spawns = notes(&counts).spawns;
            if fails && has_faults.load(Ordering::SeqCst) && spawns % 2 == 0 {
                // A start that fails, or a worker that is lost although its start has not failed.
                return match spawns % 4 {
                    0 => Err(io::Error::other("no more threads")),
                    _ => thread::Builder::new().spawn(move || drop(worker)).map(Some),
                };
            }
            let started = thread::Builder::new().spawn(move || worker.run()).map(Some);
            notes(&counts).failed_starts -= 1;
            started
        })
}
