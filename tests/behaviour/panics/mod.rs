//! Panics: how each is contained and reported, in every combination, and which of them end the
//! process.

mod combinations;
pub mod containment;
mod processes;
mod reports;
mod unheard;
mod untaken;
