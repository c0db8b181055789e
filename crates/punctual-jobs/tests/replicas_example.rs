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

#[test]
fn a_replica_that_is_killed_is_replaced_and_no_tick_has_two_fences_otherwise() {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/three_replicas.sh");
    let output = Command::new(script)
        .arg("9")
        .env("REPLICA", folder.join("examples/replica"))
        .output()
        .expect("the script can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.ends_with("-- the end\n"), "{said}");

    let lines: Vec<_> = text.lines().collect();
    let is_kill = |line: &&str| line.contains("was killed in the middle of its run");
    let killed = lines.iter().position(is_kill).unwrap_or_else(|| panic!("{said}"));
    let (before, after) = lines.split_at(killed);
    let (dead, tick, fence) =
        before.iter().rev().find_map(|line| begun(line)).unwrap_or_else(|| panic!("{said}"));
    assert!(after[0].contains(&format!("-- {dead} was killed")), "{said}");

    let runs: Vec<_> = after.iter().filter_map(|line| begun(line)).collect();
    assert!(runs.iter().all(|(who, ..)| *who != dead), "the dead do not run: {said}");
    let (_, again, next) = *runs.first().unwrap_or_else(|| panic!("nobody goes on: {said}"));
    assert!(again == tick && next > fence, "its tick is taken over first: {said}");
    assert!(runs.len() >= 2, "the schedule goes on: {said}");

    let runs = || lines.iter().filter_map(|line| begun(line));
    let fences: BTreeSet<_> = runs().map(|(.., fence)| fence).collect();
    let ticks: BTreeSet<_> = runs().map(|(_, tick, _)| tick).collect();
    assert_eq!(fences.len(), runs().count(), "no fence is there twice: {said}");
    assert_eq!(ticks.len() + 1, fences.len(), "only one tick was begun twice: {said}");
}
