//! The threads: how many, their names, and when they end.

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::Duration,
};

use crate::patience::eventually;
use crate::subject::{
    Gate, OnDrop, Pool, all, ms, same, threads_of, unique_name, wait_for_the_end_of,
};

const THREADS: usize = 3;

/// The names of the threads of a pool, sorted.
fn names<P: Pool>(pool: &P) -> Vec<Option<String>> {
    let (all_here, (event, events)) = (Arc::new(Barrier::new(THREADS)), mpsc::channel());
    for _ in 0..THREADS {
        let (all_here, event) = (Arc::clone(&all_here), event.clone());
        pool.execute(move || {
            all_here.wait();
            event.send(thread::current().name().map(str::to_owned)).expect("waited for");
        });
    }
    drop(event);
    let mut names = all(&events);
    names.sort();
    names
}

fn named<P: Pool>(pattern: Option<&str>) -> Option<Vec<Option<String>>> {
    Some(names(&P::build(THREADS, pattern, OnDrop::Discard)))
}

fn named_at_once<P: Pool>(pattern: &str) -> Option<Vec<Option<String>>> {
    Some(names(&P::with_name(pattern, THREADS)))
}

#[test]
fn threads_are_named_by_the_pattern() {
    let named_by = |name: &dyn Fn(usize) -> String| -> Vec<_> {
        (0..THREADS).map(|number| Some(name(number))).collect()
    };
    same!(named(None), vec![None; THREADS]);
    same!(named(Some("")), vec![Some(String::new()); THREADS]);
    same!(named(Some("plain")), vec![Some("plain".to_owned()); THREADS]);
    same!(named(Some("{}")), named_by(&|number| number.to_string()));
    same!(named(Some("a{}b{}{")), named_by(&|number| format!("a{number}b{number}{{")));
    same!(named(Some("{0} {:?}")), vec![Some("{0} {:?}".to_owned()); THREADS]);
    same!(named_at_once("w-{}"), named_by(&|number| format!("w-{number}")));
}

/// The number of threads after the pool was built, and before the first job.
fn started<P: Pool>() -> Option<usize> {
    let name = unique_name();
    let pool = P::with_name(&format!("{name}{{}}"), 5);
    // A new thread has its parent's name until it has run a little; so each is waited for.
    eventually("no thread is missing", || threads_of(&name) >= 5);
    let started = threads_of(&name);
    drop(pool);
    wait_for_the_end_of(&name);
    Some(started)
}

#[test]
fn all_threads_are_started_at_once() {
    same!(started(), 5);
}

/// The threads end after the drop, whatever is left of the handles.
fn ended<P: Pool>(on_drop: OnDrop) -> Option<()> {
    let name = unique_name();
    let pool = P::build(4, Some(&format!("{name}{{}}")), on_drop);
    let handles = [
        pool.execute(|| ()),
        pool.after(ms(5), || ()),
        pool.repeat(crate::subject::Kind::FixedRate, Duration::ZERO, ms(2), || ()),
    ];
    drop(pool);
    wait_for_the_end_of(&name);
    for handle in &handles {
        P::cancel(handle);
    }
    Some(())
}

#[test]
fn all_threads_end_after_the_drop() {
    same!(ended(OnDrop::Complete), ());
    same!(ended(OnDrop::Discard), ());
}

/// Threads are busy until the gates open, and a thread that is busy keeps no other from its job.
fn one_left<P: Pool>() -> Option<Vec<u32>> {
    let (pool, (event, events)) = (P::new(THREADS), mpsc::channel());
    let gates: Vec<_> = (1..THREADS).map(|_| Gate::close(&pool)).collect();
    for number in 0..10 {
        let event = event.clone();
        pool.execute(move || event.send(number).expect("the test waits for it"));
    }
    drop(event);
    let run = all(&events);
    gates.into_iter().for_each(Gate::open);
    Some(run)
}

#[test]
fn one_free_thread_is_enough() {
    same!(one_left(), (0..10).collect::<Vec<_>>());
}
