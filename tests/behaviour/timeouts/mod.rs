//! Time limits: of a task, of each run of a periodic task, ties and races, and the thread that
//! enforces them.

mod one_shot;
mod periodic;
mod races;
mod ties;
mod timer_thread;
