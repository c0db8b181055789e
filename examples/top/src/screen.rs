//! The terminal, which is left as it was, however the program ends.
//!
//! A [`Screen`] switches to the alternate screen and to raw mode, and back when it is dropped. A panic would print its message onto
//! the alternate screen, where it is gone a moment later; so the panic hook restores the terminal first. A panic
//! *of a task* is another matter: the executor contains it, the view shows it, and its message would only be
//! written across the table. [`current_task`] tells the two apart.
//!
//! A signal does not end the program at once (`main.rs`), so it ends as after a key. It may have come because the
//! terminal has gone; then the thread that reads keys may find the end of the input again and again, and not come back
//! (crossterm 0.29 does that). So the thread that has the signal insists, after a while.

use std::{
    io::{self, Stdout},
    mem, panic, process,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use punctual::current_task;
use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        execute,
        terminal::{
            BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen,
            LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        },
    },
};

/// How long the program has to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// True while the terminal is not as it was.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// `None` once it is dropped.
pub(crate) struct Screen(Option<Terminal<CrosstermBackend<Stdout>>>);

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        // First, so that whatever fails below is undone.
        let screen = Self(Some(terminal));
        IS_OPEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Draws what has changed, and hides the cursor. A terminal that knows how shows it in one piece.
    pub(crate) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        if let Some(terminal) = &mut self.0 {
            terminal.draw(view)?;
        }
        execute!(io::stdout(), EndSynchronizedUpdate)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        // A `Terminal` shows its cursor when it is dropped, and says on standard error that it could not. That
        // panics if standard error has gone with the terminal.
        let Some(mut terminal) = self.0.take() else { return };
        if terminal.show_cursor().is_err() {
            mem::forget(terminal);
        }
    }
}

/// Leaves the terminal as it was; once.
fn restore() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        // If it cannot be written any more, there is nothing to restore.
        let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Ends the program if it has not ended by itself soon.
pub(crate) fn insist() {
    thread::sleep(GRACE);
    restore();
    process::exit(1);
}

/// Keeps the messages of panics off the table.
pub(crate) fn keep_panics_off() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if current_task().is_none() {
            restore();
            print(panic);
        }
    }));
}
