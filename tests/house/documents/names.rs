//! What the prose of a page names is there: each `Type::name` in inline code, if the type is one of ours.

use std::{collections::BTreeMap, path::Path};

use super::{documents, read_all, root};

/// Types of others, which implement a trait of ours or have the name of a private type.
const OF_OTHERS: [&str; 2] = ["Duration", "Unit"];

/// The text of every declaration and every implementation of each type, and the types that they stand for.
fn blocks() -> BTreeMap<String, String> {
    let mut sources = String::new();
    for folder in ["src", "crates"] {
        read_all(&root().join(folder), &mut sources);
    }
    let mut blocks: BTreeMap<String, String> = BTreeMap::new();
    let mut lines = sources.lines();
    while let Some(head) = lines.next() {
        let Some(name) = subject(head) else { continue };
        let block = blocks.entry(name.to_owned()).or_default();
        block.extend([head, "\n"]);
        if !head.ends_with('}') && !head.ends_with(';') {
            let body = lines.by_ref().take_while(|line| !line.starts_with('}'));
            body.for_each(|line| block.extend([line, "\n"]));
        }
    }
    blocks
}

/// Returns the name of the type or trait that a line begins to declare or to implement.
fn subject(line: &str) -> Option<&str> {
    let line = line
        .strip_prefix("pub")
        .map_or(line, |rest| rest.trim_start_matches("(crate)").trim_start());
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let named = kinds.iter().find_map(|kind| line.strip_prefix(kind)).or_else(|| {
        let rest = line.strip_prefix("impl")?;
        Some(rest.split_once(" for ").map_or_else(|| without_parameters(rest), |(_, rest)| rest))
    })?;
    let name = named.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    name.starts_with(|c: char| c.is_uppercase()).then_some(name)
}

/// Returns what follows the parameters of an implementation.
fn without_parameters(rest: &str) -> &str {
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    });
    end.map_or(rest, |end| &rest[end + 1..]).trim_start()
}

/// Returns `true` if a type has such a method, variant, constant or field, or its `Deref` has.
fn has(blocks: &BTreeMap<String, String>, subject: &str, name: &str) -> bool {
    let Some(block) = blocks.get(subject) else { return false };
    let declared = ["fn ", "const ", "pub ", "\n    ", "type "];
    let ends = ["(", "<", ":", ",", " ", ";", "\n"];
    let is_there = declared.iter().any(|kind| {
        block.match_indices(&format!("{kind}{name}")).any(|(at, found)| {
            let rest = &block[at + found.len()..];
            ends.iter().any(|end| rest.starts_with(end))
        })
    });
    let target =
        block.split("type Target = ").nth(1).and_then(|rest| rest.split([';', '<']).next());
    is_there || target.is_some_and(|target| has(blocks, target, name))
}

/// The pairs of a type and a name in a piece of inline code, as `TaskContext::attempt`.
fn pairs(code: &str) -> Option<(&str, &str)> {
    let path = code.trim_start_matches(['&', '.']).split(['(', '<', ' ', '{', '.', ',']).next()?;
    let (subject, name) = path.rsplit_once("::")?;
    let subject = subject.rsplit("::").next()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then_some((subject, name))
}

#[test]
fn each_name_in_the_prose_exists() {
    let blocks = blocks();
    let (mut unknown, mut names) = (Vec::new(), 0);
    for (path, text) in documents().into_iter().filter(|(path, _)| is_current(path)) {
        let prose = text.split("```").step_by(2);
        for code in prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)) {
            let ours =
                |subject: &str| blocks.contains_key(subject) && !OF_OTHERS.contains(&subject);
            let Some((subject, name)) = pairs(code).filter(|(subject, _)| ours(subject)) else {
                continue;
            };
            names += 1;
            if !has(&blocks, subject, name) {
                unknown.push(format!("{}: `{code}`", path.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(names > 200, "{names} names");
}

/// The evidence tells of what was, and one page names types of tokio.
fn is_current(path: &Path) -> bool {
    let is_about_tokio = path.ends_with("coming-from-tokio.md");
    !is_about_tokio && !path.starts_with(root().join("docs/evidence"))
}
