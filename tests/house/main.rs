//! The rules of the sources and of the documents. A test here reads the tree and runs nothing of the crate, so the
//! whole is built and run within seconds: `cargo test -p house`.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod aliases;
mod circles;
mod documents;
mod events;
mod evidence;
mod examples;
mod features;
mod landing;
mod layers;
mod locks;
mod manifests;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The root of the repository.
fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).expect("the house is in tests").to_owned()
    });
    &ROOT
}
