//! A program in a terminal: a real pseudo-terminal on one side, and on the other an emulator, which knows what the screen shows.
//!
//! A thread reads what the program writes and feeds the emulator. The program marks each frame that it draws as a synchronised
//! update, so a test sees whole frames and no halves of them: it waits for a frame that is as it should be, and fails with the last one if that does not come in time.

use std::{
    fmt::Debug,
    io::{Read, Write},
    num::NonZeroU16,
    process::Child,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use pty_process::{
    Size,
    blocking::{Command, Pts, Pty, open},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::tcgetattr,
};
use vt100::{Callbacks, Parser, Screen};

use crate::{
    patience::{Patience, TURN},
    program::path,
};

/// The content of the normal screen before the program starts.
const PROMPT: &str = "$ top";

/// A running program, and its terminal.
pub(crate) struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    /// Our hand on the program's end, which keeps the settings of the terminal when the program has gone.
    pts: Pts,
    /// These settings, as they were at first.
    settings: String,
    seen: Arc<Seen>,
    reader: JoinHandle<()>,
}

/// A program that has ended, and what it has left.
pub(crate) struct End {
    /// `None` if it was ended by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) screen: Screen,
    /// Everything that the program has written.
    pub(crate) written: Vec<u8>,
    is_as_before: bool,
}

#[derive(Default)]
struct Seen {
    state: Mutex<Option<State>>,
    changed: Condvar,
}

struct State {
    parser: Parser<Frames>,
    written: Vec<u8>,
}

/// The frames that the program has drawn.
#[derive(Default)]
struct Frames {
    last: Option<Screen>,
    count: u64,
}

impl Callbacks for Frames {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        command: char,
    ) {
        if (first, params, command) == (Some(b'?'), &[&[2026][..]][..], 'l') {
            self.last = Some(screen.clone());
            self.count += 1;
        }
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().expect("no thread panics under it")
    }

    /// Waits for something, and returns it.
    fn wait_for<T>(&self, what: impl Debug, mut find: impl FnMut(&State) -> Option<T>) -> T {
        let mut patience = Patience::new();
        let mut state = self.lock();
        loop {
            let now = state.as_ref().expect("it is there from the beginning");
            if let Some(found) = find(now) {
                return found;
            }
            let shown = lines(now.parser.screen()).join("\n");
            patience.go_on(format_args!("{what:?}; there is\n{shown}"));
            state = self.changed.wait_timeout(state, TURN).expect("no thread panics under it").0;
        }
    }
}

impl Terminal {
    /// Starts an example in a terminal of this many rows and columns.
    pub(crate) fn start(example: &str, args: &[&str], size: (u16, u16)) -> Self {
        Self::start_as("xterm-256color", example, args, size)
    }

    /// Starts it in a terminal that says that it is of this kind.
    pub(crate) fn start_as(kind: &str, example: &str, args: &[&str], size: (u16, u16)) -> Self {
        let command = Command::new(path(example)).args(args).env("TERM", kind);
        Self::spawn(command, size)
    }

    /// Starts a command, whose input and output are the terminal unless it says otherwise.
    pub(crate) fn spawn(command: Command, size: (u16, u16)) -> Self {
        let (pty, pts) = open().expect("there are pseudo-terminals");
        pty.resize(Size::new(size.0, size.1)).expect("it has a size");
        let settings = settings(&pty);
        let command = command.env("RUST_BACKTRACE", "0");
        let mut command = command.env_remove("NO_COLOR").env_remove("COLORTERM");
        let child = command.spawn_borrowed(&pts).expect("the example is built");
        let mut parser = Parser::new_with_callbacks(
            at_least_one(size.0),
            at_least_one(size.1),
            0,
            Frames::default(),
        );
        parser.process(format!("{PROMPT}\r\n").as_bytes());
        let seen = Arc::new(Seen::default());
        *seen.lock() = Some(State { parser, written: Vec::new() });
        let pty = Arc::new(pty);
        let (from, to) = (Arc::clone(&pty), Arc::clone(&seen));
        let reader = thread::spawn(move || read_all(&from, &to));
        Self { child, pty, pts, settings, seen, reader }
    }

