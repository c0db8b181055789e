//! The queue's tables. All are in one step, because no version of them was released. Those before it had the numbers up to 12.

use crate::server::tables::Tables;

pub(super) const TABLES: Tables =
    Tables { versions: "job_version", first: 13, steps: &[include_str!("schema.sql")] };
