//! If no program listens, the queue reports a server that is away, or that refuses its statements, by a line on standard
//! error, and by another one each minute while that goes on.
//!
//! Nothing runs in that state, and no caller is told, so a missing grant would look like a queue without jobs. Other events are
//! about single jobs and ticks; a program that wants them [listens](crate::Postgres::on_event).

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::settings::QueueEvent;
use crate::job::jobs::print_line;

const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// When the last line was printed.
#[derive(Default)]
pub(super) struct Unheard(Mutex<Option<Instant>>);

impl Unheard {
    pub(super) fn note(&self, event: &QueueEvent) {
        if self.is_to_be_said(event, Instant::now()) {
            print_line(&event.to_string());
        }
    }

    fn is_to_be_said(&self, event: &QueueEvent, now: Instant) -> bool {
        if !matches!(event, QueueEvent::ServerAway { .. } | QueueEvent::ServerRefused { .. }) {
            return false;
        }
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= BETWEEN_LINES);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_away_is_said_once_a_minute() {
        let (unheard, begun) = (Unheard::default(), Instant::now());
        let away = QueueEvent::ServerAway { error: "no route".to_owned() };
        let refused = QueueEvent::ServerRefused { error: "permission denied".to_owned() };
        let is_said =
            |event, seconds| unheard.is_to_be_said(event, begun + Duration::from_secs(seconds));
        let lost = QueueEvent::ClaimLost { id: crate::JobId(1) };
        assert!(!is_said(&lost, 0));
        let said = [0, 1, 59, 60, 61, 119, 125].map(|seconds| is_said(&away, seconds));
        assert_eq!(said, [true, false, false, true, false, false, true]);
        assert!(!is_said(&refused, 126));
        assert!(is_said(&refused, 185));
    }
}
