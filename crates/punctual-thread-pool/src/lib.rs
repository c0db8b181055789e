//! The interface of the crate `scheduled-thread-pool`, on punctual.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
