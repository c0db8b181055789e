//! The report: Markdown, generated from the stored results of a run.

mod circumstances;
mod goals;
mod markdown;
mod number;
mod overview;
mod standing;
mod verdict;

use std::{fs, path::Path};

use anyhow::Result;

use crate::results::Results;

/// Writes `report.md` in the directory of a run.
pub(crate) fn write(dir: &Path) -> Result<()> {
    let file = dir.join("report.md");
    fs::write(&file, render(&Results::read(dir)?))?;
    println!("{}", file.display());
    Ok(())
}

fn render(results: &Results) -> String {
    let mode = &results.host.mode;
    let mut out = format!(
        "# punctual beside its peers\n\n\
         `{mode}`: medians of {} rounds. What each workload does, and how each peer is driven, is\n\
         in the README of `benches/peers`.\n",
        results.rounds(),
    );
    if mode != "full" {
        out += "\n**The sizes are small: these figures show that everything works, no more.**\n";
    }
    out += &section("The machine and the versions", &circumstances::host(results));
    out += &section("Goals", &standing::table_of_goals(results));
    out += &section("All figures", &overview::figures(results));
    out += &section("punctual divided by each peer", &overview::ratios(results));
    out += &section("What the machine allows", &circumstances::machine(results));
    out += &section("Remarks", &circumstances::remarks(results));
    out
}

fn section(title: &str, text: &str) -> String {
    format!("\n## {title}\n\n{}\n", text.trim_end())
}
