//! `DelayQueue`, the queue for values.

mod awaiting;
mod basics;
mod draining;
mod end;
mod keys;
mod loops;
mod model;
#[cfg(feature = "stream")]
mod streams;
pub mod support;
mod types;
mod user_code;
mod views;
mod waiting;
