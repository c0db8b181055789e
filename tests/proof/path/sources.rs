//! The functions of the library, as its sources have them. The sources are formatted, so a block ends where a brace is
//! as far to the right as its first line.

use std::{collections::BTreeSet, fs, path::Path};

use super::page::Mention;

/// A function of the library.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    /// Below `src`.
    pub(crate) file: String,
    pub(crate) line: usize,
    end: usize,
    pub(crate) name: String,
    /// The type, and the trait, whose block it is in.
    owners: Vec<String>,
}

/// All functions, but those of tests.
pub(crate) struct Sources(Vec<Function>);

impl Sources {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut functions = Vec::new();
        read_folder(folder, "", &mut functions);
        assert!(functions.len() > 1000, "there are functions in {}", folder.display());
        Self(functions)
    }

    /// The function of this name around a line.
    pub(crate) fn at(&self, file: &str, name: &str, line: usize) -> Option<&Function> {
        let mut here = self.0.iter().filter(|it| it.file == file && it.name == name);
        here.find(|it| (it.line..=it.end).contains(&line))
    }

    /// The functions that the page means, for each file that it names: several, if a trait has several
    /// implementations there.
    ///
    /// # Errors
    ///
    /// Says why the name matches no function.
    pub(crate) fn find(&self, mention: &Mention) -> Result<Vec<Vec<&Function>>, String> {
        let name = &mention.name;
        let same: Vec<_> = self.0.iter().filter(|it| it.is_called(name)).collect();
        let files: BTreeSet<_> = same.iter().map(|it| format!("`{}`", it.file)).collect();
        let elsewhere = match files.len() {
            0 => "src has none of this name".to_owned(),
            1..=4 => format!("one is in {}", Vec::from_iter(files).join(", ")),
            many => format!("{many} files have one"),
        };
        if mention.files.is_empty() {
            return Err(format!("no file stands after `{name}`, (`….rs`): {elsewhere}"));
        }
        let in_file = |file: &String| {
            let found: Vec<_> = same.iter().copied().filter(|it| it.file == *file).collect();
            let fault = || format!("src/{file} has no function `{name}`: {elsewhere}");
            if found.is_empty() { Err(fault()) } else { Ok(found) }
        };
        mention.files.iter().map(in_file).collect()
    }
}

impl Function {
    /// Returns `true` if this is what the page calls so: `offer`, `Pool::offer`, `admission::offer`.
    fn is_called(&self, name: &str) -> bool {
        let (owner, name) =
            name.rsplit_once("::").map_or((None, name), |(of, name)| (Some(of), name));
        let is_owner = |owner: &str| {
            let module = self.file.trim_end_matches(".rs").rsplit('/').next();
            self.owners.iter().any(|it| it == owner)
                || self.owners.is_empty() && module == Some(owner)
        };
        self.name == name && owner.is_none_or(is_owner)
    }
}

fn read_folder(folder: &Path, prefix: &str, functions: &mut Vec<Function>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if name.trim_end_matches(".rs") == "tests" {
            continue;
        }
        let inside = format!("{prefix}{name}");
        if path.is_dir() {
            read_folder(&path, &format!("{inside}/"), functions);
        } else if name.ends_with(".rs") {
            read_file(&inside, &fs::read_to_string(&path).expect("a source"), functions);
        }
    }
}

fn read_file(file: &str, text: &str, functions: &mut Vec<Function>) {
    let lines: Vec<_> = text.lines().collect();
    // The blocks of types around the line, with how far to the right they begin.
    let mut blocks: Vec<(usize, Vec<String>)> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        blocks.retain(|(outer, _)| *outer < indent || !code.starts_with('}'));
        if let Some(owners) = owners(&lines[place..]) {
            let ends_here = code.ends_with('}');
            blocks.extend((!ends_here).then_some((indent, owners)));
        } else if let Some(name) = function(code) {
            functions.push(Function {
                file: file.to_owned(),
                line: place + 1,
                end: place + 1 + length(&lines[place..], indent),
                name: name.to_owned(),
                owners: blocks.last().map(|(_, owners)| owners.clone()).unwrap_or_default(),
            });
        }
    }
}

/// The name, if a function begins here.
fn function(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("fn ")?;
    let words = ["pub", "const", "async", "unsafe", "extern", "default"];
    let is_word = |word: &str| {
        words.contains(&word) || word.starts_with("pub(") || word.ends_with(')') || word == "\"C\""
    };
    let name = rest.split(['(', '<']).next()?;
    (before.split_whitespace().all(is_word) && !name.is_empty()).then_some(name)
}

/// The number of lines after the first one.
fn length(lines: &[&str], indent: usize) -> usize {
    let head = lines.iter().position(|line| line.ends_with(['{', ';', '}'])).unwrap_or_default();
    if !lines[head].ends_with('{') {
        return head;
    }
    let is_end = |line: &&str| line.trim_start() == "}" && line.len() == indent + 1;
    lines.iter().position(is_end).unwrap_or(head)
}

/// The type and the trait, if a block of functions begins here.
fn owners(lines: &[&str]) -> Option<Vec<String>> {
    let words = ["pub ", "pub(crate) ", "pub(super) ", "unsafe "];
    let mut code = lines[0].trim_start();
    while let Some(rest) = words.iter().find_map(|word| code.strip_prefix(word)) {
        code = rest;
    }
    if let Some(rest) = code.strip_prefix("trait ") {
        return Some(vec![word(rest)]);
    }
    if !code.starts_with("impl ") && !code.starts_with("impl<") {
        return None;
    }
    let end = lines.iter().position(|line| line.ends_with(['{', '}']))?;
    let head: Vec<_> = lines[..=end].iter().map(|line| line.trim()).collect();
    let head = without_brackets(&head.join(" "));
    let head = head.trim_start_matches("impl").split(['{']).next()?.split(" where").next()?;
    Some(
        head.split(" for ")
            .map(|part| word(part.trim().rsplit("::").next().unwrap_or(part)))
            .collect(),
    )
}

/// Without what is in angle brackets.
fn without_brackets(code: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    let mut before = ' ';
    for letter in code.chars() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
        before = letter;
    }
    kept
}

/// The first name: of `&mut dyn Payload + Send`, it is `Payload`.
fn word(code: &str) -> String {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words = code.split(|letter| !is_name(letter)).filter(|word| !word.is_empty());
    words.find(|word| !["dyn", "mut"].contains(word)).unwrap_or_default().to_owned()
}
