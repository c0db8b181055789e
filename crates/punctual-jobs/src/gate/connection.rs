//! One connection, which is made again whenever it is lost.
//!
//! A task of its own connects, publishes the client, drives it until it ends, and begins again after a
//! pause that grows to half a second. A statement waits for a connection that is being made, and for its answer, no
//! longer than until its deadline. It waits for no connection that there is no reason to expect: once an attempt has failed, or a
//! connection has fallen silent, each statement fails at once until there is a connection again.
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
const SILENT: &str = "the server did not answer in time";
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A parameter of a statement.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// The future that has to be polled for a client to work; ends with the connection.
pub(crate) type Driver = Boxed<Result<(), Error>>;

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

/// The error of a statement that has no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// There is no connection, for this reason.
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

/// The connection that statements are sent through, or why there is none.
enum Link {
    /// A connection is being made, and may well be there soon: it is the first, or the one before was closed.
    Connecting,
    Up(Arc<Linked>),
    /// The last attempt has failed, or the last connection has fallen silent, for this reason. It is tried again.
    Down(String),
}

impl Link {
    fn usable(&self) -> Option<&Arc<Linked>> {
        match self {
            Self::Up(linked) if !linked.client.is_closed() => Some(linked),
            _ => None,
        }
    }
}

struct Linked {
    client: Client,
    /// Told when the connection is of no use any more.
    broken: Notify,
}

/// See the [module](self).
pub(crate) struct Connection {
    connector: Arc<dyn Connector>,
    link: watch::Receiver<Link>,
}

impl Connection {
    /// Begins to connect, on the runtime that this is called in. It ends when the connection is dropped.
    pub(crate) fn begin(config: Config, connector: Arc<dyn Connector>) -> Self {
        let (publish, link) = watch::channel(Link::Connecting);
        tokio::spawn(keep_connected(config, Arc::clone(&connector), publish));
        Self { connector, link }
    }

    /// Waits until there is a connection, whatever becomes of the attempts until then.
    pub(crate) async fn wait(&self, deadline: Instant) -> Result<(), AskError> {
        self.link_when(deadline, |link| link.usable().is_some()).await.map(drop)
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

    /// Returns the connection, or waits for one that is being made.
    async fn linked(&self, deadline: Instant) -> Result<Arc<Linked>, AskError> {
        self.link_when(deadline, |link| link.usable().is_some() || matches!(link, Link::Down(_)))
            .await
    }

    /// Waits for the link to be such, and returns the connection if there is one then.
    async fn link_when(
        &self,
        deadline: Instant,
        is_such: impl FnMut(&Link) -> bool,
    ) -> Result<Arc<Linked>, AskError> {
        let mut link = self.link.clone();
        drop(timeout_at(deadline, link.wait_for(is_such)).await);
        let link = self.link.borrow();
        let why = match (&*link, link.usable()) {
            (_, Some(linked)) => return Ok(Arc::clone(linked)),
            (Link::Connecting, _) => "it is being made",
            (Link::Up(_), _) => "it was just lost",
            (Link::Down(why), _) => why,
        };
        Err(AskError::NoConnection(why.to_owned()))
    }
}

/// Connects, again and again, until no receiver of the client is left.
async fn keep_connected(
    config: Config,
    connector: Arc<dyn Connector>,
    publish: watch::Sender<Link>,
) {
    let mut pause = FIRST_PAUSE;
    while !publish.is_closed() {
        let link = match timeout(CONNECT_LIMIT, connector.connect(config.clone())).await {
            Ok(Ok((client, driver))) => {
                let linked = Arc::new(Linked { client, broken: Notify::new() });
                drop(publish.send_replace(Link::Up(Arc::clone(&linked))));
                let begun = Instant::now();
                let link = drive(&linked, driver, &publish).await;
                if begun.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                link
            }
            Ok(Err(error)) => Link::Down(in_words(&error)),
            Err(_) => Link::Down(SILENT.to_owned()),
        };
        drop(publish.send_replace(link));
        // Until the pause is over, or no receiver is left.
        if timeout(pause, publish.closed()).await.is_ok() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Drives a connection until it ends, is found to be silent, or is not needed any more; returns what there is then.
async fn drive(linked: &Linked, mut driver: Driver, publish: &watch::Sender<Link>) -> Link {
    let mut broken = Box::pin(linked.broken.notified());
    let mut unwanted = Box::pin(publish.closed());
    std::future::poll_fn(|context| {
        use std::task::Poll;
        if broken.as_mut().poll(context).is_ready() {
            return Poll::Ready(Link::Down(SILENT.to_owned()));
        }
        if driver.as_mut().poll(context).is_ready() {
            return Poll::Ready(Link::Connecting);
        }
        unwanted.as_mut().poll(context).map(|()| Link::Connecting)
    })
    .await
}
