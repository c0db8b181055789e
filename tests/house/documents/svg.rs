//! Pictures as a test reads them: the elements of an SVG file, with what they say.
//!
//! The reader knows as much of XML as the pictures use, and refuses everything else.

use std::{collections::BTreeMap, fs};

use super::root;

/// A point, in units of the picture: to the right, and down.
pub(crate) type Point = (f32, f32);

/// An element, and the text directly in it.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn get(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).map(String::as_str)
    }

    pub(crate) fn number(&self, attribute: &str) -> f32 {
        self.get(attribute).and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.get("class").is_some_and(|classes| classes.split(' ').any(|one| one == class))
    }

    pub(crate) fn at(&self) -> Point {
        (self.number("x"), self.number("y"))
    }

    pub(crate) fn size(&self) -> Point {
        (self.number("width"), self.number("height"))
    }

    /// Returns `true` if the point is in this rectangle, or on its border.
    pub(crate) fn has(&self, (x, y): Point) -> bool {
        let ((left, top), (width, height)) = (self.at(), self.size());
        (left..=left + width).contains(&x) && (top..=top + height).contains(&y)
    }
}

/// The elements of a picture, in their order: a picture of the documents, by the name of its file without `.svg`.
pub(crate) fn picture(file: &str) -> Vec<Element> {
    let path = root().join(format!("docs/pictures/{file}.svg"));
    let text = fs::read_to_string(path).expect("the picture");
    parse(&text).unwrap_or_else(|error| panic!("{file}.svg: {error}"))
}

/// Reads the elements, or says what is not well-formed.
pub(crate) fn parse(text: &str) -> Result<Vec<Element>, String> {
    let (mut elements, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut pieces = text.split('<');
    if pieces.next() != Some("") {
        return Err("text before the first element".to_owned());
    }
    for piece in pieces {
        let (tag, after) = piece.split_once('>').ok_or(format!("<{piece} does not end"))?;
        if let Some(name) = tag.strip_prefix('/') {
            let ended = open.pop().map(|index| elements[index].name.as_str());
            if ended != Some(name) {
                return Err(format!("</{name}> ends {ended:?}"));
            }
        } else {
            if open.is_empty() && !elements.is_empty() {
                return Err(format!("<{tag}> is after the end"));
            }
            if !tag.ends_with('/') {
                open.push(elements.len());
            }
            elements.push(element(tag.trim_end_matches('/'))?);
        }
        match open.last() {
            Some(&index) => elements[index].text += &unescaped(after)?,
            None if after.trim().is_empty() => {}
            None => return Err(format!("text after the end: {after}")),
        }
    }
    if open.is_empty() { Ok(elements) } else { Err("an element is left open".to_owned()) }
}

/// The text between `<` and `>`: `text class="code" x="2"`.
fn element(tag: &str) -> Result<Element, String> {
    let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
    let mut element = Element { name: name.to_owned(), ..Element::default() };
    while !rest.trim().is_empty() {
        let broken = || format!("<{tag}> has a broken attribute");
        let (key, value) = rest.trim_start().split_once("=\"").ok_or_else(broken)?;
        let (value, after) = value.split_once('"').ok_or_else(broken)?;
        if element.attributes.insert(key.to_owned(), unescaped(value)?).is_some() {
            return Err(format!("<{tag}> has {key} twice"));
        }
        rest = after;
    }
    let is_name = |text: &str| text.starts_with(char::is_alphabetic) && !text.contains(['"', ' ']);
    let names = element.attributes.keys().chain([&element.name]);
    if names.into_iter().all(|name| is_name(name)) { Ok(element) } else { Err(tag.to_owned()) }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = text.to_owned();
    for (escaped, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "\u{0}")] {
        plain = plain.replace(escaped, letter);
    }
    if plain.contains('&') {
        Err(format!("a bare & in {text}"))
    } else {
        Ok(plain.replace('\u{0}', "&"))
    }
}

#[test]
fn a_picture_that_is_not_well_formed_is_refused() {
    let good = parse("<svg a=\"1\">\n<text x=\"2\">a &lt;&amp; b</text><rect/>\n</svg>\n")
        .expect("it is good");
    let texts: Vec<_> =
        good.iter().map(|element| (element.name.as_str(), element.text.trim())).collect();
    assert_eq!(texts, [("svg", ""), ("text", "a <& b"), ("rect", "")]);
    assert!(good[1].number("x") == 2.0 && good[1].get("y").is_none());
    for broken in [
        "<svg>",
        "<svg></a>",
        "<svg/>x",
        "x<svg/>",
        "<svg/><svg/>",
        "<svg a=1/>",
        "<svg a=\"1/>",
        "<svg a=\"1\" a=\"2\"/>",
        "<svg>a & b</svg>",
        "<svg",
        "<svg><text></svg></text>",
    ] {
        assert!(parse(broken).is_err(), "{broken}");
    }
}

/// The boxes of a picture that have a name, each with its name.
pub(crate) fn boxes(elements: &[Element]) -> Vec<(&Element, &str)> {
    let named = |pair: &'_ [Element]| {
        let is_box = pair[0].name == "rect" && pair[1].name == "text";
        is_box && pair[1].has_class("code") && pair[0].has(pair[1].at())
    };
    let pairs = elements.windows(2).filter(|pair| named(pair));
    pairs.map(|pair| (&pair[0], pair[1].text.as_str())).collect()
}
