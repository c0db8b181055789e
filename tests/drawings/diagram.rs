//! A picture of boxes and arrows, as data, and how it is drawn.
//!
//! An arrow begins and ends at a side of a box, so it stays with the box when that is moved. A name in a box is a
//! name from the source; [`names`](crate::names) compares the two.

use crate::{
    palette::{FAINT, TEXT},
    svg::{Anchor, Frame, Letters, Picture, Point, WIDTH},
};

/// A picture of boxes and arrows.
pub(crate) struct Diagram {
    /// The name of its file, without `.svg`.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    /// What it shows, in words.
    pub(crate) description: &'static str,
    /// The files in which its names are declared.
    pub(crate) sources: &'static [&'static str],
    pub(crate) height: f32,
    pub(crate) boxes: &'static [Node],
    pub(crate) arrows: &'static [Arrow],
    pub(crate) remarks: &'static [Remark],
}

/// A box: a name from the source, and words about it.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) says: &'static [&'static str],
    pub(crate) at: Point,
    pub(crate) size: Point,
    pub(crate) frame: Frame,
}

/// A line from one end to another.
pub(crate) struct Arrow {
    pub(crate) from: End,
    /// The corners on its way.
    pub(crate) via: &'static [Point],
    pub(crate) to: End,
    /// What makes it happen, each line at its place.
    pub(crate) says: &'static [Remark],
    pub(crate) is_dashed: bool,
}

/// Where an arrow begins or ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// At the box with that name, on this side of it, so far from the middle of the side.
    Of(&'static str, Side, f32),
    /// Outside of all boxes.
    At(f32, f32),
}

#[derive(Clone, Copy)]
pub(crate) enum Side {
    Left,
    Right,
    Top,
    Bottom,
}

/// Text outside of boxes. What is in backticks is a name from the source.
pub(crate) struct Remark {
    pub(crate) text: &'static str,
    pub(crate) at: Point,
    pub(crate) anchor: Anchor,
}

/// A box with a plain frame.
pub(crate) const fn node(
    name: &'static str,
    at: Point,
    size: Point,
    says: &'static [&'static str],
) -> Node {
    Node { name, says, at, size, frame: Frame::Plain }
}

/// A remark that begins at its point.
pub(crate) const fn says(x: f32, y: f32, text: &'static str) -> Remark {
    Remark { text, at: (x, y), anchor: Anchor::Start }
}

impl Node {
    pub(crate) const fn framed(self, frame: Frame) -> Self {
        Self { frame, ..self }
    }

    fn side(&self, side: Side, off: f32) -> Point {
        let ((x, y), (width, height)) = (self.at, self.size);
        match side {
            Side::Left => (x, y + height / 2.0 + off),
            Side::Right => (x + width, y + height / 2.0 + off),
            Side::Top => (x + width / 2.0 + off, y),
            Side::Bottom => (x + width / 2.0 + off, y + height),
        }
    }

    fn draw(&self, picture: &mut Picture) {
        picture.frame(self.at, self.size, self.frame);
        let middle = self.at.0 + self.size.0 / 2.0;
        let lines = self.says.len() as f32;
        // The name is higher than the lines under it. Letters stand a third of their height below the middle.
        let top = self.at.1 + (self.size.1 - 20.0 - 18.0 * lines) / 2.0;
        if !self.name.is_empty() {
            picture.text((middle, top + 15.5), Anchor::Middle, Letters::Code, TEXT, self.name);
        }
        for (index, line) in self.says.iter().enumerate() {
            let base = top + 34.0 + 18.0 * index as f32;
            picture.text((middle, base), Anchor::Middle, Letters::Words, FAINT, line);
        }
    }
}

impl Remark {
    pub(crate) const fn centred(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub(crate) const fn ending(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    /// A remark is either a name or words, so that no text has to be put together from pieces of unknown width.
    fn parts(&self) -> (Letters, &'static str) {
        match self.text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
            Some(name) => (Letters::SmallCode, name),
            None => (Letters::Words, self.text),
        }
    }

    fn draw(&self, picture: &mut Picture) {
        let (letters, text) = self.parts();
        picture.text(self.at, self.anchor, letters, FAINT, text);
    }

    /// How far it reaches to the left and to the right.
    fn extent(&self) -> (f32, f32) {
        let (letters, text) = self.parts();
        let (width, x) = (letters.width(text), self.at.0);
        match self.anchor {
            Anchor::Start => (x, x + width),
            Anchor::Middle => (x - width / 2.0, x + width / 2.0),
            Anchor::End => (x - width, x),
        }
    }
}

impl Diagram {
    pub(crate) fn draw(&self) -> String {
        let mut picture = Picture::new(self.height, self.title, self.description);
        picture.text((20.0, 34.0), Anchor::Start, Letters::Title, TEXT, self.title);
        // A box that surrounds others is before them in the list.
        for node in self.boxes {
            node.draw(&mut picture);
        }
        for arrow in self.arrows {
            let mut points = vec![self.end(arrow.from)];
            points.extend(arrow.via);
            points.push(self.end(arrow.to));
            picture.arrow(&points, FAINT, arrow.is_dashed);
        }
        for remark in self.all_remarks() {
            remark.draw(&mut picture);
        }
        picture.finish()
    }

    /// Its remarks and those of its arrows.
    pub(crate) fn all_remarks(&self) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().chain(self.arrows.iter().flat_map(|arrow| arrow.says))
    }

    /// The names of the source that it uses.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let remarks = self.all_remarks().map(Remark::parts);
        let code = remarks.filter(|(letters, _)| matches!(letters, Letters::SmallCode));
        let boxes = self.boxes.iter().map(|node| node.name).filter(|name| !name.is_empty());
        boxes.chain(code.map(|(_, text)| text))
    }

    fn end(&self, end: End) -> Point {
        match end {
            End::At(x, y) => (x, y),
            End::Of(name, side, off) => {
                let node = self.boxes.iter().find(|node| node.name == name);
                node.unwrap_or_else(|| panic!("{name} is no box")).side(side, off)
            }
        }
    }

    /// Everything has room, with wide fonts as well: words in their box, and the rest in the picture.
    pub(crate) fn has_room(&self) {
        assert!(Letters::Title.width(self.title) < WIDTH - 30.0, "{}", self.title);
        for node in self.boxes {
            let says = node.says.iter().map(|line| Letters::Words.width(line));
            let widest = says.fold(Letters::Code.width(node.name), f32::max);
            assert!(widest <= node.size.0 - 8.0, "{}: {} is too wide", self.file, node.name);
            let lines =
                if node.name.is_empty() { 0.0 } else { 20.0 + 18.0 * node.says.len() as f32 };
            assert!(lines <= node.size.1, "{}: {} is too low", self.file, node.name);
            let (right, bottom) = (node.at.0 + node.size.0, node.at.1 + node.size.1);
            assert!(right <= WIDTH - 8.0 && bottom <= self.height - 8.0, "{}", node.name);
        }
        for remark in self.all_remarks() {
            let (left, right) = remark.extent();
            assert!(left >= 8.0 && right <= WIDTH - 8.0, "{}: {}", self.file, remark.text);
            assert!(remark.at.1 <= self.height - 8.0, "{}: {}", self.file, remark.text);
        }
    }
}
