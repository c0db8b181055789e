//! A live view of an executor in the terminal: its tasks, how late they are, and what they are told.
//!
//! ```text
//! cargo run -p top
//! cargo run -p top -- --manual
//! cargo run -p top -- --jobs
//! cargo run -p top --features postgres -- --database postgres://me@localhost/mine
//! cargo run -p top -- --for 10s --every 1s | cat
//! ```
//!
//! The executor that is shown is a demonstration, with tasks that are quick, slow, unreliable, paused, or due in
//! an hour. The keys tell the selected task to run now, to pause, to go on, or to end.
//!
//! All that a program needs to have such a view of its own executor is in `board.rs`: two hooks, and a list of task
//! handles. The rest is the view: `view.rs` draws, with `tasks.rs` and `lateness.rs`,
//! `keys.rs` says what a key means, `app.rs` is the loop between the two, `screen.rs` leaves the terminal as it was.
//!
//! **A second page**, behind the key `2` or with `--jobs`, shows the jobs of a queue of `punctual-jobs`, in memory on the same
//! executor, or with `--database` on a server, where other programs run them: `work.rs` and `server.rs` open the queue,
//! `feed.rs` asks it, `look.rs` says what, `job_rows.rs` and `grid.rs` make tables of the answer, and `jobs_page.rs` shows them.
//!
//! **Without a terminal**, or on a dumb one, it prints the same table as text: once, or every now and then with `--every`.
//! With `--manual` the executor is on a manual clock, which the space bar moves by a second: every number is then exact, and
//! the same in every run.
//!
//! It exits with 0 when it was stopped, by `q`, Ctrl-C or a signal; with 2 if the command line is wrong; and with 1 if the
//! terminal could not be read or written.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod app;
mod board;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../../common/mod.rs"]
mod common;
mod demo;
mod feed;
mod grid;
mod job_order;
mod job_rows;
mod jobs_page;
mod keys;
mod lateness;
mod look;
mod options;
mod plain;
mod screen;
mod server;
mod tasks;
mod values;
mod view;
mod work;

use std::{env, error::Error, io::IsTerminal, process::ExitCode};

use punctual::CancellationToken;

use crate::{
    app::App,
    demo::Demo,
    options::{Options, USAGE},
};

fn main() -> ExitCode {
    let options = match common::options(USAGE, Options::parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    common::end(run(&options))
}

fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    ctrlc::set_handler(move || {
        stopped.cancel();
        screen::insist();
    })?;
    // Before the executor is made, whose own hook then comes first and calls this one.
    screen::keep_panics_off();
    let demo = Demo::start(options)?;
    if options.is_plain || !has_terminal() {
        plain::run(&demo, options, &stop)
    } else {
        App::new(&demo, options, &stop).run()
    }
    // The executor goes last, when the terminal is as it was.
}

/// Returns `true` if there is a terminal to draw on and to read keys from.
fn has_terminal() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let is_dumb = is_dumb && cfg!(unix);
    !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
