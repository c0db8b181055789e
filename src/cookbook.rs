//! Recipes: short programs for common tasks, to copy and to change.
//!
//! Each recipe states a problem, solves it, and says what to watch for. Each one is compiled and run with the
//! crate's tests, and states its results in assertions.
//!
//! Most of them run on a [`ManualClock`](crate::ManualClock), which makes an hour pass in a millisecond and at
//! exact times. A program leaves out `.clock(…)` and every line that moves the clock; nothing else is different.
//! The lines at the end of a recipe that are not shown let it return errors with `?`.
//!
//! This module has no items, and is not there in a program that uses the crate.
//!
//! | to | recipe |
//! |---|---|
//! | call a function later, or again and again | [`setTimeout` and `setInterval`](timers#settimeout-and-setinterval) |
//! | look until something is there | [poll until a condition holds](timers#poll-until-a-condition-holds) |
//! | keep many machines from doing the same at once | [a periodic task with jitter](timers#a-periodic-task-with-jitter) |
//! | decide what happens if a run takes longer than the period | [when the last run still goes on](timers#when-the-last-run-still-goes-on) |
//! | run by the calendar | [run at 03:00 local time](timers#run-at-0300-local-time) |
//! | run once for many events | [debounce and throttle](timers#debounce-and-throttle) |
//! | notice that a peer has fallen silent | [a heartbeat, or dead man's switch](timers#a-heartbeat-or-dead-mans-switch) |
//! | try again until it works | [retry with back-off and a deadline](requests#retry-with-back-off-and-a-deadline) |
//! | give up on one attempt | [a time limit for each request](requests#a-time-limit-for-each-request) |
//! | wait for an answer that another thread receives | [a timeout that an answer calls off](requests#a-timeout-that-an-answer-calls-off) |
//! | take the first of several answers | [ask two servers](requests#ask-two-servers) |
//! | bound what runs at the same time | [limit how many run at once](load#limit-how-many-run-at-once) |
//! | bound what waits | [back-pressure](load#back-pressure) |
//! | have one of several machines do it | [one machine of several](load#one-machine-of-several) |
//! | forget values after a while | [a cache that expires](load#a-cache-that-expires) |
//! | use it with tokio | [blocking work from async code](async_code#blocking-work-from-async-code), [async work on a schedule](async_code#async-work-on-a-schedule), [timers without a runtime](async_code#timers-without-a-runtime) |
//! | end the program | [stop on Ctrl-C](stopping#stop-on-ctrl-c), [shut down with a deadline](stopping#shut-down-with-a-deadline), [stop a task that runs](stopping#stop-a-task-that-runs) |
//! | see what happens | [Prometheus](watching#prometheus), [log every failure](watching#log-every-failure), [runs under the span of their submitter](watching#runs-under-the-span-of-their-submitter), [a watchdog](watching#a-watchdog-for-slow-runs-and-starvation) |
//! | test it | [test timed code](testing#test-timed-code), [let the clock go on by itself](testing#let-the-clock-go-on-by-itself) |

pub mod async_code;
pub mod load;
pub mod requests;
pub mod stopping;
pub mod testing;
pub mod timers;
pub mod watching;
