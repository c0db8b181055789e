//! The whole executor under load: nothing is lost, everything is in order, and a model explains
//! each history.

mod backlog;
mod conservation;
mod model;
