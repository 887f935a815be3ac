//! Curves on a terminal, drawn with characters that can be distinguished without colours.

use unicode_width::UnicodeWidthStr;

use super::table::pad_left;
use super::{DIM, Style};
use crate::scale::Axis;

/// Width of the drawing in columns, if the terminal sets no limit.
const WIDTH: usize = 72;
const MIN_WIDTH: usize = 24;

#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// Character between the points.
    pub(super) line: char,
    /// Character at the points; `None` if they are not marked.
    pub(super) mark: Option<char>,
    pub(super) with: anstyle::Style,
    /// Points that are not finite or are below zero are ignored.
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Drawn {
    glyph: char,
    with: anstyle::Style,
}

type Grid = Vec<Vec<Option<Drawn>>>;

/// Draws the curves in `height` rows, later curves over earlier ones. Returns an empty text if the
/// terminal is too narrow.
pub(super) fn plot(x: &Axis, y: &Axis, curves: &[Curve], height: usize, style: &Style) -> String {
    let margin = y.ticks.iter().map(|(_, label)| label.width()).max().unwrap_or(0) + 1;
    let width = style.width.map_or(WIDTH, |width| width.saturating_sub(margin + 1).min(WIDTH));
    if width < MIN_WIDTH {
        return String::new();
    }
    let mut grid: Grid = vec![vec![None; width]; height];
    curves.iter().for_each(|curve| draw(curve, x, y, &mut grid));
    let blank = " ".repeat(margin + 1);
    let mut text = style.paint(DIM, &format!("{blank}{}", y.title)) + "\n";
    for row in (0..height).rev() {
        let tick = y.ticks.iter().find(|(value, _)| cell(y, *value, height) == row);
        let (label, edge) = tick.map_or(("", "│"), |(_, label)| (label.as_str(), "┤"));
        text.push_str(&style.paint(DIM, &format!("{} {edge}", pad_left(label, margin - 1))));
        text.push_str(&line(&grid[row], style));
        text.push('\n');
    }
    text.push_str(&bottom(x, width, margin, style));
    for curve in curves {
        let glyphs = [curve.line, curve.mark.unwrap_or(curve.line), curve.line];
        let mark = style.paint(curve.with, &String::from_iter(glyphs));
        let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(margin + 5).max(1));
        let mut name = textwrap::wrap(&curve.name, room).into_iter();
        text.push_str(&format!("{blank}{mark} {}\n", name.next().unwrap_or_default()));
        name.for_each(|rest| text.push_str(&format!("{blank}    {rest}\n")));
    }
    text
}

/// Row or column of a value; `cells` is the number of rows or columns.
fn cell(axis: &Axis, value: f64, cells: usize) -> usize {
    (axis.at(value) * (cells - 1) as f64).round() as usize
}

/// Draws straight lines between the points, without gaps in steep parts.
fn draw(curve: &Curve, x: &Axis, y: &Axis, grid: &mut Grid) {
    let (width, height) = (grid[0].len(), grid.len());
    let known = curve.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite() && *y >= 0.0);
    let mut points: Vec<(f64, f64)> = known.map(|(px, py)| (x.at(*px), y.at(*py))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let place = |share: f64, cells: usize| (share * (cells - 1) as f64).round() as usize;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let mut before: Option<usize> = None;
    for column in place(first.0, width)..=place(last.0, width) {
        let row = place(between(&points, column as f64 / (width - 1) as f64), height);
        let (low, high) = match before {
            Some(before) if before + 1 < row => (before + 1, row),
            Some(before) if row + 1 < before => (row, before - 1),
            _ => (row, row),
        };
        for line in &mut grid[low..=high] {
            line[column] = Some(Drawn { glyph: curve.line, with: curve.with });
        }
        before = Some(row);
    }
    if let Some(glyph) = curve.mark {
        for (x, y) in &points {
            grid[place(*y, height)][place(*x, width)] = Some(Drawn { glyph, with: curve.with });
        }
    }
}

fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < x);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

fn line(places: &[Option<Drawn>], style: &Style) -> String {
    let mut text = String::new();
    let used = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    for piece in
        places[..used].chunk_by(|a, b| a.map(|drawn| drawn.with) == b.map(|drawn| drawn.with))
    {
        let glyphs: String =
            piece.iter().map(|place| place.map_or(' ', |drawn| drawn.glyph)).collect();
        match piece.first().copied().flatten() {
            Some(drawn) => text.push_str(&style.paint(drawn.with, &glyphs)),
            None => text.push_str(&glyphs),
        }
    }
    text
}

fn bottom(x: &Axis, width: usize, margin: usize, style: &Style) -> String {
    let mut edge = vec!['─'; width];
    let mut labels = String::new();
    for (value, label) in &x.ticks {
        let column = cell(x, *value, width);
        let start = column.saturating_sub(label.width() / 2).min(width - label.width().min(width));
        if labels.is_empty() || start > labels.width() {
            labels.push_str(&" ".repeat(start - labels.width()));
            labels.push_str(label);
            edge[column] = '┬';
        }
    }
    if labels.width() + 2 + x.title.width() <= width {
        labels = format!("{labels}  {}", x.title);
    }
    let edge: String = edge.into_iter().collect();
    let lines = format!("{}└{edge}", " ".repeat(margin));
    let numbers = format!("{}{labels}", " ".repeat(margin + 1));
    format!("{}\n{}\n", style.paint(DIM, &lines), style.paint(DIM, &numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::round_digits;

    const HEIGHT: usize = 16;

    fn lines(points: &[(f64, f64)], width: Option<usize>) -> Vec<String> {
        let axis = |of: fn(&(f64, f64)) -> f64, title| {
            Some(Axis::from_zero(points.iter().map(of), 1.0, round_digits)?.titled(title))
        };
        let (Some(x), Some(y)) = (axis(|point| point.0, "x"), axis(|point| point.1, "y")) else {
            return Vec::new();
        };
        let with = super::super::PLAIN;
        let points = points.to_vec();
        let curves = [Curve { name: "it".into(), line: '.', mark: Some('o'), with, points }];
        let text = plot(&x, &y, &curves, HEIGHT, &Style { color: false, width });
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn a_straight_line_goes_from_corner_to_corner() {
        let drawn = lines(&[(0.0, 0.0), (10.0, 10.0)], Some(40));
        assert_eq!(drawn.len(), 1 + HEIGHT + 2 + 1);
        assert!(drawn[1].starts_with("10 ┤") && drawn[1].ends_with('o'), "{drawn:#?}");
        assert!(drawn[HEIGHT].starts_with(" 0 ┤o"), "{drawn:#?}");
        for column in 0..36 {
            let is_drawn = |line: &String| line.chars().nth(4 + column).is_some_and(|c| c != ' ');
            assert!(drawn[1..=HEIGHT].iter().any(is_drawn), "a gap at {column}: {drawn:#?}");
        }
    }

    #[test]
    fn steep_curves_have_no_gaps() {
        let drawn = lines(&[(1.0, 1.0), (2.0, 100.0), (1000.0, 100.0)], None);
        let is_drawn = |line: &&String| line.contains(['.', 'o']);
        assert_eq!(drawn[1..=HEIGHT].iter().filter(is_drawn).count(), HEIGHT, "{drawn:#?}");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        assert!(lines(&[(1.0, 1.0), (2.0, 2.0)], Some(10)).is_empty());
        assert!(!lines(&[(1.0, f64::NAN), (f64::INFINITY, 2.0)], None).is_empty());
        assert!(!lines(&[(1.0, 1e-9), (1e7, 1e7)], None).is_empty());
        for width in 25..200 {
            for line in lines(&[(1.0, 1.0), (1e7, 1e6)], Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
}
