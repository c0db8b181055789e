//! Schedules as rows: a schedule is data in the database, and any machine ticks it.
//!
//! A row says when the schedule ticks, which job a tick enqueues, and by which policies ([`definition`]). It also says up to which
//! moment its ticks are *settled*: that is all that machines have to agree on. Read it in this order.
//!
//! * [`timing`]: the moments of a row, with jitter that is the same on each machine.
//! * [`settling`]: what becomes of the ticks that are due; a function, without a clock or a database.
//! * [`texts`]: the statements, and why two machines settle no tick twice.
//! * [`ticker`]: which rows are looked at, and when.
//! * [`row`]: how a definition is written and read. [`calls`] and [`status`]: what a program asks, and is told.
//!
//! # Why no tick is lost or taken twice
//!
//! The job of a tick and the note that the tick is settled are written by one statement, under the lock of the row, and only if
//! the row is still the one from which the decision was made: its revision is compared. So a process that is killed leaves
//! both or neither; of two machines one is first; and a machine that was frozen in between, or whose answer was lost, finds
//! another revision. No tick has to be kept in memory: while the database is away, or no machine runs, the row stays
//! settled up to where it was, and the next machine that reads it finds all ticks since.
//!
//! # In code, and as rows
//!
//! [`Jobs::every`](crate::Jobs::every) takes any trigger, of which a database knows nothing; its [ledger](super::ticks)
//! has the last tick and nothing else. [`Jobs::schedule`](crate::Jobs::schedule) declares a row: the program writes it when a queue
//! is opened, unless it is as the program says already, and marks it as its own. Such a row is ticked by the programs that have
//! declared it, so a schedule that has gone from the code is silent when the last of them has ended. What a person has changed
//! wins or does not, as the program says ([`OnEdit`]).

mod calls;
mod definition;
mod row;
mod settling;
mod status;
pub(crate) mod texts;
mod ticker;
mod timing;

pub use self::{
    calls::{ScheduleCall, Schedules},
    definition::{OnEdit, Overlap, Schedule},
    status::ScheduleStatus,
};
pub(super) use self::{row::Definition, ticker::tick_on};
