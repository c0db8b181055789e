//! How the client of a replica finds the database.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use punctual_jobs::{Boxed, Dial, Driver};
use tokio::time::sleep;
use tokio_postgres::{CancelToken, Client, Config, Error, NoTls};

use super::wire::{News, ServerEnd, connection};

/// The network of one process.
pub(super) struct Network {
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
}

/// What the gate and the queue connect by.
pub(super) struct Dialler(pub(super) Arc<Network>);

impl Dial for Dialler {
    fn connect(&self, config: Config) -> Boxed<Result<(Client, Driver), Error>> {
        let network = Arc::clone(&self.0);
        Box::pin(async move {
            let (wire, server) = connection(&network.news);
            network.begun.lock().push(server);
            let (client, connection) = config.connect_raw(wire, NoTls).await?;
            Ok((client, Driver::new(connection)))
        })
    }

    fn cancel(&self, _: CancelToken) -> Boxed<()> {
        Box::pin(sleep(Duration::ZERO))
    }
}
