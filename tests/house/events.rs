//! The page of the events says what the code does: `docs/events.md` against `src/trace.rs`.

use std::{collections::BTreeMap, fs};

use crate::root;

/// The events and spans, by message or name: the level, and the fields in order.
type Events = BTreeMap<String, (String, Vec<String>)>;

fn read(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(path).expect("the file")
}

/// The text up to the parenthesis that closes the one before it.
fn arguments(text: &str) -> &str {
    let mut depth = 0_u32;
    let mut in_text = false;
    for (place, letter) in text.char_indices() {
        match letter {
            '"' => in_text = !in_text,
            _ if in_text => {}
            '(' => depth += 1,
            ')' if depth == 0 => return &text[..place],
            ')' => depth -= 1,
            _ => {}
        }
    }
    panic!("nothing closes it: {text}")
}

/// The parts between the commas that are in no parentheses and in no text.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut in_text, mut found) = (0_u32, 0, false, Vec::new());
    for (place, letter) in text.char_indices() {
        match letter {
            '"' => in_text = !in_text,
            _ if in_text => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    found.push(text[begin..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// The text in quotes at the end of a part, if it is one; what is filled in is an ellipsis.
fn literal(part: &str) -> Option<String> {
    let text = part.strip_suffix('"')?.rsplit('"').next()?;
    let mut shown = text.to_owned();
    while let (Some(begin), Some(end)) = (shown.find('{'), shown.find('}')) {
        shown.replace_range(begin..=end, "…");
    }
    Some(shown)
}

/// The content of one call of a macro: the message or the name, and the fields.
fn said(call: &str) -> (String, Vec<String>) {
    let (mut name, mut fields) = (None, Vec::new());
    for part in parts(arguments(call)) {
        let is_field = part.contains(" = ") || !part.contains(['"', ':', '$', ' ']);
        if let Some(text) = literal(part).filter(|_| !is_field) {
            name = Some(text);
        } else if is_field {
            let field = part.split(" = ").next().unwrap_or(part);
            fields.push(field.trim_start_matches(['%', '?']).to_owned());
        } else {
            assert!(part.starts_with("target: TARGET"), "{part}");
        }
    }
    (name.unwrap_or_else(|| panic!("no message: {call}")), fields)
}

fn of_the_code() -> Events {
    let code = read("src/trace.rs");
    let code = code.split("#[cfg(not(feature = \"tracing\"))]").next().expect("a part");
    let levels = ["error", "warn", "info", "debug", "trace"];
    let mut events = Events::new();
    for (place, _) in code.match_indices("!(") {
        let before = &code[..place];
        let begin = before.rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let name = &before[begin.map_or(0, |begin| begin + 1)..];
        let level = name.strip_suffix("_span").unwrap_or(name);
        if !levels.contains(&level) {
            continue;
        }
        let (message, fields) = said(&code[place + 2..]);
        let message = if level == name { message } else { format!("span {message}") };
        let before = events.insert(message.clone(), (level.to_owned(), fields));
        assert!(before.is_none(), "{message} is written twice");
    }
    events
}

fn of_the_page() -> Events {
    let page = read("docs/events.md");
    let (_, table) = page.split_once("| event | level | fields | when |").expect("the table");
    let table = table.split("\n\n").next().expect("a part");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [event, level, fields, when] = cells[..] else { panic!("four columns: {row}") };
        assert!(!when.is_empty(), "{event} has no explanation");
        let fields = fields.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (event.replace('`', ""), (level.to_owned(), fields))
    })
    .collect()
}

/// Every event and every span of the code is on the page, with its level and its fields in their order, and
/// there is no other.
#[test]
fn the_page_lists_every_event() {
    let (code, page) = (of_the_code(), of_the_page());
    assert!(code.len() >= 16, "the events are found: {code:#?}");
    for (message, said) in &code {
        assert_eq!(page.get(message), Some(said), "`{message}` on the page");
    }
    for message in page.keys() {
        assert!(code.contains_key(message), "`{message}` is on the page alone");
    }
}

/// The page names the target with which all of them are emitted.
#[test]
fn the_page_names_the_target() {
    let code = read("src/trace.rs");
    let (_, rest) = code.split_once("const TARGET: &str = \"").expect("the target");
    let target = rest.split('"').next().expect("a text");
    assert!(read("docs/events.md").contains(&format!("target is `{target}`")));
    let outside = code.matches("target: ").count() - code.matches("target: TARGET").count();
    assert_eq!(outside, 0, "every call has the target");
}
