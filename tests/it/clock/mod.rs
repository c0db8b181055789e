//! Time: the manual clock, the ends of the range, and what an executor does to be on time.

mod auto_advance;
mod extremes;
mod manual;
mod overflow;
mod punctuality;
