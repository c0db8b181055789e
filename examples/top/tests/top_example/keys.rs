//! The effects of the keys.

use rustix::process::Signal;

use crate::{Terminal, manual, terminal::lines};

/// The line of a task in a frame that contains all these parts.
fn task(terminal: &Terminal, parts: &[&str]) {
    terminal.frame_with(parts);
}

/// `r` runs the selected task now, once more than its schedule says.
#[test]
fn r_runs_a_task_now() {
    let terminal = manual();
    task(&terminal, &["> heartbeat", "waits", "200 ms", "1      0"]);
    terminal.press("r");
    task(&terminal, &["heartbeat runs now"]);
    task(&terminal, &["> heartbeat", "waits", "200 ms", "2      0"]);
    // The last one waits for an hour; it runs now, and not again.
    terminal.press("\x1b[Fr");
    task(&terminal, &["> renewal", "completed", "–", "1      0"]);
    terminal.press("r");
    task(&terminal, &["renewal cannot run"]);
    // One that is paused runs as well, and stays paused; it takes a while, so the clock has to move.
    terminal.press("kkr ");
    task(&terminal, &["> cleanup", "paused", "–", "10 ms", "1      0"]);
}

/// `p` keeps the task from running, and `u` has it go on.
#[test]
fn p_pauses_and_u_resumes() {
    let terminal = manual();
    terminal.press("p");
    task(&terminal, &["heartbeat is paused"]);
    task(&terminal, &["> heartbeat", "paused", "–", "1      0"]);
    terminal.press("  ");
    task(&terminal, &["running, for 2.0 s"]);
    task(&terminal, &["> heartbeat", "paused", "–", "1      0"]);
    terminal.press("u");
    task(&terminal, &["heartbeat goes on"]);
    // One run for all that were missed, late by what it waited for.
    task(&terminal, &["> heartbeat", "waits", "200 ms", "1.8 s", "2      0"]);
    terminal.press("u");
    task(&terminal, &["heartbeat was not paused"]);
}

/// `c` cancels the task, which cannot be told anything after that.
#[test]
fn c_cancels_a_task() {
    let terminal = manual();
    terminal.press("jc");
    task(&terminal, &["metrics is cancelled"]);
    task(&terminal, &["> metrics", "cancelled", "–"]);
    task(&terminal, &["6 pending", "1 cancelled"]);
    for (key, said) in [
        ("c", "metrics had ended"),
        ("p", "metrics cannot be paused"),
        ("u", "metrics was not paused"),
        ("r", "metrics cannot run"),
    ] {
        terminal.press(key);
        task(&terminal, &[said]);
    }
    terminal.press("  ");
    let frame = terminal.frame_with(&["running, for 2.0 s"]);
    let line =
        lines(&frame).into_iter().find(|line| line.contains("metrics")).expect("it is listed");
    assert!(line.trim_end_matches([' ', '│']).ends_with("0      0"), "it has not run: {line}");
}

/// The arrows, `j`, `k`, Home and End move the selection, which stops at both ends; other keys do nothing.
#[test]
fn the_selection_moves() {
    let terminal = manual();
    for (keys, name) in [
        ("\x1b[A", "heartbeat"),
        ("\x1b[B", "metrics"),
        ("j", "mail"),
        ("k", "metrics"),
        ("\x1b[F", "renewal"),
        ("\x1b[Bj", "renewal"),
        ("\x1b[A", "import"),
        ("xyz?\t\r\x1b[5~\x1b[C\x1b[D\x12", "import"),
        ("\x1b[H", "heartbeat"),
        ("kk", "heartbeat"),
    ] {
        terminal.press(keys);
        terminal.frame_with(&[&format!("> {name}")]);
        terminal.frame_with(&["Lateness of ", name]);
    }
}

/// Keys that are typed faster than frames are drawn are not lost.
#[test]
fn keys_are_not_lost() {
    let terminal = manual();
    terminal.press(&" ".repeat(50));
    terminal.frame_with(&["running, for 50 s"]);
    terminal.press(&"jk".repeat(100));
    terminal.press("j");
    terminal.frame_with(&["> metrics"]);
}

/// On the system clock it runs by itself, and the space bar does nothing.
#[test]
fn on_the_system_clock_it_runs_by_itself() {
    let terminal = Terminal::start("top", &["--every", "20ms"], crate::SIZE);
    let frame = terminal.frame("ten runs of the heartbeat", |lines| {
        let line = lines.iter().find(|line| line.contains("> heartbeat"));
        let words: Vec<_> = line.into_iter().flat_map(|line| line.split_whitespace()).collect();
        // The frame, the runs and the failures are last.
        words.len() > 4 && words[words.len() - 3].parse::<u32>().is_ok_and(|runs| runs >= 10)
    });
    assert!(!lines(&frame).iter().any(|line| line.contains("space")), "{:?}", lines(&frame));
    terminal.signal(Signal::INT);
    terminal.end().has_left_nothing();
}
