//! The picture in the documents: what the program shows after some seconds on the system clock, with both workers at
//! work.
//!
//! ```text
//! PUNCTUAL_WRITE_PICTURE=1 cargo test -p top picture
//! ```
//!
//! draws it again. Without that variable the run is shorter, and the picture of it is compared with the one in the
//! documents in everything but the numbers.

use std::{env, fs, path::Path};

use crate::{SIZE, Terminal, svg, terminal::lines};

/// Runs the program until the heartbeat has run so often and both workers are busy, and returns the picture of its
/// screen.
fn picture_after(runs: u32) -> String {
    let terminal = Terminal::start("top", &[], SIZE);
    let frame = terminal.frame(runs, |lines| {
        let line = lines.iter().find(|line| line.contains("> heartbeat"));
        let words: Vec<_> = line.into_iter().flat_map(|line| line.split_whitespace()).collect();
        // The frame, the failures and the runs, from the right.
        let shown = words.iter().rev().nth(2).and_then(|word| word.parse::<u32>().ok());
        let is_busy = lines.iter().any(|line| line.contains(" 2 active,"));
        is_busy && shown.is_some_and(|shown| shown >= runs)
    });
    assert_eq!(lines(&frame).len(), usize::from(SIZE.0));
    terminal.press("q");
    terminal.end().has_left_nothing();
    svg::draw(&frame)
}

/// The content of a picture, without its numbers: the words of each text that has no digit.
fn words(picture: &str) -> Vec<String> {
    let texts = picture.split("<text ").skip(1).filter_map(|text| text.split(['>', '<']).nth(1));
    let words =
        texts.flat_map(str::split_whitespace).filter(|word| word.chars().all(char::is_alphabetic));
    // The state of a task, its lateness, and whether something has failed yet, differ from run to run.
    let changing = ["waits", "runs", "paused", "completed", "µs", "ms", "s", "min", "h"];
    let words = words.filter(|word| !changing.contains(word)).map(str::to_owned);
    words.collect()
}

/// The picture in the documents shows the program as it is.
#[test]
fn the_picture_shows_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/top.svg");
    if env::var_os("PUNCTUAL_WRITE_PICTURE").is_some() {
        fs::write(&path, picture_after(20)).expect("it can be written");
    }
    let kept = fs::read_to_string(path).expect("the picture");
    let drawn = picture_after(3);
    let until_failure = |picture: &str| {
        let mut words = words(picture);
        // The last failure is there once the mail has failed.
        if let Some(place) = words.windows(2).position(|pair| pair == ["last", "failure"]) {
            let end = words.iter().skip(place).position(|word| word == "↑↓" || word == "select");
            words.drain(place..place + end.expect("the help comes after it"));
        }
        words
    };
    let style = |picture: &str| picture.split_once("</style>").map(|(style, _)| style.to_owned());
    assert_eq!(until_failure(&kept), until_failure(&drawn));
    assert_eq!(style(&kept), style(&drawn));
    assert!(words(&kept).iter().any(|word| word == "heartbeat"), "{kept}");
}
