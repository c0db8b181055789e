//! A connection: made when it is needed, and made again when it is of no use any more.
//!
//! It is of no use if it has broken, or if its owner [forgets](Connection::forget) it: because the server has been silent, may be frozen,
//! or is not the primary any more. A statement that was under way then has failed, and is not repeated here: whether the server has
//! carried it out is not known.

use std::sync::Arc;

use tokio::sync::Mutex;

pub(crate) use super::dial::{Address, CONNECTING};
use super::{error::AskError, session::Session};

/// See the [module](self).
pub(crate) struct Connection {
    pub(crate) address: Address,
    /// What each session begins with.
    greeting: &'static str,
    /// What each session prepares next: the key and the text of a statement that nothing behind it is to overtake.
    pub(crate) prepares: Option<(&'static str, String)>,
    session: Mutex<Option<Arc<Session>>>,
}

impl Connection {
    pub(crate) fn new(address: Address, greeting: &'static str) -> Self {
        Self { address, greeting, prepares: None, session: Mutex::default() }
    }

    /// Returns the session of the moment. Callers that come while one is being made wait for the same one.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, AskError> {
        let mut session = self.session.lock().await;
        if let Some(session) = session.as_ref().filter(|it| !it.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        *session = None;
        let made = Session::open(&self.address, self.greeting).await?;
        if let Some((key, text)) = &self.prepares {
            match made.prepare(key, text, &[], CONNECTING).await {
                // It is prepared again by what asks for it, which is told.
                Err(error) if error.is_of_the_statement() => {}
                prepared => drop(prepared?),
            }
        }
        Ok(Arc::clone(session.insert(Arc::new(made))))
    }

    /// Has another session made for the next statement, if this is the one of the moment.
    pub(crate) fn forget(&self, old: &Arc<Session>) {
        // If it is locked, another one is being made already.
        let Ok(mut session) = self.session.try_lock() else { return };
        if session.as_ref().is_some_and(|session| Arc::ptr_eq(session, old)) {
            *session = None;
        }
    }
}
