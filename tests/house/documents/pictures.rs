//! The pictures of the documents, `docs/pictures`, are plain files that are edited by hand. These tests say what is wrong
//! with one.
//!
//! Each picture is well-formed, a document shows it, and every text has room. The names in it are names from the source. A
//! picture is 600 units wide, its text is 14 or 16 units high, and its colours are classes, with other values for a dark
//! page. `missed-runs` and `gate` show real runs,
//! and the arrows between states are the moves of real tasks and executors: `tests/behaviour/pictures`.
//!
//! The pictures of measurements are written by `benches/peers`, and that of the program `top` by its tests. A browser looks
//! at all of them: `ci/look.sh`.

use std::{collections::BTreeSet, fs};

use super::{
    documents, page, read_all, root,
    svg::{Element, boxes, picture},
};

/// The pictures that programs write: those of measurements, and that of a screen.
const WRITTEN: [&str; 3] = ["lateness", "schedule-and-cancel", "top"];

/// An enumeration whose variants a picture shows, by the picture and by its source. Either the boxes are the variants and
/// nothing else, or the variants are among the names.
const ENUMERATIONS: [(&str, &str, &str, bool); 3] = [
    ("task-states", "src/task/state.rs", "TaskState", true),
    ("pool-states", "src/inspecting.rs", "ExecutorState", true),
    ("pool-states", "src/pool/lifecycle.rs", "Phase", false),
];

/// The names of all pictures.
fn pictures() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("docs/pictures")).expect("the pictures");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let names = names.map(|name| name.strip_suffix(".svg").expect("only pictures").to_owned());
    names.collect()
}

/// The pictures that are edited by hand.
fn by_hand() -> impl Iterator<Item = String> {
    pictures().into_iter().filter(|name| !WRITTEN.contains(&name.as_str()))
}

/// How wide a text is at most, with the wide fonts of Debian.
fn width(text: &Element) -> f32 {
    let letter = match (text.has_class("title"), text.has_class("code"), text.has_class("small")) {
        (true, ..) => 11.2,
        (_, true, false) => 9.7,
        (_, true, true) => 8.5,
        _ => 7.9,
    };
    letter * text.text.chars().count() as f32
}

/// The names of the source in a picture: of `RunGate::enter` and of `shutdown, close` each has two. A single letter
/// is the name of a machine.
pub(crate) fn names(elements: &[Element]) -> BTreeSet<String> {
    let texts =
        elements.iter().filter(|element| element.name == "text" && element.has_class("code"));
    let pieces = texts.flat_map(|text| text.text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let names = pieces.filter(|name| name.len() > 1 && name.starts_with(char::is_alphabetic));
    names.map(str::to_owned).collect()
}

/// Returns `true` if the sources declare that name: an item, a module, a variant, a field, or a word that a comment
/// introduces.
fn is_declared(sources: &str, name: &str) -> bool {
    let ends = |after: &str| !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    let kinds = ["fn", "struct", "enum", "trait", "type", "mod"];
    let is_item = kinds.iter().any(|kind| {
        let item = format!("{kind} {name}");
        sources.split(item.as_str()).skip(1).any(ends)
    });
    let is_type = name.starts_with(char::is_uppercase);
    let is_part = |line: &str| {
        let after = line.trim_start().strip_prefix(name);
        after.is_some_and(|after| match is_type {
            true => after.is_empty() || after.starts_with([',', '(']),
            false => after.starts_with(": "),
        })
    };
    is_item || sources.contains(&format!("**{name}**")) || sources.lines().any(is_part)
}

/// The variants of an enumeration.
fn variants(source: &str, name: &str) -> BTreeSet<String> {
    let after = source.split_once(&format!("enum {name} {{\n")).expect("it is there").1;
    let body = after.split_once("\n}").expect("it ends").0;
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(char::is_uppercase));
    let word = |line: &str| line.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    names.map(word).collect()
}

/// Each picture is well-formed, has a title and a description, and is shown by a document. That each picture that a
/// document shows is there, the links say.
#[test]
fn each_picture_is_well_formed_and_shown() {
    let documents: String = documents().into_iter().map(|(_, text)| text).collect();
    for name in pictures() {
        let elements = picture(&name);
        assert_eq!(elements[0].name, "svg", "{name}");
        assert_eq!(elements[0].get("xmlns"), Some("http://www.w3.org/2000/svg"), "{name}");
        for what in ["title", "desc"] {
            let words =
                elements.iter().find(|element| element.name == what).map(|it| it.text.trim());
            assert!(words.is_some_and(|words| !words.is_empty()), "{name}.svg has no {what}");
        }
        assert!(
            documents.contains(&format!("pictures/{name}.svg)")),
            "no document shows {name}.svg"
        );
    }
}

