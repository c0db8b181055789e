//! A TCP server that disconnects clients from which it has not heard for a while.
//!
//! Each line that a client sends is a heartbeat, whatever it contains. The server reports every
//! client that connects, leaves or is disconnected, with the time since its start, and the totals
//! at the end.
//!
//! ```text
//! cargo run --example heartbeats
//! cargo run --example heartbeats -- --listen 127.0.0.1:7000 --timeout 5s
//! nc 127.0.0.1 7000
//! ```
//!
//! Without `--listen` it is a demonstration of two seconds: four clients come, of which two leave
//! and two fall silent. With it the server is a real one, until Ctrl-C or a SIGTERM stops it: it
//! then disconnects all clients.
//!
//! The interesting part is `server.rs`: restarting a timeout with each line costs one
//! [`reset`](punctual::DelayQueue::reset), and one thread disconnects silent clients for all
//! connections. (A reader thread per connection keeps the example small; the queue needs none.)

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod clients;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod connection;
mod server;
mod tally;

use std::{error::Error, process::ExitCode, sync::Arc, thread, time::Duration};

use lexopt::Arg;

use crate::{common::say, server::Server};

const USAGE: &str = "\
Usage: heartbeats [--listen ADDRESS] [--timeout DURATION]

A TCP server that hangs up on who sends no line for too long.

  --listen ADDRESS    serve there, as on 127.0.0.1:7000, until Ctrl-C
                      [default: a demonstration with clients of its own]
  --timeout DURATION  how long is too long [default: 5s; in the demonstration 800ms]

A duration is written as \"250ms\", \"1.5s\" or \"1h 30min\".";

const TIMEOUT: Duration = Duration::from_secs(5);
const DEMO_TIMEOUT: Duration = Duration::from_millis(800);
/// Any port that is free.
const DEMO_ADDRESS: &str = "127.0.0.1:0";

fn main() -> ExitCode {
    let options = match common::options(USAGE, Options::parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    common::end(match &options.listen {
        Some(address) => serve(address, options.timeout.unwrap_or(TIMEOUT)),
        None => demonstrate(options.timeout.unwrap_or(DEMO_TIMEOUT)),
    })
}

/// The options of the command line.
struct Options {
    listen: Option<String>,
    timeout: Option<Duration>,
}

impl Options {
    /// Returns `None` if only the usage is asked for.
    fn parse(args: &mut lexopt::Parser) -> Result<Option<Self>, String> {
        let (mut listen, mut timeout) = (None, None);
        while let Some(arg) = common::next(args)? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("listen") => {
                    listen = Some(common::value(args, "--listen", "an address")?)
                }
                Arg::Long("timeout") => {
                    let text = common::value(args, "--timeout", "a duration")?;
                    timeout = Some(parse_timeout(&text)?);
                }
                arg => return Err(common::unknown(arg)),
            }
        }
        Ok(Some(Self { listen, timeout }))
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("--timeout: it must be more than zero".to_owned()),
        Ok(timeout) => Ok(timeout),
        Err(error) => Err(format!("--timeout: bad duration {text:?}: {error}")),
    }
}

fn serve(address: &str, timeout: Duration) -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = bind(address, timeout)?;
    let stopped = Arc::clone(&server);
    ctrlc::set_handler(move || stopped.stop())?;
    let address = server.address();
    say(format_args!("Listening on {address}, for a line every {timeout:?}; Ctrl-C stops.\n"));
    server.run()?;
    say(format_args!("\n{}", server.tally()));
    Ok(())
}

fn demonstrate(timeout: Duration) -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = bind(DEMO_ADDRESS, timeout)?;
    say(format_args!("A demonstration: who sends no line for {timeout:?} is cut off.\n"));
    let clients = Arc::clone(&server);
    let visit = thread::Builder::new().name("clients".into()).spawn(move || {
        clients::run(&clients);
        clients.stop();
    })?;
    server.run()?;
    // It ended before the server did.
    let _ = visit.join();
    say(format_args!("\n{}", server.tally()));
    Ok(())
}

fn bind(address: &str, timeout: Duration) -> Result<Arc<Server>, String> {
    let server = Server::bind(address, timeout);
    server.map(Arc::new).map_err(|error| format!("cannot listen on {address}: {error}"))
}
