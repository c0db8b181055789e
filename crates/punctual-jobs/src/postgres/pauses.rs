//! Pauses of kinds: a row for each kind that is paused, or was.
//!
//! The statements that claim jobs leave out the kinds for which there is a row whose moment has not come. A row is read
//! and not locked, so no claim waits for a pause, and no pause for a claim. A pause that has ended by itself leaves its row, which the
//! next pause of the kind takes over: there are as many rows as kinds.

use super::{connection::AskError, machine::Machine, moment::moment};
use crate::When;

/// $1 kind, $2 moment, $3 delay in seconds; without either the pause has no end.
const PAUSE: &str = "\
insert into @schema.job_pause (name, until)
values ($1, coalesce($2, clock_timestamp() + make_interval(secs => $3), 'infinity'))
on conflict (name) do update set until = excluded.until";

/// $1 kind. A row if it was paused.
const RESUME: &str = "\
with gone as (
  delete from @schema.job_pause where name = $1 returning until
)
select @notify('') from gone where until > clock_timestamp()";

impl Machine {
    pub(super) async fn pause(&self, kind: &str, until: Option<When>) -> Result<(), AskError> {
        let clock = self.executor.clock();
        let (time, delay) = until.map_or((None, None), |until| moment(until, clock));
        self.ask(PAUSE, &[&kind, &time, &delay]).await?;
        if let Some(until) = until {
            self.wake_when_due(until);
        }
        Ok(())
    }

    pub(super) async fn resume(&self, kind: &str) -> Result<bool, AskError> {
        Ok(!self.ask(RESUME, &[&kind]).await?.is_empty())
    }
}
