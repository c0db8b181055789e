//! Without a terminal, or on a dumb one.

use std::{fs, process::Stdio};

use pty_process::blocking::Command;

use crate::{
    SIZE, Terminal,
    program::{End, Program, TempFile, full_disk, path, some_end},
    terminal::lines,
};

/// The table after five seconds, word for word: the manual clock makes it exact.
const TABLE: &str = include_str!("screens/plain.txt");

/// Into a pipe it prints one table, as text, and ends.
#[test]
fn into_a_pipe_it_prints_text() {
    let end = Program::start("top", ["--manual", "--every", "5s"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let lines: Vec<_> = end.stdout.iter().map(|line| line.trim_end()).collect();
    assert_eq!(lines.join("\n").trim_end(), TABLE.trim_end());
}

/// With a time, it prints one after each period, and the last one at the end.
#[test]
fn it_prints_as_often_as_it_is_told() {
    let end = Program::start("top", ["--manual", "--every=2s", "--for=5s"]).end();
    let heads =
        end.stdout.iter().filter_map(|line| line.split_once(": ")?.0.strip_prefix("after "));
    assert_eq!(heads.collect::<Vec<_>>(), ["2.0 s", "4.0 s", "5.0 s"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    // On the system clock too.
    let run = |factor| {
        let [every, time] = [50, 120].map(|millis| millis * factor);
        Program::start("top", [format!("--every={every}ms"), format!("--for={time}ms")]).end()
    };
    let heads = |end: &End| end.stdout.iter().filter(|line| line.starts_with("after ")).count();
    some_end(run, |end| (end.code, heads(end)) == (Some(0), 3));
}

/// A dumb terminal gets text without a single control sequence, and so does one that says nothing about itself.
#[test]
fn a_dumb_terminal_gets_text() {
    for kind in ["dumb", ""] {
        let end = Terminal::start_as(kind, "top", &["--manual"], SIZE).end();
        assert_eq!(end.code, Some(0));
        end.has_restored();
        assert!(!end.written.contains(&0x1b), "{:?}", String::from_utf8_lossy(&end.written));
        assert!(lines(&end.screen).iter().any(|line| line.contains("renewal")));
    }
    let end = Terminal::start("top", &["--manual", "--plain"], SIZE).end();
    assert!(!end.written.contains(&0x1b) && end.code == Some(0));
}

/// It takes both a terminal to draw on and one to read keys from: with one of them alone it prints text.
#[test]
fn half_a_terminal_is_none() {
    let command =
        || Command::new(path("top")).args(["--manual", "--every=5s"]).env("TERM", "xterm-256color");
    let end = Terminal::spawn(command().stdin(Stdio::null()), SIZE).end();
    assert_eq!(end.code, Some(0));
    assert!(!end.written.contains(&0x1b), "{:?}", String::from_utf8_lossy(&end.written));
    assert!(lines(&end.screen).iter().any(|line| line.contains("renewal")));

    let file = TempFile::new("txt", "");
    let output = fs::File::create(file.path()).expect("it can be written");
    let end = Terminal::spawn(command().stdout(output), SIZE).end();
    assert_eq!(end.code, Some(0));
    end.has_left_nothing();
    let text = fs::read_to_string(file.path()).expect("it was written");
    assert_eq!(text.trim_end(), TABLE.trim_end());
}

/// Ctrl-C ends it at once, whatever it waits for.
#[test]
fn an_interrupt_ends_it() {
    let mut program = Program::start("top", ["--every", "1s", "--for", "1h"]);
    program.read_until("after ");
    program.interrupt();
    let end = program.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
}

/// A reader that has gone ends it quietly, and a full disk with an error.
#[test]
fn output_that_cannot_be_written_ends_it() {
    let mut program = Program::start("top", ["--manual", "--every", "1s", "--for", "10000h"]);
    program.read_until("after ");
    program.stop_reading();
    let end = program.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let end = Program::start_into(full_disk(), "top", ["--manual"]).end();
    assert_eq!(end.code, Some(1), "{end:?}");
    assert!(end.stderr.starts_with("error: cannot write the output: "), "{end:?}");
}

/// Nothing at all: no input, no output, no terminal.
#[test]
fn it_runs_with_nothing() {
    let end = Program::start_into(Stdio::null(), "top", ["--manual"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
}

/// A command line that cannot be understood ends with exit code 2, and the usage is shown when asked for.
#[test]
fn a_wrong_command_line_is_refused() {
    for (args, cause) in [
        (&["--nope"][..], "unknown option --nope"),
        (&["now"], "unknown argument now"),
        (&["--every"], "--every wants a duration"),
        (&["--every", "soon"], "--every: bad duration \"soon\""),
        (&["--every", "0s"], "--every: it must be more than zero"),
        (&["--for=0ms"], "--for: it must be more than zero"),
    ] {
        let end = Program::start("top", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
    let help = Program::start("top", ["-h"]).end();
    assert!(help.code == Some(0) && help.has_line(&["Usage: top"]), "{help:?}");
}
