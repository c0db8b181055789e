//! The connection of the desk's own statements.
//!
//! There is one, on which statements follow each other without waiting for each other's answers. It is made
//! when it is needed and made again when it has broken. A statement that was under way then has failed, and is
//! not repeated: whether the server has carried it out is not known here.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_postgres::{
    Client, Config, Error, Row,
    types::{ToSql, Type},
};

use super::engine::Encryption;

pub(super) type Params<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

pub(super) struct Connection {
    config: Config,
    encryption: Encryption,
    client: Mutex<Option<Arc<Client>>>,
}

impl Connection {
    pub(super) fn new(config: Config, encryption: Encryption) -> Self {
        Self { config, encryption, client: Mutex::new(None) }
    }

    pub(super) async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        self.client().await?.query_typed(sql, params).await
    }

    /// Sends several statements as one transaction.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.client().await?.batch_execute(sql).await
    }

    /// Returns the client. Whoever comes while it is being made waits for the same one.
    async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut client = self.client.lock().await;
        if let Some(client) = client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let (made, connection) = self.config.connect(self.encryption.connector()).await?;
        // It ends when the client is dropped, and its error is that of the statements.
        tokio::spawn(connection);
        let made = Arc::new(made);
        *client = Some(Arc::clone(&made));
        Ok(made)
    }
}
