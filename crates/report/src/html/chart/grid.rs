//! Grids of coloured cells. Large cells contain their figures.

use maud::{Markup, html};

use super::{Margins, frame, percent, px, room};

/// Number of colours from low to high; the middle one is pale.
const SHADES: usize = 11;
/// In a grid with more rows or columns than this, all cells of a colour are one path, without
/// titles.
const MAX_DETAILED: usize = 64;
/// Maximum number of areas along each side of a grid. Areas have titles if cells have none.
const MAX_AREAS: usize = 64;
/// Width of a digit in a cell, in pixels.
const DIGIT: f64 = 7.5;

#[derive(Clone, Copy, Debug)]
pub(in crate::html) enum Shades {
    /// From fast to slow, on a logarithmic scale.
    Log { low: f64, high: f64 },
    /// From a speed-up of `most` down to 0. The pale colour is a speed-up of 1.
    SpeedUp { most: f64 },
}

impl Shades {
    fn of(self, value: f64) -> usize {
        let share = match self {
            Shades::Log { low, high } => (value / low).ln() / (high / low).ln(),
            Shades::SpeedUp { most } if value >= 1.0 => 0.5 - 0.5 * value.ln() / most.ln(),
            Shades::SpeedUp { .. } => 1.0 - 0.5 * value,
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        (share * (SHADES - 1) as f64).round() as usize
    }

    fn class(self, value: f64) -> String {
        if value.is_finite() { format!("h{}", self.of(value)) } else { "h-none".into() }
    }
}

pub(in crate::html) fn scale_of_colours(low: &str, high: &str, reversed: bool) -> Markup {
    html! {
        p class="shades" { (low) span class=(if reversed { "ramp reversed" } else { "ramp" }) {} (high) } "\n"
    }
}

#[derive(Clone, Debug)]
pub(in crate::html) struct Cell {
    pub(in crate::html) value: f64,
    pub(in crate::html) text: String,
}

/// Weight of a line. Lines between rows and between columns are at the same indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::html) enum Edge {
    Heavy,
    Medium,
    Light,
}

impl Edge {
    fn class(self) -> &'static str {
        match self {
            Edge::Heavy => "edge heavy",
            Edge::Medium => "edge medium",
            Edge::Light => "edge light",
        }
    }
}

pub(in crate::html) struct Grid<'a> {
    pub(in crate::html) label: &'a str,
    pub(in crate::html) rows: &'a [String],
    pub(in crate::html) columns: &'a [String],
    pub(in crate::html) axes: [&'a str; 2],
    pub(in crate::html) shades: Shades,
    /// By row and column.
    pub(in crate::html) cells: &'a dyn Fn(usize, usize) -> Option<Cell>,
    /// Empty if row, column and figure say everything.
    pub(in crate::html) title: &'a dyn Fn(usize, usize) -> String,
    pub(in crate::html) area: &'a dyn Fn([usize; 2], [usize; 2]) -> String,
    /// An edge with index i is drawn before row i and before column i.
    pub(in crate::html) edges: &'a [(usize, Edge)],
    /// In pixels.
    pub(in crate::html) size: (f64, f64),
}

