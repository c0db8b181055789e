//! The pages for users say what the field says: the words that readers search for are there, and turns of phrase that
//! read as translated are not, in pages and in comments.

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

/// A habit that makes a sentence read as translated: patterns of words that have it, and a sentence for each of them.
///
/// In a pattern, `a|b` is either word, `*ed` a word with this ending, `!a|b` a word that is neither, `?a` a word that
/// may be missing, `^` the beginning of a sentence and `.` its full stop, `...` up to eight words of one clause, and `**`
/// any words. A comma is a word.
struct Habit {
    cure: &'static str,
    patterns: &'static [(&'static str, &'static str)],
}

const HABITS: [Habit; 5] = [
    Habit {
        cure: "put the relative clause right behind its noun",
        patterns: &[
            (
                "is|are|was|were|be|been *ed|due|left|free|taken|run|gone|given|found|put|sent|woken|begun|made|kept|held|\
                 written|ready|there ?again that|which|who|whose",
                "When the task is due that is queued again, a worker takes it.",
            ),
            (
                "come|comes|came|exists|begins|began|arrives|appears|remains ?again that|which \
                 is|are|was|were|has|have|had|does|did|may|can|could|would|will|must",
                "No tick begins again that has ended.",
            ),
            ("of which nothing", "A task of which nothing is known is plain."),
        ],
    },
    Habit {
        cure: "name the noun again, or use the genitive",
        patterns: &[("that|those of", "The lock comes before those of the queue.")],
    },
    Habit {
        cure: "begin with a noun",
        patterns: &[(
            "^ what ... is|are|was|were|has|have ** .",
            "The queue is sorted. What is submitted earlier is taken first.",
        )],
    },
    Habit {
        cure: "say who asks whom",
        patterns: &[("is|are|was|were|be|been asked|said of", "Nothing is asked of the queue.")],
    },
    Habit {
        cure: "use the verb, with a subject",
        patterns: &[
            ("a|the|each|every|one|no|another taking", "The order of a taking worker's steps."),
            ("a|the|each|every|one|no|another telling|asking", "The telling ends with a commit."),
            (
                "a|the|each|every|one|no waking|queueing|parking|moving|searching|keeping|holding|putting|\
                 giving|leaving|closing|calling|losing|finding of",
                "The parking of a task takes a lock.",
            ),
            ("a|the|such|one|each|every|another look", "A look at the queue shows the entry."),
            ("the|its remains", "The worker drops the remains of the task."),
            ("a|the standing !leader|of", "It keeps the standing that the entry lacks."),
        ],
    },
];

/// Verbs with a clause for an object, as in "it is guaranteed that": that clause is far from no noun.
const SAYING: [&str; 10] = [
    "assumed",
    "decided",
    "ensured",
    "expected",
    "guaranteed",
    "noticed",
    "promised",
    "proved",
    "required",
    "stated",
];

/// Words that begin another clause.
const OPENERS: [&str; 17] = [
    ",", "after", "and", "as", "because", "before", "how", "if", "that", "to", "until", "what",
    "when", "where", "which", "while", "who",
];

/// Returns `true` if the words begin with what the pattern says.
fn begins_with(words: &[String], pattern: &[&str]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return true };
    if *first == "..." {
        let clause =
            words.iter().take_while(|word| !OPENERS.contains(&word.as_str())).take(8).count();
        return (1..=clause).any(|skipped| begins_with(&words[skipped..], rest));
    }
    if *first == "**" {
        return (0..words.len()).any(|skipped| begins_with(&words[skipped..], rest));
    }
    if first.starts_with('?') && begins_with(words, rest) {
        return true;
    }
    let Some((word, others)) = words.split_first() else { return false };
    let unwanted = first.strip_prefix('!');
    let choice = unwanted.unwrap_or(first).trim_start_matches('?');
    let is_one = choice.split('|').any(|it| match it.strip_prefix('*') {
        Some(ending) => word.ends_with(ending) && !SAYING.contains(&word.as_str()),
        None => word == it,
    });
    is_one != unwanted.is_some() && begins_with(others, rest)
}

