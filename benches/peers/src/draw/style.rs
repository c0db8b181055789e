//! The style of the pictures: our own colour is strong, and each peer that is drawn as a line has a colour that
//! readers with any kind of colour vision can tell from the others.
//!
//! The ground and the letters are those of all pictures of the documents. A picture has a ground of its own, and is drawn in its
//! light colours; rules that are added to the file replace them for those who read in the dark.
//! A picture is as wide as a column of text, so that its text is not much smaller than that of the page.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        FontStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::{
    palette::{self, Colour, Rgb},
    terse::{Terse, terse},
};
use crate::roster::{MACHINE, OURS, Peer, ROSTER};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const fn rgb((red, green, blue): Rgb) -> RGBColor {
    RGBColor(red, green, blue)
}

pub(super) const TEXT: RGBColor = rgb(palette::TEXT.light);
pub(super) const FAINT: RGBColor = rgb(palette::FAINT.light);
pub(super) const GRID: RGBColor = rgb(palette::GRID.light);
pub(super) const OUR_COLOUR: RGBColor = rgb(palette::STRONG.light);
/// A bar of another peer.
pub(super) const OTHERS: RGBColor = rgb(BAR.light);

const BAR: Colour = Colour { light: (140, 149, 159), dark: (118, 127, 137) };

/// The peers that are drawn as lines, each with its colour. More lines than these cannot be told apart; the tables
/// have the others.
///
/// The hues are Okabe's and Ito's, made darker or lighter where the ground asks for it. Ours is their vermilion.
const LINES: [(&str, Colour); 7] = [
    ("jdk25-stpe-roc", line((0, 96, 160), (86, 156, 230))), // blue
    ("jdk25-fjp", line((40, 146, 208), (150, 210, 245))),   // sky
    ("go", line((0, 128, 94), (0, 180, 134))),              // green
    ("asio", line((176, 78, 138), (226, 148, 192))),        // purple
    ("scheduled-thread-pool", line((178, 112, 0), (236, 172, 40))), // orange
    ("tokio", line((48, 52, 58), (214, 220, 228))),         // black
    ("delayqueue", line((138, 132, 18), (240, 228, 110))),  // yellow
];

const fn line(light: Rgb, dark: Rgb) -> Colour {
    Colour { light, dark }
}

/// Everything that a picture is drawn with.
fn colours() -> impl Iterator<Item = Colour> {
    let all = [palette::GROUND, palette::TEXT, palette::FAINT, palette::GRID, palette::STRONG, BAR];
    all.into_iter().chain(LINES.map(|(_, colour)| colour))
}

const FONT: &str = "sans-serif";

/// The colour of a peer's line; `None` if it is not drawn as a line.
pub(super) fn colour(peer: &Peer) -> Option<RGBColor> {
    if peer.name == OURS {
        return Some(OUR_COLOUR);
    }
    let (_, colour) = LINES.iter().find(|(name, _)| *name == peer.name)?;
    Some(rgb(colour.light))
}

/// The peers, ours last: it is drawn over the others.
pub(super) fn peers() -> impl Iterator<Item = &'static Peer> {
    let is_ours = |peer: &&Peer| peer.name == OURS;
    let others = ROSTER.iter().filter(move |peer| !is_ours(peer) && peer.name != MACHINE);
    others.chain(ROSTER.iter().filter(is_ours))
}

pub(super) fn text(size: u32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(&colour)
}

pub(super) fn bold(size: u32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().style(FontStyle::Bold).color(&colour)
}

