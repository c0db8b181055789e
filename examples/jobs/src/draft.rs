//! A job as it is written in the file. What it says of when the job runs has its rules in `schedule.rs`.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::{
    config::Job,
    fault::Fault,
    jitter,
    retry::Attempts,
    values::{OnMissed, Overlap, Readable, positive, printable},
};

/// A job as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draft {
    pub(crate) name: Spanned<String>,
    command: String,
    pub(crate) after: Option<Spanned<Readable>>,
    pub(crate) every: Option<Spanned<Readable>>,
    pub(crate) delay: Option<Spanned<Readable>>,
    pub(crate) at: Option<Spanned<String>>,
    pub(crate) zone: Option<Spanned<String>>,
    pub(crate) initial: Option<Spanned<Readable>>,
    pub(crate) jitter: Option<Spanned<Readable>>,
    #[serde(alias = "missed")]
    pub(crate) on_missed: Option<Spanned<OnMissed>>,
    pub(crate) overlap: Option<Spanned<Overlap>>,
    timeout: Option<Spanned<Readable>>,
    retry: Option<Spanned<Attempts>>,
}

impl Draft {
    /// Returns the job, unless it has faults, which are added to those of the file.
    pub(crate) fn check(
        draft: Spanned<Self>,
        zone: Option<&Spanned<String>>,
        text: &str,
        faults: &mut Vec<Fault>,
    ) -> Option<Job> {
        let place = draft.span();
        let draft = draft.into_inner();
        let check = |retry: &Spanned<Attempts>| {
            retry.get_ref().check().map_err(|cause| Fault::at(retry.span(), cause))
        };
        let schedule = kept(draft.schedule(place, zone, text), faults);
        let jitter = kept(draft.jitter.as_ref().map(positive).transpose(), faults);
        let retry = kept(draft.retry.as_ref().map(check).transpose(), faults);
        let timeout = kept(draft.timeout.as_ref().map(positive).transpose(), faults);
        let most = jitter?;
        Some(Job {
            schedule: schedule?,
            put_off: most.map_or(Duration::ZERO, |most| jitter::span(draft.name.get_ref(), most)),
            retry: retry?,
            timeout: timeout?,
            may_overlap: draft.overlap.is_some_and(|overlap| *overlap.get_ref() == Overlap::Allow),
            name: printable(draft.name.get_ref()),
            command: draft.command,
        })
    }
}

/// Returns what has been understood, and keeps the fault if nothing has.
fn kept<T>(checked: Result<T, Fault>, faults: &mut Vec<Fault>) -> Option<T> {
    checked.map_err(|fault| faults.push(fault)).ok()
}