/// All that are edited by hand have one set of colours and fonts.
#[test]
fn the_pictures_have_one_style() {
    let styles: BTreeSet<_> = by_hand().map(|name| style(&picture(&name))).collect();
    assert_eq!(styles.len(), 1, "{styles:#?}");
}

fn style(elements: &[Element]) -> String {
    elements.iter().find(|element| element.name == "style").expect("a style").text.clone()
}

/// How bright a colour is, from 0 to 1, as the Web Content Accessibility Guidelines count it. The rules have the colour of
/// this class: `.text{fill:#1f2328}`.
fn luminance(rules: &str, class: &str) -> f64 {
    let (_, after) = rules.split_once(&format!(".{class}{{fill:#")).expect("a colour");
    let parts = [0, 2, 4].map(|at| u8::from_str_radix(&after[at..at + 2], 16).expect("a number"));
    let [red, green, blue] = parts.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Whatever is written can be read, on the ground and in a box, on a light page and on a dark one.
#[test]
fn text_stands_out() {
    let style = style(&picture("task-states"));
    let (light, dark) = style.split_once("@media(prefers-color-scheme:dark)").expect("both");
    for rules in [light, dark] {
        for ink in ["text", "faint", "strong", "calm"] {
            for ground in ["ground", "panel"] {
                let both = [ink, ground].map(|class| luminance(rules, class) + 0.05);
                let contrast = both[0].max(both[1]) / both[0].min(both[1]);
                assert!((4.5..21.0).contains(&contrast), "{ink} on {ground}: {contrast}");
            }
        }
    }
}

/// Text is where it has room, whichever font the reader has, and boxes are in the picture.
#[test]
fn everything_has_room() {
    for name in by_hand() {
        let elements = picture(&name);
        let (all, high) = elements[0].size();
        assert_eq!(elements[0].get("viewBox"), Some(format!("0 0 {all} {high}").as_str()));
        assert_eq!(all, 600.0, "{name}");
        let rectangles: Vec<_> = elements.iter().filter(|it| it.name == "rect").collect();
        for rectangle in &rectangles[1..] {
            let ((x, y), (width, height)) = (rectangle.at(), rectangle.size());
            assert!(
                x >= 8.0 && x + width <= all - 8.0 && y + height <= high - 8.0,
                "{rectangle:?}"
            );
        }
        for text in elements.iter().filter(|element| element.name == "text") {
            let ((x, y), wide) = (text.at(), width(text));
            let left = match text.get("text-anchor") {
                None => x,
                Some("middle") => x - wide / 2.0,
                Some(_) => x - wide,
            };
            assert!(left >= 8.0 && left + wide <= all - 8.0, "{name}: {} is too wide", text.text);
            assert!(y <= high - 8.0, "{name}: {} is too low", text.text);
            // A text in the middle of a box has room on both sides.
            let within = rectangles.iter().rfind(|rectangle| {
                let (left, width) = (rectangle.at().0, rectangle.size().0);
                rectangle.has(text.at()) && (left + width / 2.0 - x).abs() < 0.1
            });
            if let (Some(within), Some("middle")) = (within, text.get("text-anchor")) {
                assert!(
                    wide <= within.size().0 - 8.0,
                    "{name}: {} is wider than its box",
                    text.text
                );
            }
        }
    }
}

#[test]
fn every_name_is_in_the_source() {
    let (mut sources, mut count) = (String::new(), 0);
    read_all(&root().join("src"), &mut sources);
    for picture_name in by_hand() {
        for name in names(&picture(&picture_name)) {
            count += 1;
            assert!(is_declared(&sources, &name), "{picture_name}.svg names {name}");
        }
    }
    assert!(count > 30, "{count} names");
    let gate = page("src/feature/gate.rs");
    assert!(
        is_declared(&gate, "enter") && !is_declared(&gate, "ente") && !is_declared(&gate, "open")
    );
}

#[test]
fn every_state_is_in_its_picture() {
    for (file, path, name, is_boxes) in ENUMERATIONS {
        let variants = variants(&page(path), name);
        assert!(variants.len() >= 4, "{name}: {variants:?}");
        let elements = picture(file);
        if is_boxes {
            let boxes: BTreeSet<_> =
                boxes(&elements).iter().map(|(_, name)| (*name).to_owned()).collect();
            assert_eq!(boxes, variants, "{file}.svg, {name}");
        } else {
            assert!(variants.is_subset(&names(&elements)), "{file}.svg, {name}");
        }
    }
}
