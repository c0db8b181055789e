//! The colours of the pictures, which are those of all pictures of the documents (`docs/pictures`).
//!
//! Each colour has a value for a light page and one for a dark page. A picture has a ground of its own, so it can
//! be read on either page, whichever the viewer prefers; the preference decides only which ground that is.

/// Red, green and blue.
pub(crate) type Rgb = (u8, u8, u8);

/// One colour, by what it is for.
#[derive(Clone, Copy)]
pub(crate) struct Colour {
    pub(crate) light: Rgb,
    pub(crate) dark: Rgb,
}

const fn colour(light: Rgb, dark: Rgb) -> Colour {
    Colour { light, dark }
}

/// The ground on which everything is drawn.
pub(crate) const GROUND: Colour = colour((255, 255, 255), (13, 17, 23));
/// Lines that only guide the eye.
pub(crate) const GRID: Colour = colour((209, 217, 224), (61, 68, 77));
/// Titles, names, and what is said.
pub(crate) const TEXT: Colour = colour((31, 35, 40), (230, 237, 243));
/// Remarks, frames and arrows.
pub(crate) const FAINT: Colour = colour((89, 99, 110), (145, 152, 161));
/// The subject of the picture.
pub(crate) const STRONG: Colour = colour((200, 44, 18), (255, 123, 92));

/// Such as `#1f2328`.
pub(crate) fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// How far two colours are apart in brightness, from 1 to 21, as the Web Content Accessibility Guidelines count it.
#[cfg(test)]
pub(crate) fn contrast(one: Rgb, other: Rgb) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = |(red, green, blue): Rgb| {
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

/// Whatever is written can be read.
#[test]
fn text_stands_out() {
    assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
    for ink in [TEXT, FAINT, STRONG] {
        for (ink, ground) in [(ink.light, GROUND.light), (ink.dark, GROUND.dark)] {
            assert!(contrast(ink, ground) >= 4.5, "{ink:?} on {ground:?}");
        }
    }
}
