//! A screen as a picture, in SVG.
//!
//! Letters are text. Frames and bars are drawn, because a font may leave gaps between their characters. The colours
//! are classes, and those who read in the dark get others.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter, Write},
};

use vt100::{Cell, Color, Screen};

/// The size of a cell.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const MARGIN: f32 = 12.0;

/// The names of the classes, with the colour in the light and in the dark.
const COLOURS: [(&str, &str, &str); 5] = [
    ("ground", "#ffffff", "#0d1117"),
    ("text", "#1f2328", "#e6edf3"),
    ("red", "#cf222e", "#ff7b72"),
    ("green", "#1a7f37", "#3fb950"),
    ("yellow", "#9a6700", "#d29922"),
];

/// How a cell looks.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    colour: &'static str,
    behind: Option<&'static str>,
    is_bold: bool,
    is_dim: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let colour = match cell.fgcolor() {
            Color::Idx(1 | 9) => "red",
            Color::Idx(2 | 10) => "green",
            Color::Idx(3 | 11) => "yellow",
            _ => "text",
        };
        let (colour, behind) =
            if cell.inverse() { ("ground", Some(colour)) } else { (colour, None) };
        Self { colour, behind, is_bold: cell.bold(), is_dim: cell.dim() }
    }
}

/// Draws the screen.
pub(crate) fn draw(screen: &Screen) -> String {
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let (width, height) = (tidy(across(columns) + MARGIN), tidy(down(rows) + MARGIN));
    let mut drawing = Drawing::default();
    for row in 0..rows {
        let cell = |column| screen.cell(row, column).expect("it is inside");
        let mut column = 0;
        while column < columns {
            // As many cells as look the same, and are of the same kind.
            let look = Look::of(cell(column));
            let is_drawn = is_drawn(cell(column));
            let alike = |other: &u16| {
                Look::of(cell(*other)) == look && self::is_drawn(cell(*other)) == is_drawn
            };
            let end = (column..columns).take_while(alike).last().expect("the first is") + 1;
            let cells: Vec<_> = (column..end).map(|column| cell(column).contents()).collect();
            drawing.piece((row, column), look, is_drawn, &cells);
            column = end;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>The example program top</title>\n\
         <desc>A screen of a terminal: a list of tasks with their states, next runs, lateness and run times.</desc>\n{}\
         <rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\" stroke=\"#8c959f\"/>\n{drawing}</svg>\n",
        style(),
        width - 1.0,
        height - 1.0
    )
}

fn style() -> String {
    let rules = |pick: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let rule = |colour: &(&'static str, _, _)| match colour.0 {
            // The colour of what has no class.
            "text" => format!("path,text{{fill:{}}}", pick(colour)),
            name => format!(".{name}{{fill:{}}}", pick(colour)),
        };
        COLOURS.iter().map(rule).collect::<String>()
    };
    let (light, dark) = (rules(|colour| colour.1), rules(|colour| colour.2));
    format!(
        "<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}}path{{shape-rendering:crispEdges}}\
         .bold{{font-weight:bold}}.dim{{opacity:.75}}\n{light}\n@media(prefers-color-scheme:dark){{{dark}}}</style>\n"
    )
}

fn across(columns: u16) -> f32 {
    MARGIN + f32::from(columns) * WIDTH
}

fn down(rows: u16) -> f32 {
    MARGIN + f32::from(rows) * HEIGHT
}

/// One digit after the point is enough.
fn tidy(length: f32) -> f32 {
    (length * 10.0).round() / 10.0
}

/// Returns `true` for the characters that are drawn.
fn is_drawn(cell: &Cell) -> bool {
    cell.contents().starts_with(['─', '│', '┌', '┐', '└', '┘']) || eighths(cell.contents()) > 0
}

/// How much of a cell a bar fills.
fn eighths(text: &str) -> u16 {
    let letter = text.chars().next().map_or(0, u32::from);
    // From the lowest eighth to the full block.
    if (0x2581..=0x2588).contains(&letter) { (letter - 0x2580) as u16 } else { 0 }
}

/// A rectangle: its left upper corner, its width and its height.
type Rectangle = [f32; 4];

/// The layers above the ground: the rectangles of each colour, and then the texts.
#[derive(Default)]
struct Drawing {
    rectangles: BTreeMap<&'static str, Vec<Rectangle>>,
    texts: String,
}

