//! Control of a task that is alive: when it runs next, whether it runs at all, and when it has
//! stopped.

mod calls;
mod cancel_and_wait;
mod extensions;
mod moments;
mod pauses;
mod races;
mod schedules;