/// The words of each sentence, behind a `^`. A blank line, a list's mark and a cell's end are ends of sentences, too.
fn sentences(text: &str) -> Vec<Vec<String>> {
    let begin = || vec!["^".to_owned()];
    let mut sentences = vec![begin()];
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        is_code ^= line.starts_with("```");
        if is_code || line.is_empty() {
            sentences.push(begin());
            continue;
        }
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
            // A name in code is no word.
            let bare = if word.contains('`') { format!("`{bare}") } else { bare };
            let is_mark = bare.trim_matches(|letter| letter == '`').is_empty()
                || bare.parse::<u32>().is_ok_and(|_| word.ends_with('.'));
            let end = word.trim_end_matches(['*', '`', ')', '"', '_']).chars().last();
            let sentence = sentences.last_mut().expect("there is one");
            if !is_mark {
                sentence.push(bare);
                let mark = end.filter(|end| ",.".contains(*end));
                sentence.extend(mark.map(String::from));
            }
            if is_mark || end.is_some_and(|end| ".:;!?|".contains(end)) {
                sentences.push(begin());
            }
        }
    }
    sentences
}

/// The places that have a habit.
fn found(text: &str) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let sentences = sentences(text);
    for habit in &HABITS {
        for (pattern, _) in habit.patterns {
            let pattern: Vec<_> = pattern.split(' ').collect();
            for sentence in &sentences {
                let starts = 0..sentence.len();
                let mut hits = starts.filter(|start| begins_with(&sentence[*start..], &pattern));
                if let Some(start) = hits.next() {
                    let words = &sentence[start..];
                    found.push((words[..words.len().min(9)].join(" "), habit.cure));
                }
            }
        }
    }
    found
}

/// The comments of a source, as a page.
fn comments(source: &str) -> String {
    let lines = source.lines().map(str::trim);
    let texts = lines.map(|line| line.strip_prefix("//").unwrap_or_default());
    texts.map(|line| line.trim_start_matches(['/', '!', ' ']).to_owned() + "\n").collect()
}

#[test]
fn each_habit_is_found_in_its_example() {
    for habit in &HABITS {
        for (pattern, example) in habit.patterns {
            assert_eq!(found(example).len(), 1, "{pattern}: {example}");
        }
    }
    for plain in [
        "The task that is due is queued again, which a worker asks for; the queue's lock is held.",
        "It is guaranteed that no task starts early. A `Standing` is data, and so is the `standing`.",
        "# What lateness is made of",
    ] {
        assert_eq!(found(plain), [], "{plain}");
    }
}

#[test]
fn no_sentence_reads_as_translated() {
    let pages = documents().into_iter().map(|(path, text)| {
        let path = path.strip_prefix(root()).expect("a document").display().to_string();
        (path, text)
    });
    let sources = crate::evidence::functions::sources();
    let sources = sources.into_iter().map(|(path, text)| (path, comments(&text)));
    let (mut texts, mut bad) = (0, Vec::new());
    for (path, text) in sources.chain(pages) {
        texts += 1;
        let places = found(&text).into_iter();
        bad.extend(places.map(|(words, cure)| format!("{path}: \"{words}\": {cure}")));
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(texts > 150, "{texts} texts");
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
    let pages = documents().into_iter().filter(|(path, _)| is_for_users(path));
    let pages = pages.map(|(path, text)| (path.display().to_string(), text));
    let sources = crate::evidence::functions::sources().into_iter();
    let sources = sources.map(|(path, text)| (path, comments(&text)));
    let mut texts = 0;
    for (path, text) in pages.chain(sources) {
        texts += 1;
        let text = text.replace('\n', " ").to_lowercase();
        for word in VAGUE {
            assert!(!text.contains(word), "{path} says \"{word}\"");
        }
    }
    assert!(texts > 120, "{texts} texts");
}
