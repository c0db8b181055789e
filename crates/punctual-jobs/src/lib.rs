//! Beyond one process: a gate that lets one of several replicas run a periodic task, and jobs that may run
//! on any machine.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "gate")]
pub mod gate;
#[cfg(feature = "gate")]
pub mod pooler;
