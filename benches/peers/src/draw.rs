//! Draws the pictures, as SVG, from the stored results of a run.

mod cost;
mod labels;
mod lateness;
mod palette;
mod style;
mod terse;

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::results::Results;

/// Draws the pictures of the run in `dir`, into `out`.
pub(crate) fn draw(dir: &Path, out: &Path) -> Result<()> {
    let results = Results::read(dir)?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    cost::draw(&results, &out.join("schedule-and-cancel.svg"))?;
    lateness::draw(&results, &out.join("lateness.svg"))
}
