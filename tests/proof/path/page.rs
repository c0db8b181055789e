//! The functions that the page names.
//!
//! A stop is a numbered item. The functions that it names are on the path of every plain task; those in the items below
//! it are beside that path. A function is a name in backticks whose last part begins with a small letter. Its file
//! follows in brackets: `PoolRef::offer` (`pool/submitting.rs`). A later mention may leave the file out.

use std::collections::BTreeMap;

/// A numbered item.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) number: usize,
    pub(crate) title: String,
    pub(crate) mentions: Vec<Mention>,
}

/// A function that a stop names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) name: String,
    /// Below `src`. Empty if the page has not said it so far.
    pub(crate) files: Vec<String>,
    pub(crate) is_beside: bool,
}

/// The stops, in their order.
pub(crate) fn stops(page: &str) -> Result<Vec<Stop>, String> {
    let (_, section) = page.split_once("\n### Stop by stop\n").ok_or("there is no such section")?;
    let section = section.split("\n#").next().unwrap_or_default();
    let mut items: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in section.lines() {
        match line.split_once(". ").and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
            Some((number, rest)) => items.push((number, vec![rest])),
            // A paragraph after the list is no part of it.
            None if !line.is_empty() && !line.starts_with(' ') => {}
            None => items.last_mut().into_iter().for_each(|(_, lines)| lines.push(line)),
        }
    }
    if items.is_empty() || items.iter().map(|(number, _)| *number).ne(1..=items.len()) {
        return Err("the stops are not numbered 1, 2, 3 …".to_owned());
    }
    let mut files = BTreeMap::new();
    Ok(items.into_iter().map(|(number, lines)| stop(number, &lines, &mut files)).collect())
}

fn stop(number: usize, lines: &[&str], files: &mut BTreeMap<String, Vec<String>>) -> Stop {
    let is_item = |line: &&str| ["* ", "- "].iter().any(|mark| line.trim_start().starts_with(mark));
    let path = lines.iter().position(is_item).unwrap_or(lines.len());
    let (path, beside) = (lines[..path].join("\n"), lines[path..].join("\n"));
    let title = path.split("**").nth(1).unwrap_or_default().trim_end_matches('.').to_owned();
    let mut mentions: Vec<Mention> = Vec::new();
    for (text, is_beside) in [(path, false), (beside, true)] {
        for (name, its_files) in functions(&text) {
            if !its_files.is_empty() {
                files.insert(name.clone(), its_files);
            }
            let files = files.get(&name).cloned().unwrap_or_default();
            // A rare case may name a function that is on the path.
            if !mentions.iter().any(|other| (&other.name, &other.files) == (&name, &files)) {
                mentions.push(Mention { name, files, is_beside });
            }
        }
    }
    Stop { number, title, mentions }
}

/// The functions, each with the files in the brackets after it.
fn functions(text: &str) -> Vec<(String, Vec<String>)> {
    // Words, and what is in backticks, in turn.
    let parts: Vec<_> = text.split('`').collect();
    let names =
        parts.iter().enumerate().filter(|(place, name)| place % 2 == 1 && is_function(name));
    let files = |place: usize| {
        let pairs = parts[place + 1..].chunks_exact(2).enumerate();
        let in_brackets = pairs
            .take_while(|(number, pair)| pair[0].trim() == if *number == 0 { "(" } else { "," });
        in_brackets.map(|(_, pair)| pair[1].to_owned()).collect()
    };
    names.map(|(place, name)| ((*name).trim_end_matches("()").to_owned(), files(place))).collect()
}

/// Returns `true` for `offer`, `Pool::offer` and `unwind::contain`, but not for a type, a file or an expression.
fn is_function(name: &str) -> bool {
    let name = name.trim_end_matches("()");
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let last = name.rsplit("::").next().unwrap_or_default();
    name.split("::").all(is_word)
        && last.starts_with(|first: char| first.is_lowercase() || first == '_')
}
