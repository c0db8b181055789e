//! The style of the pictures: our own colour is strong, the others are muted, one for each
//! language.

use std::path::Path;

use anyhow::{Context, Result};
use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        FontStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::roster::{MACHINE, OURS, Peer, Program, ROSTER};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) const TEXT: RGBColor = RGBColor(33, 37, 41);
pub(super) const FAINT: RGBColor = RGBColor(110, 118, 125);
pub(super) const GRID: RGBColor = RGBColor(226, 229, 233);
pub(super) const OUR_COLOUR: RGBColor = RGBColor(214, 51, 22);

const FONT: &str = "sans-serif";

/// The colour of a peer.
pub(super) fn colour(peer: &Peer) -> RGBColor {
    match peer.program {
        _ if peer.name == OURS => OUR_COLOUR,
        Program::Rust => RGBColor(158, 142, 126),
        Program::Java17 | Program::Java25 => RGBColor(112, 142, 178),
        Program::Go => RGBColor(96, 164, 160),
        Program::Cpp => RGBColor(160, 126, 168),
    }
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

/// The peers that do not count in the comparison, and why.
pub(super) fn disqualified() -> Vec<String> {
    let others = ROSTER.iter().filter(|peer| peer.name != MACHINE);
    others.filter_map(|peer| Some(format!("{}, {}", peer.name, peer.disqualified?))).collect()
}

/// The height of the title, and of a line of the notes at the foot.
const TITLE: u32 = 46;
const NOTE: u32 = 20;
const MARGIN: i32 = 20;

/// Writes it, and returns its height.
pub(super) fn panel_title(area: &Area<'_>, title: &str) -> Result<u32> {
    area.draw_text(title, &bold(15, TEXT), (MARGIN, 0))?;
    Ok(28)
}

/// A picture with a title and notes, and the space that is left between them.
pub(super) fn picture<'a>(
    file: &'a Path,
    (width, height): (u32, u32),
    title: &str,
    notes: &[String],
) -> Result<(Area<'a>, Area<'a>)> {
    let root = SVGBackend::new(file, (width, height)).into_drawing_area();
    root.fill(&WHITE).with_context(|| format!("cannot draw {}", file.display()))?;
    root.draw_text(title, &bold(20, TEXT), (MARGIN, 16))?;
    let foot = height - NOTE * notes.len() as u32 - 8;
    for (line, note) in (0..).zip(notes) {
        root.draw_text(note, &text(13, FAINT), (MARGIN, foot as i32 + line * NOTE as i32))?;
    }
    let (_, rest) = root.split_vertically(TITLE);
    let (middle, _) = rest.split_vertically(foot - TITLE - 12);
    Ok((root, middle))
}
