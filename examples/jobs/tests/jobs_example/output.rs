//! The program's behaviour when its output cannot be written.

#![cfg(unix)]

#[cfg(target_os = "linux")]
use crate::program::report_a_full_disk;
use crate::program::{Call, end_quietly_when_unread};

const CALLS: [Call; 2] = [("jobs", &[]), ("jobs", &["--help"])];

#[test]
fn it_ends_quietly_when_nobody_reads() {
    end_quietly_when_unread(&CALLS);
}

#[cfg(target_os = "linux")]
#[test]
fn it_reports_that_its_output_cannot_be_written() {
    report_a_full_disk(&CALLS);
}
