//! Worker threads: how they are made, how many there are, when they start, sleep and retire.

mod brought_forward;
pub mod construction;
mod factories;
mod idle;
mod relief;
mod retiring;
mod services;
mod sizing;
