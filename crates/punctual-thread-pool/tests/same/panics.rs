//! Panics: of jobs, and of calls with arguments that no pool can serve.

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::Duration,
};

use crate::patience::next_of;
use crate::subject::{
    KINDS, Kind, OnDrop, Pool, all, ms, note_panics, noted_panics, panic_of, same, unique_name,
    wait_for_the_end_of,
};

const FAR: Duration = Duration::MAX;

/// The message of each call that panics.
fn calls<P: Pool>() -> Option<Vec<Option<String>>> {
    let pool = P::new(1);
    let mut messages = vec![
        panic_of(|| P::new(0)),
        panic_of(|| P::with_name("named-{}", 0)),
        panic_of(|| P::build(0, Some("\0"), OnDrop::Discard)),
        panic_of(|| P::build(2, Some("nul-\0-{}"), OnDrop::Complete)),
        panic_of(|| P::with_name("nul\0", 1)),
        panic_of(|| pool.after(FAR, || ())),
        panic_of(|| pool.rate(FAR, || None)),
        panic_of(|| pool.delay(FAR, || None)),
    ];
    messages.extend(KINDS.map(|kind| panic_of(|| pool.repeat(kind, FAR, ms(1), || ()))));
    messages.push(panic_of(|| pool.after(Duration::from_secs(1 << 40), || ())));
    messages.push(panic_of(|| pool.execute(|| ())));
    Some(messages)
}

#[test]
fn the_same_calls_panic_with_the_same_messages() {
    let some = |text: &str| Some(text.to_owned());
    let nul = |details: &str| {
        some(&format!("thread name may not contain interior null bytes: NulError({details})"))
    };
    let mut expected = vec![some("num_threads must be positive"); 3];
    expected.extend([nul("4, [110, 117, 108, 45, 0, 45, 48]"), nul("3, [110, 117, 108, 0]")]);
    expected.extend(vec![some("overflow when adding duration to instant"); 7]);
    expected.extend([None, None]);
    same!(calls(), expected);
}

/// How often a series runs after whose first run there is no next moment, and what the panic hook is told.
fn no_next_moment<P: Pool>(kind: Kind) -> Option<(Vec<&'static str>, Vec<String>)> {
    note_panics();
    let name = unique_name();
    let (pool, (event, events)) = (P::with_name(&name, 1), mpsc::channel());
    let _handle = pool.repeat(kind, ms(1), FAR, move || event.send("runs").expect("waited for"));
    Some((all(&events), noted_panics(&name)))
}

#[test]
fn a_series_ends_before_a_moment_that_there_is_not() {
    for kind in KINDS {
        let panics = vec!["overflow when adding duration to instant".to_owned()];
        same!(no_next_moment(kind), (vec!["runs"], panics));
    }
}

/// The runs of a series that panics in its third, and what the panic hook is told.
fn third_run_panics<P: Pool>(kind: Kind) -> Option<(Vec<u32>, Vec<String>)> {
    note_panics();
    let name = unique_name();
    let (pool, (event, events)) = (P::with_name(&name, 1), mpsc::channel());
    let mut runs = 0;
    let _handle = pool.repeat(kind, Duration::ZERO, Duration::from_micros(50), move || {
        runs += 1;
        event.send(runs).expect("the test waits for it");
        assert!(runs < 3, "as planned");
    });
    Some((all(&events), noted_panics(&name)))
}

#[test]
fn a_panic_ends_a_series_and_drops_its_closure() {
    for kind in KINDS {
        same!(third_run_panics(kind), (vec![1, 2, 3], vec!["as planned".to_owned()]));
    }
}

/// Which threads run jobs, as (before, after) each of them has run one that panicked.
fn all_threads_panic<P: Pool>() -> Option<bool> {
    const THREADS: usize = 4;
    note_panics();
    let name = unique_name();
    let pool = P::with_name(&format!("{name}{{}}"), THREADS);
    // One job on each thread, because all meet in it.
    let meet = |panics: bool| {
        let (all_here, (event, events)) = (Arc::new(Barrier::new(THREADS)), mpsc::channel());
        for _ in 0..THREADS {
            let (all_here, event) = (Arc::clone(&all_here), event.clone());
            pool.execute(move || {
                event.send(thread::current().id()).expect("the test waits for it");
                all_here.wait();
                assert!(!panics, "as planned");
            });
        }
        drop(event);
        let mut threads = all(&events);
        threads.sort_by_key(|id| format!("{id:?}"));
        threads
    };
    let (during, after) = (meet(true), meet(false));
    let told: Vec<_> = (0..THREADS).map(|i| noted_panics(&format!("{name}{i}"))).collect();
    assert_eq!(told, vec![vec!["as planned".to_owned()]; THREADS]);
    drop(pool);
    wait_for_the_end_of(&name);
    Some(during == after && during.len() == THREADS)
}

#[test]
fn a_panic_ends_no_thread() {
    same!(all_threads_panic(), true);
}

/// A value that was captured by a job that panicked is dropped, and the job's handle can be used.
fn handle_of_a_panic<P: Pool>() -> Option<Vec<u32>> {
    note_panics();
    let (pool, (event, events)) = (P::with_name(&unique_name(), 1), mpsc::channel());
    let next = event.clone();
    let handle = pool.execute(move || {
        event.send(1).expect("the test waits for it");
        panic!("as planned");
    });
    let (done, is_done) = mpsc::channel::<()>();
    pool.execute(move || drop((next.send(2), done)));
    let _ = next_of(&is_done, "the next job has run");
    P::cancel(&handle);
    Some(all(&events))
}

#[test]
fn the_job_after_a_panic_runs() {
    same!(handle_of_a_panic(), [1, 2]);
}
