//! A strict parser of Prometheus' text format, version 0.0.4.
//!
//! It accepts what the format's description allows, and no more: a family's lines are together, its type comes before its
//! samples and once, no series comes twice, the names are names, and each value is a number.

use std::collections::{BTreeMap, BTreeSet};

/// The samples of one name: its type, its help, and the value of each series.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Family {
    pub(crate) kind: Option<String>,
    pub(crate) help: Option<String>,
    pub(crate) samples: BTreeMap<Series, f64>,
}

/// The name of a sample, which for a summary may have a suffix, and its labels.
pub(crate) type Series = (String, BTreeMap<String, String>);

pub(crate) type Page = BTreeMap<String, Family>;

/// Parses a page, or says which line is wrong and why.
pub(crate) fn parse(text: &str) -> Result<Page, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        reader.read(line).map_err(|cause| format!("line {}: {cause}: {line:?}", number + 1))?;
    }
    Ok(reader.page)
}

#[derive(Default)]
struct Reader {
    page: Page,
    /// The family whose lines are being read, and those whose lines are over.
    current: String,
    over: BTreeSet<String>,
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or("no text")?;
            let help = unescape(help, false)?;
            let family = self.family(name)?;
            return once(&mut family.help, help, "a second help");
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or("no type")?;
            if !["counter", "gauge", "summary", "histogram", "untyped"].contains(&kind) {
                return Err(format!("no type: {kind}"));
            }
            let family = self.family(name)?;
            if !family.samples.is_empty() {
                return Err("a type after a sample".to_owned());
            }
            return once(&mut family.kind, kind.to_owned(), "a second type");
        }
        if line.starts_with('#') {
            return Err("a comment that is neither".to_owned());
        }
        self.sample(line)
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let end = line.find(['{', ' ']).ok_or("no value")?;
        let (name, rest) = line.split_at(end);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (BTreeMap::new(), rest),
        };
        let value = value.strip_prefix(' ').ok_or("no space before the value")?;
        let value = number(value).ok_or("no number")?;
        let is_current = |name: &str| name == self.current;
        let summed = ["_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let family = summed.filter(|name| is_current(name)).unwrap_or(name).to_owned();
        let family = self.family(&family)?;
        match family.kind.as_deref() {
            Some("counter") if !(value >= 0.0 && value.is_finite()) => {
                return Err("no count".to_owned());
            }
            Some("summary") => {
                let quantile = labels.get("quantile").and_then(|text| number(text));
                let is_quantile = quantile.is_some_and(|part| (0.0..=1.0).contains(&part));
                if summed.is_some() == labels.contains_key("quantile")
                    || summed.is_none() != is_quantile
                {
                    return Err("no sample of a summary".to_owned());
                }
            }
            _ => {}
        }
        match family.samples.insert((name.to_owned(), labels), value) {
            Some(_) => Err("the series comes twice".to_owned()),
            None => Ok(()),
        }
    }

    /// The family of the line; all its lines have to be together.
    fn family(&mut self, name: &str) -> Result<&mut Family, String> {
        if !is_name(name, true) {
            return Err(format!("no name: {name:?}"));
        }
        if name != self.current {
            if self.over.contains(name) {
                return Err("the family comes again".to_owned());
            }
            self.over.insert(std::mem::replace(&mut self.current, name.to_owned()));
        }
        Ok(self.page.entry(name.to_owned()).or_default())
    }
}

fn once(place: &mut Option<String>, text: String, twice: &str) -> Result<(), String> {
    match place.replace(text) {
        Some(_) => Err(twice.to_owned()),
        None => Ok(()),
    }
}

/// Letters, digits and underscores, with a colon in the names of metrics, and no digit at the beginning.
fn is_name(text: &str, may_have_colon: bool) -> bool {
    let is_letter = |letter: char| {
        letter.is_ascii_alphabetic() || letter == '_' || (may_have_colon && letter == ':')
    };
    text.starts_with(is_letter)
        && text.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

/// Parses labels up to the closing brace, and returns what follows it.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (name, value) = rest.split_once("=\"").ok_or("no label")?;
        if !is_name(name, false) {
            return Err(format!("no name of a label: {name:?}"));
        }
        let is_end = |(index, letter): (usize, char)| {
            let before = value[..index].bytes().rev().take_while(|byte| *byte == b'\\').count();
            (letter == '"' && before % 2 == 0).then_some(index)
        };
        let end = value.char_indices().find_map(is_end).ok_or("a label that does not end")?;
        if labels.insert(name.to_owned(), unescape(&value[..end], true)?).is_some() {
            return Err(format!("the label comes twice: {name}"));
        }
        rest = &value[end + 1..];
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return Err("no comma between labels".to_owned()),
        }
    }
}

/// The text without its backslashes. A quote is escaped in a label alone.
fn unescape(text: &str, in_label: bool) -> Result<String, String> {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        plain.push(match (letter, in_label) {
            ('\\', _) => match letters.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if in_label => '"',
                other => return Err(format!("no escape: {other:?}")),
            },
            (letter, _) => letter,
        });
    }
    Ok(plain)
}

/// A number as Go writes it; no timestamp may follow.
fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        text if text.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// The parser refuses what is not in the format, and reads what is.
#[test]
fn the_parser_is_strict() {
    let wrong = [
        "a 1",
        "a\n",
        "a one\n",
        "a inf\n",
        "a  1\n",
        "1a 1\n",
        "a-b 1\n",
        "a{b=\"c\"}1\n",
        "a{b=c} 1\n",
        "a{b=\"c} 1\n",
        "a{1=\"c\"} 1\n",
        "a{b:=\"c\"} 1\n",
        "a{b=\"c\"d=\"e\"} 1\n",
        "a{b=\"c\",b=\"d\"} 1\n",
        "a{b=\"\\x\"} 1\n",
        "a 1\na 2\n",
        "a 1\nb 1\na{c=\"d\"} 2\n",
        "a 1 2\n",
        "# TYPE a counter\n# TYPE a counter\na 1\n",
        "# TYPE a counter\na -1\n",
        "# TYPE a counter\na +Inf\n",
        "# TYPE a number\na 1\n",
        "# TYPE a\n",
        "# HELP a\n",
        "# HELP a b\n# HELP a b\n",
        "# HELP a \\t\n",
        "a 1\n# TYPE a gauge\n",
        "# TYPE a summary\na{quantile=\"2\"} 1\n",
        "# TYPE a summary\na 1\n",
        "# TYPE a summary\na_sum{quantile=\"0.5\"} 1\n",
        "# what\n",
    ];
    for text in wrong {
        assert!(parse(text).is_err(), "{text:?}: {:?}", parse(text));
    }
    let text = "# HELP a one\\n\\\\\n# TYPE a summary\na{b=\"\\\"\\\\\\n,}\",quantile=\"0.5\"} NaN\n\
                a_sum{b=\"\"} 1.5e-3\na_count 2\n\nb{} +Inf\n";
    let page = parse(text).expect("it is right");
    assert_eq!(page.keys().collect::<Vec<_>>(), ["a", "b"]);
    let a = &page["a"];
    assert_eq!((a.help.as_deref(), a.kind.as_deref()), (Some("one\n\\"), Some("summary")));
    assert!(a.samples.keys().any(|(_, labels)| labels.get("b").is_some_and(|b| b == "\"\\\n,}")));
    assert_eq!(a.samples.len(), 3);
    assert_eq!(parse(""), Ok(Page::new()));
}
