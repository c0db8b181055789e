//! The faults that cargo-mutants leaves out are in `.cargo/mutants.toml`, where the comment
//! before a group of patterns states the fault and the reason why no test can tell.

use std::fs;

use crate::root;

use super::functions::{Function, find, functions, owner_of, sources, without_generics};

/// The faults that a few patterns exclude together.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Group {
    part: String,
    fault: String,
    reason: String,
    patterns: Vec<Pattern>,
}

/// A regular expression for the names that the tool gives to faults.
#[derive(Debug, PartialEq)]
struct Pattern {
    text: String,
    /// The code that is quoted behind it.
    code: String,
}

/// The function that a pattern names.
#[derive(Debug, PartialEq)]
struct Named {
    owner: String,
    of_trait: String,
    name: String,
}

impl Named {
    fn path(&self) -> String {
        if self.owner.is_empty() {
            self.name.clone()
        } else {
            format!("{}::{}", self.owner, self.name)
        }
    }

    /// The function of that name in the sources.
    fn find<'a>(&self, functions: &'a [Function]) -> Result<&'a Function, String> {
        if self.of_trait.is_empty() {
            return find(functions, &self.path(), None);
        }
        let fits = |f: &&Function| {
            (&f.owner, &f.of_trait, &f.name) == (&self.owner, &self.of_trait, &self.name)
        };
        let found = functions.iter().find(fits);
        found.ok_or_else(|| format!("`{}` does not implement `{}`", self.path(), self.of_trait))
    }
}

/// The settings of the tool, or `None` in the published package, which does not have them.
fn settings() -> Option<String> {
    let path = root().join(".cargo/mutants.toml");
    path.exists().then(|| fs::read_to_string(path).expect("the settings"))
}

/// The groups of the patterns that exclude faults.
fn groups(settings: &str) -> Vec<Group> {
    let (_, list) = settings.split_once("\nexclude_re = [\n").expect("the patterns");
    let (list, _) = list.split_once("\n]").expect("the end of the patterns");
    let (mut groups, mut comment) = (Vec::<Group>::new(), String::new());
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(words) = line.strip_prefix("# ") {
            comment = format!("{comment} {words}");
            continue;
        } else if !comment.is_empty() {
            groups.push(group(&std::mem::take(&mut comment)));
        }
        let pattern =
            pattern(line).unwrap_or_else(|| panic!("neither comment nor pattern: {line}"));
        groups.last_mut().expect("a comment before the patterns").patterns.push(pattern);
    }
    assert_eq!(comment, "", "a comment without patterns");
    groups
}

fn group(comment: &str) -> Group {
    let split = |text: &str, label: &str| {
        let (before, after) =
            text.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {text}"));
        (before.trim().to_owned(), after.trim().to_owned())
    };
    let (_, rest) = split(comment, "Part:");
    let (part, rest) = split(&rest, "Fault:");
    let (fault, reason) = split(&rest, "Reason:");
    Group { part, fault, reason, patterns: Vec::new() }
}

/// A pattern in single quotes, a comma, and perhaps a comment that quotes the code.
fn pattern(line: &str) -> Option<Pattern> {
    let (text, code) = line.strip_prefix('\'')?.rsplit_once("',")?;
    let code = code.trim().trim_start_matches("# ");
    Some(Pattern { text: text.to_owned(), code: code.to_owned() })
}

