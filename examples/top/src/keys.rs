//! The meanings of the keys.

use punctual::TaskHandle;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The command that a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Up,
    Down,
    First,
    Last,
    Tell(Order),
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
    pub(crate) fn of(key: KeyEvent) -> Option<Self> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            // The terminal is raw, so this is a key like any other, and no signal.
            return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Self::Quit);
        }
        Some(match key.code {
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
