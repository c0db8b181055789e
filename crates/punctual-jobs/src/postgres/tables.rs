//! The queue's tables. All are in one step, because no version of them was released. Those before it had the numbers up to 11.

use crate::server::tables::Tables;

pub(super) const TABLES: Tables =
    Tables { versions: "job_version", first: 12, steps: &[include_str!("schema.sql")] };
