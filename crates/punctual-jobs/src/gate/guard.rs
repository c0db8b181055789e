//! Effects that a stale run cannot have: the two SQL functions, called from Rust.
//!
//! A fencing token is a number that goes up with each grant, also if the row was deleted in between, and the row of a name has the last one. So a
//! transaction that finds its own there, and locks the row until it commits, knows that no replica takes over
//! before that.

use tokio_postgres::{Error, GenericClient};

use super::{Gate, sql};
use crate::server::param::typed;

/// The `SQLSTATE` of the error that `guard` and `finish` raise.
const STALE: &str = "PJ001";

impl Gate {
    /// Lets the caller's transaction go on only if `fencing_token` is the last one of `name`, and keeps others from
    /// taking over until that transaction ends. The transaction need not be short: the lease is renewed
    /// meanwhile. Outside a transaction it says how things were, and protects nothing.
    ///
    /// ```no_run
    /// # async fn effects(gate: &punctual_jobs::gate::Gate, client: &mut tokio_postgres::Client, fencing_token: u64)
    /// #     -> Result<(), tokio_postgres::Error> {
    /// let transaction = client.transaction().await?;
    /// gate.guard(&transaction, "sweep", fencing_token).await?;
    /// transaction.execute("delete from session where expires < now()", &[]).await?;
    /// transaction.commit().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// That of the database; [`is_stale_fencing_token`] says if it is that one. The transaction has failed then, and
    /// can only be rolled back.
    pub async fn guard<C>(&self, transaction: &C, name: &str, fence: u64) -> Result<(), Error>
    where
        C: GenericClient + Sync,
    {
        self.call(transaction, sql::GUARD, name, fence).await
    }

    /// Like [`guard`](Self::guard), and the tick is done when the transaction commits. Either both its
    /// effects and its end are there then, or neither is. To be called just before the commit: from the
    /// call on the lease is not renewed, and after the commit another replica may have the next tick.
    ///
    /// # In which transactions
    ///
    /// READ COMMITTED, the default, always works. In REPEATABLE READ and SERIALIZABLE this and
    /// [`guard`](Self::guard) fail if the lease was renewed after the transaction's first statement, which may be so after any
    /// time and is so after a third of the lease: the renewal has written the row, and PostgreSQL answers with a serialization
    /// failure (`SQLSTATE` 40001). Roll back then and do it again, in a transaction whose slow work is done before it begins; or
    /// take READ COMMITTED for it.
    ///
    /// # Errors
    ///
    /// As for [`guard`](Self::guard); and the same error if the tick is done already.
    pub async fn finish<C>(&self, transaction: &C, name: &str, fence: u64) -> Result<(), Error>
    where
        C: GenericClient + Sync,
    {
        self.call(transaction, sql::FINISH, name, fence).await
    }

    async fn call<C>(
        &self,
        transaction: &C,
        statement: &str,
        name: &str,
        fence: u64,
    ) -> Result<(), Error>
    where
        C: GenericClient + Sync,
    {
        let statement = self.0.schema.name_in_transaction(statement);
        // No grant has a fence that is larger than that.
        let fence = i64::try_from(fence).unwrap_or(i64::MAX);
        transaction.query_typed(&statement, &typed(&[&name, &fence])).await.map(drop)
    }
}

/// Returns `true` if the error is that of a fencing token that is not the last one of its name.
///
/// ```no_run
/// # async fn effects(gate: &punctual_jobs::gate::Gate, transaction: &tokio_postgres::Transaction<'_>)
/// #     -> Result<(), tokio_postgres::Error> {
/// match gate.guard(transaction, "sweep", 42).await {
///     Err(error) if punctual_jobs::gate::is_stale_fencing_token(&error) => { /* another replica goes on */ }
///     result => result?,
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn is_stale_fencing_token(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code() == STALE)
}
