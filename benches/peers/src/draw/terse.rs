//! Makes a drawing small. What draws it repeats every attribute of every shape; here shapes and texts that look the same
//! are together, under a class.

use std::fmt::Write;

/// A drawing: the rules of its classes, and its content.
#[derive(Debug, Default)]
pub(super) struct Terse {
    pub(super) rules: String,
    pub(super) content: String,
}

/// All that looks the same.
struct Alike {
    /// What a rule of the style sheet says of it.
    look: String,
    is_text: bool,
    content: String,
}

/// Rewrites the elements of a drawing, one of which is on each line. The classes come in the order of
/// their first elements, and are drawn in that order.
pub(super) fn terse(drawing: &str) -> Terse {
    let mut all: Vec<Alike> = Vec::new();
    let mut lines = drawing.lines();
    while let Some(line) = lines.next() {
        let Some(element) = line.strip_prefix('<').filter(|rest| !rest.starts_with('/')) else {
            continue;
        };
        let text = if element.starts_with("text ") { lines.next() } else { None };
        let (look, content) = rewritten(element, text);
        let at = all.iter().position(|alike| alike.look == look).unwrap_or(all.len());
        if at == all.len() {
            all.push(Alike { look, is_text: text.is_some(), content: String::new() });
        }
        all[at].content.push_str(&content);
    }
    let mut terse = Terse::default();
    for (number, Alike { look, is_text, content }) in (0..).zip(all) {
        let class = class(number);
        let _ = write!(terse.rules, ".{class}{{{look}}}");
        let _ = match is_text {
            true => writeln!(terse.content, "<g class=\"{class}\">\n{content}</g>"),
            false => writeln!(terse.content, "<path class=\"{class}\" d=\"{content}\"/>"),
        };
    }
    terse
}

/// `a`, …, `z`, `a1`, …
fn class(number: u8) -> String {
    let letter = char::from(b'a' + number % 26);
    if number < 26 { letter.to_string() } else { format!("{letter}{}", number / 26) }
}

/// How an element looks, and its place: a text of its own, or a part of a path.
fn rewritten(element: &str, text: Option<&str>) -> (String, String) {
    let number =
        |name| get(element, name).and_then(|it| it.parse::<f64>().ok()).unwrap_or_default();
    let (fill, stroke) = (get(element, "fill").unwrap_or("none"), get(element, "stroke"));
    let faint = match get(element, "opacity") {
        Some("1") | None => String::new(),
        Some(opacity) => format!(";opacity:{opacity}"),
    };
    if let Some(text) = text {
        let size = number("font-size");
        let weight = if get(element, "font-weight").is_some() { "bold " } else { "" };
        let anchor = match get(element, "text-anchor") {
            Some("start") | None => String::new(),
            Some(anchor) => format!(";text-anchor:{anchor}"),
        };
        let look = format!("fill:{fill};font:{weight}{}px sans-serif{anchor}{faint}", tidy(size));
        let y = number("y") + lowered(get(element, "dy").unwrap_or_default()) * size;
        return (
            look,
            format!("<text x=\"{}\" y=\"{}\">{text}</text>\n", tidy(number("x")), tidy(y)),
        );
    }
    if element.starts_with("rect ") {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| tidy(number(name)));
        return (format!("fill:{fill}{faint}"), format!("M{x} {y}h{width}v{height}h-{width}z"));
    }
    if element.starts_with("circle ") {
        // A line without length and with round ends.
        let look =
            format!("stroke:{fill};stroke-width:{};stroke-linecap:round{faint}", 2.0 * number("r"));
        return (look, format!("M{} {}h0", tidy(number("cx")), tidy(number("cy"))));
    }
    let look = format!(
        "fill:none;stroke:{};stroke-width:{}{faint}",
        stroke.unwrap_or("none"),
        number("stroke-width")
    );
    let points = match get(element, "points") {
        Some(points) => points.trim().replace(',', " "),
        None => ["x1", "y1", "x2", "y2"].map(|name| tidy(number(name)).to_string()).join(" "),
    };
    (look, format!("M{points}"))
}

fn get<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    element.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// How far below its place a text stands, in heights of its letters.
fn lowered(by: &str) -> f64 {
    let number = |unit| by.strip_suffix(unit).and_then(|it: &str| it.parse::<f64>().ok());
    number("em").or(number("ex").map(|by| by * 0.54)).unwrap_or_default()
}

/// One digit after the point.
fn tidy(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::{class, terse};

    #[test]
    fn each_class_has_a_name_of_its_own() {
        assert_eq!([0, 25, 26, 52].map(class), ["a", "z", "a1", "a2"]);
    }

    #[test]
    fn what_looks_the_same_is_together() {
        let drawing = "<text x=\"20\" y=\"16\" dy=\"0.76em\" text-anchor=\"end\" font-family=\"sans-serif\" font-size=\"16.129\" \
                       opacity=\"1\" fill=\"#1F2328\" font-weight=\"bold\">\nHow &lt;late\n</text>\n\
                       <rect x=\"1\" y=\"2\" width=\"30\" height=\"4\" opacity=\"0.35\" fill=\"#8C959F\" stroke=\"none\"/>\n\
                       <polyline fill=\"none\" opacity=\"1\" stroke=\"#59636E\" stroke-width=\"1\" points=\"268,452 489,452 \"/>\n\
                       <rect x=\"1\" y=\"8\" width=\"20\" height=\"4\" opacity=\"0.35\" fill=\"#8C959F\" stroke=\"none\"/>\n\
                       <circle cx=\"5\" cy=\"6\" r=\"3\" opacity=\"1\" fill=\"#C82C12\" stroke=\"none\" stroke-width=\"1\"/>\n\
                       <line opacity=\"1\" stroke=\"#59636E\" stroke-width=\"1\" x1=\"80\" y1=\"435\" x2=\"80\" y2=\"84\"/>\n</svg>\n";
        let terse = terse(drawing);
        assert_eq!(
            terse.rules,
            ".a{fill:#1F2328;font:bold 16.1px sans-serif;text-anchor:end}.b{fill:#8C959F;opacity:0.35}\
             .c{fill:none;stroke:#59636E;stroke-width:1}.d{stroke:#C82C12;stroke-width:6;stroke-linecap:round}"
        );
        assert_eq!(
            terse.content,
            "<g class=\"a\">\n<text x=\"20\" y=\"28.3\">How &lt;late</text>\n</g>\n\
             <path class=\"b\" d=\"M1 2h30v4h-30zM1 8h20v4h-20z\"/>\n<path class=\"c\" d=\"M268 452 489 452M80 435 80 84\"/>\n\
             <path class=\"d\" d=\"M5 6h0\"/>\n"
        );
    }
}
