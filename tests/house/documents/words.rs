//! The pages for users say what the field says: the words that readers search for are there, and turns of phrase that
//! read as translated are not.

use std::path::Path;

use super::{documents, page, root};

/// A word that a reader searches for, and the page that has to have it.
const SEARCHED: [(&str, &str); 16] = [
    ("backoff", "docs/book/series.md"),
    ("misfire", "docs/book/series.md"),
    ("starting deadline", "docs/book/series.md"),
    ("rate limit", "docs/book/series.md"),
    ("retry", "docs/book/series.md"),
    ("daylight saving", "docs/book/calendar.md"),
    ("graceful shutdown", "docs/book/cancelling.md"),
    ("deadlock", "docs/book/cancelling.md"),
    ("concurrency limit", "docs/book/groups.md"),
    ("starvation", "docs/book/observability.md"),
    ("leader election", "docs/book/many-machines.md"),
    ("kubernetes", "docs/book/many-machines.md"),
    ("my process does not exit", "docs/book/questions.md"),
    ("my task never ran", "docs/book/questions.md"),
    ("too many threads", "docs/book/questions.md"),
    ("faq", "docs/book/questions.md"),
];

/// Subjects that name no actor.
const VAGUE: [&str; 6] =
    ["nobody", "somebody", "whoever", "yardstick", "of its own choice", "is known that it would"];

#[test]
fn the_pages_have_the_words_that_readers_search_for() {
    let glossary = page("docs/book/glossary.md").to_lowercase();
    for (word, path) in SEARCHED {
        assert!(page(path).to_lowercase().contains(word), "{path} does not say \"{word}\"");
        let is_question = path.ends_with("questions.md");
        let is_explained = glossary.contains(word) || word == "kubernetes" || word == "deadlock";
        assert!(is_question || is_explained, "the glossary does not say \"{word}\"");
    }
    let questions = page("docs/book/questions.md").matches("\n## ").count();
    assert!(questions >= 13, "{questions} questions");
}

/// Turns of phrase that comments had, and that read as translated.
const TRANSLATED: [&str; 8] = [
    "is asked of",
    "are asked of",
    "is said of",
    "are said of",
    "the remains of",
    "of which nothing",
    "with a look at",
    "a taking of",
];

#[test]
fn comments_have_subjects_too() {
    let mut files = 0;
    for (path, text) in crate::evidence::functions::sources() {
        files += 1;
        let comments = text.lines().map(str::trim).filter_map(|line| line.strip_prefix("//"));
        let comments: Vec<_> =
            comments.map(|line| line.trim_start_matches(['/', '!', ' '])).collect();
        let comments = comments.join(" ").to_lowercase();
        for phrase in VAGUE.iter().chain(&TRANSLATED) {
            assert!(!comments.contains(phrase), "{path} says \"{phrase}\"");
        }
    }
    assert!(files > 100, "{files} files");
}

/// The pages that a user reads, and the decisions. The others are for those who change the crate.
fn is_for_users(path: &Path) -> bool {
    let path = path.strip_prefix(root()).expect("a document");
    let others = ["architecture", "atomics", "evidence", "locks", "SUMMARY"];
    let name = path.strip_prefix("docs").ok().and_then(|path| path.iter().next());
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    !others.contains(&name.trim_end_matches(".md"))
}

#[test]
fn every_subject_has_a_name() {
    let mut pages = 0;
    for (path, text) in documents().into_iter().filter(|(path, _)| is_for_users(path)) {
        pages += 1;
        let text = text.to_lowercase();
        for word in VAGUE {
            assert!(!text.contains(word), "{} says \"{word}\"", path.display());
        }
    }
    assert!(pages > 20, "{pages} pages");
}
