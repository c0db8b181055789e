//! Three replicas with gates and queues, and the database that they share, in one process and from a seed.
//!
//! Everything is the real thing but three: the *time*, which is simulated; the *socket*, in whose place there is a stream
//! in memory; and the *database*, which is a translation of the statements to tables in memory ([`gate_rows`],
//! [`job_rows`]). The seam is the connection: the client is `tokio-postgres`, which speaks its protocol to
//! the other end of the [`wire`], also with statements that are prepared. So the keeper, the leases, the worker, the heartbeat, the telling and the ticks are
//! what a program has, with executors, triggers, policies and jitter.
//!
//! # How a process is simulated
//!
//! A [`process`] has a runtime of tokio whose clock is paused and moved, for what the threads of the gate and of the queue do;
//! executors that are driven, on a manual clock; and a wall clock that is ahead or behind. A process that is
//! frozen is one that is not driven. A body lasts for simulated time: it stands still on a thread of its own
//! ([`actor`]) while the simulation goes on. At any moment one thread runs, so a seed says everything.
//!
//! # Troubles
//!
//! The [`plan`] of a seed: processes are killed, frozen and stopped, connections are cut or fall silent with statements
//! under way, whose answers are lost; the server is gone, silent or slow, its clock and those of the processes are set, a
//! transaction of the program's own holds a row, and a standby takes over that lacks what was committed last. In half of the
//! seeds a kind has limits, which may differ between the programs of the replicas.
//!
//! # Promises
//!
//! The [`ledger`] says it. Safety is looked at whenever a body begins and acts; that everything due is run, ended and told,
//! at the end, when all has been well for some leases. A body that acts also compares the moment with the end of its machine's lease at the
//! server, so a machine that gives its claims up too late is found even if no other one has swept them yet.
//!
//! A seed that fails is shrunk: troubles are left out one by one as long as it still fails. Then what was done
//! is printed. [`Fault`]s are statements that do something else than they say, to see that each is found.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of it is a test, and what is not as it should be ends it"
)]

mod actor;
mod boot_clock;
mod caught_ledger;
mod database;
mod fault;
mod gate_rows;
mod job_rows;
mod ledger;
mod limit_ledger;
mod limit_rows;
mod limits;
mod network;
mod plan;
mod prepared;
mod process;
mod random;
mod schedule_ledger;
mod schedule_rows;
mod table;
mod wire;
mod world;

/// The texts of the statements are the library's own files, read here once more: what is translated is what is sent.
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/postgres/claiming.rs"]
mod claiming;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/postgres/frontier.rs"]
mod frontier;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/gate/sql.rs"]
mod gate_texts;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/postgres/limiting.rs"]
mod limiting;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/postgres/schedules/texts.rs"]
mod schedule_texts;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/server/schema.rs"]
mod schema;
#[allow(dead_code)]
#[path = "../../../crates/punctual-jobs/src/postgres/statements.rs"]
mod statements;

/// What the translations know of the queue.
mod postgres {
    pub(crate) use crate::{claiming, limiting, schedule_texts, schema::Schema, statements};
}

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use self::{
    fault::Fault,
    ledger::Ledger,
    limits::DrawnLimits,
    plan::{Plan, REPLICAS, SELDOM, Trouble},
    random::Random,
    world::World,
};

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Returns so many seeds, or as many as are asked for if these are fewer.
fn seeds(usual: u64) -> RangeInclusive<u64> {
    1..=number("PUNCTUAL_REPLICAS", usual).min(usual)
}

/// Returns the fault that is to be put in, if there is one.
fn fault() -> Option<Fault> {
    let name = std::env::var("PUNCTUAL_FAULT").ok()?;
    let found = Fault::ALL.iter().find(|fault| format!("{fault:?}") == name);
    Some(*found.unwrap_or_else(|| panic!("a fault is one of {:?}", Fault::ALL)))
}

