//! The gate's tables.

use crate::server::tables::Tables;

pub(super) const TABLES: Tables =
    Tables { versions: "gate_version", first: 1, steps: &[include_str!("schema.sql")] };
