//! Writing down how runs have ended.
//!
//! One statement ends all claims whose runs have ended while the last one was under way. It names each claim, so what
//! comes too late changes nothing: the job is another machine's, or has another payload, or is
//! gone. If it has no answer it is asked again, because then a claim that it has ended is one that does not stand.
//!
//! A constraint or a trigger of the program's own may refuse a row, and then the server refuses the whole statement. The ends are
//! written in halves until the row is alone. Its claim stays this machine's, so that the job does not run again, and its slot is free;
//! the event names the job, its row gets the error unless that is refused too, and each heartbeat asks once more, until the cause
//! is mended or this machine ends. Then the job runs again.

use std::collections::HashMap;

use super::{
    claims::Claimed,
    connection::{AskError, Param},
    machine::Machine,
    statements,
};
use crate::{
    JobOutcome, When,
    job::{payload::Payload, with_sources},
    run::Outcome,
};

/// How a claim ends.
#[derive(Clone)]
pub(super) enum How {
    Ended(Outcome),
    /// The attempt does not count, and the job is free at once, unless it was discarded meanwhile. With the error, if the handler has
    /// failed.
    Freed(Option<String>),
    /// The same, because the executor has not run the task, for this reason.
    Refused(String),
}

/// A run that has ended.
pub(super) struct Ended {
    pub(super) job: Claimed,
    pub(super) how: How,
    /// It was asked for before, and there was no answer.
    may_be_written: bool,
}

impl Ended {
    pub(super) fn new(job: Claimed, how: How) -> Self {
        Self { job, how, may_be_written: false }
    }

    /// Returns what the run counts as. `None` if another machine has written down its end: that one counts it.
    fn outcome(&self, became: Became) -> Option<JobOutcome> {
        match became {
            Became::Gone if matches!(self.how, How::Ended(Outcome::Succeeded(_))) => {
                Some(JobOutcome::Succeeded)
            }
            Became::Gone => Some(JobOutcome::Cancelled),
            Became::Discarded => Some(JobOutcome::Discarded),
            Became::Waiting => Some(self.how.outcome()),
            Became::Lost if self.may_be_written => Some(match self.how.outcome() {
                JobOutcome::Failed if self.job.begun >= self.job.max_attempts => {
                    JobOutcome::Discarded
                }
                outcome => outcome,
            }),
            Became::Lost | Became::Held => None,
        }
    }
}

/// The state of the job after its end was written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Became {
    /// A transaction holds it: to be asked again.
    Held,
    Waiting,
    Discarded,
    Gone,
    /// The claim was lost before, or ended by a question without an answer.
    Lost,
}

