//! Gates: a run that is let through, skipped or put off just before it would take place, and the lease
//! that it may hold.

mod again;
mod endings;
mod later;
mod leases;
mod moves;
mod replicas;
mod skips;
mod support;
mod user_code;
