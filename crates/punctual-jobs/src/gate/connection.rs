//! One connection, which is made again whenever it is lost.
//!
//! A task of its own connects, publishes the client, drives it until it ends, and begins again after a
//! pause that grows to half a second. Whoever asks waits for a client no longer than its own
//! deadline, and for the answer no longer either.
//!
//! A statement without an answer by its deadline means that the connection is of no use: the server may be
//! frozen, or the network may have forgotten it. So it is dropped, and the server is asked to cancel what
//! it may still be doing there, so that backends do not pile up behind a locked table. The statement may
//! have been executed all the same: see [`Row::is_orphan`](super::rules::Row).

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_postgres::{
    CancelToken, Client, Config, Error, Row, Socket,
    tls::{MakeTlsConnect, TlsConnect},
    types::{ToSql, Type},
};

/// How long one attempt to connect may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A parameter of a statement.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// What has to be polled for a client to work; ends with the connection.
type Driver = Boxed<Result<(), Error>>;

/// How a connection is made: with which kind of encryption.
pub(crate) trait Connector: Send + Sync {
    /// Connects.
    fn connect(&self, config: Config) -> Boxed<Result<(Client, Driver), Error>>;

    /// Asks the server to cancel a statement, on a connection of its own.
    fn cancel(&self, token: CancelToken) -> Boxed<()>;
}

/// Connections through a maker of encrypted streams.
pub(crate) struct Through<T>(pub(crate) T);

impl<T> Connector for Through<T>
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
            let driver: Driver = Box::pin(connection);
            Ok((client, driver))
        })
    }

    fn cancel(&self, token: CancelToken) -> Boxed<()> {
        let tls = self.0.clone();
        // It has no answer: whether it came in time is not known.
        Box::pin(async move { drop(token.cancel_query(tls).await) })
    }
}

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// There was no connection by the deadline; the last attempt failed for this reason.
    NoConnection(String),
    /// There was no answer by the deadline.
    NoAnswer,
    /// The server refused it, or the connection broke.
    Refused(Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection(why) => write!(f, "there is no connection to the database ({why})"),
            Self::NoAnswer => f.write_str("the database did not answer in time"),
            Self::Refused(error) => f.write_str(&in_words(error)),
        }
    }
}

/// Returns the text of an error and of what caused it: that of the driver alone names neither the server's
/// message nor the system's.
pub(crate) fn in_words(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The client of the moment, or why there is none.
type Current = Result<Arc<Linked>, String>;

struct Linked {
    client: Client,
    /// Told when the connection is of no use any more.
    broken: Notify,
}

/// See the [module](self).
pub(crate) struct Connection {
    connector: Arc<dyn Connector>,
    current: watch::Receiver<Current>,
}

impl Connection {
    /// Begins to connect, on the runtime that this is called in. It ends when the connection is dropped.
    pub(crate) fn begin(config: Config, connector: Arc<dyn Connector>) -> Self {
        let (publish, current) = watch::channel(Err("connecting".to_owned()));
        tokio::spawn(keep_connected(config, Arc::clone(&connector), publish));
        Self { connector, current }
    }

    /// Sends a statement, and returns the rows of its answer.
    pub(crate) async fn ask(
        &self,
        deadline: Instant,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, AskError> {
        let linked = self.linked(deadline).await?;
        let answer = linked.client.query_typed(statement, parameters);
        self.answer(deadline, &linked, answer).await
    }

    /// Sends several statements as one text.
    pub(crate) async fn run_script(&self, deadline: Instant, script: &str) -> Result<(), AskError> {
        let linked = self.linked(deadline).await?;
        let answer = linked.client.batch_execute(script);
        self.answer(deadline, &linked, answer).await
    }

    async fn answer<T>(
        &self,
        deadline: Instant,
        linked: &Linked,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, AskError> {
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer.map_err(AskError::Refused),
            Err(_) => {
                linked.broken.notify_one();
                let cancel = self.connector.cancel(linked.client.cancel_token());
                tokio::spawn(timeout(CONNECT_LIMIT, cancel));
                Err(AskError::NoAnswer)
            }
        }
    }

    /// Waits for a connection.
    async fn linked(&self, deadline: Instant) -> Result<Arc<Linked>, AskError> {
        let mut current = self.current.clone();
        let is_there =
            |current: &Current| matches!(current, Ok(linked) if !linked.client.is_closed());
        let found = timeout_at(deadline, current.wait_for(is_there)).await;
        if let Ok(Ok(current)) = found {
            if let Ok(linked) = &*current {
                return Ok(Arc::clone(linked));
            }
        }
        let why = match &*self.current.borrow() {
            Ok(_) => "it was just lost".to_owned(),
            Err(why) => why.clone(),
        };
        Err(AskError::NoConnection(why))
    }
}

/// Connects, again and again, until nobody asks for the client any more.
async fn keep_connected(
    config: Config,
    connector: Arc<dyn Connector>,
    publish: watch::Sender<Current>,
) {
    let mut pause = FIRST_PAUSE;
    while !publish.is_closed() {
        let why = match timeout(CONNECT_LIMIT, connector.connect(config.clone())).await {
            Ok(Ok((client, driver))) => {
                let linked = Arc::new(Linked { client, broken: Notify::new() });
                drop(publish.send_replace(Ok(Arc::clone(&linked))));
                let begun = Instant::now();
                let why = drive(&linked, driver, &publish).await;
                if begun.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                why
            }
            Ok(Err(error)) => in_words(&error),
            Err(_) => "the server did not answer in time".to_owned(),
        };
        drop(publish.send_replace(Err(why)));
        // Until the pause is over, or nobody is left.
        if timeout(pause, publish.closed()).await.is_ok() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Drives a connection until it ends, is found to be broken, or is not needed any more; returns why.
async fn drive(linked: &Linked, mut driver: Driver, publish: &watch::Sender<Current>) -> String {
    let mut broken = Box::pin(linked.broken.notified());
    let mut unwanted = Box::pin(publish.closed());
    std::future::poll_fn(|context| {
        use std::task::Poll;
        if let Poll::Ready(end) = driver.as_mut().poll(context) {
            return Poll::Ready(match end {
                Ok(()) => "the connection was closed".to_owned(),
                Err(error) => in_words(&error),
            });
        }
        if broken.as_mut().poll(context).is_ready() {
            return Poll::Ready("the server did not answer in time".to_owned());
        }
        unwanted.as_mut().poll(context).map(|()| "it is not needed any more".to_owned())
    })
    .await
}
