//! The parts of tests with a real server: the server, a pooler before it, and replicas that are
//! processes of their own.
//!
//! A missing program is a failure and no reason to skip: `ci/beyond.sh` installs what is needed.

#![allow(dead_code, reason = "not each test binary uses all of it")]

#[path = "../../../../tests/behaviour/support/patience.rs"]
pub(crate) mod patience;
pub(crate) mod pgbouncer;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod replica;
pub(crate) mod server;

use std::{
    fmt::Debug,
    sync::mpsc::{Receiver, TryRecvError},
    task::Poll,
    thread,
    time::Duration,
};

#[allow(unused_imports, reason = "the same")]
pub(crate) use patience::{LONG, Patience, receive};

/// A pause between two looks at something that has no event. It lets the processes go on that are looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Returns how many times as long a test is to run: once, or with `PUNCTUAL_GATE=long` as often as `long` says.
pub(crate) fn times(long: u32) -> u32 {
    if std::env::var_os("PUNCTUAL_GATE").is_some_and(|it| it == "long") { long } else { 1 }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut patience = Patience::new();
    while !is_so() {
        patience.go_on(what);
        thread::sleep(PAUSE);
    }
}

/// Awaits a future, with patience.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    let (mut patience, mut future) = (Patience::new(), std::pin::pin!(future));
    loop {
        match tokio::time::timeout(patience::TURN, &mut future).await {
            Ok(output) => return output,
            Err(_) => patience.go_on(what),
        }
    }
}

/// Awaits two futures side by side, and returns what the first one does.
pub(crate) async fn both<F: Future, G: Future>(first: F, second: G) -> F::Output {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut output, mut is_over) = (None, false);
    std::future::poll_fn(|context| {
        if output.is_none() {
            if let Poll::Ready(ready) = first.as_mut().poll(context) {
                output = Some(ready);
            }
        }
        is_over = is_over || second.as_mut().poll(context).is_ready();
        if !is_over {
            return Poll::Pending;
        }
        output.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Receives until what is received is this, whatever comes before.
#[track_caller]
pub(crate) fn receive_until<T>(from: &Receiver<T>, what: &str, is_it: impl Fn(&T) -> bool) -> T {
    loop {
        let received = receive(from, what);
        if is_it(&received) {
            return received;
        }
    }
}

/// Receives from whichever has something first.
#[track_caller]
pub(crate) fn receive_from_any<T>(from: &[&Receiver<T>], what: &str) -> T {
    let mut patience = Patience::new();
    loop {
        for receiver in from {
            match receiver.try_recv() {
                Ok(received) => return received,
                Err(TryRecvError::Disconnected) => panic!("every sender is gone: {what}"),
                Err(TryRecvError::Empty) => {}
            }
        }
        patience.go_on(what);
        thread::sleep(PAUSE);
    }
}

/// Opens what has to connect first. Gates and queues give up a connection that is silent for a few seconds, which no setting
/// changes: a machine that stands still just then is no fault of theirs. No other error is one.
#[track_caller]
pub(crate) fn opened<T, E: Debug>(mut open: impl FnMut() -> Result<T, E>) -> T {
    let mut failures = Vec::new();
    while failures.len() < 4 {
        match open() {
            Ok(opened) => return opened,
            Err(error) => {
                let why = format!("{error:?}");
                let is_silence =
                    ["answer", "Silent", "no connection"].iter().any(|word| why.contains(word));
                assert!(is_silence, "it cannot be opened: {why}");
                failures.push(why);
            }
        }
    }
    panic!("it cannot be opened: {failures:?}");
}

/// Tries it with one measure after the other until it holds with one: for what takes some time, in which the machine may
/// have stood still. Only a program that never does it in time fails with all.
#[track_caller]
pub(crate) fn for_some<T: Copy + Debug>(what: &str, measures: &[T], holds: impl FnMut(T) -> bool) {
    let held = measures.iter().copied().any(holds);
    assert!(held, "not with any of {measures:?}: {what}");
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Returns the machine's wall clock in microseconds since 1970, also in a process with another clock.
pub(crate) fn real_micros() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

/// Has a queue make the connection of its verbs, which is given up as others are while it is made.
#[cfg(feature = "postgres")]
pub(crate) fn connected(queue: punctual_jobs::PostgresQueue) -> punctual_jobs::PostgresQueue {
    opened(|| queue.state(punctual_jobs::JobId(i64::MAX)));
    queue
}
