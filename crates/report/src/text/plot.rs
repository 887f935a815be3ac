//! Curves on a terminal, drawn with characters that can be distinguished without colours.

use unicode_width::UnicodeWidthStr;

use super::table::pad_left;
use super::{DIM, Style};
use crate::units::digits;

const HEIGHT: usize = 16;
/// Width of the drawing in columns, if the terminal sets no limit.
const WIDTH: usize = 72;
const MIN_WIDTH: usize = 24;

/// A curve, starting at zero.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// Character between its points.
    pub(super) line: char,
    /// Character for its points; `None` if they are not marked.
    pub(super) mark: Option<char>,
    pub(super) with: anstyle::Style,
    /// Points that are not finite, or are below zero, are ignored.
    pub(super) points: Vec<(f64, f64)>,
}

/// One character of the drawing.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    glyph: char,
    with: anstyle::Style,
}

/// Labelled values of an axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    least_x: f64,
    most_x: f64,
    top: f64,
    width: usize,
}

impl Scale {
    fn column(&self, x: f64) -> usize {
        let share = (x - self.least_x) / (self.most_x - self.least_x);
        (share * (self.width - 1) as f64).round() as usize
    }

    fn x(&self, column: usize) -> f64 {
        self.least_x + (self.most_x - self.least_x) * column as f64 / (self.width - 1) as f64
    }

    fn row(&self, y: f64) -> usize {
        ((y / self.top).clamp(0.0, 1.0) * (HEIGHT - 1) as f64).round() as usize
    }
}

/// Draws the curves, later ones over earlier ones; empty if the drawing would be a single column,
/// or if the terminal is too narrow.
pub(super) fn plot(y_name: &str, x_name: &str, mut curves: Vec<Curve>, style: &Style) -> String {
    for curve in &mut curves {
        curve.points.retain(|(x, y)| x.is_finite() && y.is_finite() && *y >= 0.0);
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let least_x = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most_x = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let y_step = step(highest / 5.0);
    let marks = if highest > 0.0 { (highest / y_step - 1e-9).ceil().max(1.0) as usize } else { 0 };
    let labels: Vec<String> = (0..=marks).map(|mark| tick(mark as f64 * y_step, y_step)).collect();
    let margin = labels.iter().map(|label| label.width()).max().unwrap_or(0) + 1;
    let width = style.width.map_or(WIDTH, |width| width.saturating_sub(margin + 1).min(WIDTH));
    if width < MIN_WIDTH || most_x <= least_x || marks == 0 {
        return String::new();
    }
    let scale = Scale { least_x, most_x, top: marks as f64 * y_step, width };
    let mut grid = vec![vec![None; width]; HEIGHT];
    for curve in &curves {
        draw(curve, &scale, &mut grid);
    }
    let mut text = style.paint(DIM, &format!("{}{y_name}", " ".repeat(margin + 1)));
    text.push('\n');
    for row in (0..HEIGHT).rev() {
        let mark = (0..=marks).find(|mark| scale.row(*mark as f64 * y_step) == row);
        let (label, edge) = mark.map_or(("", "│"), |mark| (labels[mark].as_str(), "┤"));
        text.push_str(&style.paint(DIM, &format!("{} {edge}", pad_left(label, margin - 1))));
        text.push_str(&line(&grid[row], style));
        text.push('\n');
    }
    text.push_str(&axis(&scale, margin, x_name, style));
    let blank = " ".repeat(margin + 1);
    for curve in &curves {
        let mark = curve.mark.unwrap_or(curve.line);
        let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(margin + 3).max(1));
        let mut name = textwrap::wrap(&curve.name, room).into_iter();
        let first = name.next().unwrap_or_default();
        text.push_str(&format!("{blank}{} {first}\n", style.paint(curve.with, &mark.to_string())));
        name.for_each(|rest| text.push_str(&format!("{blank}  {rest}\n")));
    }
    text
}

