//! Several tasks together: `invoke_all`, `invoke_any`, sets of futures, and the completion service.

mod completion_in_tasks;
mod completion_service;
pub mod invoke;
mod invoke_refused;
mod task_set;
