//! Writing down how runs have ended.
//!
//! One statement ends all claims whose runs have ended while the last one was under way. It names each claim, so what
//! comes too late changes nothing: the job is another machine's, or has another payload, or is
//! gone. If it has no answer it is asked again, because then a claim that it has ended is one that does not stand.

use std::collections::HashMap;

use tokio_postgres::types::Type;

use super::{claims::Claimed, connection::AskError, engine::PostgresEngine, statements};
use crate::{When, run::Outcome};

/// How a claim ends.
#[derive(Clone)]
pub(super) enum How {
    Ended(Outcome),
    /// The attempt does not count, and the job is free at once.
    Freed,
    /// The same, because the executor has not run the task, for this reason.
    Refused(String),
}

/// A run that has ended.
pub(super) struct Ended {
    pub(super) job: Claimed,
    pub(super) how: How,
}

/// The state of the job after its end was written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Became {
    /// A transaction holds it: to be asked again.
    Held,
    Waiting,
    Discarded,
    /// It is gone, or the claim was lost before.
    NotOurs,
}

impl How {
    fn word(&self) -> &'static str {
        match self {
            Self::Ended(Outcome::Succeeded) => "ran",
            Self::Ended(Outcome::Failed(..)) => "failed",
            Self::Ended(Outcome::Discarded(_)) => "discarded",
            Self::Ended(Outcome::Snoozed(_)) => "snoozed",
            Self::Freed | Self::Refused(_) => "freed",
        }
    }

    fn delay(&self) -> Option<f64> {
        match self {
            Self::Ended(Outcome::Failed(_, delay) | Outcome::Snoozed(delay)) => {
                Some(delay.as_secs_f64().min(LONGEST_DELAY))
            }
            _ => None,
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Ended(Outcome::Failed(error, _) | Outcome::Discarded(error)) => Some(error),
            _ => None,
        }
    }
}

impl Became {
    fn of(word: &str) -> Self {
        match word {
            "held" => Self::Held,
            "waiting" => Self::Waiting,
            "discarded" => Self::Discarded,
            _ => Self::NotOurs,
        }
    }
}

/// In seconds: 31 years.
const LONGEST_DELAY: f64 = 1e9;

impl PostgresEngine {
    /// Returns the ends that could not be written down.
    pub(super) async fn write(&self, all: Vec<Ended>) -> Vec<Ended> {
        if all.is_empty() {
            return all;
        }
        match self.end(&all).await {
            Ok(became) => {
                let became = |ended: &Ended| became.get(&ended.job.claim).copied();
                let (held, written): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|ended| became(ended) == Some(Became::Held));
                for ended in written {
                    let became = became(&ended);
                    self.is_written(ended, became.unwrap_or(Became::NotOurs));
                }
                held
            }
            Err(error) => {
                self.report_failure(&error);
                all
            }
        }
    }

    /// Returns the state of the job of each claim.
    async fn end(&self, all: &[Ended]) -> Result<HashMap<i64, Became>, AskError> {
        let ids: Vec<i64> = all.iter().map(|ended| ended.job.id).collect();
        let claims: Vec<i64> = all.iter().map(|ended| ended.job.claim).collect();
        let words: Vec<&str> = all.iter().map(|ended| ended.how.word()).collect();
        let delays: Vec<Option<f64>> = all.iter().map(|ended| ended.how.delay()).collect();
        let errors: Vec<Option<&str>> = all.iter().map(|ended| ended.how.error()).collect();
        let params = [
            (&ids as _, Type::INT8_ARRAY),
            (&claims as _, Type::INT8_ARRAY),
            (&words as _, Type::TEXT_ARRAY),
            (&delays as _, Type::FLOAT8_ARRAY),
            (&errors as _, Type::TEXT_ARRAY),
        ];
        let keeps = self.settings.history.is_some();
        let statement = if keeps { statements::END_WITH_HISTORY } else { statements::END };
        let rows = self.work.ask(statement, &params).await?;
        Ok(rows.iter().map(|row| (row.get(0), Became::of(row.get(1)))).collect())
    }

    fn is_written(&self, ended: Ended, became: Became) {
        let Ended { job, how } = ended;
        self.claims.forget(job.claim);
        match (became, how) {
            (Became::Waiting, How::Freed | How::Refused(_)) => {
                if let Some(kind) = self.definitions.handled(&job.name) {
                    self.claims.note_released(job, kind.name);
                }
            }
            (Became::Waiting, How::Ended(Outcome::Failed(_, delay) | Outcome::Snoozed(delay))) => {
                self.wake_when_due(When::After(delay));
            }
            (Became::Discarded, _) => self.tell_soon(),
            _ => {}
        }
    }
}
