//! The layers of the crate, as `src/lib.rs` has them: its comments name the layers, and its `mod` lines the modules.

use crate::{
    names::source,
    palette::{FAINT, TEXT},
    svg::{Anchor, Frame, Letters, Picture, WIDTH},
};

/// A layer of the crate.
struct Layer {
    /// Such as `Layer 3: the pool of workers`.
    title: String,
    modules: Vec<Module>,
}

struct Module {
    name: String,
    /// It is there only with a feature.
    is_optional: bool,
}

/// The layers from the top to the bottom.
fn layers(source: &str) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut is_optional = false;
    for line in source.lines() {
        if let Some(title) = line.strip_prefix("// Layer ") {
            let title = format!("Layer {}", title.trim_end_matches('.'));
            layers.push(Layer { title, modules: Vec::new() });
        }
        let named = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod "));
        if let (Some(name), Some(layer)) = (named, layers.last_mut()) {
            let name = name.trim_end_matches(';').to_owned();
            layer.modules.push(Module { name, is_optional });
        }
        is_optional = line.starts_with("#[cfg(feature");
    }
    layers
}

const LEFT: f32 = 52.0;
const RIGHT: f32 = WIDTH - 28.0;
const CHIP: f32 = 28.0;

/// Where each module of a layer is, relative to the first row: its row, its left end and its width.
fn places(modules: &[Module]) -> Vec<(usize, f32, f32)> {
    let (mut row, mut x) = (0, LEFT);
    let place = |module: &Module| {
        let width = Letters::SmallCode.width(&module.name) + 16.0;
        if x + width > RIGHT {
            (row, x) = (row + 1, LEFT);
        }
        let place = (row, x, width);
        x += width + 8.0;
        place
    };
    modules.iter().map(place).collect()
}

/// The title of a layer in lines that fit.
fn lines(title: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in title.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if Letters::Words.width(line) + Letters::Words.width(word) > RIGHT - LEFT - 8.0 {
            lines.push(word.to_owned());
        } else {
            let gap = if line.is_empty() { "" } else { " " };
            line.push_str(gap);
            line.push_str(word);
        }
    }
    lines
}

pub(crate) fn draw() -> String {
    let layers = layers(&source("src/lib.rs"));
    let heights: Vec<_> = layers.iter().map(height).collect();
    let all: f32 = heights.iter().map(|height| height + 14.0).sum();
    let mut picture = Picture::new(
        all + 98.0,
        "The layers of the crate",
        "The modules of the crate in five layers. A module uses modules of lower layers.",
    );
    picture.text((20.0, 34.0), Anchor::Start, Letters::Title, TEXT, "The layers of the crate");
    let mut top = 54.0;
    for (layer, height) in layers.iter().zip(heights) {
        draw_layer(&mut picture, layer, top, height);
        top += height + 14.0;
    }
    picture.arrow(&[(24.0, 64.0), (24.0, top - 20.0)], FAINT, false);
    let remark = "The arrow: a module uses modules of lower layers.";
    picture.text((20.0, top + 8.0), Anchor::Start, Letters::Words, FAINT, remark);
    let remark = "Dashed: a module that a feature adds.";
    picture.text((20.0, top + 28.0), Anchor::Start, Letters::Words, FAINT, remark);
    picture.finish()
}

fn height(layer: &Layer) -> f32 {
    let rows = places(&layer.modules).last().map_or(0, |(row, ..)| row + 1);
    16.0 + 18.0 * lines(&layer.title).len() as f32 + (CHIP + 8.0) * rows as f32
}

fn draw_layer(picture: &mut Picture, layer: &Layer, top: f32, height: f32) {
    picture.frame((LEFT - 12.0, top), (RIGHT - LEFT + 24.0, height), Frame::Plain);
    let lines = lines(&layer.title);
    for (index, line) in lines.iter().enumerate() {
        let base = top + 21.0 + 18.0 * index as f32;
        picture.text((LEFT, base), Anchor::Start, Letters::Words, FAINT, line);
    }
    let first = top + 12.0 + 18.0 * lines.len() as f32;
    for (module, (row, x, width)) in layer.modules.iter().zip(places(&layer.modules)) {
        let y = first + (CHIP + 8.0) * row as f32;
        let frame = if module.is_optional { Frame::Dashed } else { Frame::Inner };
        picture.frame((x, y), (width, CHIP), frame);
        let middle = (x + width / 2.0, y + 19.0);
        picture.text(middle, Anchor::Middle, Letters::SmallCode, TEXT, &module.name);
    }
}

/// Every module of the crate is in the picture, from the top layer to the lowest.
#[test]
fn every_module_has_its_layer() {
    let source = source("src/lib.rs");
    let layers = layers(&source);
    for (layer, number) in layers.iter().zip(["4", "3", "2", "1", "0"]) {
        assert!(layer.title.starts_with(&format!("Layer {number}: ")), "{}", layer.title);
    }
    assert_eq!(layers.len(), 5);
    let modules = layers.iter().map(|layer| layer.modules.len()).sum::<usize>();
    let is_module = |line: &&str| line.starts_with("mod ") || line.starts_with("pub mod ");
    // The lines before the first layer are documentation.
    let below = source.split_once("\n// Layer ").expect("the first").1;
    let declared = below.lines().filter(is_module).count();
    assert_eq!(modules, declared);
    let of = |optional| -> Vec<&str> {
        let all = layers.iter().flat_map(|layer| &layer.modules);
        all.filter(|module| module.is_optional == optional)
            .map(|module| module.name.as_str())
            .collect()
    };
    let (always, optional) = (of(false), of(true));
    assert!(
        ["pool", "queue", "sync", "task"].iter().all(|name| always.contains(name)),
        "{always:?}"
    );
    assert!(["histogram", "metrics"].iter().all(|name| optional.contains(name)), "{optional:?}");
}
