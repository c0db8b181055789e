//! The example program `top` as its user sees it: its screen in a pseudo-terminal, its keys, and the state in which it
//! leaves the terminal, however it ends.
//!
//! Most tests run it on the manual clock, so that every number on the screen is known.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]

mod endings;
mod jobs;
mod keys;
#[path = "../../../../tests/behaviour/support/patience.rs"]
mod patience;
mod picture;
mod plain;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/behaviour/support/program.rs"]
mod program;
mod screens;
mod svg;
mod terminal;

use terminal::Terminal;

/// The size of the screens that are compared.
const SIZE: (u16, u16) = (24, 80);

/// The program on the manual clock, with its first frame drawn.
fn manual() -> Terminal {
    let terminal = Terminal::start("top", &["--manual"], SIZE);
    terminal.frame_with(&["renewal"]);
    terminal
}
