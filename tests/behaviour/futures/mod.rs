//! One task's future: joining it, awaiting it, sharing it, and dropping it.

pub mod awaiting;
pub mod future;
mod handles;