/// Draws one curve, with straight lines between its points, and without gaps where it is steep.
fn draw(curve: &Curve, scale: &Scale, grid: &mut [Vec<Option<Drawn>>]) {
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return };
    let mut before: Option<usize> = None;
    for column in scale.column(first.0)..=scale.column(last.0) {
        let row = scale.row(between(&curve.points, scale.x(column)));
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
        for (x, y) in &curve.points {
            grid[scale.row(*y)][scale.column(*x)] = Some(Drawn { glyph, with: curve.with });
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

/// One line of the drawing, in as few coloured pieces as possible.
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

fn axis(scale: &Scale, margin: usize, x_name: &str, style: &Style) -> String {
    let x_step = step((scale.most_x - scale.least_x) / 8.0).max(1.0);
    let mut edge = vec!['─'; scale.width];
    let mut labels = String::new();
    let mut x = (scale.least_x / x_step).ceil() * x_step;
    if x > scale.least_x {
        // The first label is always drawn.
        label_at(scale.least_x, x_step, scale, &mut edge, &mut labels);
    }
    while x <= scale.most_x {
        label_at(x, x_step, scale, &mut edge, &mut labels);
        x += x_step;
    }
    if labels.width() + 2 + x_name.width() <= scale.width {
        labels = format!("{labels}  {x_name}");
    }
    let edge: String = edge.into_iter().collect();
    let lines = format!("{}└{edge}", " ".repeat(margin));
    let numbers = format!("{}{labels}", " ".repeat(margin + 1));
    format!("{}\n{}\n", style.paint(DIM, &lines), style.paint(DIM, &numbers))
}

fn label_at(x: f64, x_step: f64, scale: &Scale, edge: &mut [char], labels: &mut String) {
    let column = scale.column(x);
    let label = tick(x, x_step);
    let start =
        column.saturating_sub(label.width() / 2).min(scale.width.saturating_sub(label.width()));
    let free = if labels.is_empty() { 0 } else { labels.width() + 1 };
    if start >= free {
        labels.push_str(&" ".repeat(start - labels.width()));
        labels.push_str(&label);
        edge[column] = '┬';
    }
}

/// The next larger number among 1, 2, 5, 10, 20, 50, …
fn step(least: f64) -> f64 {
    if !(f64::MIN_POSITIVE..=1e300).contains(&least) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|times| times * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

fn tick(value: f64, step: f64) -> String {
    if value.abs() >= 1e4 {
        digits(value)
    } else if step >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.*}", (-step.log10()).ceil().clamp(0.0, 6.0) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<Curve> {
        vec![Curve {
            name: "it".into(),
            line: '.',
            mark: Some('o'),
            with: super::super::PLAIN,
            points: points.to_vec(),
        }]
    }

    fn lines(points: &[(f64, f64)], width: Option<usize>) -> Vec<String> {
        let text = plot("y", "x", curve(points), &Style { color: false, width });
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn a_straight_line_goes_from_corner_to_corner() {
        let drawn = lines(&[(0.0, 0.0), (10.0, 10.0)], Some(40));
        assert_eq!(drawn.len(), 1 + HEIGHT + 2 + 1);
        assert!(drawn[1].starts_with("10 ┤") && drawn[1].ends_with('o'), "{drawn:#?}");
        assert!(drawn[HEIGHT].starts_with(" 0 ┤o"), "{drawn:#?}");
        for column in 0..36 {
            assert!(
                drawn[1..=HEIGHT]
                    .iter()
                    .any(|line| line.chars().nth(4 + column).is_some_and(|c| c != ' ')),
                "a gap at {column}: {drawn:#?}"
            );
        }
    }

    #[test]
    fn steep_curves_have_no_gaps() {
        let drawn = lines(&[(1.0, 1.0), (2.0, 100.0), (1000.0, 100.0)], None);
        let columns: Vec<usize> = drawn[1..=HEIGHT]
            .iter()
            .filter_map(|line| line.chars().position(|c| c == '.' || c == 'o'))
            .collect();
        assert_eq!(columns.len(), HEIGHT, "{drawn:#?}");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        assert!(lines(&[], None).is_empty());
        assert!(lines(&[(1.0, 1.0)], None).is_empty());
        assert!(lines(&[(1.0, 0.0), (2.0, 0.0)], None).is_empty());
        assert!(lines(&[(1.0, f64::NAN), (f64::INFINITY, 2.0)], None).is_empty());
        assert!(lines(&[(1.0, 1.0), (2.0, 2.0)], Some(10)).is_empty());
        assert!(!lines(&[(1.0, 1e-9), (1e7, 1e7)], None).is_empty());
        for width in 25..200 {
            for line in lines(&[(1.0, 1.0), (1e7, 1e6)], Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn steps_are_round() {
        for (least, round) in
            [(0.9, 1.0), (1.0, 1.0), (1.1, 2.0), (3.0, 5.0), (7.0, 10.0), (0.003, 0.005)]
        {
            assert!((step(least) / round - 1.0).abs() < 1e-9, "{least}: {}", step(least));
        }
        assert_eq!(step(0.0), 1.0);
        assert_eq!(step(f64::NAN), 1.0);
        assert_eq!(tick(0.15, 0.05), "0.15");
        assert_eq!(tick(20.0, 5.0), "20");
    }
}
