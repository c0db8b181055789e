//! Sending a job in a transaction of the caller: it is stored if that commits, and only then.

use super::{statements, verbs::Enqueue};
use crate::{DeskError, JobId, Sending, Ticket};

impl Sending<'_> {
    /// Stores the job in a transaction of the program's own, in the same database: the job exists if the
    /// transaction commits, and otherwise it never has. No other machine can see it before.
    ///
    /// ```no_run
    /// # use punctual_jobs::{Desk, DeskError, Job};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Ship { order: i64 }
    /// # impl Job for Ship { const NAME: &'static str = "ship"; }
    /// # async fn order(desk: &Desk, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// let row = transaction.query_one("insert into orders default values returning id", &[]).await?;
    /// desk.now(Ship { order: row.get(0) }).send_in(&transaction).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeskError`]; after one of the database the transaction can only be rolled back. An embedded desk
    /// has no transactions, and answers [`Unsupported`](DeskError::Unsupported).
    pub async fn send_in(
        self,
        transaction: &tokio_postgres::Transaction<'_>,
    ) -> Result<Ticket, DeskError> {
        let Some((clock, schema)) = self.tables() else {
            return Err(DeskError::Unsupported("an embedded desk has no transactions"));
        };
        let order = self.checked()?;
        let name = order.name;
        let (enqueue, statement) = (Enqueue::new(order, &clock), schema.name_in(statements::SEND));
        loop {
            let rows = transaction.query_typed(&statement, &enqueue.params()).await;
            let rows = rows.map_err(|error| DeskError::Server(error.into()))?;
            if let Some(row) = rows.first() {
                return Ok(Ticket { id: JobId(row.get(0)), name });
            }
        }
    }
}
