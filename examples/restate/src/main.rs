//! A service for Restate, which notes each tick of its schedules in a folder:
//! `cargo run --manifest-path examples/restate/Cargo.toml -- FOLDER`. It listens on 127.0.0.1:9080, or where `--listen` says, and
//! ends with Ctrl-C.
//!
//! With it goes a server, `npx @restatedev/restate-server`, which is told of the service and of a schedule once:
//!
//! ```sh
//! curl localhost:9070/deployments --json '{"uri": "http://localhost:9080"}'
//! curl localhost:8080/Schedule/report/put --json \
//!   '{"expression": "0 9 * * MON-FRI", "zone": "Europe/Paris", "body": "note"}'
//! curl localhost:8080/Schedule/report/status
//! ```

use std::{
    error::Error,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use lexopt::{Arg, Parser, ValueExt};
use punctual::{CancellationToken, Grace, ScheduledThreadPoolExecutor};
use restate::{Bodies, BodyError, Run, Schedule};
use restate_sdk::prelude::{Endpoint, HttpServer};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (listen, folder) = arguments()?;
    fs::create_dir_all(&folder)?;
    let executor = ScheduledThreadPoolExecutor::new(4);
    let slow = folder.clone();
    let bodies = Bodies::on(&executor)
        .with("note", move |run, _| note(&folder, run))
        .with("wait", move |run, token| wait(&slow, run, token))
        .with("fail", |run, _| Err(format!("{} always fails", run.key).into()));
    let endpoint = Endpoint::builder().bind(Schedule::new(bodies)).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(HttpServer::new(endpoint).listen_and_serve(listen));
    executor
        .shutdown_within(Grace::patience(Duration::from_secs(5)).then(Duration::from_secs(5)))?;
    Ok(())
}

fn arguments() -> Result<(SocketAddr, PathBuf), lexopt::Error> {
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 9080));
    let mut folder = None;
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("listen") => listen = parser.value()?.parse()?,
            Arg::Value(path) => folder = Some(path.into()),
            other => return Err(other.unexpected()),
        }
    }
    Ok((listen, folder.ok_or("usage: restate [--listen ADDRESS] FOLDER")?))
}

/// Writes down that a run has begun, in one piece, so that runs and processes side by side do not mix their lines.
fn begin(folder: &Path, run: &Run) -> Result<(), BodyError> {
    let mut begun = OpenOptions::new().create(true).append(true).open(folder.join("begun"))?;
    Ok(begun.write_all(format!("{}\n", run.key).as_bytes())?)
}

/// Notes the tick.
fn note(folder: &Path, run: &Run) -> Result<(), BodyError> {
    begin(folder, run)?;
    leave(folder, run)
}

/// The effect of a tick: a file of its own. A repetition finds it, and has nothing to do.
fn leave(folder: &Path, run: &Run) -> Result<(), BodyError> {
    match File::create_new(folder.join(&run.key)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Notes it likewise, but waits for a file `go` before; or until its run counts no more.
fn wait(folder: &Path, run: &Run, token: &CancellationToken) -> Result<(), BodyError> {
    begin(folder, run)?;
    while !folder.join("go").exists() {
        token.sleep(Duration::from_millis(10))?;
    }
    leave(folder, run)
}
