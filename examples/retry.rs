//! A client that retries with a deadline, on no particular runtime.
//!
//! Each attempt has a time limit, the pause between two attempts doubles, and the whole has a deadline that
//! holds whatever the attempts do. The client depends on no runtime: its timers are
//! those of a `Handle`. Here a `block_on` of ten lines drives it; on tokio or smol it would be awaited.
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
    time::{Duration, Instant},
};

use punctual::{Handle, ScheduledThreadPoolExecutor, TimeoutError};

use crate::common::say;

/// A server that answers the fourth question, and is silent or busy before.
#[derive(Default)]
struct Server {
    asked: u32,
}

impl Server {
    async fn ask(&mut self, timers: &Handle) -> Result<u32, Box<dyn Error + Send + Sync>> {
        self.asked += 1;
        match self.asked {
            1 | 3 => timers.sleep(Duration::from_secs(3600)).await?,
            2 => return Err("busy".into()),
            _ => timers.sleep(Duration::from_millis(5)).await?,
        }
        Ok(42)
    }
}

struct Client {
    timers: Handle,
    attempt: Duration,
    pause: Duration,
}

impl Client {
    /// Asks until there is an answer. It has no end of its own.
    async fn ask_again_and_again(
        &self,
        server: &mut Server,
    ) -> Result<u32, Box<dyn Error + Send + Sync>> {
        let mut pause = self.pause;
        loop {
            let answer = self.timers.timeout(self.attempt, server.ask(&self.timers)).await;
            match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(refused)) => say(format_args!("refused: {refused}; again in {pause:?}")),
                Err(TimeoutError::Elapsed) => {
                    say(format_args!("no answer in {:?}; again in {pause:?}", self.attempt));
                }
                Err(stopped) => return Err(stopped.into()),
            }
            self.timers.sleep(pause).await?;
            pause *= 2;
        }
    }

    /// The same, but no longer than until the deadline.
    async fn ask(
        &self,
        server: &mut Server,
        deadline: Instant,
    ) -> Result<u32, Box<dyn Error + Send + Sync>> {
        self.timers.timeout_at(deadline, self.ask_again_and_again(server)).await?
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let timers = ScheduledThreadPoolExecutor::new(1);
    let millis = Duration::from_millis;
    let client = Client { timers: timers.handle(), attempt: millis(40), pause: millis(10) };

    let deadline = Instant::now() + Duration::from_secs(5);
    let answer = block_on(client.ask(&mut Server::default(), deadline))?;
    say(format_args!("the answer is {answer}"));

    let deadline = Instant::now() + millis(70);
    match block_on(client.ask(&mut Server::default(), deadline)) {
        Ok(answer) => say(format_args!("the answer is {answer}, although it needs 155 ms")),
        Err(late) => say(format_args!("with 70 ms for all of it: {late}")),
    }

    assert_eq!(timers.pending_count(), 0, "what was given up has left the queue");
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
