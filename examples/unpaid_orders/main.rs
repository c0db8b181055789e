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

use std::{
    error::Error,
    fmt,
    io::{self, BufRead, IsTerminal},
    ops::ControlFlow,
    process::ExitCode,
    sync::Arc,
    thread::{self, Scope},
    time::{Duration, Instant},
};

use lexopt::Arg;
use punctual::ScheduledThreadPoolExecutor;

use crate::shop::Shop;

const USAGE: &str = "\
Usage: unpaid_orders [-]

Reads from standard input: order ID SECONDS, pay ID, quit.
Runs a demonstration if that is empty or a terminal.

  -   read, also from a terminal";

const WORKERS: u32 = 3;
/// The time it takes to put the goods of an order back on the shelf.
const RESTOCKING: Duration = Duration::from_millis(100);

/// The customers' actions in the demonstration, and when, in milliseconds.
const DEMO: [(u64, &str); 13] = [
    (0, "order A1 0.8"),
    (0, "order A2 0.5"),
    (0, "order A3 0.5"),
    (0, "order A4 0.5"),
    (0, "order A5 0.5"),
    (0, "order A6 60"),
    (100, "order A7 1.4"),
    (200, "pay A1"),
    (300, "pay A1"),
    (400, "order A8 0.9"),
    (900, "pay A2"),
    (1000, "pay A6"),
    (1000, "pay A9"),
];

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

    let till = Arc::new(Till { begun: Instant::now(), shop: Shop::new() });
    thread::scope(|scope| {
        let served = start_workers(scope, &till).and_then(|()| {
            if demonstrates {
                serve_demonstration(&till)
            } else {
                till.serve(&mut io::stdin().lock())
            }
        });
        // This happens also after an error: the scope ends when the workers do, and the workers end
        // when the shop is closed.
        till.shop.close();
        served
    })?;
    common::say(format_args!("\n{}", till.shop.report()));
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

fn serve_demonstration(till: &Arc<Till>) -> Result<(), Box<dyn Error + Send + Sync>> {
    common::say(format_args!("A demonstration; --help says how to type orders.\n"));
    let customers = ScheduledThreadPoolExecutor::new(1);
    for (millis, line) in DEMO {
        let till = Arc::clone(till);
        customers.schedule(Duration::from_millis(millis), move || till.hear(line))?;
    }
    Ok(customers.close()?)
}

/// The till, which reads the customers' actions and answers.
struct Till {
    begun: Instant,
    shop: Shop,
}

impl Till {
    /// Executes the lines until they end or one is `quit`.
    fn serve(&self, input: &mut dyn BufRead) -> Result<(), Box<dyn Error + Send + Sync>> {
        for (number, line) in (1..).zip(input.split(b'\n')) {
            match common::typed(&line?, number) {
                Ok(line) if self.hear(line).is_break() => {
                    self.shop.close();
                    self.shop.forget_unpaid();
                    break;
                }
                Ok(_) => {}
                Err(error) => self.say(format_args!("error: {error}")),
            }
        }
        Ok(())
    }

    fn hear(&self, line: &str) -> ControlFlow<()> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [word, ..] if word.starts_with('#') => {}
            ["quit"] => return ControlFlow::Break(()),
            ["order", id, seconds] => match parse_seconds(seconds) {
                Err(error) => self.say(format_args!("error: {error}")),
                Ok(time_to_pay) => match self.shop.order(id, time_to_pay) {
                    Ok(()) => self.say(format_args!("{id} ordered, to be paid in {seconds}s")),
                    Err(refusal) => self.say(format_args!("{id} not ordered: {refusal}")),
                },
            },
            ["pay", id] => match self.shop.pay(id) {
                Ok(order) => {
                    let after = order.placed.elapsed();
                    self.say(format_args!("{id} paid, {after:.1?} after it was ordered"));
                }
                Err(refusal) => self.say(format_args!("{id} not paid: {refusal}")),
            },
            _ => self.say(format_args!(
                "error: {line:?} is none of: order ID SECONDS, pay ID, quit",
                line = line.trim()
            )),
        }
        ControlFlow::Continue(())
    }

    /// Cancels orders, on a worker.
    fn cancel_overdue(&self, worker: u32) {
        for order in self.shop.overdue() {
            let (id, after) = (order.id, order.placed.elapsed());
            self.say(format_args!("{id} cancelled by worker {worker}, unpaid after {after:.1?}"));
            thread::sleep(RESTOCKING);
        }
    }

    /// Writes a line with the time since the start.
    fn say(&self, line: fmt::Arguments<'_>) {
        common::say(format_args!("{:8.3}  {line}", self.begun.elapsed().as_secs_f64()));
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| format!("SECONDS is a number, and not {text:?}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text} seconds: {error}"))
}
