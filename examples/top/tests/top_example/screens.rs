//! The contents of the screen.

use rustix::process::Signal;
use vt100::Color;

use crate::{SIZE, Terminal, manual, terminal::lines};

/// Waits for the frame that is in the file.
fn shows(terminal: &Terminal, name: &str, file: &str) -> vt100::Screen {
    let expected: Vec<_> = file.lines().map(str::to_owned).collect();
    terminal.frame(name, |lines| {
        let rest = lines.get(expected.len()..).unwrap_or_default();
        lines.starts_with(&expected) && rest.iter().all(String::is_empty)
    })
}

const START: &str = include_str!("screens/start.txt");

/// The first frame, and the one five seconds later.
#[test]
fn the_screen_is_as_drawn() {
    let terminal = manual();
    shows(&terminal, "start", START);
    terminal.press("     ");
    terminal.press("jj");
    shows(&terminal, "after five seconds", include_str!("screens/later.txt"));
    terminal.press("q");
    terminal.end().has_left_nothing();
}

/// Colours mean something: the selected task is reversed, the paused one yellow, the running one green, and so are bars of no lateness.
#[test]
fn colours_say_what_they_say() {
    let terminal = manual();
    terminal.press("   ");
    let frame = terminal.frame_with(&["running, for 3.0 s"]);
    let lines = lines(&frame);
    let cell = |task: &str, column: u16| {
        let row = lines.iter().position(|line| line.contains(task)).expect("it is there");
        frame.cell(u16::try_from(row).expect("it is few"), column).expect("it is inside")
    };
    let state = 15;
    assert!(cell("> heartbeat", 4).inverse() && !cell("metrics", 4).inverse());
    assert_eq!(cell("cleanup", state).fgcolor(), Color::Idx(3), "{lines:?}");
    assert_eq!(cell("import", state).fgcolor(), Color::Idx(2), "{lines:?}");
    assert_eq!(cell("renewal", state).fgcolor(), Color::Default);
    assert!(cell("next run", 4).bold());
}

/// A smaller terminal shows less, and what it shows is whole. (A signal for a new size may be lost in crossterm 0.29, if it comes
/// together with another; the next look draws for the new size as well.)
#[test]
fn a_smaller_terminal_shows_less() {
    let terminal = manual();
    for (size, file) in [
        ((16, 80), include_str!("screens/without_bars.txt")),
        ((10, 40), include_str!("screens/small.txt")),
        ((3, 24), include_str!("screens/tiny.txt")),
    ] {
        terminal.resize(size.0, size.1);
        shows(&terminal, &format!("{size:?}"), file);
    }
    terminal.resize(SIZE.0, SIZE.1);
    shows(&terminal, "start", START);
}

/// Every size is drawn, down to a single cell, and the program lives; in the end all is there again.
#[test]
fn no_size_is_too_small() {
    let terminal = manual();
    let sizes = (1..=26).flat_map(|rows| [1, 3, 13, 34, 200].map(|columns| (rows, columns)));
    for (rows, columns) in sizes {
        terminal.resize(rows, columns);
    }
    terminal.resize(SIZE.0, SIZE.1);
    shows(&terminal, "start", START);
    // Not by a key: crossterm 0.29 may leave one that comes together with a new size until the next one comes.
    terminal.signal(Signal::TERM);
    // The emulator has forgotten what did not fit.
    terminal.end().has_restored_modes();
}

/// Without a change on a manual clock, the frames are drawn and nothing is written for them but their marks.
#[test]
fn a_frame_without_news_writes_next_to_nothing() {
    let terminal = Terminal::start("top", &["--manual", "--every", "10ms"], SIZE);
    terminal.frame_with(&["renewal"]);
    let begun = terminal.frames();
    while terminal.frames() < begun + 20 {
        std::thread::yield_now();
    }
    terminal.press("q");
    let end = terminal.end();
    end.has_left_nothing();
    // The first frame is some 2,400 bytes; each later one has two marks and hides the cursor.
    let written = end.written.len();
    assert!(written < 8_000, "{written} bytes in some twenty frames");
}
