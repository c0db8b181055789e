//! Runs the comparison.
//!
//! One process for each measurement, so that no peer inherits another's heap, threads or warm
//! caches; and never two at once. In a round the peers follow each other on the same step, so
//! that a slow minute of the machine hits all of them alike; the next round goes through them in
//! the opposite order. A process that fails is noted and reported, and the rest goes on.
//!
//! Results are written to disk at once, so an interrupted run can still be reported.

mod child;
mod host;
mod programs;

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::{Context, Result};

use self::{child::Outcome, host::Strain, programs::Programs};
use crate::{
    cli::Run,
    measurement::{Measurement, Sample},
    plan::{Mode, Step},
    results::{Child, HOST, RUNS},
    roster::Peer,
};

pub(crate) fn run(run: &Run) -> Result<()> {
    let out = &run.out;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    remove_old_rounds(out)?;
    let programs = Programs::prepare(&run.peers)?;
    let peers: Vec<Peer> =
        run.peers.iter().filter(|peer| programs.has(peer.program)).copied().collect();
    let host = host::describe(run.mode, &programs, &peers);
    fs::write(out.join(HOST), serde_json::to_string_pretty(&host)?)?;
    let mut log = File::create(out.join(RUNS))?;
    for round in 1..=run.rounds {
        let mut samples = File::create(out.join(format!("round-{round}.jsonl")))?;
        for step in &run.steps {
            for peer in in_turn(round, &peers) {
                let Some(child) = measure(run.mode, round, step, peer, &programs, &mut samples)?
                else {
                    continue;
                };
                writeln!(log, "{}", serde_json::to_string(&child)?)?;
                progress(run.rounds, &child);
            }
        }
    }
    Ok(())
}

/// The peers in the order of this round.
fn in_turn(round: u32, peers: &[Peer]) -> Vec<&Peer> {
    let mut peers: Vec<_> = peers.iter().collect();
    if round.is_multiple_of(2) {
        peers.reverse();
    }
    peers
}

/// The variable that tells glibc's allocator to keep freed memory.
const KEEP_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "4000000000"),
    ("MALLOC_MMAP_THRESHOLD_", "4000000000"),
    ("MALLOC_TOP_PAD_", "100000000"),
];

/// Starts the process and stores its figures. `None` if there is nothing to measure.
fn measure(
    mode: Mode,
    round: u32,
    step: &Step,
    peer: &Peer,
    programs: &Programs,
    samples: &mut File,
) -> Result<Option<Child>> {
    let (true, Some(params)) = (step.includes(peer), step.params(mode)) else {
        return Ok(None);
    };
    let mut command = programs.command(peer.program);
    command.args([peer.name, step.workload]).args(params);
    if step.keeps_memory() {
        command.envs(KEEP_MEMORY);
    }
    if let Some(allocator) = step.allocator() {
        command.env("LD_PRELOAD", allocator.library());
    }
    let strain = Strain::now();
    let Outcome { stdout, took, mut error } = child::run(command, child::LIMIT)?;
    for line in stdout.lines() {
        match serde_json::from_str::<Measurement>(line) {
            Ok(measurement) => {
                let sample = Sample { round, step: step.name.to_owned(), measurement };
                writeln!(samples, "{}", serde_json::to_string(&sample)?)?;
            }
            Err(_) => error = error.or_else(|| Some(format!("it printed: {line}"))),
        }
    }
    Ok(Some(Child {
        round,
        step: step.name.to_owned(),
        peer: peer.name.to_owned(),
        seconds: took.as_secs_f64(),
        load: strain.load,
        stolen: strain.stolen_until_now(took),
        error,
    }))
}

fn progress(rounds: u32, child: &Child) {
    let Child { round, step, peer, seconds, error, .. } = child;
    let end = error.as_ref().map_or_else(String::new, |error| format!("  FAILED: {error}"));
    eprintln!("round {round}/{rounds}  {step:<10} {peer:<22} {seconds:>6.1} s{end}");
}

/// Rounds of an earlier run must not be counted with this one.
fn remove_old_rounds(out: &Path) -> Result<()> {
    for file in crate::results::rounds(out)? {
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(())
}
