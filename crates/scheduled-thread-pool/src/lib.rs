//! [`punctual_thread_pool`] under the name of the crate that it stands in for, which `[patch.crates-io]` needs.

#![forbid(unsafe_code)]

pub use punctual_thread_pool::*;
