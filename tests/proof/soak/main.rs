//! A soak test: real threads, four times as many as cores, under a mixed load, in a process that is
//! stopped and continued every few seconds. `PUNCTUAL_SOAK_SECONDS` sets the duration, and
//! `PUNCTUAL_SOAK_SEED` the seed of the dice; `ci/soak.sh` runs the test for an hour.
//!
//! The load comes in rounds, some dense and some sparse. At the end of a round every submitted task
//! is brought to its end, and the executor, which outlives all rounds, is at rest. Then nothing is
//! alive but the executor itself, its counts match those of the futures, and memory and threads are
//! what they were after earlier rounds.
//!
//! Throughout, no task starts early, no runs of a periodic task overlap, nothing is dropped twice,
//! the counts of each snapshot add up, and every due task comes to its end. Tasks contain panics,
//! so they write the faults that they find into a [`Ledger`], which is checked all the time.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it does")]

mod brief;
mod dice;
mod gauges;
mod ledger;
mod outside;
#[path = "../../behaviour/support/patience.rs"]
mod patience;
mod periodic;
mod queue;
mod soak;
mod tasks;

use std::{
    collections::VecDeque,
    env,
    str::FromStr,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use punctual::{Handle, ScheduledThreadPoolExecutor, Statistics};

use crate::{
    dice::Dice,
    gauges::Gauges,
    ledger::{GRACE, Ledger},
    patience::Patience,
    queue::Shelf,
    soak::{Count, Ends, Settle, Soak, eventually},
};

/// The largest number of submissions that a thread has open at a time.
const OPEN: u64 = 200;

/// An executor keeps its promises under every operation, for however long.
#[test]
fn an_executor_keeps_its_promises_under_any_load() {
    let length = Duration::from_secs(setting("PUNCTUAL_SOAK_SECONDS").unwrap_or(3));
    if let Some(seed) = setting(outside::INSIDE) {
        return inside(seed, length);
    }
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is past 1970");
    let seed = setting("PUNCTUAL_SOAK_SEED").unwrap_or_else(|| now().as_secs());
    println!("soak: {} s, PUNCTUAL_SOAK_SEED={seed}", length.as_secs());
    outside::run("an_executor_keeps_its_promises_under_any_load", seed, length);
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}, and not a number")))
}

/// Runs the load, in the inner process.
fn inside(seed: u64, length: Duration) {
    soak::silence_what_is_meant();
    let before = Gauges::read();
    let (begun, cores) = (Instant::now(), thread::available_parallelism().map_or(2, usize::from));
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(4 * cores);
    let executor = builder.thread_name("long").build().expect("the settings are good");
    let soak = Arc::new(Soak::new(executor.handle(), 4 * cores));
    let round_length = (length / 4).min(Duration::from_secs(10));
    let (mut round, mut warm, mut told) = (0, None, begun);
    while begun.elapsed() < length {
        round += 1;
        run_round(&soak, seed, round, round_length);
        let gauges = Gauges::read();
        if begun.elapsed() * 8 > length {
            warm = warm.or(gauges);
        }
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            say(&soak, round, begun, gauges);
        }
        end_if_faulty(&soak);
    }
    let after = Gauges::read();
    executor.close().expect("this is no task");
    say(&soak, round, begun, after);
    if let (Some(warm), Some(after)) = (warm, after) {
        println!("soak: memory after the first eighth {warm}; at the end {after}");
        if after.has_outgrown(&warm) {
            soak.ledger.complain(format!("memory has grown: from {warm} to {after}"));
        }
    }
    // One thread stays for the whole process: it wakes the futures that await a queue.
    let threads = || Gauges::read().map_or(0, |now| now.threads);
    let at_most = before.map_or(0, |before| before.threads + 1);
    if !eventually(|| threads() <= at_most) {
        soak.ledger.complain(format!("{} threads are left of {at_most}", threads()));
    }
    end_if_faulty(&soak);
}

impl Soak {
    fn new(pool: Handle, workers: usize) -> Self {
        let (ledger, ends) = (Arc::new(Ledger::default()), Ends::default());
        let (brief_pools, elements) = (Count::default(), Count::default());
        Self { pool, workers, ledger, ends, brief_pools, elements }
    }
}

/// Lets as many threads as there are workers submit tasks for `length`, and settle them; meanwhile
/// the calling thread watches.
fn run_round(soak: &Arc<Soak>, seed: u64, round: u64, length: Duration) {
    let (shelf, done, end) = (Arc::new(Shelf::new()), Count::default(), Instant::now() + length);
    // The pause between two operations, in milliseconds: none, or up to this many.
    let pace = Dice::new(seed, round, 0).any(&[0, 0, 1, 5, 30]);
    let submitters = soak.workers as u64;
    let takers = soak.workers / 2;
    thread::scope(|scope| {
        for thread in 1..=submitters {
            let (shelf, done) = (&shelf, &done);
            scope.spawn(move || {
                let dice = Dice::new(seed, round, thread);
                soak.must_not_panic(|| submit_and_settle(soak, shelf, dice, pace, end));
                done.add(1);
            });
        }
        for way in 0..takers {
            let (shelf, done) = (&shelf, &done);
            scope.spawn(move || {
                soak.must_not_panic(|| shelf.take_all(soak, way));
                done.add(1);
            });
        }
        // A thread that waits for ever, though no task is overdue, has lost a wake-up.
        let mut limit = Patience::of(length + 4 * GRACE);
        let watched = watch(soak, || done.get() >= submitters, soak.pool.statistics(), &mut limit);
        shelf.close();
        watch(soak, || done.get() == submitters + takers as u64, watched, &mut limit);
    });
    shelf.check(soak);
    rest(soak);
}

