//! A picture, in SVG: lines, boxes, words and arrows in the colours of the [palette](crate::palette).
//!
//! A picture is [`WIDTH`] units wide and its text is 14 or 16 units high, so that it can be read on a telephone as
//! well, where it is shown at about half of its size. The colours are classes; those who read in the dark get
//! others. The fonts are the reader's own. Their widths differ, so nothing may depend on where a text ends: text in
//! a box is centred, and has room on both sides.

use std::fmt::{Display, Write};

use crate::palette::{self, Colour, hex};

/// The width of every picture.
pub(crate) const WIDTH: f32 = 600.0;

/// A point, in units of the picture: to the right, and down.
pub(crate) type Point = (f32, f32);

/// Where a text is, relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The letters of a text: what it is written with.
#[derive(Clone, Copy)]
pub(crate) enum Letters {
    /// The name of a picture or of a part of it.
    Title,
    /// Names from the source.
    Code,
    /// The same, smaller.
    SmallCode,
    /// A sentence that explains something.
    Words,
}

impl Letters {
    fn class(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Code => "code",
            Self::SmallCode => "code small",
            Self::Words => "small",
        }
    }

    /// How wide a text is at most, with the wide fonts of Debian.
    pub(crate) fn width(self, text: &str) -> f32 {
        let letter = match self {
            Self::Title => 11.2,
            Self::Code => 9.7,
            Self::SmallCode => 8.5,
            Self::Words => 7.9,
        };
        letter * text.chars().count() as f32
    }
}

/// A picture that is being drawn.
pub(crate) struct Picture {
    height: f32,
    head: String,
    body: String,
}

impl Picture {
    /// An empty picture. The title says what it shows, and the description says it to those who cannot see it.
    pub(crate) fn new(height: f32, title: &str, description: &str) -> Self {
        let head = format!(
            "<title>{}</title>\n<desc>{}</desc>\n{}",
            escaped(title),
            escaped(description),
            style()
        );
        Self { height, head, body: String::new() }
    }

    fn add(&mut self, element: impl Display) {
        let _ = writeln!(self.body, "{element}");
    }

    /// Writes a text on one line; its point is on the line on which the letters stand.
    pub(crate) fn text(
        &mut self,
        (x, y): Point,
        anchor: Anchor,
        letters: Letters,
        ink: Colour,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = format!("{} {}", ink.name, letters.class());
        let (x, y) = (tidy(x), tidy(y));
        let text = escaped(text);
        self.add(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// A rectangle that is filled.
    pub(crate) fn bar(&mut self, (x, y): Point, (width, height): Point, fill: Colour) {
        let (x, y, width, height) = (tidy(x), tidy(y), tidy(width), tidy(height));
        self.add(format_args!(
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\"/>",
            fill.name
        ));
    }

    /// A box with a frame.
    pub(crate) fn frame(&mut self, (x, y): Point, (width, height): Point, look: Frame) {
        let (x, y, width, height) = (tidy(x), tidy(y), tidy(width), tidy(height));
        let class = look.class();
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
        ));
    }

    /// A line through these points.
    pub(crate) fn line(&mut self, points: &[Point], ink: Colour, is_dashed: bool) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, tidy(*x), tidy(*y));
        }
        let dashed = if is_dashed { " dashed" } else { "" };
        self.add(format_args!("<path class=\"{}-line{dashed}\" d=\"{path}\"/>", ink.name));
    }

    /// A line with a point at its end.
    pub(crate) fn arrow(&mut self, points: &[Point], ink: Colour, is_dashed: bool) {
        let [.., before, end] = points else { return };
        let (dx, dy) = (end.0 - before.0, end.1 - before.1);
        let length = dx.hypot(dy);
        let (dx, dy) = (dx / length, dy / length);
        // The line ends inside its point, which is nine long and as wide.
        let neck = (end.0 - 9.0 * dx, end.1 - 9.0 * dy);
        let mut points = points.to_vec();
        points.pop();
        points.push((neck.0 + dx, neck.1 + dy));
        self.line(&points, ink, is_dashed);
        let corner = |side: f32| (tidy(neck.0 - side * dy), tidy(neck.1 + side * dx));
        let (left, right, end) = (corner(-4.5), corner(4.5), (tidy(end.0), tidy(end.1)));
        self.add(format_args!(
            "<path class=\"{}\" d=\"M{} {}L{} {}L{} {}Z\"/>",
            ink.name, left.0, left.1, end.0, end.1, right.0, right.1
        ));
    }

    /// The text of the file.
    pub(crate) fn finish(self) -> String {
        let Self { height, head, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
             {head}\
             <rect class=\"ground grid-line\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n\
             {body}</svg>\n",
            WIDTH - 1.0,
            height - 1.0
        )
    }
}

/// How the frame of a box looks.
#[derive(Clone, Copy)]
pub(crate) enum Frame {
    Plain,
    /// What the picture is about.
    Strong,
    /// Inside a plain one.
    Inner,
    /// Something that is only there at times, or that surrounds others.
    Dashed,
}

impl Frame {
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "panel faint-line",
            Self::Strong => "panel strong-line",
            Self::Inner => "ground grid-line",
            Self::Dashed => "ground faint-line dashed",
        }
    }
}

fn style() -> String {
    let rules = |pick: fn(&Colour) -> palette::Rgb| -> String {
        let rule = |colour: &Colour| {
            let (name, value) = (colour.name, hex(pick(colour)));
            format!(".{name}{{fill:{value}}}.{name}-line{{stroke:{value}}}")
        };
        palette::ALL.iter().map(rule).collect()
    };
    let (light, dark) = (rules(|colour| colour.light), rules(|colour| colour.dark));
    format!(
        "<style>text{{font:16px sans-serif}}.title{{font-weight:bold}}.small{{font-size:14px}}\
         .code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}}\
         path{{fill:none;stroke-width:1.5;stroke-linejoin:round}}rect{{stroke-width:1.2}}.dashed{{stroke-dasharray:5 4}}\n\
         {light}\n@media(prefers-color-scheme:dark){{{dark}}}</style>\n"
    )
}

/// Two digits after the point are enough.
fn tidy(length: f32) -> f32 {
    (length * 100.0).round() / 100.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
