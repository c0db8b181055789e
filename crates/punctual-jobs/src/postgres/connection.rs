//! A connection: made when it is needed, and made again when it is of no use any more.
//!
//! Statements follow each other on it without waiting for each other's answers. It is of no use if it has broken;
//! if nothing was heard on it for its limit although something was asked, because the server may be frozen, or
//! the network may have forgotten it; or if the server says that it is read-only, because another one is the primary
//! now. A statement that was under way then has failed, and is not repeated here: whether the server has carried it
//! out is not known.
//!
//! A statement that waits behind many others does not count as silence as long as these are answered.

use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Error, Row, Statement,
    config::TargetSessionAttrs,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{encryption::Connector, schema::Schema, statements};
use crate::error::Source;

/// A parameter of a statement.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The future that has to be polled for a client to work.
pub(super) struct Driver(Box<dyn Messages + Send>);

/// A connection of the driver's, over any stream.
trait Messages {
    fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, Error>>>;
}

impl<S, T> Messages for tokio_postgres::Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, Error>>> {
        tokio_postgres::Connection::poll_message(self, context)
    }
}

impl Driver {
    pub(super) fn new<S, T>(connection: tokio_postgres::Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self(Box::new(connection))
    }

    /// Returns what the server says without having been asked; `None` at the end of the connection.
    pub(super) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, Error>>> {
        self.0.poll_message(context)
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

/// How long making a connection may take.
const CONNECTING: Duration = Duration::from_secs(5);

/// Where the tables are, and how to get there.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    connector: Connector,
    pub(super) schema: Schema,
    #[cfg(test)]
    pub(super) simulated: Option<Arc<crate::replicas::Network>>,
}

impl Address {
    pub(super) fn new(mut config: Config, connector: Connector, schema: Schema) -> Self {
        // Of several hosts the primary, and of one host no other.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Self {
            config,
            connector,
            schema,
            #[cfg(test)]
            simulated: None,
        }
    }

    #[allow(clippy::clone_on_copy, reason = "it is only where nothing is encrypted")]
    pub(super) fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Connects. The client works while the other one is polled.
    pub(super) async fn connect(&self) -> Result<(Client, Driver), AskError> {
        #[cfg(test)]
        if let Some(simulated) = &self.simulated {
            let dialled = simulated.dial(self.config.clone());
            let connected = timeout(CONNECTING, dialled).await;
            let connected = connected.map_err(|_| AskError::Silent(CONNECTING))?;
            let (client, connection) = connected.map_err(AskError::Server)?;
            return Ok((client, Driver::new(connection)));
        }
        let connected = timeout(CONNECTING, self.config.connect(self.connector())).await;
        let connected = connected.map_err(|_| AskError::Silent(CONNECTING))?;
        let (client, connection) = connected.map_err(AskError::Server)?;
        Ok((client, Driver::new(connection)))
    }
}

/// The reason for which there is no answer.
#[derive(Debug)]
pub(super) enum AskError {
    /// The server did not answer for this time.
    Silent(Duration),
    /// There is no connection, it broke, or the server has refused.
    Server(Error),
    /// A row was locked by other transactions for so long.
    Locked(Duration),
    /// For this long, the server has accepted a job without storing it.
    LeftOut(Duration),
}

impl AskError {
    /// Returns `true` if a row is locked by a transaction that may end soon.
    pub(super) fn is_lock(&self) -> bool {
        self.is(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns `true` if the server has refused this statement, and may take another one from this session.
    pub(super) fn is_of_the_statement(&self) -> bool {
        matches!(self, Self::Server(error) if error.code().is_some()) && !self.is_of_the_session()
    }

    /// Returns `true` if the server has refused what the statement says, and will as long as the rows, the rights and the
    /// tables are as they are: bad data, a violated constraint, an error of a trigger, missing rights.
    pub(super) fn is_of_the_rows(&self) -> bool {
        let Self::Server(error) = self else { return false };
        let class = error.code().and_then(|code| code.code().get(..2));
        matches!(class, Some("22" | "23" | "42" | "44" | "P0")) && !self.is_of_the_session()
    }

    /// Returns `true` if the server has refused what the statement does to a row, and may accept the same for another one. A missing
    /// right or table is not of this kind.
    pub(super) fn is_of_one_row(&self) -> bool {
        let Self::Server(error) = self else { return false };
        let class = error.code().and_then(|code| code.code().get(..2));
        matches!(class, Some("22" | "23" | "44" | "P0")) && !self.is_of_the_session()
    }

    /// Returns `true` if another session is needed: this one is silent, or its server is not the primary.
    fn is_of_the_session(&self) -> bool {
        matches!(self, Self::Silent(_)) || self.is(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    pub(super) fn is(&self, state: &SqlState) -> bool {
        matches!(self, Self::Server(error) if error.code() == Some(state))
    }

    pub(super) fn into_source(self) -> Source {
        match self {
            Self::Server(error) => error.into(),
            other => other.into(),
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(limit) => write!(f, "the server did not answer for {limit:?}"),
            Self::Server(error) => error.fmt(f),
            Self::Locked(limit) => write!(f, "other transactions kept a row locked for {limit:?}"),
            Self::LeftOut(limit) => write!(
                f,
                "the server has stored no row for {limit:?}: look for a trigger of the program's own that leaves it out"
            ),
        }
    }
}

impl StdError for AskError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Silent(_) | Self::Locked(_) | Self::LeftOut(_) => None,
            Self::Server(error) => error.source(),
        }
    }
}

/// See the [module](self).
pub(super) struct Connection {
    address: Address,
    /// After which silence another one is made.
    limit: Duration,
    greeting: &'static str,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
}

/// A connection of the moment.
struct Session {
    client: Client,
    /// When the last answer came.
    heard: Mutex<Instant>,
    driver: JoinHandle<Result<(), Error>>,
    /// By their texts, which are constants.
    prepared: Mutex<HashMap<&'static str, Statement>>,
}

/// Without this, messages that the server takes no longer would keep alive the driver of a client that is gone.
impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(super) fn new(address: Address, limit: Duration) -> Self {
        let session = tokio::sync::Mutex::new(None);
        Self { address, limit, greeting: statements::GREETING, session }
    }

