//! Charts as static SVG, used by all parts of the page.
//!
//! Horizontal positions are percentages of the width, vertical positions are pixels. Therefore a
//! chart fits any screen, and its text keeps its size, without a script. Marks have their values as
//! titles, which browsers show on hover. Colours are in the style sheet, for light and dark mode.

mod bands;
mod grid;
mod lines;
mod rows;
mod timeline;

use maud::{Markup, html};
use unicode_width::UnicodeWidthStr;

pub(super) use crate::scale::Axis;
pub(super) use bands::{Band, Bands, Group, Part, Side};
pub(super) use grid::{Cell, Edge, Grid, Shades, scale_of_colours};
pub(super) use lines::{Line, Lines, Point};
pub(super) use rows::{Dot, Dots, Row, Strip, Strips};
pub(super) use timeline::timeline;

/// Number of colours that the style sheet defines.
pub(super) const COLOURS: usize = 10;
/// Mean width of a character in a label, in pixels.
const CHARACTER: f64 = 7.6;
/// Width of a path in its own units. A path is stretched to the width of its chart, so a unit is
/// about a pixel.
const WIDE: f64 = 1000.0;

pub(super) fn colour(number: usize) -> String {
    format!("c{}", number % COLOURS)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Line,
    Dashes,
}

impl Shape {
    const MARKS: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond];

    fn id(self) -> &'static str {
        match self {
            Shape::Circle => "circle",
            Shape::Square => "square",
            Shape::Triangle => "triangle",
            Shape::Diamond => "diamond",
            Shape::Line => "line",
            Shape::Dashes => "dashes",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Shape::Circle => "M-5.5 0a5.5 5.5 0 1 1 11 0a5.5 5.5 0 1 1-11 0z",
            Shape::Square => "M-4.8-4.8h9.6v9.6h-9.6z",
            Shape::Triangle => "M0-6L6 4.5h-12z",
            Shape::Diamond => "M0-6.5L6.5 0L0 6.5L-6.5 0z",
            Shape::Line | Shape::Dashes => "M-9 0h18",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// CSS class of the entry's marks.
    pub(super) class: String,
}

impl Key {
    pub(super) fn new(name: &str, shape: Shape, class: impl Into<String>) -> Self {
        Key { name: name.to_string(), shape, class: class.into() }
    }
}

pub(super) fn shapes() -> Markup {
    html! {
        svg class="shapes" width="0" height="0" aria-hidden="true" {
            @for shape in Shape::MARKS { path id=(shape.id()) d=(shape.path()) {} }
            (timeline::pattern())
        } "\n"
    }
}

pub(super) fn legend(keys: &[Key]) -> Markup {
    html! {
        @if !keys.is_empty() {
            ul class="legend" { "\n"
                @for key in keys {
                    li {
                        svg class={ "key " (key.shape.id()) " " (key.class) } width="18" height="14" viewBox="-9 -7 18 14" aria-hidden="true" {
                            path d=(key.shape.path()) {}
                        }
                        (key.name)
                    } "\n"
                }
            } "\n"
        }
    }
}

pub(super) fn px(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(-1.0, 2.0) } else { 0.0 };
    let text = format!("{:.2}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}%", if text == "-0" { "0" } else { text })
}

/// Room for the longest label, in pixels.
fn room<'a>(labels: impl Iterator<Item = &'a str>, most: f64) -> f64 {
    let longest = labels.map(UnicodeWidthStr::width).max().unwrap_or(0);
    (longest as f64 * CHARACTER).clamp(14.0, most).ceil()
}

fn short(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_string();
    }
    label.chars().take(most - 1).chain(['…']).collect()
}

/// Pixels around a drawing for the labels of its axes.
struct Margins {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn frame(
    class: &str,
    label: &str,
    margins: &Margins,
    height: f64,
    keys: Markup,
    drawing: Markup,
) -> Markup {
    let Margins { left, right, top, bottom } = margins;
    html! {
        figure class={ "chart " (class) } style={ "--left:" (px(*left)) "px;--right:" (px(*right)) "px" } { "\n"
            (keys)
            svg class="plot" height=(px(height)) style={ "margin:" (px(*top)) "px 0 " (px(*bottom)) "px" } role="img" aria-label=(label) { "\n"
                (drawing)
            } "\n"
        } "\n"
    }
}

/// Vertical gridlines with labels below the drawing and, if `above` is true, also above it.
fn upright(axis: &Axis, height: f64, above: bool) -> Markup {
    html! {
        @for (nth, (value, text)) in axis.ticks.iter().enumerate() {
            @let x = percent(axis.at(*value));
            @let class = if nth % 2 == 1 { "tick middle odd" } else { "tick middle" };
            line class="grid" x1=(x) x2=(x) y1="0" y2=(px(height)) {}
            text class=(class) x=(x) y=(px(height + 18.0)) { (text) }
            @if above { text class=(class) x=(x) y="-9" { (text) } }
        }
        @if !axis.title.is_empty() {
            text class="axis" x="50%" y=(px(height + 38.0)) { (axis.title) }
        }
        "\n"
    }
}

/// Horizontal gridlines with labels to the left of the drawing.
fn level(axis: &Axis, height: f64, left: f64) -> Markup {
    html! {
        @for (value, text) in &axis.ticks {
            @let y = height * (1.0 - axis.at(*value));
            line class="grid" x1="0" x2="100%" y1=(px(y)) y2=(px(y)) {}
            text class="tick end" x="0" dx="-9" y=(px(y + 4.0)) { (text) }
        }
        @if !axis.title.is_empty() {
            text class="axis start" x=(px(16.0 - left)) y="-12" { (axis.title) }
        }
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_and_always_numbers() {
        assert_eq!(px(12.0), "12");
        assert_eq!(px(12.345), "12.3");
        assert_eq!(px(-0.01), "0");
        assert_eq!(percent(0.37255), "37.26%");
        assert_eq!(percent(0.5), "50%");
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((px(odd).as_str(), percent(odd).as_str()), ("0", "0%"));
        }
        assert!(px(f64::MAX).len() < 10 && percent(f64::MIN).len() < 10);
    }

    #[test]
    fn long_labels_lose_their_ends() {
        assert_eq!(short("äöü", 3), "äöü");
        assert_eq!(short("äöüß", 3), "äö…");
        assert!(room(["x".repeat(9000).as_str()].into_iter(), 300.0) <= 300.0);
    }
}
