//! Submission: tasks that run once, the order in which they start, and the limits of what can be
//! submitted.

mod bodies;
mod limits;
mod one_shot;
mod order;
mod wall_moments;