fn submit_and_settle(
    soak: &Arc<Soak>,
    shelf: &Arc<Shelf>,
    mut dice: Dice,
    pace: u64,
    end: Instant,
) {
    let mut open: VecDeque<Settle> = VecDeque::new();
    while Instant::now() < end {
        let limit = if pace == 0 { OPEN } else { OPEN / 4 };
        if dice.roll(limit) < open.len() as u64 {
            let settle = open.pop_front().expect("it is not empty");
            settle(soak, &mut dice);
        } else {
            open.extend(act(soak, shelf, &mut dice));
        }
        if pace > 0 {
            thread::sleep(dice.up_to_ms(pace));
        }
    }
    open.into_iter().for_each(|settle| settle(soak, &mut dice));
}

/// Performs one of all the operations.
fn act(soak: &Arc<Soak>, shelf: &Arc<Shelf>, dice: &mut Dice) -> Option<Settle> {
    match dice.roll(1_000) {
        0..300 => tasks::one_shot(soak, dice),
        300..450 => tasks::far(soak, dice),
        450..550 => tasks::timed(soak, dice),
        550..600 => tasks::nested(soak, dice),
        600..650 => periodic::periodic(soak, dice),
        650..950 => shelf.put(soak, dice),
        950..980 => {
            brief::pool(soak, dice);
            None
        }
        _ => {
            tune(soak, dice);
            None
        }
    }
}

/// Changes the pool's size and settings, or reads them.
fn tune(soak: &Soak, dice: &mut Dice) {
    let pool = &soak.pool;
    match dice.roll(6) {
        0 => pool.set_core_pool_size(1 + dice.roll(soak.workers as u64) as usize),
        1 => pool.set_core_pool_size(soak.workers),
        2 => _ = pool.set_keep_alive(dice.up_to_ms(20) + Duration::from_nanos(1)),
        3 => _ = pool.set_allows_core_thread_timeout(dice.one_in(2)),
        4 => _ = pool.prestart_all_core_threads(),
        _ => {
            let pending = pool.pending_tasks();
            if !pending.is_sorted_by_key(|task| task.next_run.is_none()) {
                soak.ledger.complain("what is never due stands before what is");
            }
            _ = pool.purge();
        }
    }
}

/// Checks the counts and the ledger until the round is over; ends the process if a fault is found,
/// or if that takes too long.
fn watch(
    soak: &Soak,
    is_over: impl Fn() -> bool,
    mut counts: Statistics,
    limit: &mut Patience,
) -> Statistics {
    let mut looked = Instant::now();
    while !is_over() {
        thread::sleep(Duration::from_millis(20));
        soak.ledger.look(&mut looked);
        if !limit.lasts() {
            soak.ledger.complain("a round does not end");
        }
        counts = soak.check_counts(&counts);
        end_if_faulty(soak);
    }
    counts
}

/// Checks after a round that every task has come to its end.
fn rest(soak: &Soak) {
    let is_at_rest =
        eventually(|| soak.ledger.alive().is_empty() && soak.is_quiet(&soak.pool.statistics()));
    if !is_at_rest {
        let (now, alive, ends) = (soak.pool.statistics(), soak.ledger.alive(), &soak.ends);
        soak.ledger.complain(format!("not at rest: {now:?}, {ends}, alive: {alive:?}"));
    }
}

fn end_if_faulty(soak: &Soak) {
    let (faults, overdue) = (soak.ledger.faults(), soak.ledger.overdue());
    if faults.is_empty() && overdue.is_empty() {
        return;
    }
    faults.iter().for_each(|fault| eprintln!("soak: {fault}"));
    eprintln!("soak: overdue: {overdue:?}");
    eprintln!("soak: {}; {:?}", soak.ends, soak.pool.statistics());
    let pending: Vec<_> = soak.pool.pending_tasks().into_iter().take(20).collect();
    eprintln!("soak: the first that are pending: {pending:?}");
    outside::end_as_faulty();
}

fn say(soak: &Soak, round: u64, begun: Instant, gauges: Option<Gauges>) {
    let gauges = gauges.map_or_else(|| "unknown".to_owned(), |gauges| gauges.to_string());
    println!(
        "soak: {:.0} s, {round} rounds: {}, {} parcels, {} brief pools, {} captures; {gauges}",
        begun.elapsed().as_secs_f64(),
        soak.ends,
        soak.elements.get(),
        soak.brief_pools.get(),
        soak.ledger.entered(),
    );
}
