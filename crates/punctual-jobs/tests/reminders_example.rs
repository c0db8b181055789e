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

#[test]
fn reminders_are_sent_moved_and_cancelled() {
    let output = Command::new(program()).output().expect("the example was built with the tests");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "\
moved: Moved
cancelled: Removed
to 2: call home (attempt 2)
to 1: tea and cake (attempt 1)
shut down, released: 0
";
    assert_eq!(text, expected);
}