    /// Types these bytes.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("the terminal is open");
    }

    /// Waits for a frame that is as `is_it` says.
    pub(crate) fn frame(&self, what: impl Debug, is_it: impl Fn(&[String]) -> bool) -> Screen {
        self.seen.wait_for(what, |state| {
            state.parser.callbacks().last.clone().filter(|frame| is_it(&lines(frame)))
        })
    }

    /// Waits for a frame with a line that contains all these parts.
    pub(crate) fn frame_with(&self, parts: &[&str]) -> Screen {
        let has = |line: &String| parts.iter().all(|part| line.contains(part));
        self.frame(parts, |lines| lines.iter().any(has))
    }

    /// Gives the terminal another size, and waits for the frame that is drawn for it.
    pub(crate) fn resize(&self, rows: u16, columns: u16) -> Screen {
        let size = (at_least_one(rows), at_least_one(columns));
        let mut state = self.seen.lock();
        let now = state.as_mut().expect("it is there");
        now.parser.set_size(size.0, size.1);
        let before = now.parser.callbacks().count;
        self.pty.resize(Size::new(rows, columns)).expect("it has a size");
        drop(state);
        // The next frame may have been under way.
        self.seen.wait_for((rows, columns), |state| {
            let frames = state.parser.callbacks();
            frames.last.clone().filter(|frame| frames.count > before && frame.size() == size)
        })
    }

    /// The number of frames that have been drawn.
    pub(crate) fn frames(&self) -> u64 {
        self.seen.lock().as_ref().map_or(0, |state| state.parser.callbacks().count)
    }

    pub(crate) fn is_raw(&self) -> bool {
        settings(&self.pty) != self.settings
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for the end of the program, and returns what it has left.
    pub(crate) fn end(mut self) -> End {
        let code = ended(&mut self.child);
        let settings = settings(&self.pty);
        // With the last hand on that end gone, the reader comes to the end of what was written.
        drop(self.pts);
        self.reader.join().expect("it reads to the end");
        let state = self.seen.lock().take().expect("it is there");
        let screen = state.parser.screen().clone();
        let is_as_before = settings == self.settings;
        End { code, screen, written: state.written, is_as_before }
    }
}

/// Starts a program in a terminal, closes the terminal when this is on its screen, as when a window is closed, and returns the
/// exit code of the program.
pub(crate) fn hung_up(example: &str, args: &[&str], on_screen: &str) -> Option<i32> {
    let (pty, pts) = open().expect("there are pseudo-terminals");
    pty.resize(Size::new(24, 80)).expect("it has a size");
    let command = Command::new(path(example)).args(args).env("TERM", "xterm-256color");
    let mut child = command.spawn(pts).expect("the example is built");
    let (mut written, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&written).contains(on_screen) {
        let count = (&pty).read(&mut part).expect("the program writes");
        written.extend_from_slice(&part[..count]);
    }
    drop(pty);
    ended(&mut child)
}

/// Waits for the end of a process, and returns its exit code.
fn ended(child: &mut Child) -> Option<i32> {
    let mut patience = Patience::new();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.code();
        }
        if !patience.lasts() {
            let _ = child.kill();
            panic!("it has not ended");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

impl End {
    /// Asserts that the terminal works as it did: its settings, the normal screen, the cursor, the colours.
    pub(crate) fn has_restored_modes(&self) {
        assert!(self.is_as_before, "the settings are others");
        assert!(!self.screen.alternate_screen(), "this is the alternate screen");
        assert!(!self.screen.hide_cursor(), "the cursor is hidden");
        assert!(!self.screen.bracketed_paste() && !self.screen.application_cursor());
        let plain = self.screen.fgcolor() == vt100::Color::Default && !self.screen.inverse();
        assert!(plain && !self.screen.bold(), "what follows would be coloured");
    }

    /// The same, and what was on the screen is there.
    pub(crate) fn has_restored(&self) {
        self.has_restored_modes();
        assert_eq!(lines(&self.screen)[0], PROMPT);
    }

    /// The same, and nothing else was written on the normal screen.
    pub(crate) fn has_left_nothing(&self) {
        self.has_restored();
        assert_eq!(self.screen.cursor_position(), (1, 0), "the cursor is where it was");
        assert!(lines(&self.screen)[1..].iter().all(String::is_empty), "{:?}", lines(&self.screen));
    }
}

/// The lines of a screen, without the spaces at their ends.
pub(crate) fn lines(screen: &Screen) -> Vec<String> {
    let columns = screen.size().1.get();
    screen.rows(0, columns).map(|line| line.trim_end().to_owned()).collect()
}

fn at_least_one(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has a size")
}

fn settings(pty: &Pty) -> String {
    format!("{:?}", tcgetattr(pty).expect("a terminal has settings"))
}

/// Feeds the emulator until the program's end of the terminal is closed.
fn read_all(mut from: &Pty, to: &Seen) {
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut part) {
        if let Some(state) = to.lock().as_mut() {
            state.parser.process(&part[..count]);
            state.written.extend_from_slice(&part[..count]);
        }
        to.changed.notify_all();
    }
}
