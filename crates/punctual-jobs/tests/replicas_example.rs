//! Three replicas on one terminal, started by the script that a user starts.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "a test starts programs, and fails by panicking"
)]

use std::{collections::BTreeSet, path::Path, process::Command};

/// A run that has begun: who, which tick, which fencing token.
fn begun(line: &str) -> Option<(&str, &str, u64)> {
    let (who, rest) = line.split_once(" sweeps for tick ")?;
    let (tick, fence) = rest.split_once(", fence ")?;
    Some((who, tick, fence.parse().ok()?))
}

/// Runs the script, and returns what it prints on standard output, and all of it.
fn output() -> (String, String) {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/three_replicas.sh");
    let output = Command::new(script)
        .arg("9")
        .env("REPLICA", folder.join("examples/replica"))
        .output()
        .expect("the script can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.ends_with("-- the end\n"), "{said}");
    (text, said)
}

/// Returns whether the tick of the replica that was killed was taken over first, the schedule went on, and no other tick was
/// begun twice. The script runs for nine seconds, in which the machine may stand still, or a lease may end by that.
fn is_taken_over(text: &str, said: &str) -> bool {
    let lines: Vec<_> = text.lines().collect();
    let is_kill = |line: &&str| line.contains("was killed in the middle of its run");
    let killed = lines.iter().position(is_kill).unwrap_or_else(|| panic!("{said}"));
    let (before, after) = lines.split_at(killed);
    let (dead, tick, fence) =
        before.iter().rev().find_map(|line| begun(line)).unwrap_or_else(|| panic!("{said}"));
    let runs: Vec<_> = after.iter().filter_map(|line| begun(line)).collect();
    assert!(runs.iter().all(|(who, ..)| *who != dead), "the dead do not run: {said}");

    let runs_of_all = || lines.iter().filter_map(|line| begun(line));
    let fences: BTreeSet<_> = runs_of_all().map(|(.., fence)| fence).collect();
    let ticks: BTreeSet<_> = runs_of_all().map(|(_, tick, _)| tick).collect();
    assert_eq!(fences.len(), runs_of_all().count(), "no fence is there twice: {said}");
    let is_first = runs.first().is_some_and(|(_, again, next)| *again == tick && *next > fence);
    let is_of_dead = after[0].contains(&format!("-- {dead} was killed"));
    is_of_dead && is_first && runs.len() >= 2 && ticks.len() + 1 == fences.len()
}

#[test]
fn a_replica_that_is_killed_is_replaced_and_no_tick_has_two_fences_otherwise() {
    let mut all = Vec::new();
    while all.len() < 4 {
        let (text, said) = output();
        if is_taken_over(&text, &said) {
            return;
        }
        all.push(said);
    }
    panic!("{all:#?}");
}