impl How {
    /// Returns what the run counts as, if the job waits again or its state is not known.
    fn outcome(&self) -> JobOutcome {
        match self {
            Self::Ended(Outcome::Succeeded(_)) => JobOutcome::Succeeded,
            Self::Ended(Outcome::Failed(..)) => JobOutcome::Failed,
            Self::Ended(Outcome::Discarded(_)) => JobOutcome::Discarded,
            Self::Ended(Outcome::Snoozed(_)) => JobOutcome::Snoozed,
            Self::Freed(_) | Self::Refused(_) => JobOutcome::Released,
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

    /// Returns what the handler has returned, and for how many seconds that is kept.
    fn returned(&self) -> Option<(&Payload, f64)> {
        match self {
            Self::Ended(Outcome::Succeeded(Some(returned))) => {
                Some((&returned.value, returned.keep.as_secs_f64().min(LONGEST_DELAY)))
            }
            _ => None,
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Ended(Outcome::Failed(error, _) | Outcome::Discarded(error)) => Some(error),
            Self::Freed(error) => error.as_deref(),
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
            "gone" => Self::Gone,
            _ => Self::Lost,
        }
    }
}

/// In seconds: 31 years.
const LONGEST_DELAY: f64 = 1e9;

/// The ends that could not be written down.
#[derive(Default)]
pub(super) struct Unwritten {
    /// They are asked for again soon: there was no answer, or a transaction holds the job.
    pub(super) soon: Vec<Ended>,
    /// The server has refused each of them alone.
    pub(super) refused: Vec<Ended>,
}

impl Machine {
    pub(super) async fn write(&self, mut all: Vec<Ended>) -> Unwritten {
        let mut unwritten = Unwritten::default();
        if all.is_empty() {
            return unwritten;
        }
        match self.end(&all).await {
            Ok(became) => {
                let became = |ended: &Ended| became.get(&ended.job.claim).copied();
                let (held, written): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|ended| became(ended) == Some(Became::Held));
                for ended in written {
                    let became = became(&ended);
                    self.is_written(ended, became.unwrap_or(Became::Lost));
                }
                unwritten.soon = held;
            }
            Err(error) if error.is_refusal() => match &all[..] {
                [alone] => {
                    self.report_refused("the end of the job", alone.job.id, &error);
                    let (id, claim, error) = (alone.job.id, alone.job.claim, with_sources(&error));
                    let error = format!("the end of the run was refused: {error}");
                    // If this is refused as well, the event says it alone.
                    let note: [Param<'_>; 3] = [&id, &claim, &error];
                    drop(self.work.ask(statements::NOTE_REFUSED, &note).await);
                    unwritten.refused = all;
                }
                _ => {
                    for half in [all.split_off(all.len() / 2), all] {
                        let left = Box::pin(self.write(half)).await;
                        unwritten.soon.extend(left.soon);
                        unwritten.refused.extend(left.refused);
                    }
                }
            },
            Err(error) => {
                self.report_failure(&error);
                all.iter_mut().for_each(|ended| ended.may_be_written = true);
                unwritten.soon = all;
            }
        }
        unwritten
    }

    /// Frees claims whose answers were lost: nothing has run.
    pub(super) async fn free(&self, claims: &[(i64, i64)]) -> Result<(), AskError> {
        if claims.is_empty() {
            return Ok(());
        }
        let (ids, claims): (Vec<_>, Vec<_>) = claims.iter().copied().unzip();
        let (words, errors) = (vec!["freed"; ids.len()], vec![statements::UNANSWERED; ids.len()]);
        let none: Vec<Option<f64>> = vec![None; ids.len()];
        let values: Vec<Option<&str>> = vec![None; ids.len()];
        let params: [Param<'_>; 7] = [&ids, &claims, &words, &none, &errors, &values, &none];
        self.pulse.ask(self.end_statement(), &params).await.map(drop)
    }

    fn end_statement(&self) -> &'static str {
        let has_history = self.settings.history.is_some();
        if has_history { statements::END_WITH_HISTORY } else { statements::END }
    }

    /// Returns the state of the job of each claim.
    async fn end(&self, all: &[Ended]) -> Result<HashMap<i64, Became>, AskError> {
        let ids: Vec<i64> = all.iter().map(|ended| ended.job.id).collect();
        let claims: Vec<i64> = all.iter().map(|ended| ended.job.claim).collect();
        let words: Vec<String> = all.iter().map(|ended| ended.how.outcome().to_string()).collect();
        let delays: Vec<Option<f64>> = all.iter().map(|ended| ended.how.delay()).collect();
        let errors: Vec<Option<&str>> = all.iter().map(|ended| ended.how.error()).collect();
        let (values, keeps): (Vec<_>, Vec<_>) =
            all.iter().map(|ended| ended.how.returned().unzip()).unzip();
        let params: [Param<'_>; 7] = [&ids, &claims, &words, &delays, &errors, &values, &keeps];
        let rows = self.work.ask(self.end_statement(), &params).await?;
        Ok(rows.iter().map(|row| (row.get(0), Became::of(row.get(1)))).collect())
    }

    fn is_written(&self, ended: Ended, became: Became) {
        if let Some(outcome) = ended.outcome(became) {
            self.definitions.outcomes.note(&ended.job.name, outcome);
        }
        let Ended { job, how, .. } = ended;
        self.claims.forget(job.claim);
        match (became, how) {
            (Became::Waiting, How::Freed(_) | How::Refused(_)) => {
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

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Job;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Mail {}

    impl Job for Mail {
        const NAME: &'static str = "mail";
    }

    pub(in crate::postgres) fn ended(how: How, begun: u32, may_be_written: bool) -> Ended {
        let job = Claimed {
            id: 1,
            claim: 7,
            name: Mail::NAME.to_owned(),
            payload: Payload::of(&Mail {}).expect("it is JSON"),
            begun,
            max_attempts: 3,
            key: None,
            tick: None,
            traceparent: None,
        };
        Ended { job, how, may_be_written }
    }

    /// What a run counts as, by the state of its job, and if that is not known.
    #[test]
    fn an_end_counts_as_what_was_written_down() {
        let error = || "no route".to_owned();
        let failed = || How::Ended(Outcome::Failed(error(), Duration::ZERO));
        let snoozed = || How::Ended(Outcome::Snoozed(Duration::ZERO));
        let ran = || How::Ended(Outcome::Succeeded(None));
        let given_up = || How::Ended(Outcome::Discarded(error()));
        let known = |how, became| ended(how, 1, false).outcome(became);
        assert_eq!(known(ran(), Became::Gone), Some(JobOutcome::Succeeded));
        for how in [failed(), snoozed(), given_up(), How::Freed(None)] {
            assert_eq!(known(how, Became::Gone), Some(JobOutcome::Cancelled));
        }
        assert_eq!(known(failed(), Became::Waiting), Some(JobOutcome::Failed));
        assert_eq!(known(snoozed(), Became::Waiting), Some(JobOutcome::Snoozed));
        for how in [How::Freed(None), How::Refused(error())] {
            assert_eq!(known(how, Became::Waiting), Some(JobOutcome::Released));
        }
        for how in [failed(), snoozed(), given_up()] {
            assert_eq!(known(how, Became::Discarded), Some(JobOutcome::Discarded));
        }
        for how in [ran(), failed(), snoozed(), given_up(), How::Freed(None)] {
            assert_eq!(known(how, Became::Lost), None, "another machine has counted it");
        }
        let asked = |how, begun| ended(how, begun, true).outcome(Became::Lost);
        assert_eq!(asked(ran(), 1), Some(JobOutcome::Succeeded));
        assert_eq!(asked(failed(), 2), Some(JobOutcome::Failed));
        assert_eq!(asked(failed(), 3), Some(JobOutcome::Discarded));
        assert_eq!(asked(How::Freed(None), 3), Some(JobOutcome::Released));
    }
}
