//! The proof that the features of `src/extra` stand on the doors of the crate: here are the same files, and `crate::` is what
//! `lib.rs` exports. A file that has reached inside does not compile. `tests/house/layers.rs` compares the modules.

// The methods that call them are in the crate itself.
#![allow(dead_code, unused_imports)]

pub use punctual::*;

#[path = "../../../src/extra"]
mod extra {
    pub(crate) mod observe;
    pub(crate) mod pace;
}
