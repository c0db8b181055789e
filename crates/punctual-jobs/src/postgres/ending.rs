//! Writing down how runs have ended.
//!
//! One statement ends all claims whose runs have ended while the last one was under way. It names each claim, so what
//! comes too late changes nothing: the job is another machine's, or has another payload, or is
//! gone. If it has no answer it is asked again, because then a claim that it has ended is one that does not stand.

use std::{collections::HashSet, time::Duration};

use tokio_postgres::types::Type;

use super::{
    claims::Claimed, connection::AskError, engine::PostgresEngine, settings::QueueEvent, statements,
};
use crate::{DiscardedJob, JobId, When, job::with_sources};

/// How an attempt has ended.
#[derive(Clone)]
pub(super) enum How {
    Ran,
    /// With the error, and how long the job waits.
    Failed(String, Duration),
    /// The attempt does not count, and the job is free.
    Freed,
}

/// A run that has ended.
pub(super) struct Ended {
    pub(super) job: Claimed,
    pub(super) how: How,
}

impl How {
    fn word(&self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Failed(..) => "failed",
            Self::Freed => "freed",
        }
    }

    fn delay(&self) -> Option<f64> {
        match self {
            Self::Failed(_, delay) => Some(delay.as_secs_f64().min(LONGEST_DELAY)),
            _ => None,
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error, _) => Some(error),
            _ => None,
        }
    }
}

/// In seconds: 31 years.
const LONGEST_DELAY: f64 = 1e9;

impl PostgresEngine {
    /// Returns what could not be written down.
    pub(super) async fn write(&self, all: Vec<Ended>) -> Vec<Ended> {
        if all.is_empty() {
            return all;
        }
        match self.end(&all).await {
            Ok(rows) => {
                let claims = |is_meant: fn(&(i64, bool, bool)) -> bool| -> HashSet<i64> {
                    rows.iter().filter(|row| is_meant(row)).map(|row| row.0).collect()
                };
                let (held, discarded) = (claims(|row| row.1), claims(|row| row.2));
                let (held, written): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|ended| held.contains(&ended.job.claim));
                for ended in written {
                    let is_discarded = discarded.contains(&ended.job.claim);
                    self.is_written(ended, is_discarded);
                }
                held
            }
            Err(error) => {
                self.report(QueueEvent::ServerAway { error: with_sources(&error) });
                all
            }
        }
    }

    /// Returns each claim, whether it is held, and whether its job is discarded.
    async fn end(&self, all: &[Ended]) -> Result<Vec<(i64, bool, bool)>, AskError> {
        let ids: Vec<i64> = all.iter().map(|ended| ended.job.id).collect();
        let claims: Vec<i64> = all.iter().map(|ended| ended.job.claim).collect();
        let words: Vec<&str> = all.iter().map(|ended| ended.how.word()).collect();
        let delays: Vec<Option<f64>> = all.iter().map(|ended| ended.how.delay()).collect();
        let errors: Vec<Option<String>> =
            all.iter().map(|ended| ended.how.error().map(without_nul)).collect();
        let params = [
            (&ids as _, Type::INT8_ARRAY),
            (&claims as _, Type::INT8_ARRAY),
            (&words as _, Type::TEXT_ARRAY),
            (&delays as _, Type::FLOAT8_ARRAY),
            (&errors as _, Type::TEXT_ARRAY),
        ];
        let rows = self.work.ask(statements::END, &params).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    fn is_written(&self, ended: Ended, is_discarded: bool) {
        let Ended { job, how } = ended;
        self.claims.forget(job.claim);
        let How::Failed(error, delay) = how else { return };
        if is_discarded {
            self.tell_discarded(DiscardedJob {
                id: JobId(job.id),
                name: job.name,
                payload: job.payload.value(),
                attempts: job.begun,
                last_error: error,
            });
        } else {
            self.wake_when_due(When::After(delay));
        }
    }
}

/// A text of the database's has no NUL.
fn without_nul(error: &str) -> String {
    error.replace('\0', "\u{FFFD}")
}
