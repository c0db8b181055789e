//! A connection of the moment, and what is asked on it.
//!
//! Statements follow each other on it without waiting for each other's answers. A statement that waits behind many others does
//! not count as silence as long as these are answered.

use std::{collections::HashMap, future::Future, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tokio_postgres::{Client, Error, Row, Statement, types::Type};

use super::param::{Param, typed};
use super::{dial::Address, error::AskError};

/// See the [module](self).
pub(crate) struct Session {
    pub(crate) client: Client,
    driver: JoinHandle<()>,
    /// Closed when the driver has ended.
    ended: watch::Receiver<()>,
    /// When the last answer came.
    heard: Mutex<Instant>,
    /// By their texts, which are constants.
    prepared: Mutex<HashMap<&'static str, Statement>>,
}

/// Without this, messages that the server takes no longer would keep alive the driver of a client that is gone.
impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Connects, and says the greeting if there is one.
    pub(super) async fn open(address: &Address, greeting: &str) -> Result<Self, AskError> {
        let (client, driver) = address.connect().await?;
        let (is_driven, ended) = watch::channel(());
        let driver = tokio::spawn(async move {
            let _is_driven = is_driven;
            // Its error is that of the statements.
            drop(driver.await);
        });
        let session = Self {
            client,
            driver,
            ended,
            heard: Mutex::new(Instant::now()),
            prepared: Mutex::default(),
        };
        if !greeting.is_empty() {
            session.client.batch_execute(greeting).await.map_err(AskError::Server)?;
        }
        Ok(session)
    }

    /// Sends a statement, and waits for its answer however long that takes.
    pub(crate) async fn query(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        self.client.query_typed(statement, &typed(params)).await
    }

    /// Waits until it is closed, by whichever side.
    pub(crate) async fn ended(&self) {
        // An error is the end of the driver, which says nothing before.
        drop(self.ended.clone().changed().await);
    }

    /// Closes it. Statements that are under way fail.
    pub(crate) fn close(&self) {
        self.driver.abort();
    }

    /// Sends a statement, and returns the rows of its answer.
    pub(crate) async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
        limit: Duration,
    ) -> Result<Vec<Row>, AskError> {
        self.wait_for(self.query(statement, params), limit).await
    }

    /// The same with a statement that is prepared once: `key` is the constant that `text` is made of.
    pub(crate) async fn ask_prepared(
        &self,
        key: &'static str,
        text: impl FnOnce() -> String,
        params: &[Param<'_>],
        limit: Duration,
    ) -> Result<Vec<Row>, AskError> {
        let found = self.prepared.lock().get(key).cloned();
        let statement = match found {
            Some(statement) => statement,
            None => {
                let types: Vec<Type> = params.iter().map(|param| param.ty()).collect();
                self.prepare(key, &text(), &types, limit).await?
            }
        };
        let values: Vec<_> = params.iter().map(|param| param.value()).collect();
        self.wait_for(self.client.query(&statement, &values), limit).await
    }

    /// Prepares the statement of this key. The server finds the types that are not given.
    pub(super) async fn prepare(
        &self,
        key: &'static str,
        text: &str,
        types: &[Type],
        limit: Duration,
    ) -> Result<Statement, AskError> {
        let made = self.wait_for(self.client.prepare_typed(text, types), limit).await?;
        self.prepared.lock().insert(key, made.clone());
        Ok(made)
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