/// The function that the pattern names at its end, or at its beginning as one to be replaced.
fn named(pattern: &str) -> Option<Named> {
    let path = match pattern.rsplit_once(" in ") {
        Some((_, path)) => path.strip_suffix('$').expect("the name is complete"),
        None => pattern.strip_prefix("replace ")?.split_once(" -> ")?.0,
    };
    let (owner, of_trait, name) = match path.strip_prefix("<impl ") {
        Some(path) => {
            let (header, name) = path.rsplit_once(">::").expect("a function of the `impl`");
            let (owner, of_trait) = owner_of(header);
            (owner, of_trait, name.to_owned())
        }
        None => {
            let path = without_generics(path);
            let (owner, name) = path.rsplit_once("::").unwrap_or(("", &path));
            (owner.to_owned(), String::new(), name.to_owned())
        }
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
    assert!(is_name(&owner) && is_name(&name), "a pattern names one function: {pattern}");
    Some(Named { owner, of_trait, name })
}

/// The source that the pattern names.
fn file_in(pattern: &str) -> Option<&str> {
    let (file, _) = pattern.split_once(".rs:")?;
    file.starts_with("src/").then(|| &pattern[..file.len() + 3])
}

/// The column and the operator of a pattern that concerns one operator of several.
fn operator_in(pattern: &str) -> Option<(usize, String)> {
    let (column, rest) = pattern.strip_prefix(':')?.split_once(": replace ")?;
    let (operator, _) = rest.split_once(" with ")?;
    Some((column.parse().ok()?, operator.replace('\\', "")))
}

/// Each group says what the fault is and why no test can tell, and has patterns.
#[test]
fn each_group_of_patterns_has_its_reason() {
    let Some(settings) = settings() else { return };
    let groups = groups(&settings);
    assert!(groups.len() > 10, "{} groups", groups.len());
    for group in groups {
        let words = [&group.part, &group.fault, &group.reason];
        assert!(words.iter().all(|words| !words.is_empty()), "{group:?}");
        assert!(!group.patterns.is_empty(), "{group:?}");
    }
}

/// Each function, type and file that a pattern names is one of the crate's.
#[test]
fn each_pattern_names_what_there_is() {
    let Some(settings) = settings() else { return };
    let (functions, sources) = (functions(), sources());
    let code = sources.iter().flat_map(|(_, text)| text.lines());
    let code =
        code.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let words: Vec<_> = code.split(|c: char| !c.is_alphanumeric()).collect();
    let mut unknown = Vec::new();
    for Pattern { text, .. } in groups(&settings).into_iter().flat_map(|group| group.patterns) {
        if let Some(Err(error)) = named(&text).map(|named| named.find(&functions).map(drop)) {
            unknown.push(format!("{error}: {text}"));
        }
        if file_in(&text).is_some_and(|file| !sources.iter().any(|(path, _)| path == file)) {
            unknown.push(format!("there is no such file: {text}"));
        }
        let types = text.replace("\\b", " ");
        let types = types.split(|c: char| !c.is_alphanumeric());
        let types = types.filter(|word| word.starts_with(char::is_uppercase));
        unknown.extend(
            types.filter(|word| !words.contains(word)).map(|word| format!("{word}: {text}")),
        );
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// A pattern with a column means the code that is quoted behind it, in one line of the function.
#[test]
fn each_column_is_that_of_the_code_beside_it() {
    let Some(settings) = settings() else { return };
    let functions = functions();
    for Pattern { text, code } in groups(&settings).into_iter().flat_map(|group| group.patterns) {
        let Some((column, operator)) = operator_in(&text) else {
            assert_eq!(code, "", "no column: {text}");
            continue;
        };
        let function = named(&text).expect("a function").find(&functions).expect("it is there");
        let lines: Vec<_> = function.lines.iter().filter(|line| line.contains(&code)).collect();
        let [line] = lines[..] else { panic!("`{code}` is in {} lines: {text}", lines.len()) };
        let within = code.find(&format!(" {operator} ")).expect("the operator is quoted") + 1;
        let found = line.find(&code).expect("it is there") + within + 1;
        assert_eq!(found, column, "`{operator}` of `{code}` is in another column: {text}");
    }
}

/// Each file or pattern of files into which faults are put matches a source.
#[test]
fn faults_are_put_into_files_that_there_are() {
    let Some(settings) = settings() else { return };
    let (_, globs) = settings.split_once("\nexamine_globs = [\n").expect("the files");
    let (globs, _) = globs.split_once("\n]").expect("the end of the files");
    let globs: Vec<_> = globs.lines().map(|line| line.trim().trim_matches(['"', ','])).collect();
    assert!(globs.len() > 5, "{globs:?}");
    for glob in globs {
        let (before, after) = glob.split_once("**/*").unwrap_or((glob, ""));
        let fits = |path: &str| match after {
            "" => path == before,
            _ => path.starts_with(before) && path.ends_with(after),
        };
        assert!(sources().iter().any(|(path, _)| fits(path)), "no source is {glob}");
    }
}

/// The parts above, on settings made up for it.
#[test]
fn patterns_are_read_with_their_reasons() {
    let settings = r"
exclude_re = [
    # Part: heap
    # Fault: nothing is
    # moved
    # Reason: it does not matter
    ':9: replace \|\| with && in Heap<.., E>::sift$', # a || b
    'src/heap.rs:\d+: replace [-+] with [-+]$',
]
";
    let groups = groups(settings);
    let [Group { part, fault, reason, patterns }] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!([part, fault, reason], ["heap", "nothing is moved", "it does not matter"]);
    assert_eq!(operator_in(&patterns[0].text), Some((9, "||".to_owned())));
    assert_eq!((patterns[0].code.as_str(), patterns[1].code.as_str()), ("a || b", ""));
    assert_eq!(file_in(&patterns[1].text), Some("src/heap.rs"));
    let path = |pattern| named(pattern).map(|named| (named.path(), named.of_trait));
    assert_eq!(path(&patterns[0].text), Some(("Heap::sift".to_owned(), String::new())));
    assert_eq!(path(&patterns[1].text), None);
    assert_eq!(path("replace key -> u8 with"), Some(("key".to_owned(), String::new())));
    let of_trait = path("replace < with > in <impl Source<E> for Queue<E>>::head$");
    assert_eq!(of_trait, Some(("Queue::head".to_owned(), "Source".to_owned())));
}
