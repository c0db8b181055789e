//! Jobs that repeat: how often they run, never early, and what ends them.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::patience::receive;
use crate::subject::{KINDS, Kind, Pool, all, ms, same};

/// The number of runs of a series that ends itself, and whether its closure is dropped then.
fn ended_by_none<P: Pool>(is_rate: bool) -> Option<Vec<u32>> {
    let (pool, (event, events)) = (P::new(2), mpsc::channel());
    let mut runs = 0;
    let job = move || {
        runs += 1;
        event.send(runs).expect("the test waits for it");
        (runs < 6).then_some(Duration::from_micros(100 * u64::from(runs)))
    };
    let _handle = if is_rate { pool.rate(ms(1), job) } else { pool.delay(ms(1), job) };
    // It is over when the closure, and with it the sender, has been dropped.
    Some(all(&events))
}

#[test]
fn none_ends_a_series_and_drops_its_closure() {
    for is_rate in [true, false] {
        same!(ended_by_none(is_rate), [1, 2, 3, 4, 5, 6]);
    }
}

/// Says of each run of a series whether it was at its moment or later: at a rate the moments are counted from
/// the first, with a delay from the end of the run before. The runs take `body` each.
fn never_early<P: Pool>(kind: Kind, body: Duration) -> Option<Vec<bool>> {
    const RUNS: u32 = 6;
    let (first, next) = (ms(4), ms(3));
    let (pool, (event, events)) = (P::new(2), mpsc::channel());
    let submitted = Instant::now();
    let series = pool.repeat(kind, first, next, move || {
        let started = Instant::now();
        thread::sleep(body);
        let _ = event.send((started, Instant::now()));
    });
    let take = || receive(&events, "it runs again and again");
    let runs: Vec<_> = (0..RUNS).map(|_| take()).collect();
    P::cancel(&series);
    let mut earliest = submitted + first;
    Some(
        runs.into_iter()
            .map(|(started, ended)| {
                let is_early = started < earliest;
                let is_rate = matches!(kind, Kind::FixedRate | Kind::DynamicRate);
                earliest = if is_rate { earliest + next } else { ended + next };
                is_early
            })
            .collect(),
    )
}

#[test]
fn no_run_is_early() {
    for (kind, body) in KINDS.into_iter().flat_map(|kind| [(kind, ms(0)), (kind, ms(5))]) {
        same!(never_early(kind, body), [false; 6]);
    }
}

/// Says whether each of many jobs ran at its moment or later.
fn one_shots_never_early<P: Pool>() -> Option<bool> {
    let (pool, (event, events)) = (P::new(3), mpsc::channel());
    for number in 0..200_u64 {
        let (event, delay) = (event.clone(), Duration::from_micros(number * 37 % 5_000));
        let earliest = Instant::now() + delay;
        pool.after(delay, move || {
            event.send(Instant::now() >= earliest).expect("the test waits for it");
        });
    }
    drop(event);
    let run = all(&events);
    Some(run.len() == 200 && run.into_iter().all(|is_late_enough| is_late_enough))
}

#[test]
fn no_job_is_early() {
    same!(one_shots_never_early(), true);
}

/// The runs of one series never overlap, however many threads there are and however overdue it is.
fn overlapping<P: Pool>(kind: Kind) -> Option<Vec<&'static str>> {
    let (pool, (event, events)) = (P::new(4), mpsc::channel());
    let series = pool.repeat(kind, Duration::ZERO, Duration::from_nanos(1), move || {
        let _ = event.send("begins");
        thread::yield_now();
        let _ = event.send("ends");
    });
    let first = (0..200).map(|_| receive(&events, "it runs")).collect();
    P::cancel(&series);
    Some(first)
}

#[test]
fn runs_of_one_series_do_not_overlap() {
    for kind in KINDS {
        same!(overlapping(kind), ["begins", "ends"].repeat(100));
    }
}

/// The gap that a series chooses is the one after that run, not after the next.
fn chosen_gaps<P: Pool>(is_rate: bool) -> Option<Vec<bool>> {
    let gaps = [ms(1), ms(30), ms(2)];
    let (pool, (event, events)) = (P::new(1), mpsc::channel());
    let mut left = gaps.into_iter();
    let job = move || {
        event.send(Instant::now()).expect("the test waits for it");
        left.next()
    };
    let _handle =
        if is_rate { pool.rate(Duration::ZERO, job) } else { pool.delay(Duration::ZERO, job) };
    let runs = all(&events);
    // A rate counts from when a run was due, which may have been before it began.
    let long_enough = |(run, gap): (&[Instant], Duration)| run[1] - run[0] >= gap / 2;
    Some(runs.windows(2).zip(gaps).map(long_enough).collect())
}

#[test]
fn each_run_chooses_the_gap_after_it() {
    same!(chosen_gaps(false), [true; 3]);
}