#[test]
fn replicas_keep_what_is_promised() {
    let (seeds, first) = (number("PUNCTUAL_REPLICAS", 20), number("PUNCTUAL_FIRST_SEED", 1));
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= (first + seeds).min(failed.load(Relaxed)) {
                return;
            }
            if World::run(&Plan::of(seed), fault(), false).failure.is_some() {
                failed.fetch_min(seed, Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let seed = failed.load(Relaxed);
    if seed < u64::MAX {
        let (plan, ledger) = shrink(Plan::of(seed));
        println!("{}\n{plan:#?}", ledger.log.join("\n"));
        panic!(
            "seed {seed}: {}",
            ledger.failure.unwrap_or_else(|| "it does not fail again".to_owned())
        );
    }
}

/// Leaves troubles out as long as it still fails, and returns what was done then.
fn shrink(mut plan: Plan) -> (Plan, Ledger) {
    let mut place = 0;
    while place < plan.troubles.len() {
        let mut without = plan.clone();
        without.troubles.remove(place);
        if World::run(&without, fault(), false).failure.is_some() {
            plan = without;
        } else {
            place += 1;
        }
    }
    let ledger = World::run(&plan, fault(), true);
    (plan, ledger)
}

/// Leaves the schedules out, which these cases are not about.
fn only_jobs(plan: Plan, troubles: Vec<(u64, Trouble)>) -> Plan {
    Plan { troubles, jobs: 12, schedules: Vec::new(), acts: Vec::new(), limits: None, ..plan }
}

/// Carries a plan out, and prints what was done if it fails.
fn holds(plan: &Plan) {
    if World::run(plan, fault(), false).failure.is_some() {
        let ledger = World::run(plan, fault(), true);
        println!("{}\n{plan:#?}", ledger.log.join("\n"));
        panic!("seed {}: {:?}", plan.seed, ledger.failure);
    }
}

/// A machine that is cut off gives its claims up before another one can have them. Some connections also end a while later, as the
/// machine waits for an answer: so its questions come at any moment of the lease, and one comes right before the end.
#[test]
fn a_machine_that_is_cut_off_gives_its_claims_up_in_time() {
    for seed in seeds(60) {
        let plan = Plan::of(seed);
        let (half, percent) = (plan.length / 2, plan.job_lease / 100);
        let mut random = Random::new(seed ^ 0x0c07_0ff5);
        // When they end, in percent of the lease.
        let cuts = match seed % 4 {
            0 => Vec::new(),
            1 => vec![random.between(20, 60)],
            _ => {
                let first = random.between(25, 50);
                vec![first, first + random.between(25, 40)]
            }
        };
        let cuts = cuts.into_iter().map(|at| (half + at * percent, Trouble::Cut(0)));
        let cut_off = (half, Trouble::Partition(0, 3 * plan.job_lease));
        let troubles = std::iter::once(cut_off).chain(cuts);
        let plan = only_jobs(plan, troubles.collect());
        holds(&Plan { acts_of_jobs: Some(128), ..plan });
    }
}

/// A machine that could not ask for nearly a lease runs nothing that it claims before it has asked.
#[test]
fn nothing_is_run_by_a_claim_of_a_lease_that_ends() {
    for seed in seeds(200) {
        let plan = Plan::of(seed);
        let outage = plan.job_lease * (60 + seed % 50) / 100;
        let troubles = vec![(plan.length / 2, Trouble::Outage(outage))];
        holds(&only_jobs(plan, troubles));
    }
}

/// A machine whose heartbeats alone are lost claims nothing in the last tenth of its lease, and runs nothing after it.
#[test]
fn nothing_is_claimed_in_the_last_tenth_of_a_lease() {
    for seed in seeds(60) {
        let plan = Plan::of(seed);
        let job_lease = 2 * plan.job_lease;
        let troubles = vec![(2 * job_lease, Trouble::LoseBeats(0, 2 * job_lease))];
        let plan = only_jobs(plan, troubles);
        let (jobs, acts_of_jobs) = (120, Some(4));
        holds(&Plan { job_lease, length: 4 * job_lease, jobs, acts_of_jobs, ..plan });
    }
}

/// Seeds that have found a defect. 117: a machine whose lease was over gave each heartbeat up before its connection could be found mute,
/// so it never had another connection, and its worker's row was renewed all the same.
#[test]
fn what_a_seed_has_found_stays_mended() {
    holds(&Plan::of(117));
}

/// A machine that finds no token looks again when there is one: nothing else has it look.
#[test]
fn who_finds_no_token_looks_again() {
    for seed in seeds(6) {
        let window = Some((1, 300 + 50 * seed));
        let drawn = DrawnLimits { window, ..DrawnLimits::none(8) };
        let limits = match seed % 2 {
            0 => Some(drawn),
            _ => Some(DrawnLimits { window: None, key_window: window, ..drawn }),
        };
        let plan = only_jobs(Plan::of(seed), Vec::new());
        holds(&Plan { limits, period: 1_000, poll: SELDOM, ..plan });
    }
}

/// A machine that has left room looks again, or another one does: however long the jobs last that have begun.
#[test]
fn room_is_used_while_jobs_run() {
    for seed in seeds(40) {
        let most = Some(2 + (seed / 4 % 2) as u32);
        let window = Some((1 + (seed % 3) as u32, 500 + 10 * seed));
        let drawn = DrawnLimits { within: Some(400), ..DrawnLimits::none(16) };
        let (limits, slots) = match seed % 4 {
            0 => (DrawnLimits { window, ..drawn }, 4),
            1 => (DrawnLimits { key_window: window, ..drawn }, 4),
            2 => (DrawnLimits { of_kind: [most; REPLICAS], ..drawn }, 2),
            // The machines share the lock.
            _ => (DrawnLimits { of_kind: [Some(6); REPLICAS], of_key: Some(6), ..drawn }, 2),
        };
        let plan = only_jobs(Plan::of(seed), Vec::new());
        let plan = Plan {
            jobs: 0,
            period: 1_000,
            poll: SELDOM,
            length: 6_000,
            slots: [slots; REPLICAS],
            ..plan
        };
        let replicas = if seed / 8 % 2 == 0 { REPLICAS } else { 1 };
        holds(&Plan { limits: Some(limits), acts_of_jobs: Some(128), replicas, ..plan });
    }
}

/// The same seed twice is the same to the last statement.
#[cfg(tokio_unstable)]
#[test]
fn a_seed_says_everything() {
    for seed in seeds(20) {
        let run = || World::run(&Plan::of(seed), None, true).log;
        let (one, other) = (run(), run());
        if let Some(place) = one.iter().zip(&other).position(|(one, other)| one != other) {
            println!("{}", one[place.saturating_sub(60)..place].join("\n"));
            panic!("seed {seed}: {}, or {}", one[place], other[place]);
        }
    }
}
