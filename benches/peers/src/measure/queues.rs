//! How each delay queue is driven.

mod punctual;
mod tokio_util;

pub(super) use self::{punctual::Punctual, tokio_util::TokioUtil};
