//! The one connection of a gate, which a task of its own keeps: whenever it is lost, it is made again.
//!
//! The task begins again after a pause that grows to half a second. A statement waits for a connection that is being made, and for its
//! answer, no longer than until its deadline. It waits for no connection that there is no reason to expect: once an attempt has failed,
//! or a connection has fallen silent, each statement fails at once until there is a connection again.
//!
//! A statement without an answer by its deadline means that the connection is of no use: the server may be
//! frozen, or the network may have forgotten it. So it is closed, and the server is asked to cancel what
//! it may still be doing there, so that backends do not pile up behind a locked table. The statement may
//! have been executed all the same: see [`Row::is_orphan`](super::rules::Row).

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{Error, Row};

use crate::{
    job::with_sources,
    server::{
        connection::{Address, CONNECTING, Connection as Reconnecting},
        error::AskError,
        param::Param,
        schema::Schema,
        session::Session,
        tables::Tables,
    },
};

const SILENT: &str = "the server did not answer in time";
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What the keeping task knows.
enum Link {
    /// A connection is being made, and may well be there soon: it is the first, or the one before was closed.
    Connecting,
    Up,
    /// The last attempt has failed, or the last connection has fallen silent, for this reason. It is tried again.
    Down(String),
}

/// See the [module](self).
pub(crate) struct Connection {
    server: Arc<Reconnecting>,
    schema: Schema,
    link: Arc<watch::Sender<Link>>,
    keeper: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Connection {
    /// Begins to connect, on the runtime that this is called in. It ends when the connection is dropped.
    pub(crate) fn begin(address: Address, schema: Schema) -> Self {
        // Nothing is kept in a session, so there is nothing to begin it with.
        let server = Arc::new(Reconnecting::new(address, ""));
        let link = Arc::new(watch::Sender::new(Link::Connecting));
        let keeper = tokio::spawn(keep_connected(Arc::clone(&server), Arc::clone(&link)));
        Self { server, schema, link, keeper }
    }

    /// Waits until there is a connection, whatever becomes of the attempts until then.
    pub(crate) async fn wait(&self, deadline: Instant) -> Result<(), AskError> {
        let mut link = self.link.subscribe();
        let is_up = link.wait_for(|link| matches!(link, Link::Up));
        if timeout_at(deadline, is_up).await.is_ok() {
            return Ok(());
        }
        Err(self.why_down().unwrap_or(AskError::NoAnswer))
    }

    /// Sends a statement, and returns the rows of its answer.
    pub(crate) async fn ask(
        &self,
        deadline: Instant,
        statement: &str,
        parameters: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        let session = self.session(deadline).await?;
        let statement = self.schema.name_in(statement);
        let answer = session.query(&statement, parameters);
        self.answer(deadline, &session, answer).await
    }

    /// Makes tables. Returns their version if this program does not know it.
    pub(crate) async fn make_tables(
        &self,
        deadline: Instant,
        tables: &Tables,
    ) -> Result<Option<i32>, AskError> {
        let session = self.session(deadline).await?;
        let made = tables.make(&session.client, &self.schema);
        self.answer(deadline, &session, made).await
    }

    async fn answer<T>(
        &self,
        deadline: Instant,
        session: &Arc<Session>,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, AskError> {
        let Ok(answer) = timeout_at(deadline, answer).await else {
            self.link.send_replace(Link::Down(SILENT.to_owned()));
            self.server.forget(session);
            let cancel = self.server.address.dial.cancel(session.client.cancel_token());
            session.close();
            tokio::spawn(timeout(CONNECTING, cancel));
            return Err(AskError::NoAnswer);
        };
        answer.map_err(AskError::Server)
    }

    async fn session(&self, deadline: Instant) -> Result<Arc<Session>, AskError> {
        if let Some(why) = self.why_down() {
            return Err(why);
        }
        match timeout_at(deadline, self.server.session()).await {
            Ok(Err(error)) => Err(AskError::NoConnection(with_sources(&error))),
            Ok(session) => session,
            Err(_) => Err(AskError::NoConnection("it is being made".to_owned())),
        }
    }

    fn why_down(&self) -> Option<AskError> {
        match &*self.link.borrow() {
            Link::Down(why) => Some(AskError::NoConnection(why.clone())),
            Link::Connecting | Link::Up => None,
        }
    }
}

/// Connects, again and again, until it is aborted.
async fn keep_connected(server: Arc<Reconnecting>, link: Arc<watch::Sender<Link>>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match server.session().await {
            Ok(session) => {
                link.send_replace(Link::Up);
                let begun = Instant::now();
                session.ended().await;
                if begun.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                link.send_if_modified(|link| {
                    let is_lost = matches!(link, Link::Up);
                    if is_lost {
                        *link = Link::Connecting;
                    }
                    is_lost
                });
            }
            Err(error) => drop(link.send_replace(Link::Down(with_sources(&error)))),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
