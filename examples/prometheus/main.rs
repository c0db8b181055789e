//! An executor whose metrics Prometheus can scrape.
//!
//! ```text
//! cargo run --features histograms,metrics --example prometheus
//! curl http://127.0.0.1:9095/metrics
//! ```
//!
//! All that a program needs is in [`serve`]: it installs a recorder, here that of the crate
//! `metrics-exporter-prometheus`, and calls `publish_metrics` before each page that it renders. The names of
//! the executor's metrics are listed in `docs/observing.md`, and `alerts.yml`, beside this file, has rules for alerts on them.
//!
//! The slow task is in a group, whose metrics are published as well.
//!
//! The program has a metric of its own beside them: the lateness of each of its tasks, by name. The names of these tasks are three, so
//! they can be a label. The server is in `server.rs`; a real program has one already.

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod server;

use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

use lexopt::Arg;
use metrics::{Unit, describe_histogram, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use punctual::{
    FailurePolicy, Group, RejectedExecutionError, ScheduledThreadPoolExecutor, TaskContext,
    trigger::{every, fixed_delay},
    with_context,
};

use crate::{common::say, server::Server};

const USAGE: &str = "\
Usage: prometheus [--listen ADDRESS]

Serves the metrics of an executor, in Prometheus' text format, under /metrics until Ctrl-C.

  --listen ADDRESS    serve there [default: 127.0.0.1:9095]; port 0 is any that is free";

const ADDRESS: &str = "127.0.0.1:9095";
/// How often the recorder makes room: it keeps the samples of a histogram until then.
const UPKEEP: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let address = match common::options(USAGE, parse) {
        Ok(address) => address,
        Err(code) => return code,
    };
    common::end(serve(&address))
}

/// Returns the address to listen on; `None` if only the usage is asked for.
fn parse(args: &mut lexopt::Parser) -> Result<Option<String>, String> {
    let mut listen = ADDRESS.to_owned();
    while let Some(arg) = common::next(args)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Long("listen") => listen = common::value(args, "--listen", "an address")?,
            arg => return Err(common::unknown(arg)),
        }
    }
    Ok(Some(listen))
}

fn serve(address: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = Server::bind(address);
    let server = Arc::new(server.map_err(|error| format!("cannot listen on {address}: {error}"))?);
    let recorder = PrometheusBuilder::new().install_recorder()?;
    describe_histogram!("demo_lateness_seconds", Unit::Seconds, "How late a run began.");

    // With histograms, so that lateness and run time are published.
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2).histograms(0);
    let executor = builder.before_execute(record_lateness).build()?;
    let reports = executor.group("reports").limit(1).build()?;
    start_tasks(&executor, &reports, &recorder)?;

    let stopped = Arc::clone(&server);
    ctrlc::set_handler(move || stopped.stop())?;
    say(format_args!("Serving http://{}/metrics; Ctrl-C stops.", server.address()));
    server.run(|| {
        // In this order a group never shows more than the executor, whose runs have its own among them.
        reports.publish_metrics("demo");
        executor.publish_metrics("demo");
        recorder.render()
    })?;
    Ok(())
}

/// The metric that this program adds, for tasks that have a name.
fn record_lateness(task: &TaskContext) {
    if let Some(name) = task.name() {
        histogram!("demo_lateness_seconds", "task" => name).record(task.lateness());
    }
}

/// Starts tasks that have something to show: one is quick, one is slow, and one fails now and then.
fn start_tasks(
    executor: &ScheduledThreadPoolExecutor,
    reports: &Group,
    recorder: &PrometheusHandle,
) -> Result<(), RejectedExecutionError> {
    let ms = Duration::from_millis;
    let named = |name: &str| executor.task().name(name).on_failure(FailurePolicy::resume());
    named("quick").repeat(every(ms(20)), || ())?;
    let slow = with_context(move |run| {
        // A token's sleep ends when the executor is stopped.
        let _ = run.token().sleep(ms(30));
    });
    reports.task().name("slow").repeat(fixed_delay(ms(50)), slow)?;
    let mut runs = 0;
    named("moody").repeat(every(ms(50)), move || {
        runs += 1;
        if runs % 4 == 0 { Err("it is the fourth again") } else { Ok(()) }
    })?;
    let recorder = recorder.clone();
    executor.repeat(fixed_delay(UPKEEP).first_in(UPKEEP), move || recorder.run_upkeep())?;
    Ok(())
}
