//! How many places a feature has outside of its folder: a reader who removes the folder has as many to change.
//!
//! A place is a function, a type or an `impl` that names a type, or calls a function, which only the folder declares. Its
//! imports belong to it, and a field is not looked at. One place each, however often they name the feature, are the two lists
//! of features (`feature.rs`, `task/extensions.rs`), the root with its exports, and `extra/pace`, which is made of gates.

use std::{collections::BTreeSet, path::Path};

use crate::{
    layers::{is_test, sources, word},
    root,
};

/// The most places that a feature may have.
const MOST: usize = 10;

/// The four, with the number of their places.
const FEATURES: [(&str, usize); 4] = [("limit", 4), ("control", 3), ("group", 8), ("gate", 5)];

/// What counts as one place.
const WHOLE: [&str; 4] = ["feature.rs", "task/extensions.rs", "lib.rs", "extra/pace"];

/// Functions of the standard library that have the name of one of a folder.
const STANDARD: [&str; 1] = ["reserve"];

/// The code of a source: each line, or nothing for one of a comment, of an import, or of the tests at the end.
fn code(text: &str) -> Vec<&str> {
    let mut in_use = false;
    let text = text.split("#[cfg(test)]\nmod tests {").next().expect("there is a first");
    let keep = |line| {
        let start = str::trim_start(line);
        let is_export = start.starts_with("pub use ");
        in_use |= start.starts_with("use ") || start.starts_with("pub(crate) use ");
        let is_code = !in_use && !start.starts_with("//") || is_export;
        in_use &= !line.ends_with(';');
        if is_code { line } else { "" }
    };
    text.lines().map(keep).collect()
}

/// The word after a declaration, with what was declared.
fn declared(line: &str) -> Option<(&'static str, String)> {
    let mut words = line.split_whitespace().skip_while(|it| it.starts_with("pub"));
    let first = words.next()?;
    let kinds = ["fn", "struct", "enum", "trait", "type", "impl", "mod", "const", "static"];
    let kind = kinds.into_iter().find(|kind| first.split('<').next() == Some(kind))?;
    Some((kind, words.collect::<Vec<_>>().join(" ")))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The declarations around a line, the innermost first, up to a function or an item of the module.
fn place(lines: &[&str], at: usize) -> String {
    let mut below = indent(lines[at]) + 1;
    for line in lines[..=at].iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < below {
            if let Some((kind, name)) = declared(line) {
                return format!("{kind} {}", name.trim_end_matches(" {"));
            }
            let is_end = line.trim_start().starts_with(['}', ')', ']']);
            below = if is_end { below } else { indent(line).max(1) };
        }
    }
    "the module".to_owned()
}

/// Returns `true` if a line names a type of these, or calls a function of these.
fn names(line: &str, types: &BTreeSet<String>, functions: &BTreeSet<String>) -> bool {
    line.char_indices().any(|(at, letter)| {
        let before = &line[..at];
        let is_start = letter.is_alphabetic()
            && !before.ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let name = if is_start { word(&line[at..]) } else { String::new() };
        let is_called = line[at + name.len()..].starts_with('(') || before.ends_with("::");
        types.contains(&name) || functions.contains(&name) && is_called && !before.ends_with("fn ")
    })
}

#[test]
fn a_feature_has_few_places_outside_of_its_folder() {
    let all: Vec<_> = sources().into_iter().filter(|(path, _)| !is_test(path)).collect();
    let inside = |path: &Path| {
        let path = path.strip_prefix(root().join("src")).expect("a source");
        path.to_string_lossy().replace('\\', "/")
    };
    for (feature, expected) in FEATURES {
        let (file, folder) = (format!("feature/{feature}.rs"), format!("feature/{feature}/"));
        let is_own = |path: &Path| inside(path) == file || inside(path).starts_with(&folder);
        let (mut types, mut functions) = (BTreeSet::new(), BTreeSet::new());
        let mut others = BTreeSet::new();
        for (path, text) in &all {
            let is_whole = WHOLE.contains(&&*inside(path));
            for line in code(text) {
                let start = line.trim_start();
                // A line may also begin with the variant of an enum.
                let variant = ("variant", start.to_owned());
                let (kind, name) = declared(line).unwrap_or(variant);
                let name = word(&name);
                match kind {
                    "impl" | "mod" | "const" | "static" => continue,
                    "variant" if is_whole || !name.starts_with(char::is_uppercase) => continue,
                    _ if !is_own(path) => others.insert(name),
                    "variant" => continue,
                    "fn" => start.starts_with("pub") && functions.insert(name),
                    _ => types.insert(name),
                };
            }
        }
        types.retain(|name| !others.contains(name));
        functions.retain(|name| !others.contains(name) && !STANDARD.contains(&&**name));
        let mut places = BTreeSet::new();
        for (path, text) in all.iter().filter(|(path, _)| !is_own(path)) {
            let (file, lines) = (inside(path), code(text));
            for at in (0..lines.len()).filter(|at| names(lines[*at], &types, &functions)) {
                let whole = WHOLE.iter().find(|whole| file.starts_with(**whole));
                let place = whole.map_or_else(|| place(&lines, at), |_| "one place".to_owned());
                let file = whole.map_or(file.as_str(), |whole| whole);
                places.insert(format!("{file}: {place}"));
            }
        }
        let listed = places.iter().cloned().collect::<Vec<_>>().join("\n");
        assert!(places.len() <= MOST, "{feature} has more than {MOST} places:\n{listed}");
        assert_eq!(places.len(), expected, "{feature} has these places:\n{listed}");
    }
}
