//! Puts the model's ground under the crate (`src/sync.rs`). `--cfg shuttle` or `--cfg loom` alone must
//! not: whoever tests a program of their own with one of them sets it for every crate they use,
//! and ours would then want a checker that its published manifest does not name.

#![allow(clippy::print_stdout, reason = "cargo listens to it")]

use std::env;

fn main() {
    if ["CARGO_CFG_SHUTTLE", "CARGO_CFG_LOOM"].iter().any(|name| env::var_os(name).is_some()) {
        println!("cargo::rustc-cfg=punctual_models");
    }
}
