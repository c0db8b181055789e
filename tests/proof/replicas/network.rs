//! How the client of a replica finds the database.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_postgres::{CancelToken, Client, Config, Connection, Error, NoTls, tls::NoTlsStream};

use super::wire::{News, ServerEnd, Wire, connection};
use crate::gate::{Boxed, Connector, Driver};

/// The network of one process.
pub(crate) struct Network {
    news: Arc<News>,
    /// The connections that were begun and that the database has not heard of.
    begun: Mutex<Vec<ServerEnd>>,
}

impl Network {
    pub(super) fn new(news: &Arc<News>) -> Arc<Self> {
        Arc::new(Self { news: Arc::clone(news), begun: Mutex::default() })
    }

    pub(super) fn take_begun(&self) -> Vec<ServerEnd> {
        std::mem::take(&mut *self.begun.lock())
    }

    /// Connects.
    pub(crate) async fn dial(
        &self,
        config: Config,
    ) -> Result<(Client, Connection<Wire, NoTlsStream>), Error> {
        let (wire, server) = connection(&self.news);
        self.begun.lock().push(server);
        config.connect_raw(wire, NoTls).await
    }
}

/// What the gate connects by.
pub(super) struct GateConnector(pub(super) Arc<Network>);

impl Connector for GateConnector {
    fn connect(&self, config: Config) -> Boxed<Result<(Client, Driver), Error>> {
        let network = Arc::clone(&self.0);
        Box::pin(async move {
            let (client, connection) = network.dial(config).await?;
            let driver: Driver = Box::pin(connection);
            Ok((client, driver))
        })
    }

    fn cancel(&self, _: CancelToken) -> Boxed<()> {
        Box::pin(sleep(Duration::ZERO))
    }
}
