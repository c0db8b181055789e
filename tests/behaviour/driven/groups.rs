//! Groups whose gates answer later. One thread asks for everything, so it is known whose turn it is.

use std::sync::{Arc, Mutex};

use punctual::{
    RunGate,
    gate::{self, Entry, Reply, from_fn},
};

use super::{SECOND, driven};
use crate::support::Log;

/// A gate that answers each question later; and the questions that are open.
fn later(log: &Log<&'static str>) -> (impl RunGate + use<>, Arc<Mutex<Vec<Reply>>>) {
    let (open, log) = (Arc::new(Mutex::new(Vec::new())), log.clone());
    let replies = Arc::clone(&open);
    let gate = from_fn(move |_| {
        let (reply, entry) = gate::later();
        log.push("asked");
        replies.lock().unwrap().push(reply);
        entry
    });
    (gate, open)
}

/// An open question has a permit and no worker, so a group has as many as its limit says, and not as the pool has workers,
/// unless some of these are reserved.
#[test]
fn open_questions_are_not_limited_by_the_workers() {
    let (_clock, mut executor) = driven();
    let handle = executor.handle();
    for (limit, reserved, runs, waiting) in
        [(usize::MAX, 0, 1, 0), (3, 0, 1, 0), (2, 0, 0, 1), (usize::MAX, 1, 0, 2)]
    {
        let group = handle.group("g").limit(limit).reserve(reserved).build().unwrap();
        let (gate, open) = later(&Log::new());
        let gate = Arc::new(gate);
        for _ in 0..2 {
            group.task().gate(Arc::clone(&gate)).submit(|| ()).unwrap();
        }
        group.task().submit(|| ()).unwrap();
        assert_eq!((executor.run_due(), group.statistics().waiting), (runs, waiting));
        while group.statistics().pending > 0 {
            open.lock().unwrap().drain(..).for_each(|reply| reply.send(Entry::Run));
            executor.run_due();
        }
        assert_eq!(group.statistics().completed, 3);
    }
}

/// A member that waits for an answer and is given another moment gives its permit back, also if that is the moment for which
/// it was asked.
#[test]
fn another_moment_gives_the_permit_back() {
    for moment in [0, 1] {
        let (clock, mut executor) = driven();
        let (log, group) = (Log::new(), executor.group("g").limit(1).build().unwrap());
        let (first, second) = (log.clone(), log.clone());
        let other = group.task().schedule(SECOND, move || first.push("the other")).unwrap();
        let (gate, open) = later(&log);
        let asked = group.task().gate(gate).submit(move || second.push("the asked one")).unwrap();
        assert_eq!((executor.run_due(), log.entries().len()), (0, 1));
        assert!(asked.reschedule(moment * SECOND) && other.reschedule(moment * SECOND));
        clock.advance(moment * SECOND);
        assert_eq!(executor.run_due(), 1);
        assert_eq!(log.entries(), ["asked", "the other", "asked"]);
        open.lock().unwrap().drain(..).for_each(|reply| reply.send(Entry::Run));
        assert_eq!((executor.run_due(), asked.is_done()), (1, true));
    }
}

/// A member that waits for its turn is due. One that is paused or put off meanwhile is not, and waits for no turn until a
/// worker finds it due.
#[test]
fn a_member_that_is_put_off_waits_for_no_turn() {
    let (clock, mut executor) = driven();
    let group = executor.group("g").limit(1).build().unwrap();
    let (gate, open) = later(&Log::new());
    group.task().gate(gate).submit(|| ()).unwrap();
    let task = group.task().submit(|| ()).unwrap();
    executor.run_due();
    assert_eq!((group.statistics().waiting, executor.time_until_next()), (1, None));
    assert!(task.pause());
    assert_eq!((group.statistics().waiting, executor.time_until_next()), (0, None));
    assert!(task.resume());
    executor.run_due();
    assert_eq!((group.statistics().waiting, executor.time_until_next()), (1, None));
    assert!(task.reschedule(SECOND));
    assert_eq!((group.statistics().waiting, executor.time_until_next()), (0, Some(SECOND)));
    clock.advance(SECOND);
    executor.run_due();
    assert_eq!((group.statistics().waiting, group.statistics().pending), (1, 2));
    open.lock().unwrap().drain(..).for_each(|reply| reply.send(Entry::Run));
    assert_eq!((executor.run_due(), executor.run_due(), task.is_done()), (1, 1, true));
}
