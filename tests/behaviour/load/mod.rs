//! The whole executor under load: nothing is lost, everything runs in order, and each history
//! matches a model.

mod backlog;
mod conservation;
mod model;
