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
    pub(crate) fn check(
        draft: Spanned<Self>,
        zone: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Job, Fault> {
        let place = draft.span();
        let draft = draft.into_inner();
        let schedule = draft.schedule(place, zone, text)?;
        let put_off = match &draft.jitter {
            Some(most) => jitter::span(draft.name.get_ref(), positive(most)?),
            None => Duration::ZERO,
        };
        let check = |retry: &Spanned<Attempts>| {
            retry.get_ref().check().map_err(|cause| Fault::at(retry.span(), cause))
        };
        Ok(Job {
            schedule,
            put_off,
            retry: draft.retry.as_ref().map(check).transpose()?,
            timeout: draft.timeout.as_ref().map(positive).transpose()?,
            may_overlap: draft.overlap.is_some_and(|overlap| *overlap.get_ref() == Overlap::Allow),
            name: printable(draft.name.get_ref()),
            command: draft.command,
        })
    }
}