/// Text that ends, or begins, at the point where it is drawn, and is centred on its height.
pub(super) fn ending(style: TextStyle<'static>) -> TextStyle<'static> {
    style.pos(Pos::new(HPos::Right, VPos::Center))
}

pub(super) fn beginning(style: TextStyle<'static>) -> TextStyle<'static> {
    style.pos(Pos::new(HPos::Left, VPos::Center))
}

/// The peers that are not comparable, and why.
pub(super) fn disqualified() -> Vec<String> {
    let others = ROSTER.iter().filter(|peer| peer.name != MACHINE);
    others.filter_map(|peer| Some(format!("{} ({})", peer.label, peer.disqualified?))).collect()
}

/// The width of a picture, the height of the title and of a line of the notes at the foot.
pub(super) const WIDTH: u32 = 640;
const TITLE: u32 = 52;
const NOTE: u32 = 20;
const MARGIN: i32 = 20;
/// How many letters of a note are on one line.
const NOTE_LETTERS: usize = 74;

/// The sizes of text. They are those of fonts; letters are four fifths as high.
pub(super) const SMALL: u32 = 17;
pub(super) const LARGE: u32 = 19;

/// Writes it, and returns its height.
pub(super) fn panel_title(area: &Area<'_>, title: &str) -> Result<u32> {
    area.draw_text(title, &bold(LARGE, TEXT), (MARGIN, 0))?;
    Ok(32)
}

/// The content of a picture.
pub(super) struct Subject<'a> {
    pub(super) title: &'a str,
    /// The same for those who cannot see it.
    pub(super) description: &'a str,
    /// The notes that a reader needs.
    pub(super) notes: &'a [String],
}

/// Draws a picture with a title and notes; `draw` has the space between them, which has that height.
pub(super) fn picture(
    file: &Path,
    height: u32,
    subject: &Subject<'_>,
    draw: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<()> {
    let notes: Vec<_> = subject.notes.iter().flat_map(|note| lines(note)).collect();
    let foot = TITLE + height + 12;
    let root = SVGBackend::new(file, (WIDTH, foot + NOTE * notes.len() as u32 + 8));
    let root = root.into_drawing_area();
    root.fill(&WHITE).with_context(|| format!("cannot draw {}", file.display()))?;
    root.draw_text(subject.title, &bold(20, TEXT), (MARGIN, 16))?;
    for (line, note) in (0..).zip(&notes) {
        root.draw_text(note, &text(SMALL, FAINT), (MARGIN, foot as i32 + line * NOTE as i32))?;
    }
    let (_, rest) = root.split_vertically(TITLE);
    let (middle, _) = rest.split_vertically(height);
    draw(&middle)?;
    root.present()?;
    drop((rest, middle, root));
    let drawn = fs::read_to_string(file)?;
    fs::write(file, dressed(&drawn, subject))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// The words of a note, in lines that are as wide as the picture.
fn lines(note: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in note.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= NOTE_LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The picture in few words, with its title, and with the colours for those who read in the dark.
fn dressed(drawn: &str, subject: &Subject<'_>) -> String {
    let (first, rest) = drawn.split_once('\n').unwrap_or((drawn, ""));
    let Terse { rules: light, content } = terse(rest);
    let mut dark = light.clone();
    for colour in colours() {
        // As they are written in the drawing.
        dark = dark.replace(&palette::hex(colour.light).to_uppercase(), &palette::hex(colour.dark));
    }
    let Subject { title, description, .. } = subject;
    format!(
        "{first}\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <style>{light}\n@media(prefers-color-scheme:dark){{{dark}}}</style>\n{content}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{
        super::palette::{GROUND, contrast},
        *,
    };

    /// A line stands out from the ground as graphics have to, by 3 : 1.
    #[test]
    fn lines_stand_out() {
        for (name, colour) in LINES {
            assert!(contrast(colour.light, GROUND.light) >= 3.0, "{name}");
            assert!(contrast(colour.dark, GROUND.dark) >= 3.0, "{name}");
        }
    }

    /// Readers in the dark get each colour by its light value, so no two may share one.
    #[test]
    fn no_two_colours_are_the_same() {
        let light: std::collections::BTreeSet<_> = colours().map(|colour| colour.light).collect();
        assert_eq!(light.len(), colours().count());
        assert!(LINES.iter().all(|(name, _)| ROSTER.iter().any(|peer| peer.name == *name)));
    }

    #[test]
    fn notes_are_as_wide_as_the_picture() {
        let note = "word ".repeat(40);
        let lines = lines(note.trim());
        assert_eq!(lines.join(" "), note.trim());
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= NOTE_LETTERS));
    }

    #[test]
    fn a_picture_has_a_title_and_colours_for_the_dark() {
        let subject = Subject { title: "Cost", description: "What it costs.", notes: &[] };
        let drawn = "<svg>\n<rect opacity=\"1\" fill=\"#FFFFFF\"/>\n</svg>\n";
        let picture = dressed(drawn, &subject);
        assert!(picture.starts_with("<svg>\n<title>Cost</title>\n"), "{picture}");
        assert!(
            picture
                .contains(".a{fill:#FFFFFF}\n@media(prefers-color-scheme:dark){.a{fill:#0d1117}}"),
            "{picture}"
        );
        assert!(
            picture.ends_with("</style>\n<path class=\"a\" d=\"M0 0h0v0h-0z\"/>\n</svg>\n"),
            "{picture}"
        );
    }
}
