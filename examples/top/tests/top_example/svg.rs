//! A screen as a picture, in SVG.
//!
//! Letters are text. Frames and bars are drawn, because a font may leave gaps between their characters. The colours
//! are classes, and those who read in the dark get others.

use std::fmt::Write;

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
    let (width, height) = (across(columns) + MARGIN, down(rows) + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>The example program top</title>\n\
         <desc>A screen of a terminal: a list of tasks with their states, next runs, lateness and run times.</desc>\n{}\
         <rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\" stroke=\"#8c959f\"/>\n",
        style(),
        width - 1.0,
        height - 1.0
    );
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
            piece(&mut svg, (row, column), look, is_drawn, &cells);
            column = end;
        }
    }
    svg + "</svg>\n"
}

fn style() -> String {
    let rules = |pick: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let rule =
            |colour: &(&'static str, _, _)| format!(".{}{{fill:{}}}", colour.0, pick(colour));
        COLOURS.iter().map(rule).collect::<String>()
    };
    let (light, dark) = (rules(|colour| colour.1), rules(|colour| colour.2));
    format!(
        "<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}}rect{{shape-rendering:crispEdges}}\
         .bold{{font-weight:bold}}.dim{{opacity:.75}}\n{light}\n@media(prefers-color-scheme:dark){{{dark}}}</style>\n"
    )
}

fn across(columns: u16) -> f32 {
    tidy(MARGIN + f32::from(columns) * WIDTH)
}

fn down(rows: u16) -> f32 {
    tidy(MARGIN + f32::from(rows) * HEIGHT)
}

/// Two digits after the point are enough.
fn tidy(length: f32) -> f32 {
    (length * 100.0).round() / 100.0
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

/// Adds neighbouring cells of one look.
fn piece(svg: &mut String, (row, column): (u16, u16), look: Look, is_drawn: bool, cells: &[&str]) {
    let (x, y) = (across(column), down(row));
    let count = u16::try_from(cells.len()).expect("a row is short");
    let width = tidy(f32::from(count) * WIDTH);
    if let Some(behind) = look.behind {
        rectangle(svg, behind, x, y, width, HEIGHT);
    }
    if is_drawn {
        for (column, cell) in (column..).zip(cells) {
            drawn(svg, look.colour, across(column), y, cell);
        }
        return;
    }
    let text: String = cells.iter().map(|cell| if cell.is_empty() { " " } else { *cell }).collect();
    let (bold, dim) =
        (if look.is_bold { " bold" } else { "" }, if look.is_dim { " dim" } else { "" });
    let (class, base) = (format!("{}{bold}{dim}", look.colour), tidy(y + 13.5));
    let mut column = column;
    // Each word at its place: not every viewer of SVG keeps spaces.
    for word in text.split(' ') {
        let count = u16::try_from(word.chars().count()).expect("a row is short");
        if count > 0 {
            let (x, width) = (across(column), tidy(f32::from(count) * WIDTH));
            let word = word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text class=\"{class}\" x=\"{x}\" y=\"{base}\" textLength=\"{width}\">{word}</text>"
            );
        }
        column += count + 1;
    }
}

/// Adds a part of a frame, or of a bar.
fn drawn(svg: &mut String, colour: &str, x: f32, y: f32, cell: &str) {
    let filled = eighths(cell);
    if filled > 0 {
        let height = tidy(HEIGHT * f32::from(filled) / 8.0);
        // A little of the ground stays between two bars.
        return rectangle(svg, colour, x, tidy(y + HEIGHT - height), WIDTH - 1.0, height);
    }
    let (middle, centre) = (tidy(y + HEIGHT / 2.0), tidy(x + WIDTH / 2.0));
    let (half, rest) = (WIDTH / 2.0 + 1.0, HEIGHT / 2.0 + 1.0);
    let mut bar = |is_there: bool, x, y, width, height| {
        if is_there {
            rectangle(svg, colour, x, y, width, height);
        }
    };
    bar(cell == "─", x, middle, WIDTH, 1.0);
    bar(cell == "│", centre, y, 1.0, HEIGHT);
    bar("┌└".contains(cell), centre, middle, half, 1.0);
    bar("┐┘".contains(cell), x, middle, half, 1.0);
    bar("┌┐".contains(cell), centre, middle, 1.0, rest);
    bar("└┘".contains(cell), centre, y, 1.0, rest);
}

fn rectangle(svg: &mut String, colour: &str, x: f32, y: f32, width: f32, height: f32) {
    let (x, y, width) = (tidy(x), tidy(y), tidy(width));
    let _ = writeln!(
        svg,
        "<rect class=\"{colour}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
    );
}

/// A picture has what is on the screen: the letters, the colours, the frame, a bar, and what is special to SVG.
#[test]
fn a_screen_is_drawn() {
    let size = |count| std::num::NonZeroU16::new(count).expect("it is one");
    let mut parser = vt100::Parser::new(size(2), size(8), 0);
    parser.process("a<\x1b[31;1m&\x1b[0m─\x1b[7mx\x1b[0m\x1b[32m▄\x1b[0m\r\n".as_bytes());
    let svg = draw(parser.screen());
    for part in [
        "viewBox=\"0 0 91.2 60\"",
        "<text class=\"text\" x=\"12\" y=\"25.5\" textLength=\"16.8\">a&lt;</text>",
        "<text class=\"red bold\" x=\"28.8\" y=\"25.5\" textLength=\"8.4\">&amp;</text>",
        "<rect class=\"text\" x=\"37.2\" y=\"21\" width=\"8.4\" height=\"1\"/>",
        "<rect class=\"text\" x=\"45.6\" y=\"12\" width=\"8.4\" height=\"18\"/>",
        "<text class=\"ground\" x=\"45.6\" y=\"25.5\" textLength=\"8.4\">x</text>",
        "<rect class=\"green\" x=\"54\" y=\"21\" width=\"7.4\" height=\"9\"/>",
    ] {
        assert!(svg.contains(part), "{part} is not in\n{svg}");
    }
    assert_eq!(svg.matches("<text ").count(), 3, "{svg}");
}
