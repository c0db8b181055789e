//! A shop that cancels orders that are not paid in time.
//!
//! It reads its customers' actions from standard input, one per line, and reports the results. An
//! order that is not paid in time is cancelled, and the program announces that when it happens.
//!
//! ```text
//! order ID SECONDS   an order, which is to be paid within so many seconds
//! pay ID             its payment
//! quit               ends at once; orders that are not paid stay so
//! ```
//!
//! For a line that cannot be understood it reports the error, and reads the next. When the input
//! ends, the shop is closed, and the program ends when the last order has been cancelled; it then
//! reports the totals. Without input, or on a terminal, it runs a demonstration of two seconds
//! instead; call it with `-` to type commands.
//!
//! ```text
//! cargo run --example unpaid_orders
//! cargo run --example unpaid_orders -- -
//! printf 'order A1 2\norder A2 1\npay A1\n' | cargo run --example unpaid_orders
//! ```
//!
//! The interesting part is `shop.rs`: an order brings its deadline along
//! ([`Delayed`](punctual::Delayed)), a payment removes it by its key, and the first of payment and
//! worker gets it. Three workers share the iterator of expired orders; restocking takes a while,
//! and meanwhile the others cancel. An executor plays the demonstration's customers.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod shop;
mod till;

use std::{
    error::Error,
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
    sync::Arc,
    thread::{self, Scope},
};

use lexopt::Arg;

use crate::till::Till;

const USAGE: &str = "\
Usage: unpaid_orders [-]

Reads from standard input: order ID SECONDS, pay ID, quit.
Runs a demonstration if that is empty or a terminal.

  -   read, also from a terminal";

const WORKERS: u32 = 3;

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
    let is_empty = || io::stdin().lock().fill_buf().map(<[u8]>::is_empty);
    let demonstrates = !reads_terminal && (io::stdin().is_terminal() || is_empty()?);

    let till = Arc::new(Till::open());
    thread::scope(|scope| {
        let served = start_workers(scope, &till).and_then(|()| {
            if demonstrates {
                till::demonstrate(&till)
            } else {
                till.serve(&mut io::stdin().lock())
            }
        });
        // This happens also after an error: the scope ends when the workers do, and the workers end
        // when the shop is closed.
        till.close();
        served
    })?;
    common::say(format_args!("\n{}", till.report()));
    Ok(())
}

fn start_workers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    till: &'scope Till,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for number in 1..=WORKERS {
        thread::Builder::new().spawn_scoped(scope, move || till.cancel_overdue(number))?;
    }
    Ok(())
}
