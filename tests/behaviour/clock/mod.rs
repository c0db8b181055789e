//! Time: the manual clock, the ends of the range, and how an executor keeps to its deadlines.

mod auto_advance;
mod extremes;
mod manual;
mod overflow;
mod punctuality;
