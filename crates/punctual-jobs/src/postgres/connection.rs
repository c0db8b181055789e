//! A connection of the queue's: to which tables, and after which silence another one is made.
//!
//! It is of no use if nothing was heard on it for its limit although something was asked, because the server may be frozen, or
//! the network may have forgotten it; or if the server says that it is read-only, because another one is the primary now.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use tokio_postgres::{Config, Row, Transaction, config::TargetSessionAttrs};

use super::encryption::Connector;
use crate::server::{
    connection::{self as reconnecting, CONNECTING},
    dial::Dial,
    schema::Schema,
    session::Session,
};
pub(super) use crate::server::{
    dial::Driver,
    error::AskError,
    param::{Param, Typed, typed},
};

/// Where the tables are, and how to get there.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) server: reconnecting::Address,
    pub(super) connector: Connector,
    pub(super) schema: Schema,
}

impl Address {
    pub(super) fn new(
        mut config: Config,
        dial: Arc<dyn Dial>,
        connector: Connector,
        schema: Schema,
    ) -> Self {
        // Of several hosts the primary, and of one host no other.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Self { server: reconnecting::Address { config, dial }, connector, schema }
    }
}

/// See the [module](self).
pub(super) struct Connection {
    server: reconnecting::Connection,
    schema: Schema,
    /// After which silence another session is made.
    limit: Duration,
}

impl Connection {
    pub(super) fn new(address: &Address, limit: Duration, greeting: &'static str) -> Self {
        let server = reconnecting::Connection::new(address.server.clone(), greeting);
        Self { server, schema: address.schema.clone(), limit }
    }

    /// Has each session begin by preparing a statement, which says the types of its parameters. Otherwise the first one would take two
    /// round trips, and statements that are sent behind it would overtake it.
    pub(super) fn preparing(mut self, statement: &'static str) -> Self {
        self.server.prepares = Some((statement, self.schema.name_in(statement)));
        self
    }

    /// Sends a statement, and returns the rows of its answer.
    pub(super) async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        let session = self.session().await?;
        let statement = self.schema.name_in(statement);
        let answer = session.ask(&statement, params, self.limit).await;
        self.forget_if_useless(&session, &answer);
        answer
    }

    /// The same with a statement that is asked again and again: it is prepared once for each session.
    pub(super) async fn ask_prepared(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        let session = self.session().await?;
        let text = || self.schema.name_in(statement);
        let answer = session.ask_prepared(statement, text, params, self.limit).await;
        self.forget_if_useless(&session, &answer);
        answer
    }

    async fn session(&self) -> Result<Arc<Session>, AskError> {
        let limit = self.limit.min(CONNECTING);
        timeout(limit, self.server.session()).await.unwrap_or(Err(AskError::Silent(limit)))
    }

    fn forget_if_useless<T>(&self, session: &Arc<Session>, answer: &Result<T, AskError>) {
        if answer.as_ref().is_err_and(AskError::is_of_the_session) {
            self.server.forget(session);
        }
    }
}

/// A parameter that is kept until it is asked with.
pub(super) type Boxed = Box<dyn Typed + Send + Sync>;

pub(super) fn borrowed(all: &[Boxed]) -> Vec<Param<'_>> {
    all.iter().map(|value| &**value as _).collect()
}

/// Sends a statement in a transaction of the program's own. It has the names of the schema already.
pub(super) async fn ask_in(
    transaction: &Transaction<'_>,
    statement: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, AskError> {
    transaction.query_typed(statement, &typed(params)).await.map_err(AskError::Server)
}
