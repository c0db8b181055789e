//! The example on a real server, both of which are killed: `ci/restate.sh`, which installs the server. A tick is counted by
//! Restate in the state of its schedule; the service writes each begun run into a file `begun`, and each tick has a file.

#![allow(
    missing_docs,
    clippy::disallowed_methods,
    reason = "a test waits for servers in real time"
)]

#[path = "../../../../tests/behaviour/support/patience.rs"]
mod patience;

mod schedules;
mod world;
