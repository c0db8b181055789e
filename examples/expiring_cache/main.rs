//! A cache on the command line: entries expire, and reading one refreshes it.
//!
//! It reads commands from standard input, one per line, and answers each at once. It announces an
//! entry when it expires, whatever is typed meanwhile.
//!
//! ```text
//! set KEY SECONDS VALUE   keeps VALUE until KEY has not been asked for in so many seconds
//! get KEY                 shows it, and its time begins anew
//! del KEY                 removes it
//! list                    shows all, in the order in which they will expire
//! quit                    ends at once
//! ```
//!
//! For a line that cannot be understood it reports the error, and reads the next. When the input
//! ends, no entry can be refreshed any more: the program waits until the last one has expired.
//! Without input, or on a terminal, it runs a demonstration of two seconds instead; call it with
//! `-` to type commands.
//!
//! ```text
//! cargo run --example expiring_cache
//! cargo run --example expiring_cache -- -
//! printf 'set tea 1 hot\nget tea\n' | cargo run --example expiring_cache
//! ```
//!
//! The interesting part is `cache.rs`: a cache for any program, made of a map, a
//! [`DelayQueue`](punctual::DelayQueue) and one thread. [`reset`](punctual::DelayQueue::reset)
//! refreshes an entry: no entry is queued twice, and no thread polls. An executor types the
//! demonstration's commands.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod cache;
mod command;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod session;

use std::{
    error::Error,
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
};

use lexopt::Arg;

use crate::session::Session;

const USAGE: &str = "\
Usage: expiring_cache [-]

Reads from standard input: set KEY SECONDS VALUE, get KEY, del KEY, list, quit.
Runs a demonstration if that is empty or a terminal.

  -   read commands, also from a terminal";

fn main() -> ExitCode {
    match common::options(USAGE, reads_terminal) {
        Ok(reads_terminal) => common::end(run(reads_terminal)),
        Err(code) => code,
    }
}

/// Reads the command line; `None` if only the usage is asked for.
fn reads_terminal(args: &mut lexopt::Parser) -> Result<Option<bool>, String> {
    let mut reads_terminal = false;
    while let Some(arg) = common::next(args)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(value) if value == "-" => reads_terminal = true,
            arg => return Err(common::unknown(arg)),
        }
    }
    Ok(Some(reads_terminal))
}

fn run(reads_terminal: bool) -> Result<(), Box<dyn Error + Send + Sync>> {
    let session = Session::start()?;
    if reads_terminal {
        return session.read(&mut io::stdin().lock());
    }
    let is_empty = || io::stdin().lock().fill_buf().map(<[u8]>::is_empty);
    if io::stdin().is_terminal() || is_empty()? {
        session.demonstrate()
    } else {
        session.read(&mut io::stdin().lock())
    }
}
