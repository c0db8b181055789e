//! Measures `punctual` beside its peers, in Rust, Java, Go and C++, on one machine and in one go.
//!
//! ```sh
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- full
//! ```
//!
//! The README beside this package explains the workloads and how to read the figures. In the
//! order in which to read the code:
//!
//! * [`roster`] and [`plan`]: the peers, and the measurements.
//! * [`run`]: starts one process for each measurement, one after the other.
//! * [`measure`]: the work of such a process, for the peers in Rust.
//! * [`measurement`]: the line of JSON that passes between them.
//! * [`results`], [`report`], [`draw`]: the report and the pictures, made from the lines.

mod cli;
mod draw;
mod measure;
mod measurement;
mod plan;
mod report;
mod results;
mod roster;
mod run;

use std::process::ExitCode;

use anyhow::Result;

use self::cli::Command;

fn main() -> ExitCode {
    match cli::parse(lexopt::Parser::from_env()).and_then(obey) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(command: Command) -> Result<()> {
    match command {
        Command::Run(run) => {
            run::run(&run)?;
            report::write(&run.out)
        }
        Command::Report { dir } => report::write(&dir),
        Command::Draw { dir, out } => draw::draw(&dir, &out),
        Command::Measure { peer, workload, args } => measure::run(&peer, &workload, &args),
        Command::Help => {
            print!("{}", cli::USAGE);
            Ok(())
        }
    }
}
