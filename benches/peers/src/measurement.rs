//! One measured figure, as one line of JSON. It is the only interface between the programs in the
//! four languages and the report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A figure that a measuring program prints.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) peer: String,
    /// `W1` to `W16`; those with modes are `W3-zero` and so on.
    pub(crate) workload: String,
    pub(crate) params: BTreeMap<String, u64>,
    pub(crate) metric: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// A figure that the runner stores: the same, and its place in the run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Sample {
    pub(crate) round: u32,
    /// The name of the [`Step`](crate::plan::Step). The same workload may be in several.
    pub(crate) step: String,
    #[serde(flatten)]
    pub(crate) measurement: Measurement,
}