impl Drawing {
    /// Adds neighbouring cells of one look.
    fn piece(&mut self, (row, column): (u16, u16), look: Look, is_drawn: bool, cells: &[&str]) {
        let y = down(row);
        let count = u16::try_from(cells.len()).expect("a row is short");
        if let Some(behind) = look.behind {
            self.rectangle(behind, [across(column), y, f32::from(count) * WIDTH, HEIGHT]);
        }
        if is_drawn {
            for (column, cell) in (column..).zip(cells) {
                self.drawn(look.colour, across(column), y, cell);
            }
            return;
        }
        let text: String =
            cells.iter().map(|cell| if cell.is_empty() { " " } else { *cell }).collect();
        let classes =
            [(look.colour, look.colour != "text"), ("bold", look.is_bold), ("dim", look.is_dim)];
        let classes: Vec<_> =
            classes.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
        let class = match classes.join(" ") {
            none if none.is_empty() => none,
            some => format!(" class=\"{some}\""),
        };
        let base = tidy(y + 13.5);
        let mut column = column;
        // A viewer of SVG keeps one space, and not several.
        for phrase in text.split("  ") {
            let blank = phrase.len() - phrase.trim_start().len();
            let x = tidy(across(column + u16::try_from(blank).expect("a row is short")));
            column += u16::try_from(phrase.chars().count()).expect("a row is short") + 2;
            let phrase = phrase.trim().replace('&', "&amp;").replace('<', "&lt;");
            if !phrase.is_empty() {
                let phrase = phrase.replace('>', "&gt;");
                let _ = writeln!(self.texts, "<text{class} x=\"{x}\" y=\"{base}\">{phrase}</text>");
            }
        }
    }

    /// Adds a part of a frame, or of a bar.
    fn drawn(&mut self, colour: &'static str, x: f32, y: f32, cell: &str) {
        let filled = eighths(cell);
        if filled > 0 {
            let height = HEIGHT * f32::from(filled) / 8.0;
            // A little of the ground stays between two bars.
            return self.rectangle(colour, [x, y + HEIGHT - height, WIDTH - 1.0, height]);
        }
        let (middle, centre) = (y + HEIGHT / 2.0, x + WIDTH / 2.0);
        let (half, rest) = (WIDTH / 2.0 + 1.0, HEIGHT / 2.0 + 1.0);
        let mut bar = |is_there: bool, rectangle| {
            if is_there {
                self.rectangle(colour, rectangle);
            }
        };
        bar(cell == "─", [x, middle, WIDTH, 1.0]);
        bar(cell == "│", [centre, y, 1.0, HEIGHT]);
        bar("┌└".contains(cell), [centre, middle, half, 1.0]);
        bar("┐┘".contains(cell), [x, middle, half, 1.0]);
        bar("┌┐".contains(cell), [centre, middle, 1.0, rest]);
        bar("└┘".contains(cell), [centre, y, 1.0, rest]);
    }

    /// Adds a rectangle, or makes one longer that ends where this one begins.
    fn rectangle(&mut self, colour: &'static str, [x, y, width, height]: Rectangle) {
        let near = |one: f32, other: f32| (one - other).abs() < 0.05;
        let others = self.rectangles.entry(colour).or_default();
        for other in others.iter_mut() {
            let [left, top, wide, high] = *other;
            if near(top, y) && near(high, height) && near(left + wide, x) {
                other[2] += width;
                return;
            }
            if near(left, x) && near(wide, width) && near(top + high, y) {
                other[3] += height;
                return;
            }
        }
        others.push([x, y, width, height]);
    }
}

impl Display for Drawing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (colour, rectangles) in &self.rectangles {
            match *colour {
                "text" => f.write_str("<path d=\"")?,
                name => write!(f, "<path class=\"{name}\" d=\"")?,
            }
            for rectangle in rectangles {
                let [x, y, width, height] = rectangle.map(tidy);
                write!(f, "M{x} {y}h{width}v{height}h-{width}z")?;
            }
            f.write_str("\"/>\n")?;
        }
        f.write_str(&self.texts)
    }
}

/// A picture has what is on the screen: the letters, the colours, the frame, a bar, and what is special to SVG.
#[test]
fn a_screen_is_drawn() {
    let size = |count| std::num::NonZeroU16::new(count).expect("it is one");
    let mut parser = vt100::Parser::new(size(2), size(8), 0);
    parser.process("a<\x1b[31;1m&\x1b[0m──\x1b[7mx\x1b[0m\x1b[32m▄\x1b[0m\r\nb c  d".as_bytes());
    let svg = draw(parser.screen());
    for part in [
        "viewBox=\"0 0 91.2 60\"",
        "<text x=\"12\" y=\"25.5\">a&lt;</text>",
        "<text class=\"red bold\" x=\"28.8\" y=\"25.5\">&amp;</text>",
        "<path d=\"M37.2 21h16.8v1h-16.8zM54 12h8.4v18h-8.4z\"/>",
        "<text class=\"ground\" x=\"54\" y=\"25.5\">x</text>",
        "<path class=\"green\" d=\"M62.4 21h7.4v9h-7.4z\"/>",
        "<text x=\"12\" y=\"43.5\">b c</text>",
        "<text x=\"54\" y=\"43.5\">d</text>",
    ] {
        assert!(svg.contains(part), "{part} is not in\n{svg}");
    }
    assert_eq!(svg.matches("<text ").count(), 5, "{svg}");
}
