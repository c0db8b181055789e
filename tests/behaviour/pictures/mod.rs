//! What the pictures of the documents show of runs and of states is what real executors do. `tests/house/documents` has
//! what can be said of a picture without one.

mod machines;
mod missed_runs;
mod moves;
#[allow(dead_code, reason = "the rules of the documents use the rest")]
#[path = "../../house/documents/svg.rs"]
mod svg;

use std::path::Path;

/// The root of the repository, for the reader of pictures.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
