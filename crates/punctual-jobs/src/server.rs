//! The server that the gate and the queue ask: how they get to it, and what becomes of a connection that is of no use.
//!
//! * [`dial`]: how a connection is made, and the one seam at which a simulation takes the place of sockets, threads and clocks.
//! * [`error`]: why there is no answer.
//! * [`schema`]: where the tables are; [`tables`]: how they are made.
//! * [`session`]: what is asked on one connection, with which [parameters](param).
//! * [`connection`]: a connection that is made again.
//!
//! The queue has several of these, makes each when it is asked, and gives up on one that was silent. The
//! [gate](crate::gate) has one, which a task of its own keeps, and deadlines.

pub mod pooler;

pub(crate) mod connection;
pub(crate) mod dial;
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "the gate asks for less"))]
pub(crate) mod error;
pub(crate) mod param;
pub(crate) mod schema;
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "the gate asks for less"))]
pub(crate) mod session;
pub(crate) mod tables;
