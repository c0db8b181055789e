//! The proof that the features of `src/extra` stand on the doors of the crate: here are the same files, and `crate::` is what
//! `lib.rs` exports. A file that has reached inside does not compile. `tests/house/layers.rs` compares the modules.

// The tests of these files are those of the crate, and know more of it.
#![cfg(not(test))]
// The methods that call them are in the crate itself.
#![allow(dead_code, unused_imports)]

pub use punctual::*;

#[path = "../../../src/extra"]
mod extra {
    #[cfg(feature = "cron")]
    pub(crate) mod cron;
    pub(crate) mod observe;
    pub(crate) mod pace;
    pub(crate) mod together;
}
