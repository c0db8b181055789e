//! The places of the functions of the crate. The pages name a function and not its file, so that a
//! function can be moved in one place.
//!
//! The sources are read line by line, which is enough for sources that are formatted.

use std::fs;

use crate::root;

/// A function of the crate, by the names that the pages have for it.
pub(crate) struct Function {
    pub(crate) file: String,
    /// The type or the trait to which it belongs; empty for a function of a module.
    pub(crate) owner: String,
    /// The trait that the owner implements by it; empty if there is none.
    pub(crate) of_trait: String,
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
}

/// All functions in `src`, except for those in files of tests.
pub(crate) fn functions() -> Vec<Function> {
    let mut found = Vec::new();
    for (file, text) in sources() {
        found.extend(functions_in(&file, &text));
    }
    assert!(found.len() > 800, "{} functions", found.len());
    found
}

/// The path and the text of each source, except for files of tests.
pub(crate) fn sources() -> Vec<(String, String)> {
    let root = root();
    let (mut folders, mut sources) = (vec![root.join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with("tests") || path.ends_with("tests.rs") {
                continue;
            } else if path.is_dir() {
                folders.push(path);
            } else {
                let file = path.strip_prefix(root).expect("it is below").display().to_string();
                sources.push((file, fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    sources.sort();
    sources
}

/// The one function that is meant by `Type::function`, or by `function` for one of a module. With
/// a file `function` may also belong to a type.
pub(crate) fn find<'a>(
    functions: &'a [Function],
    path: &str,
    file: Option<&str>,
) -> Result<&'a Function, String> {
    let (owner, name) = path.rsplit_once("::").unwrap_or(("", path));
    let fits = |f: &&Function| match file {
        Some(file) => f.file == file && f.name == name && (owner.is_empty() || f.owner == owner),
        None => f.name == name && f.owner == owner,
    };
    let found: Vec<_> = functions.iter().filter(fits).collect();
    match found[..] {
        [function] => Ok(function),
        [] => Err(format!("the sources have no function `{path}`")),
        _ => {
            let files: Vec<_> = found.iter().map(|function| &function.file).collect();
            Err(format!("`{path}` may be any of those in {files:?}"))
        }
    }
}

fn functions_in(file: &str, text: &str) -> Vec<Function> {
    let lines: Vec<_> = text.lines().collect();
    // The end of the block that the owner's functions are in, and the owner.
    let mut block: Option<(String, (String, String))> = None;
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        if block.as_ref().is_some_and(|(end, _)| end == line) {
            block = None;
        } else if let Some(owner) = owner_in(&lines[number..]) {
            block = Some((end, owner));
        } else if let Some(name) = name_in(code) {
            let (owner, of_trait) =
                block.as_ref().map(|(_, owner)| owner.clone()).unwrap_or_default();
            let is_short = code.ends_with("{}") || code.ends_with(';');
            let more = lines[number + 1..].iter().position(|line| *line == end);
            let last = if is_short { number } else { number + 1 + more.unwrap_or(0) };
            let lines = lines[number..=last].iter().map(|line| (*line).to_owned()).collect();
            found.push(Function { file: file.to_owned(), owner, of_trait, name, lines });
        }
    }
    found
}

/// The name of the function whose declaration begins here.
fn name_in(code: &str) -> Option<String> {
    let (before, rest) = code.split_once("fn ")?;
    let visible = before.strip_prefix("pub").unwrap_or(before);
    let words = match visible.strip_prefix('(') {
        Some(path) => path.split_once(')')?.1,
        None => visible,
    };
    let are_known = words.split_whitespace().all(|word| ["const", "async"].contains(&word));
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (are_known && !name.is_empty()).then_some(name)
}

/// The type and the trait of the `impl`, or the `trait`, whose block begins with the first line.
fn owner_in(lines: &[&str]) -> Option<(String, String)> {
    let code = lines.first()?.trim_start();
    let is_trait = code.split_whitespace().take(2).any(|word| word == "trait");
    if !(code.starts_with("impl") || is_trait && !code.starts_with("//")) {
        return None;
    }
    let end = lines.iter().position(|line| line.ends_with(['{', '}', ';']))?;
    if !lines[end].ends_with('{') {
        return None;
    }
    let header: Vec<_> = lines[..=end].iter().map(|line| line.trim()).collect();
    let header = header.join(" ");
    match header.strip_prefix("impl") {
        Some(header) if header.starts_with([' ', '<']) => Some(owner_of(header)),
        Some(_) => None,
        None => {
            let header = without_generics(header.split_once("trait ")?.1);
            Some((last_name(&header), String::new()))
        }
    }
}

/// The type and the trait that the words after `impl` name: `<E> Source for Queue<E>`.
pub(crate) fn owner_of(header: &str) -> (String, String) {
    let header = without_generics(header);
    let header = header.split(" where ").next().unwrap_or_default().trim();
    match header.split_once(" for ") {
        Some((of_trait, owner)) => (last_name(owner), last_name(of_trait)),
        None => (last_name(header), String::new()),
    }
}

/// The text without whatever is between `<` and `>`.
pub(crate) fn without_generics(text: &str) -> String {
    let (mut depth, mut before, mut rest) = (0_u32, ' ', String::new());
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => rest.push(c),
            _ => {}
        }
        before = c;
    }
    rest
}

/// The name of a type or trait, without path, reference and bounds: `Queue` of `&mut a::Queue`.
fn last_name(text: &str) -> String {
    let path = [" {", ": ", " + "]
        .into_iter()
        .fold(text, |text, end| text.split(end).next().unwrap_or_default());
    let word = path.split_whitespace().last().unwrap_or_default();
    word.rsplit("::").next().unwrap_or_default().trim_matches(['&', '(', ')', '[', ']']).to_owned()
}

/// The functions of a source made up for it.
#[test]
fn functions_are_found_by_their_type() {
    let source = "
impl<E, F: Fn() -> E> Queue<E, F> {
    pub(in crate::pool) const fn take(&self) -> E {
        fn inner() {}
    }

    fn nothing(&self) {}
}

impl<'a, E> crate::Source<E> for &'a mut Queue<E>
where
    E: for<'b> Fn(&'b u8),
{
    fn take(
        &self,
    ) -> E {
    }
}

pub(crate) trait Source: Sized {
    fn take(&self);
}

// A comment with fn words in it, on a trait.
const fn free() {
}
";
    let found = functions_in("x.rs", source);
    let names: Vec<_> =
        found.iter().map(|f| [f.owner.as_str(), &f.of_trait, &f.name].join(" ")).collect();
    let expected = [
        "Queue  take",
        "Queue  inner",
        "Queue  nothing",
        "Queue Source take",
        "Source  take",
        "  free",
    ];
    assert_eq!(names, expected);
    assert_eq!(found[0].lines.len(), 3);
    assert_eq!(find(&found, "Source::take", None).map(|f| f.lines.len()), Ok(1));
    assert!(find(&found, "free", None).is_ok());
    assert!(find(&found, "Queue::take", None).is_err_and(|error| error.contains("any of")));
    assert!(find(&found, "nothing", None).is_err_and(|error| error.contains("no function")));
    assert!(find(&found, "nothing", Some("x.rs")).is_ok());
}
