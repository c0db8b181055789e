//! The implementation for each delay queue.

mod punctual;
mod tokio_util;

pub(super) use self::{punctual::Punctual, tokio_util::TokioUtil};