impl Grid<'_> {
    pub(in crate::html) fn draw(&self) -> Markup {
        let (columns, rows) = (self.columns.len(), self.rows.len());
        let height = rows as f64 * self.size.1;
        let margins = Margins {
            left: room(self.rows.iter().map(String::as_str), 90.0) + 12.0,
            right: 14.0,
            top: 24.0,
            bottom: 42.0,
        };
        let detailed = columns.max(rows) <= MAX_DETAILED;
        let texts = || (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let longest = if detailed {
            let cells = texts().filter_map(|(row, column)| (self.cells)(row, column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        } else {
            0
        };
        let narrowest = longest as f64 * DIGIT + 4.0;
        let figures = longest > 0 && narrowest <= self.size.0;
        let y = |row: usize| (row as f64 + 0.5) * self.size.1;
        let x = |column: usize| percent((column as f64 + 0.5) / columns as f64);
        let drawing = html! {
            svg viewBox={ "0 0 " (columns) " " (rows) } preserveAspectRatio="none" width="100%" height=(px(height)) class=(if detailed { "cells" } else { "cells many" }) {
                @if detailed { (self.detailed()) } @else { (self.coarse()) }
            } "\n"
            @if figures {
                @for (row, column) in texts() {
                    @if let Some(cell) = (self.cells)(row, column) {
                        text class="cell" x=(x(column)) y=(px(y(row) + 4.0)) { (cell.text) }
                    }
                }
                "\n"
            }
            @for (index, edge) in self.edges {
                @let (x, y) = (percent(*index as f64 / columns as f64), px(*index as f64 * self.size.1));
                line class=(edge.class()) x1=(x) x2=(x) y1="0" y2=(px(height)) {}
                line class=(edge.class()) x1="0" x2="100%" y1=(y) y2=(y) {}
            }
            "\n"
            @for (nth, (index, name)) in every(self.columns, 20).enumerate() {
                text class=(if nth % 2 == 1 && columns > 8 { "tick middle odd" } else { "tick middle" }) x=(x(index)) y=(px(height + 17.0)) { (name) }
            }
            @for (index, name) in every(self.rows, (height / 18.0) as usize) {
                text class="tick end" x="0" dx="-9" y=(px(y(index) + 4.0)) { (name) }
            }
            text class="axis" x="50%" y=(px(height + 36.0)) { (self.axes[1]) }
            text class="axis start" x=(px(16.0 - margins.left)) y="-11" { (self.axes[0]) }
        };
        let width = margins.left + margins.right + columns as f64 * self.size.0;
        let least = if figures { narrowest * columns as f64 } else { 0.0 };
        html! {
            div class="grid" style={ "width:" (px(width + 2.0)) "px;--least:" (px(least)) "px" } { "\n"
                (frame("cells", self.label, &margins, height, html! {}, drawing))
            } "\n"
        }
    }

    fn detailed(&self) -> Markup {
        html! {
            @for row in 0..self.rows.len() {
                @for column in 0..self.columns.len() {
                    @if let Some(cell) = (self.cells)(row, column) {
                        @let title = (self.title)(row, column);
                        path class=(self.shades.class(cell.value)) d={ "M" (column) " " (row) "h1v1h-1z" } { @if !title.is_empty() { title { (title) } } } "\n"
                    }
                }
            }
        }
    }

    /// One path per colour for all cells of that colour, and titles for areas.
    fn coarse(&self) -> Markup {
        let (columns, rows) = (self.columns.len(), self.rows.len());
        let mut paths = vec![String::new(); SHADES];
        for row in 0..rows {
            let shade = |column| (self.cells)(row, column).map(|cell| self.shades.of(cell.value));
            let mut from = 0;
            let mut of = shade(0);
            for column in 1..=columns {
                let next = if column < columns { shade(column) } else { None };
                if column == columns || next != of {
                    if let Some(of) = of {
                        paths[of].push_str(&format!("M{from} {row}.5h{}", column - from));
                    }
                    (from, of) = (column, next);
                }
            }
        }
        html! {
            @for (shade, path) in paths.iter().enumerate() {
                @if !path.is_empty() { path class={ "s" (shade) } d=(path) {} "\n" }
            }
            @for [top, bottom] in self.areas(rows) {
                @for [left, right] in self.areas(columns) {
                    @let title = (self.area)([top, bottom], [left, right]);
                    @if !title.is_empty() {
                        path class="hit" d={ "M" (left) " " (top) "h" (right - left) "v" (bottom - top) "h-" (right - left) "z" } { title { (title) } } "\n"
                    }
                }
            }
        }
    }

    /// Ranges between edges that are not light. Without such edges, or with too many, the ranges
    /// have equal lengths.
    fn areas(&self, count: usize) -> Vec<[usize; 2]> {
        let inner = self.edges.iter().filter(|(_, edge)| *edge != Edge::Light);
        let inner = inner.map(|(index, _)| *index).filter(|index| (1..count).contains(index));
        let mut ends: Vec<usize> = inner.chain([count]).collect();
        if !(2..=MAX_AREAS).contains(&ends.len()) {
            let step = count.div_ceil(MAX_AREAS / 2).max(1);
            ends = (1..count).filter(|index| index % step == 0).chain([count]).collect();
        }
        let mut from = 0;
        ends.into_iter().map(|end| [std::mem::replace(&mut from, end), end]).collect()
    }
}

/// At most `most` names, evenly spaced, with their indices.
fn every(names: &[String], most: usize) -> impl Iterator<Item = (usize, &String)> {
    let stride = names.len().div_ceil(most.max(1)).max(1);
    names.iter().enumerate().step_by(stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_span_their_range_and_take_any_figure() {
        let cheap = Shades::Log { low: 10.0, high: 1000.0 };
        assert_eq!([10.0, 100.0, 1000.0].map(|value| cheap.of(value)), [0, 5, 10]);
        let speed_up = Shades::SpeedUp { most: 8.0 };
        assert_eq!([8.0, 1.0, 0.0].map(|value| speed_up.of(value)), [0, 5, 10]);
        let equal = Shades::Log { low: 10.0, high: 10.0 };
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 10.0] {
            for shades in [cheap, speed_up, equal, Shades::SpeedUp { most: 1.0 }] {
                assert!(shades.of(odd) < SHADES, "{odd}");
            }
        }
    }

    fn draw(count: usize, edges: &[(usize, Edge)]) -> String {
        let names: Vec<String> = (0..count).map(|name| name.to_string()).collect();
        let cell = |row: usize, column: usize| {
            let value = if row < count / 2 { 10.0 } else { 1000.0 };
            (row != column).then(|| Cell { value, text: "1.0".into() })
        };
        let grid = Grid {
            label: "test",
            rows: &names,
            columns: &names,
            axes: ["CPU"; 2],
            shades: Shades::Log { low: 10.0, high: 1000.0 },
            cells: &cell,
            title: &|row, column| format!("CPUs {row} and {column}: <1 ns"),
            area: &|rows, columns| format!("{rows:?} {columns:?}"),
            edges,
            size: (40.0, 40.0),
        };
        grid.draw().into_string()
    }

    #[test]
    fn each_cell_of_a_small_grid_has_a_title_and_a_figure() {
        let page = draw(4, &[(2, Edge::Heavy)]);
        assert_eq!(page.matches("<title>CPUs").count(), 12);
        assert_eq!(page.matches(r#"class="cell""#).count(), 12);
        assert!(page.contains("CPUs 0 and 1: &lt;1 ns"));
        assert!(page.contains(r#"class="edge heavy" x1="50%""#), "{page}");
    }

    #[test]
    fn a_large_grid_has_a_path_for_each_colour_and_titles_for_its_areas() {
        let page = draw(200, &[(100, Edge::Heavy)]);
        assert_eq!(page.matches(r#"<path class="s"#).count(), 2);
        assert_eq!(page.matches("<title>").count(), 4);
        assert!(page.contains("[0, 100] [100, 200]") && page.len() < 20_000, "{}", page.len());
        assert!(draw(500, &[]).matches("<title>").count() <= MAX_AREAS * MAX_AREAS);
    }

    #[test]
    fn a_grid_of_one_cell_or_none_is_drawn() {
        for count in [0, 1] {
            let page = draw(count, &[]);
            assert!(page.contains("<svg") && !page.contains("NaN"), "{count}");
        }
    }
}
