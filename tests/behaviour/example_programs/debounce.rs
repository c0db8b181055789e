//! The notepad that saves when typing stops.

use std::fs;

use crate::support::program::{Program, TempFile};

/// A hundred lines that come together are not saved a hundred times, and they are saved while the input is
/// still open.
#[test]
fn lines_that_come_together_are_saved_together() {
    let file = TempFile::new("txt", "before\n");
    let mut note = Program::start_with_input("debounce", [file.path()]);
    let lines: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    note.type_in(&lines);
    let mut saved = 0;
    let mut saves = 0;
    while saved < 100 {
        let line = note.read_until("saved, with ");
        saved += line.split(' ').nth(2).and_then(|count| count.parse().ok()).unwrap_or(0);
        saves += 1;
    }
    assert!(saves < 50, "saved {saves} times");
    let read = || fs::read_to_string(file.path()).expect("it is saved");
    assert_eq!(read(), format!("before\n{lines}"));

    // At the end of the input nothing is left unsaved.
    note.type_in("the last\n");
    let end = note.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert_eq!(read(), format!("before\n{lines}the last\n"));
}

#[test]
fn what_cannot_be_saved_is_reported() {
    let mut note = Program::start_with_input("debounce", ["no/such/folder/note.txt"]);
    note.type_in("lost\n");
    let end = note.end();
    assert_eq!((end.code, end.stdout.len()), (Some(1), 0), "{end:?}");
    assert!(end.stderr.contains("error: no/such/folder/note.txt: No such file"), "{end:?}");

    let end = Program::start("debounce", [""; 0]).end();
    assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{end:?}");
    assert!(end.stderr.contains("there is no FILE") && end.stderr.contains("Usage: "), "{end:?}");
}
