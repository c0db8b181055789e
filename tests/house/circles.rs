//! Files of `punctual-jobs` that use each other in a circle: there are few, and each is small.
//!
//! A file uses another one if a path in its code leads there, through whichever module exports it. A list of modules and an
//! export use nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::root;

/// The most files that one circle may have.
const MOST: usize = 4;

type Module = Vec<String>;

/// What a name in a file stands for: a path from the root of the package.
type Names = BTreeMap<String, Module>;

#[derive(Default)]
struct Source {
    words: Vec<String>,
    imported: Names,
    exported: Names,
}

/// Splits code into words and signs, without comments, texts and the tests at its end.
fn words(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().expect("there is a first");
    let lines = code.lines().map(|line| line.split("//").next().expect("there is a first"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::<String>::new();
    for letter in code.chars() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        match found.last_mut() {
            Some(last) if is_word(letter) && last.ends_with(is_word) => last.push(letter),
            Some(last) if letter == ':' && last == ":" => last.push(letter),
            _ => found.push(letter.to_string()),
        }
    }
    found.retain(|word| !word.trim().is_empty());
    found
}

/// Follows a path, and the list that it may end with, from the word at `at`. Adds each path with the name that it has here.
fn paths(words: &[String], at: &mut usize, from: &Module, found: &mut Vec<(String, Module)>) {
    let mut path = from.clone();
    while let Some(word) = words.get(*at) {
        *at += 1;
        match word.as_str() {
            "{" => {
                while words.get(*at).is_some_and(|word| word != "}") {
                    paths(words, at, &path, found);
                    *at += usize::from(words.get(*at).is_some_and(|word| word == ","));
                }
                *at += 1;
                return;
            }
            "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
        if words.get(*at).is_none_or(|word| word != "::") {
            break;
        }
        *at += 1;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if words.get(*at).is_some_and(|word| word == "as") {
        name.clone_from(&words[*at + 1]);
        *at += 2;
    }
    found.push((name, path));
}

fn read(folder: &Path) -> BTreeMap<Module, Source> {
    let mut sources = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(place).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let inside = path.strip_prefix(folder).expect("a source").with_extension("");
            let mut module: Module =
                inside.iter().map(|part| part.to_string_lossy().into()).collect();
            if module.last().is_some_and(|last| last == "tests") {
                continue;
            }
            module.retain(|part| part != "lib");
            let text = fs::read_to_string(&path).expect("a source");
            sources.insert(module.clone(), source(&module, words(&text)));
        }
    }
    sources
}

fn source(module: &Module, words: Vec<String>) -> Source {
    let mut source = Source::default();
    let mut at = 0;
    while at < words.len() {
        let is_export = words[at] == "pub";
        let mut next = at + usize::from(is_export);
        if is_export && words.get(next).is_some_and(|word| word == "(") {
            next =
                words[next..].iter().position(|word| word == ")").map_or(next, |it| next + it + 1);
        }
        if words.get(next).is_none_or(|word| word != "use") {
            source.words.push(words[at].clone());
            at += 1;
            continue;
        }
        at = next + 1;
        let mut found = Vec::new();
        let from = if words[at] == "crate" { Module::new() } else { module.clone() };
        at += 2 * usize::from(words[at] == "crate");
        let is_ours = from.is_empty() || ["self", "super"].contains(&words[at].as_str());
        paths(&words, &mut at, &from, &mut found);
        if is_ours {
            let names = if is_export { &mut source.exported } else { &mut source.imported };
            names.extend(found);
        }
    }
    source
}

/// The file that a path leads to.
fn home(sources: &BTreeMap<Module, Source>, path: &[String]) -> Module {
    let mut path = path.to_vec();
    // Each export leads to a path that is another one.
    for _ in 0..8 {
        let deepest = (0..=path.len()).rev().find(|it| sources.contains_key(&path[..*it]));
        let deepest = deepest.expect("the root is a source");
        let exported = path.get(deepest).and_then(|it| sources[&path[..deepest]].exported.get(it));
        match exported {
            Some(other) => path = [other, &path[deepest + 1..]].concat(),
            None => return path[..deepest].to_vec(),
        }
    }
    panic!("{path:?} leads nowhere")
}

fn uses(sources: &BTreeMap<Module, Source>, module: &Module) -> BTreeSet<Module> {
    let source = &sources[module];
    let mut found: Vec<_> = source.imported.values().cloned().collect();
    let mut at = 0;
    while at < source.words.len() {
        let (word, begun) = (&source.words[at], at);
        let is_path = source.words.get(at + 1).is_some_and(|word| word == "::")
            && (at == 0 || source.words[at - 1] != "::");
        at += 1;
        let from = match word.as_str() {
            _ if !is_path => continue,
            "crate" => Module::new(),
            "self" | "super" => module.clone(),
            name => match source.imported.get(name) {
                Some(path) => path.clone(),
                None => continue,
            },
        };
        at = begun + if matches!(word.as_str(), "self" | "super") { 0 } else { 2 };
        let mut here = Vec::new();
        paths(&source.words, &mut at, &from, &mut here);
        found.extend(here.into_iter().map(|(_, path)| path));
    }
    let mut homes: BTreeSet<_> = found.iter().map(|path| home(sources, path)).collect();
    homes.remove(module);
    homes
}

/// All files that are used from one, by however many steps.
fn reached(of: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for other in &of[module] {
            if found.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    found
}

#[test]
fn circles_of_files_are_small() {
    let sources = read(&root().join("crates/punctual-jobs/src"));
    assert!(sources.len() > 80, "there are sources");
    let of: BTreeMap<_, _> =
        sources.keys().map(|module| (module.clone(), uses(&sources, module))).collect();
    let reach: BTreeMap<_, _> = of.keys().map(|module| (module, reached(&of, module))).collect();
    assert!(reach.values().filter(|it| it.len() > 5).count() > 40, "the paths are read");
    let circle_of = |module: &Module| -> BTreeSet<Module> {
        reach[module].iter().filter(|it| reach[*it].contains(module)).cloned().collect()
    };
    let circles: BTreeSet<_> = of.keys().map(circle_of).collect();
    let describe = |circle: &BTreeSet<Module>| {
        let listed = circle.iter().map(|file| {
            let to: Vec<_> = of[file].intersection(circle).map(|to| to.join("/")).collect();
            format!("{} uses {}", file.join("/"), to.join(", "))
        });
        listed.collect::<Vec<_>>().join("\n")
    };
    let large: Vec<_> = circles.iter().filter(|it| it.len() > MOST).map(describe).collect();
    assert!(large.is_empty(), "circles of more than {MOST} files:\n{}", large.join("\n\n"));
}
