//! When a job runs: which keys of a job go together, and what they mean.
//!
//! Nothing that is written is without effect: a key that would say nothing is an error.

use std::{ops::Range, time::Duration};

use punctual::{
    MissedRuns,
    trigger::{Cron, cron},
};
use toml::Spanned;

use crate::{
    config::Schedule,
    draft::Draft,
    fault::{Fault, refuse},
    values::{Overlap, Readable, duration, positive},
};

impl Draft {
    pub(crate) fn schedule(
        &self,
        place: Range<usize>,
        zone: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Schedule, Fault> {
        let initial = self.initial.as_ref().map_or(Duration::ZERO, duration);
        if self.at.is_none() {
            refuse(&self.zone, "`zone` says nothing without `at`")?;
        }
        match (&self.after, &self.every, &self.delay, &self.at) {
            (Some(after), None, None, None) => {
                refuse(&self.initial, "`initial` says nothing beside `after`")?;
                self.refuse_what_a_plan_has()?;
                Ok(Schedule::After(duration(after)))
            }
            (None, Some(every), None, None) => {
                Ok(Schedule::Every { initial, period: positive(every)?, missed: self.missed()? })
            }
            (None, None, Some(delay), None) => {
                self.refuse_what_a_plan_has()?;
                Ok(Schedule::Delay { initial, delay: positive(delay)? })
            }
            (None, None, None, Some(at)) => {
                refuse(&self.initial, "`initial` says nothing beside `at`")?;
                let calendar = self.calendar(at, zone, text)?;
                let missed = self.missed()?;
                match (&self.on_missed, missed) {
                    (Some(value), MissedRuns::Delay) => Err(Fault::at(
                        value.span(),
                        "\"delay\" moves the runs after a late one, and those of a calendar stay \
                         where they are; use \"coalesce\"",
                    )),
                    _ => Ok(Schedule::At { calendar, missed }),
                }
            }
            _ => Err(self.not_one_kind(place)),
        }
    }

    fn calendar(
        &self,
        at: &Spanned<String>,
        default: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Cron, Fault> {
        let Some(zone) = self.zone.as_ref().or(default) else {
            return Err(Fault::at(
                at.span(),
                "`at` needs a time zone; write `zone = \"Europe/Berlin\"` in the job, or at the \
                 top of the file for all jobs",
            ));
        };
        cron(at.get_ref(), zone.get_ref()).map_err(|error| match error.span() {
            Some(_) => Fault::in_expression(at, &error, text),
            None => Fault::at(zone.span(), error.to_string()),
        })
    }

    /// The policy for missed runs. Those of a job that may not overlap are missed because of an
    /// earlier run, so `skip` and `queue` are names of policies.
    fn missed(&self) -> Result<MissedRuns, Fault> {
        let policy = match self.overlap.as_ref().map(Spanned::get_ref) {
            Some(Overlap::Skip) => MissedRuns::Skip,
            Some(Overlap::Queue) => MissedRuns::Burst,
            Some(Overlap::Allow) | None => {
                let given = self.on_missed.as_ref().map(|missed| missed.get_ref().0);
                return Ok(given.unwrap_or(MissedRuns::Coalesce));
            }
        };
        refuse(
            &self.on_missed,
            "`overlap` says already what becomes of missed runs; leave out one of the two",
        )?;
        Ok(policy)
    }

    /// Of a job whose next run depends on the end of the one before, or that has only one.
    fn refuse_what_a_plan_has(&self) -> Result<(), Fault> {
        refuse(&self.on_missed, "`on_missed` says nothing without `every` or `at`")?;
        refuse(&self.overlap, "`overlap` says nothing without `every` or `at`")?;
        refuse(&self.jitter, "`jitter` says nothing without `every` or `at`")
    }

    /// Points at the surplus kind of schedule, or at the job that has none.
    fn not_one_kind(&self, place: Range<usize>) -> Fault {
        let span = |value: &Option<Spanned<Readable>>| Some(value.as_ref()?.span());
        let kinds = [
            ("`after`", span(&self.after)),
            ("`every`", span(&self.every)),
            ("`delay`", span(&self.delay)),
            ("`at`", self.at.as_ref().map(Spanned::span)),
        ];
        let mut given: Vec<_> =
            kinds.into_iter().filter_map(|(kind, span)| Some((span?, kind))).collect();
        given.sort_by_key(|(span, _)| span.start);
        let names: Vec<_> = given.iter().map(|(_, kind)| *kind).collect();
        let found = match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(" and "),
        };
        let cause =
            format!("a job has exactly one of `after`, `every`, `delay`, `at`; this has {found}");
        Fault::at(given.pop().map_or(place, |(span, _)| span), cause)
    }
}
