//! A client that retries with a deadline, on no particular runtime.
//!
//! Each attempt has a time limit, the pause between two attempts doubles, and the whole has a deadline that
//! holds whatever the attempts do. The attempts are blocking code, which runs on an executor, and their
//! result is awaited: here a `block_on` of ten lines does that; on tokio or smol it would be `.await`.
//!
//! ```text
//! cargo run --example retry
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread::{self, Thread},
    time::Duration,
};

use punctual::{Backoff, Handle, ScheduledThreadPoolExecutor, TaskContext, with_context};

use crate::common::say;

/// A server that answers the fourth question, and is silent or busy before.
#[derive(Default)]
struct Server {
    asked: u32,
}

impl Server {
    /// Asks, and waits for the answer, but no longer than until the token of the run is cancelled.
    fn ask(&mut self, run: &TaskContext) -> Result<u32, &'static str> {
        self.asked += 1;
        let takes = match self.asked {
            1 | 3 => Duration::from_secs(3600),
            2 => return Err("busy"),
            _ => Duration::from_millis(5),
        };
        run.token().sleep(takes).map(|()| 42).map_err(|_| "silent")
    }
}

struct Client {
    executor: Handle,
    attempt: Duration,
    pause: Duration,
}

impl Client {
    /// Asks until there is an answer, or the deadline is reached.
    async fn ask(
        &self,
        mut server: Server,
        deadline: Duration,
    ) -> Result<u32, Box<dyn Error + Send + Sync>> {
        let backoff = Backoff::exponential(self.pause..=16 * self.pause);
        let ask = with_context(move |run| {
            server.ask(run).inspect_err(|refused| {
                let pause = backoff.delay_after(run.attempt()).unwrap_or_default();
                say(format_args!("attempt {}: {refused}; again in {pause:?}", run.attempt()));
            })
        });
        let answer = self.executor.task().timeout(self.attempt).retry(backoff, ask)?;
        // When the time is up the guard is dropped: no further attempt is made, and one that runs is asked to stop.
        let answer = answer.cancel_and_signal_on_drop();
        Ok(self.executor.timeout(deadline, answer).await??)
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let millis = Duration::from_millis;
    let client = Client { executor: executor.handle(), attempt: millis(40), pause: millis(10) };

    let answer = block_on(client.ask(Server::default(), Duration::from_secs(5)))?;
    say(format_args!("the answer is {answer}"));

    match block_on(client.ask(Server::default(), millis(70))) {
        Ok(answer) => say(format_args!("the answer is {answer}, although it needs 155 ms")),
        Err(late) => say(format_args!("with 70 ms for all of it: {late}")),
    }

    assert_eq!(executor.pending_count(), 0, "what was given up has left the queue");
    Ok(())
}

/// Drives a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
