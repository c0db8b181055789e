//! The same as text, for where there is no terminal.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use comfy_table::{Table, presets};
use punctual::CancellationToken;

use crate::{
    common::say,
    demo::Demo,
    jobs_page::JobsPage,
    options::Options,
    tasks,
    values::{short, short_or_dash, state},
    view,
};

/// When the first table comes, unless an option says otherwise: when there is something to see.
const FIRST: Duration = Duration::from_secs(1);

/// Prints a table, or one after each period, until it is time to stop.
pub(crate) fn run(
    demo: &Demo,
    options: &Options,
    stop: &CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let every = options.every.unwrap_or(FIRST);
    // Without a word about the end, there is one table.
    let open = || JobsPage::open(demo, options.database.as_deref());
    let mut jobs = options.has_jobs.then(open).transpose()?;
    let total = options.run_for.unwrap_or(every);
    let (begun, mut passed) = (Instant::now(), Duration::ZERO);
    while passed < total {
        let next = passed.saturating_add(every).min(total);
        if demo.is_manual() {
            demo.advance(next - passed);
        } else if stop.sleep(next.saturating_sub(begun.elapsed())).is_err() {
            break;
        }
        if stop.is_cancelled() {
            break;
        }
        passed = next;
        let text = match &mut jobs {
            Some(jobs) => jobs.text(demo.snapshot().up),
            None => table(demo),
        };
        say(format_args!("{text}\n"));
    }
    Ok(())
}

fn table(demo: &Demo) -> String {
    let snapshot = demo.snapshot();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(tasks::COLUMNS);
    for row in &snapshot.rows {
        table.add_row([
            row.name.clone(),
            state(row.state).to_owned(),
            short_or_dash(row.next_run),
            short_or_dash(row.lateness.last().copied()),
            short_or_dash(row.run_time),
            row.runs.to_string(),
            row.failures.to_string(),
        ]);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let (tasks, runs) = (view::tasks_line(&snapshot), view::runs_line(&snapshot));
    let head = [format!("after {}: {tasks}", short(snapshot.up)), runs];
    let failure = snapshot.last_failure.iter().map(|failure| format!("last failure: {failure}"));
    head.into_iter().chain(lines).chain(failure).collect::<Vec<_>>().join("\n")
}
