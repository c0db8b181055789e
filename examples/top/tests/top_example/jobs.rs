//! The page of jobs: as text, drawn, and its keys.

use vt100::Screen;

use crate::{SIZE, Terminal, program::Program};

/// The program on the manual clock, with its page of jobs drawn.
fn manual() -> Terminal {
    let terminal = Terminal::start("top", &["--manual", "--jobs"], SIZE);
    terminal.frame_with(&["invoice", "in 1 h"]);
    terminal
}

/// Waits for the frame that is in the file.
fn shows(terminal: &Terminal, name: &str, file: &str) -> Screen {
    let expected: Vec<_> = file.lines().map(str::to_owned).collect();
    terminal.frame(name, |lines| {
        let rest = lines.get(expected.len()..).unwrap_or_default();
        lines.starts_with(&expected) && rest.iter().all(String::is_empty)
    })
}

/// The page after two and after five seconds, word for word: the manual clock makes it exact.
#[test]
fn as_text_it_is_exact() {
    let end = Program::start("top", ["--jobs", "--manual", "--every=2s", "--for=5s"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let lines: Vec<_> = end.stdout.iter().map(|line| line.trim_end()).collect();
    let heads = lines.iter().filter_map(|line| line.strip_prefix("after "));
    assert_eq!(
        heads.collect::<Vec<_>>(),
        ["2.0 s: jobs in memory", "4.0 s: jobs in memory", "5.0 s: jobs in memory"]
    );
    let text = lines.join("\n");
    let last = text.find("after 5.0 s").expect("it is there");
    assert_eq!(text[last..].trim_end(), include_str!("screens/jobs_plain.txt").trim_end());
}

/// The first frame of the page and the one three seconds later; a narrow terminal shows fewer tables and columns.
#[test]
fn the_page_is_as_drawn() {
    let terminal = manual();
    shows(&terminal, "start", include_str!("screens/jobs_start.txt"));
    terminal.press("   ");
    shows(&terminal, "after three seconds", include_str!("screens/jobs_later.txt"));
    terminal.resize(10, 40);
    shows(&terminal, "a narrow one", include_str!("screens/jobs_small.txt"));
    terminal.press("q");
    terminal.end().has_restored_modes();
}

/// Every size is drawn, and the program lives.
#[test]
fn no_size_is_too_small_for_jobs() {
    let terminal = manual();
    for (rows, columns) in (1..=26).flat_map(|rows| [1, 13, 34, 200].map(|it| (rows, it))) {
        terminal.resize(rows, columns);
    }
    terminal.resize(SIZE.0, SIZE.1);
    shows(&terminal, "start", include_str!("screens/jobs_start.txt"));
    terminal.signal(rustix::process::Signal::TERM);
    terminal.end().has_restored_modes();
}

/// `2` opens the queue and shows its jobs, `1` shows the tasks again; the queue goes on meanwhile, and is not opened again.
#[test]
fn a_key_shows_the_other_page() {
    let terminal = crate::manual();
    terminal.frame_with(&["7 submitted"]);
    terminal.press("2");
    terminal.frame_with(&["jobs in memory"]);
    terminal.frame_with(&["1 tasks", "q quit"]);
    terminal.press("1");
    terminal.frame_with(&["running, for 0"]);
    terminal.press("     2");
    terminal.frame_with(&["mail", "discarded", "no such mailbox"]);
    terminal.press("22");
    terminal.press("q");
    terminal.end().has_left_nothing();
}

/// A wide terminal has room for the key in the footer of the tasks.
#[test]
fn the_footer_names_the_page() {
    let terminal = Terminal::start("top", &["--manual"], (24, 100));
    terminal.frame_with(&["q quit", "2 jobs"]);
    terminal.press("q");
    terminal.end().has_left_nothing();
}

/// `d` discards the selected job, `r` makes it due, and `x` removes it; the selection stays with the job. None of them removes or
/// starts one that runs.
#[test]
fn keys_change_the_selected_job() {
    let terminal = manual();
    let steps = [
        ("\x1b[Fd", "job 6: discarded"),
        ("r", "job 6: due"),
        ("x", "job 6: removed"),
        ("\x1b[Hx", "job 1: running, and not removed"),
        ("r", "job 1: running already"),
        ("d", "job 1: asked to stop"),
    ];
    for (keys, said) in steps {
        terminal.press(keys);
        terminal.frame_with(&[said]);
    }
    terminal.frame_with(&["1 mail", "discarded", "the wait was interrupted"]);
    terminal.press("q");
    terminal.end().has_left_nothing();
}