    /// Limits how long statements wait for locks, as the verbs of callers have to.
    pub(super) fn for_verbs(self) -> Self {
        Self { greeting: statements::GREETING_OF_VERBS, ..self }
    }

    /// Has each statement planned once, as those have to be that claim jobs.
    pub(super) fn for_work(self) -> Self {
        Self { greeting: statements::GREETING_OF_WORK, ..self }
    }

    /// Sends a statement, and returns the rows of its answer.
    pub(super) async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        let session = self.session().await?;
        let statement = self.address.schema.name_in(statement);
        let answer = session.ask(&statement, params, self.limit).await;
        if answer.as_ref().is_err_and(AskError::is_of_the_session) {
            self.drop_session(&session);
        }
        answer
    }

    /// The same with a statement that is asked again and again: it is prepared once for each session.
    pub(super) async fn ask_prepared(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        // The simulated server knows no prepared statements.
        #[cfg(test)]
        if self.address.simulated.is_some() {
            return self.ask(statement, params).await;
        }
        let session = self.session().await?;
        let answer =
            session.ask_prepared(statement, &self.address.schema, params, self.limit).await;
        if answer.as_ref().is_err_and(AskError::is_of_the_session) {
            self.drop_session(&session);
        }
        answer
    }

    /// Returns the session of the moment. Callers that come while one is being made wait for the same one.
    async fn session(&self) -> Result<Arc<Session>, AskError> {
        let limit = self.limit.min(CONNECTING);
        let found = async {
            let mut session = self.session.lock().await;
            if let Some(session) = session.as_ref().filter(|it| !it.client.is_closed()) {
                return Ok(Arc::clone(session));
            }
            *session = None;
            let made = Session::open(&self.address, self.greeting).await?;
            Ok(Arc::clone(session.insert(Arc::new(made))))
        };
        timeout(limit, found).await.unwrap_or(Err(AskError::Silent(limit)))
    }

    fn drop_session(&self, old: &Arc<Session>) {
        // If it is locked, another one is being made already.
        let Ok(mut session) = self.session.try_lock() else { return };
        if session.as_ref().is_some_and(|session| Arc::ptr_eq(session, old)) {
            *session = None;
        }
    }
}

impl Session {
    async fn open(address: &Address, greeting: &str) -> Result<Self, AskError> {
        let (client, driver) = address.connect().await?;
        // Its error is that of the statements.
        let driver = tokio::spawn(driver);
        let heard = Mutex::new(Instant::now());
        let session = Self { client, heard, driver, prepared: Mutex::default() };
        let greeted = session.client.batch_execute(greeting).await;
        greeted.map_err(AskError::Server)?;
        Ok(session)
    }

    async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
        limit: Duration,
    ) -> Result<Vec<Row>, AskError> {
        self.wait_for(self.client.query_typed(statement, params), limit).await
    }

    async fn ask_prepared(
        &self,
        text: &'static str,
        schema: &Schema,
        params: &[Param<'_>],
        limit: Duration,
    ) -> Result<Vec<Row>, AskError> {
        let found = self.prepared.lock().get(text).cloned();
        let statement = match found {
            Some(statement) => statement,
            None => {
                let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
                let named = schema.name_in(text);
                let made = self.wait_for(self.client.prepare_typed(&named, &types), limit).await?;
                self.prepared.lock().insert(text, made.clone());
                made
            }
        };
        let values: Vec<_> = params.iter().map(|(value, _)| *value).collect();
        self.wait_for(self.client.query(&statement, &values), limit).await
    }

    /// Waits for an answer as long as any answer comes within the limit.
    async fn wait_for<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
        limit: Duration,
    ) -> Result<T, AskError> {
        let mut answer = std::pin::pin!(answer);
        let mut since = Instant::now();
        loop {
            if let Ok(answer) = timeout_at(since + limit, &mut answer).await {
                *self.heard.lock() = Instant::now();
                return answer.map_err(AskError::Server);
            }
            let heard = *self.heard.lock();
            if heard <= since {
                return Err(AskError::Silent(limit));
            }
            since = heard;
        }
    }
}
