//! How a connection is made: through which encryption, or to a server that is simulated.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use punctual::Handle;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime,
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, CancelToken, Client, Config, Error, Socket,
    tls::{MakeTlsConnect, TlsConnect},
};

use super::error::AskError;

/// A future whose type is not known.
#[doc(hidden)]
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The future that has to be polled for a client to work. It ends with the connection.
#[doc(hidden)]
pub struct Driver(Box<Messages>);

type Messages = dyn FnMut(&mut Context<'_>) -> Message + Send;
type Message = Poll<Option<Result<AsyncMessage, Error>>>;

impl Driver {
    /// Takes a connection over any stream.
    pub fn new<S, T>(mut connection: tokio_postgres::Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self(Box::new(move |context| connection.poll_message(context)))
    }

    /// Returns what the server says without having been asked; `None` at the end of the connection.
    pub(crate) fn poll_message(&mut self, context: &mut Context<'_>) -> Message {
        (self.0)(context)
    }
}

impl Future for Driver {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match ready!(self.poll_message(context)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// How a connection is made.
#[doc(hidden)]
pub trait Dial: Send + Sync {
    /// Connects.
    fn connect(&self, config: Config) -> Boxed<Result<(Client, Driver), Error>>;

    /// Asks the server to cancel a statement, on a connection of its own.
    fn cancel(&self, token: CancelToken) -> Boxed<()>;
}

/// Connections through a maker of encrypted streams.
pub(crate) struct Through<T>(pub(crate) T);

impl<T> Dial for Through<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn connect(&self, config: Config) -> Boxed<Result<(Client, Driver), Error>> {
        let tls = self.0.clone();
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            Ok((client, Driver::new(connection)))
        })
    }

    fn cancel(&self, token: CancelToken) -> Boxed<()> {
        let tls = self.0.clone();
        // It has no answer: whether it came in time is not known.
        Box::pin(async move { drop(token.cancel_query(tls).await) })
    }
}

pub(crate) const CONNECTING: Duration = Duration::from_secs(5);

/// Which server, and how to get there.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) dial: Arc<dyn Dial>,
}

impl Address {
    /// Connects. The client works while the other one is polled.
    pub(crate) async fn connect(&self) -> Result<(Client, Driver), AskError> {
        let connected = timeout(CONNECTING, self.dial.connect(self.config.clone())).await;
        connected.map_err(|_| AskError::Silent(CONNECTING))?.map_err(AskError::Server)
    }
}

/// What a simulation puts in the place of sockets, threads and the machine's clock. A gate or a queue that is opened
/// with it has no thread, makes no tables, and is open before it has a connection.
#[doc(hidden)]
#[derive(Clone)]
pub struct Seam {
    /// How connections are made.
    pub dial: Arc<dyn Dial>,
    /// Runs what the thread of a gate or a queue does otherwise.
    pub runtime: runtime::Handle,
    /// Notes the ticks of schedules in code.
    pub planner: Handle,
    /// What a gate counts its leases on: the time since any moment, the same for all of it.
    pub clock: fn() -> Duration,
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seam").finish_non_exhaustive()
    }
}
