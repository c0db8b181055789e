//! Detects a pooler between this program and the database that changes backends under a connection.
//!
//! A pooler in *transaction* mode, as PgBouncer's `pool_mode = transaction`, gives a connection some
//! backend for each transaction, and not always the same. Locks of the session, prepared statements and
//! `listen` then go to a backend that another client has next, and fail without a word. A user of a session
//! has to refuse such a connection. The [gate](crate::gate) needs none.
//!
//! # How it shows
//!
//! By the process ids of the backends. One connection asks for its backend's; another begins a transaction
//! and asks as well; the first asks again. Two connections that are open at the same time have two
//! backends, and each keeps its own. A pooler hands out the backend that was used last, so the second
//! connection normally gets that of the first at once. Since others use the pooler at the same time, it is
//! tried several times, in both directions.

use tokio_postgres::{Client, Config, Error, SimpleQueryMessage, Socket, tls::MakeTlsConnect};

const ROUNDS: usize = 3;

/// Returns `true` if connections to this address share backends: there is a pooler, and it is not in
/// session mode. Opens two connections, and closes them. It is to be called in a tokio runtime.
///
/// ```no_run
/// # async fn check() -> Result<(), Box<dyn std::error::Error>> {
/// let config = "postgres://app@pooler:6432/app".parse()?;
/// if punctual_jobs::pooler::shares_backends(&config, tokio_postgres::NoTls).await? {
///     return Err("connect to the server itself, or set pool_mode = session".into());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// That of the database, if a connection cannot be made or breaks.
pub async fn shares_backends<T>(config: &Config, tls: T) -> Result<bool, Error>
where
    T: MakeTlsConnect<Socket> + Clone,
    T::Stream: Send + 'static,
{
    let first = connect(config, tls.clone()).await?;
    let second = connect(config, tls).await?;
    for _ in 0..ROUNDS {
        if share(&first, &second).await? || share(&second, &first).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn connect<T>(config: &Config, tls: T) -> Result<Client, Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // It ends with the client.
    tokio::spawn(connection);
    Ok(client)
}

async fn share(idle: &Client, busy: &Client) -> Result<bool, Error> {
    let before = backend(idle).await?;
    match busy.batch_execute("begin").await {
        // A pooler that allows no transactions has backends for single statements.
        Err(error) if error.as_db_error().is_some() => return Ok(true),
        begun => begun?,
    }
    let (other, after) = (backend(busy).await, backend(idle).await);
    busy.batch_execute("rollback").await?;
    Ok(before == other? || before != after?)
}

async fn backend(client: &Client) -> Result<Option<String>, Error> {
    let messages = client.simple_query("select pg_backend_pid()").await?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
