//! Listening: the worker is woken when a job is enqueued that is due, or will be ([`coming`](super::coming)), and when an ordering key
//! is free.
//!
//! It needs a connection of its own, which is made again when it has broken or was silent. Nothing depends on it but
//! how soon a job begins: what is missed is found by the poll.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Error};

use super::{
    connection::{AskError, Driver},
    machine::Machine,
    statements,
};

/// Listens until it is aborted.
pub(super) async fn listen_on(machine: Arc<Machine>) {
    loop {
        // The heartbeat reports a failure here, since it needs the same server.
        let _ = listen(&machine).await;
        sleep(machine.settings.heartbeat).await;
    }
}

async fn listen(machine: &Machine) -> Result<(), AskError> {
    let address = &machine.address;
    let silence = machine.settings.lease / 2;
    let (client, mut driver) = address.server.connect().await?;
    tokio::select! {
        ended = ask(machine, &client, silence) => ended,
        ended = hear(machine, &mut driver) => ended,
    }
    .map_err(AskError::Server)
}

/// Begins to listen, and asks for nothing from time to time: a connection that fell silent is found out by that.
async fn ask(machine: &Machine, client: &Client, silence: Duration) -> Result<(), Error> {
    let listen = machine.address.schema.name_in("listen @schema");
    let mut question = format!("{}; {listen}", statements::GREETING);
    while let Ok(answer) = timeout(silence, client.batch_execute(&question)).await {
        answer?;
        if !question.is_empty() {
            // For notifications that were sent before.
            machine.wake.notify_one();
            machine.coming.tell(i64::MIN);
            question.clear();
        }
        sleep(machine.settings.heartbeat).await;
    }
    Ok(())
}

async fn hear(machine: &Machine, driver: &mut Driver) -> Result<(), Error> {
    poll_fn(|context| {
        loop {
            match std::task::ready!(driver.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(told))) if told.payload() == "schedule" => {
                    machine.schedules_changed.notify_one();
                }
                Some(Ok(AsyncMessage::Notification(told))) => match moment(told.payload()) {
                    Some(moment) => machine.coming.tell(moment),
                    None => machine.wake.notify_one(),
                },
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

/// Returns the moment of which a notification tells, if it tells of one.
fn moment(payload: &str) -> Option<i64> {
    payload.strip_prefix("at ")?.parse().ok()
}
