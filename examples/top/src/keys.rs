//! The meanings of the keys.

use punctual::TaskHandle;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::job_order::JobOrder;

/// What the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Tasks,
    Jobs,
}

/// The command that a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Up,
    Down,
    First,
    Last,
    Tell(Order),
    TellJob(JobOrder),
    Show(Page),
    /// Moves a manual clock.
    Step,
    Panic,
    Quit,
}

/// An order for the selected task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    RunNow,
    Pause,
    Resume,
    Cancel,
}

impl Command {
    pub(crate) fn of(key: KeyEvent, page: Page) -> Option<Self> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            // The terminal is raw, so this is a key like any other, and no signal.
            return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Self::Quit);
        }
        let is_jobs = page == Page::Jobs;
        Some(match key.code {
            KeyCode::Char('1') => Self::Show(Page::Tasks),
            KeyCode::Char('2') => Self::Show(Page::Jobs),
            KeyCode::Char('r') if is_jobs => Self::TellJob(JobOrder::Retry),
            KeyCode::Char('d') if is_jobs => Self::TellJob(JobOrder::Discard),
            KeyCode::Char('x') if is_jobs => Self::TellJob(JobOrder::Remove),
            KeyCode::Char('p' | 'u' | 'c') if is_jobs => return None,
            KeyCode::Up | KeyCode::Char('k') => Self::Up,
            KeyCode::Down | KeyCode::Char('j') => Self::Down,
            KeyCode::Home => Self::First,
            KeyCode::End => Self::Last,
            KeyCode::Char('r') => Self::Tell(Order::RunNow),
            KeyCode::Char('p') => Self::Tell(Order::Pause),
            KeyCode::Char('u') => Self::Tell(Order::Resume),
            KeyCode::Char('c') => Self::Tell(Order::Cancel),
            KeyCode::Char(' ') => Self::Step,
            KeyCode::Char('!') => Self::Panic,
            KeyCode::Char('q') | KeyCode::Esc => Self::Quit,
            _ => return None,
        })
    }
}

impl Order {
    /// Gives the order, and returns what came of it.
    pub(crate) fn give(self, task: &TaskHandle) -> String {
        let (is_done, done, not_done) = match self {
            Self::RunNow => (task.run_now(), "runs now", "cannot run"),
            Self::Pause => (task.pause(), "is paused", "cannot be paused"),
            Self::Resume => (task.resume(), "goes on", "was not paused"),
            Self::Cancel => (task.cancel(), "is cancelled", "had ended"),
        };
        let name = task.name().unwrap_or_default();
        format!("{name} {}", if is_done { done } else { not_done })
    }
}
