//! The example program, started as a user starts it.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test starts programs, and fails by panicking"
)]

use std::{path::PathBuf, process::Command};

/// Returns where cargo has put the example, which is beside the tests' folder.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    folder.join("examples").join("reminders")
}

/// Runs the program, and returns what it prints.
fn output() -> String {
    let output = Command::new(program()).output().expect("the example was built with the tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn reminders_are_sent_moved_and_cancelled() {
    let expected = "\
moved: Done
cancelled: Done
to 2: call home (attempt 2)
to 1: tea and cake (attempt 1)
shut down, released: 0
";
    // The program has some tenths of a second for what it moves and cancels. If the machine stands still just then, it prints
    // something else: so it is run again.
    let mut said = Vec::new();
    while said.last().is_none_or(|text| text != expected) {
        assert!(said.len() < 4, "{said:#?}");
        said.push(output());
    }
}
