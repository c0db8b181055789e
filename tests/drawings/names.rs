//! The names in the pictures are names from the source.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{descriptions::DIAGRAMS, diagram::Diagram};

/// An enumeration whose variants a picture shows, by the file of the picture and that of the source. The boxes are
/// the variants and nothing else, or the variants are among the names.
const ENUMERATIONS: [(&str, &str, &str, Shown); 4] = [
    ("task-states", "src/task/state.rs", "TaskState", Shown::AsTheBoxes),
    ("pool-states", "src/pool/statistics.rs", "ExecutorState", Shown::AsTheBoxes),
    ("pool-states", "src/pool/shutdown/lifecycle.rs", "Phase", Shown::AmongTheNames),
    ("gate-and-lease", "src/gate.rs", "Entry", Shown::AmongTheNames),
];

#[derive(Clone, Copy, PartialEq)]
enum Shown {
    AsTheBoxes,
    AmongTheNames,
}

pub(crate) fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pieces of what stands in a picture: of `RunGate::enter` and of `shutdown, close` each has two.
fn pieces(name: &str) -> impl Iterator<Item = &str> {
    name.split([':', ',', ' ']).filter(|piece| !piece.is_empty())
}

/// Returns `true` if the source declares that name: a function, a type, a variant or a field, or a word that its
/// documentation introduces.
fn declares(source: &str, name: &str) -> bool {
    let items = ["fn", "struct", "enum", "trait"].map(|kind| format!("{kind} {name}"));
    let is_item = |line: &str| {
        let after = items.iter().find_map(|item| Some(line.split_once(item.as_str())?.1));
        after.is_some_and(|after| {
            !after.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    };
    let is_part = |line: &str| {
        let after = line.trim_start().strip_prefix(name);
        after.is_some_and(|after| after.is_empty() || after.starts_with([',', '(', ':']))
    };
    let introduced = format!("**{name}**");
    source.contains(&introduced) || source.lines().any(|line| is_item(line) || is_part(line))
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

fn diagram(file: &str) -> &'static Diagram {
    static ALL: [Diagram; 6] = DIAGRAMS;
    ALL.iter().find(|diagram| diagram.file == file).expect("a picture")
}

#[test]
fn every_name_is_in_the_source() {
    let mut names = 0;
    for diagram in &DIAGRAMS {
        let sources: String = diagram.sources.iter().map(|path| source(path)).collect();
        for name in diagram.names().flat_map(pieces) {
            names += 1;
            assert!(declares(&sources, name), "{}.svg names {name}", diagram.file);
        }
    }
    assert!(names > 40, "{names} names");
    assert!(!declares(&source("src/gate.rs"), "ente") && !declares(&source("src/gate.rs"), "open"));
}

#[test]
fn every_state_is_in_its_picture() {
    for (file, path, name, shown) in ENUMERATIONS {
        let variants = variants(&source(path), name);
        assert!(variants.len() >= 4, "{name}: {variants:?}");
        let diagram = diagram(file);
        let boxes: BTreeSet<_> = diagram
            .boxes
            .iter()
            .map(|node| node.name.to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let names: BTreeSet<_> = diagram.names().flat_map(pieces).map(str::to_owned).collect();
        match shown {
            Shown::AsTheBoxes => assert_eq!(boxes, variants, "{file}.svg, {name}"),
            Shown::AmongTheNames => {
                assert!(variants.is_subset(&names), "{file}.svg, {name}: {names:?}")
            }
        }
    }
}
