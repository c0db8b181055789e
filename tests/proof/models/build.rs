//! Replaces the primitives of the crate by those of the model checker (`src/sync.rs`). `--cfg
//! shuttle` or `--cfg loom` alone must not do so: a developer who tests a program with one of them
//! sets it for every crate in it, and ours would then need a checker that its published manifest
//! does not name.

#![allow(clippy::print_stdout, reason = "cargo listens to it")]

use std::env;

fn main() {
    if ["CARGO_CFG_SHUTTLE", "CARGO_CFG_LOOM"].iter().any(|name| env::var_os(name).is_some()) {
        println!("cargo::rustc-cfg=punctual_models");
    }
}
