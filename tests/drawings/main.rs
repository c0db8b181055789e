//! The pictures of the documents are drawn from one source, and what is committed is what that source gives.
//!
//! ```text
//! PUNCTUAL_WRITE_PICTURES=1 cargo test --test drawings
//! ```
//!
//! writes them. [`missed_runs`] and [`machines`] draw real runs on manual clocks, [`layers`] what `src/lib.rs` says, and
//! [`descriptions`] has the pictures of boxes and arrows as data. The names in those are compared with the sources
//! ([`names`]), and the moves between the states with those of real tasks and executors ([`moves`]).
//!
//! The pictures of measurements are drawn by `benches/peers`, in the same colours, and that of the program `top` by
//! `tests/top_example`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod descriptions;
mod diagram;
mod layers;
mod machines;
mod missed_runs;
mod moves;
mod names;
mod owner;
mod palette;
mod svg;

use std::{env, fs, path::Path};

use descriptions::DIAGRAMS;

/// Every picture, with the name of its file.
fn pictures() -> Vec<(String, String)> {
    let diagrams = DIAGRAMS.iter().map(|diagram| (diagram.file, diagram.draw()));
    let others = [
        ("missed-runs", missed_runs::draw()),
        ("gate", machines::draw()),
        ("layers", layers::draw()),
    ];
    let all = diagrams.chain(others);
    all.map(|(file, picture)| (format!("docs/pictures/{file}.svg"), picture)).collect()
}

/// The committed pictures are those that are drawn here.
#[test]
fn the_pictures_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let writes = env::var_os("PUNCTUAL_WRITE_PICTURES").is_some();
    for (path, picture) in pictures() {
        let file = root.join(&path);
        if writes {
            fs::write(&file, &picture).expect("the folder is there");
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == picture,
            "{path} is out of date: run PUNCTUAL_WRITE_PICTURES=1 cargo test --test drawings"
        );
    }
}

/// Text is where it has room, whichever font the reader has.
#[test]
fn everything_has_room() {
    for diagram in &DIAGRAMS {
        diagram.has_room();
    }
}
