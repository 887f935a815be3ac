//! Charts of rows over time. Each row has a centre line, and each column is a period of time. The
//! heights of the areas above and below the line are shares of the period; the line represents the
//! remaining share. Areas differ in position and form, not only in colour.

use maud::{Markup, html};

use super::{Axis, Margins, frame, px, room, short, upright};

const MAX_LABEL: usize = 34;
/// Distance between two rows, and maximum height of an area, in pixels.
const PITCH: f64 = 22.0;
const HEIGHT: u8 = 9;
/// Height of a group's heading, in pixels.
const HEADING: f64 = 26.0;
/// The line is drawn in columns where its parts have at least this share.
const LINE: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::html) enum Side {
    Above,
    Below,
    Around,
    Line,
}

/// A part of each column, such as a state of the thread. All rows have the same parts.
#[derive(Debug)]
pub(in crate::html) struct Part {
    pub(in crate::html) name: String,
    pub(in crate::html) side: Side,
    pub(in crate::html) class: String,
    pub(in crate::html) listed: bool,
}

#[derive(Debug)]
pub(in crate::html) struct Band {
    pub(in crate::html) label: String,
    pub(in crate::html) figure: String,
    /// Share of each part in each column, by part and column; 0 for missing parts and columns.
    pub(in crate::html) shares: Vec<Vec<f64>>,
    /// Ranges of columns, each with the title that the browser shows for it on hover.
    pub(in crate::html) titles: Vec<([usize; 2], String)>,
}

#[derive(Debug)]
pub(in crate::html) struct Group {
    pub(in crate::html) heading: String,
    pub(in crate::html) bands: Vec<Band>,
}

#[derive(Debug)]
pub(in crate::html) struct Bands<'a> {
    pub(in crate::html) label: &'a str,
    pub(in crate::html) axis: &'a Axis,
    pub(in crate::html) columns: usize,
    /// On each side, the first part is next to the line.
    pub(in crate::html) parts: &'a [Part],
    pub(in crate::html) groups: &'a [Group],
}

impl Bands<'_> {
    pub(in crate::html) fn draw(&self) -> Markup {
        let bands = || self.groups.iter().flat_map(|group| &group.bands);
        let labels: Vec<String> = bands().map(|band| short(&band.label, MAX_LABEL)).collect();
        let margins = Margins {
            left: room(labels.iter().map(String::as_str), 270.0) + 12.0,
            right: room(bands().map(|band| band.figure.as_str()), 90.0) + 22.0,
            top: 4.0,
            bottom: if self.axis.title.is_empty() { 24.0 } else { 44.0 },
        };
        let mut labels = labels.iter();
        let (mut headings, mut rows, mut height) = (Vec::new(), Vec::new(), 0.0);
        for group in self.groups {
            if !group.heading.is_empty() {
                headings.push((group.heading.as_str(), height + HEADING - 9.0));
                height += HEADING;
            }
            for (band, label) in group.bands.iter().zip(labels.by_ref()) {
                rows.push((band, label, height));
                height += PITCH;
            }
        }
        let drawing = html! {
            (upright(self.axis, height, false))
            @for (heading, y) in headings {
                text class="heading" x="0" y=(px(y)) { (heading) } "\n"
            }
            @for (band, label, y) in rows { (self.band(band, label, y)) "\n" }
        };
        frame("bands", self.label, &margins, height, self.legend(), drawing)
    }

    fn band(&self, band: &Band, label: &str, y: f64) -> Markup {
        let height = 2 * HEIGHT;
        html! {
            g class="row" {
                text class="label" x="0" dx="-12" y=(px(y + PITCH / 2.0 + 4.5)) {
                    @if *label != band.label { title { (band.label) } }
                    (label)
                }
                @if !band.figure.is_empty() {
                    text class="figure" x="100%" dx="12" y=(px(y + PITCH / 2.0 + 4.5)) { (band.figure) }
                }
                svg viewBox={ "0 0 " (self.columns) " " (height) } preserveAspectRatio="none" y=(px(y + PITCH / 2.0 - f64::from(HEIGHT))) width="100%" height=(height) {
                    @for (class, path) in self.paths(band) { path class=(class) d=(path) {} }
                    @for ([from, until], title) in &band.titles {
                        rect x=(from) width=(until - from) height=(height) { title { (title) } }
                    }
                }
            }
        }
    }

    /// Returns the areas and lines from back to front, with their classes.
    fn paths(&self, band: &Band) -> Vec<(&str, String)> {
        let share = |part: usize, column: usize| {
            let share = band.shares.get(part).and_then(|shares| shares.get(column)).copied();
            share.filter(|share| share.is_finite()).unwrap_or(0.0)
        };
        let of = |side: Side| -> Vec<usize> {
            let on = |part: &usize| self.parts[*part].side == side;
            (0..self.parts.len()).filter(on).collect()
        };
        let mut paths = Vec::new();
        for side in [Side::Above, Side::Below, Side::Around] {
            let (mut below, mut areas) = (vec![0.0; self.columns], Vec::new());
            for part in of(side) {
                // The area of a part includes the areas nearer to the line, which are drawn on top.
                let heights: Vec<u8> = below
                    .iter_mut()
                    .enumerate()
                    .map(|(column, below)| {
                        let hidden = pixels(*below);
                        *below += share(part, column);
                        let height = pixels(*below);
                        if height > hidden { height } else { 0 }
                    })
                    .collect();
                areas.push((self.parts[part].class.as_str(), area(&heights, side)));
            }
            paths.extend(areas.into_iter().rev().filter(|(_, path)| !path.is_empty()));
        }
        let lines = of(Side::Line);
        let longest = |column: usize| {
            let all: f64 = lines.iter().map(|&part| share(part, column)).sum();
            let most = lines
                .iter()
                .copied()
                .max_by(|one, other| share(*one, column).total_cmp(&share(*other, column)));
            most.filter(|_| all >= LINE)
        };
        let at: Vec<Option<usize>> = (0..self.columns).map(longest).collect();
        for part in lines {
            let path = line(at.iter().map(|&longest| longest == Some(part)));
            if !path.is_empty() {
                paths.push((self.parts[part].class.as_str(), path));
            }
        }
        paths
    }

    fn legend(&self) -> Markup {
        let line_alone = || line([true].into_iter());
        let form = |side: Side| match side {
            Side::Above | Side::Below | Side::Around => area(&[6], side),
            Side::Line => line_alone(),
        };
        html! {
            ul class="legend" { "\n"
                @for part in self.parts.iter().filter(|part| part.listed) {
                    li {
                        svg class="key" viewBox={ "0 0 1 " (2 * HEIGHT) } preserveAspectRatio="none" width="18" height=(2 * HEIGHT) aria-hidden="true" {
                            @if part.side != Side::Line { path class="line" d=(line_alone()) {} }
                            path class=(part.class) d=(form(part.side)) {}
                        }
                        (part.name)
                    } "\n"
                }
            } "\n"
        }
    }
}

/// Height in pixels.
fn pixels(share: f64) -> u8 {
    (share.clamp(0.0, 1.0) * f64::from(HEIGHT)).round() as u8
}

/// Runs of equal columns: value, first column and length.
fn runs<T: PartialEq>(columns: impl Iterator<Item = T>) -> Vec<(T, usize, usize)> {
    let mut runs: Vec<(T, usize, usize)> = Vec::new();
    for (column, value) in columns.enumerate() {
        match runs.last_mut() {
            Some((last, _, count)) if *last == value => *count += 1,
            _ => runs.push((value, column, 1)),
        }
    }
    runs
}

fn area(heights: &[u8], side: Side) -> String {
    let mut path = String::new();
    let to_line = |height: i32| if side == Side::Below { -height } else { height };
    let mut runs = runs(heights.iter().copied()).into_iter().peekable();
    while let Some((height, column, count)) = runs.next() {
        let height = i32::from(height);
        if height == 0 {
            continue;
        }
        if side == Side::Around {
            // Here, both edges of an area are stepped, so each run is a separate rectangle.
            let top = i32::from(HEIGHT) - height;
            path.push_str(&format!("M{column} {top}h{count}v{}h-{count}z", 2 * height));
            continue;
        }
        path.push_str(&format!("M{column} {HEIGHT}v{}h{count}", -to_line(height)));
        let mut at = height;
        while let Some((next, _, count)) = runs.next_if(|&(next, ..)| next > 0) {
            let next = i32::from(next);
            path.push_str(&format!("v{}h{count}", to_line(at - next)));
            at = next;
        }
        path.push_str(&format!("v{}", to_line(at)));
    }
    path
}

fn line(columns: impl Iterator<Item = bool>) -> String {
    let drawn = runs(columns).into_iter().filter(|(drawn, ..)| *drawn);
    drawn.map(|(_, column, count)| format!("M{column} {HEIGHT}h{count}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(side: Side, class: &str) -> Part {
        Part { name: format!("<{class}>"), side, class: class.into(), listed: class != "idle" }
    }

    fn draw(columns: usize, shares: Vec<Vec<f64>>) -> String {
        let parts = [
            part(Side::Above, "run"),
            part(Side::Above, "ready"),
            part(Side::Below, "wait"),
            part(Side::Line, "idle"),
            part(Side::Line, "asleep"),
        ];
        let axis = Axis::from_zero([8.0], 1.0, |value| value.to_string()).unwrap();
        let band = Band {
            label: "worker & co".into(),
            figure: "62%".into(),
            shares,
            titles: vec![([1, 3], "<waits>".into())],
        };
        let groups = [Group { heading: "threads".into(), bands: vec![band] }];
        let (label, parts, groups) = ("test", &parts[..], &groups[..]);
        Bands { label, axis: &axis, columns, parts, groups }.draw().into_string()
    }

    #[test]
    fn areas_lie_on_both_sides_of_the_line_and_rest_is_the_line_alone() {
        let page = draw(
            4,
            vec![
                vec![1.0, 0.5],
                vec![0.0, 0.25],
                vec![0.0, 0.25, 1.0],
                vec![0.0, 0.0, 0.0, 0.4],
                vec![0.0, 0.0, 0.0, 0.6],
            ],
        );
        for part in [
            r#"viewBox="0 0 4 18""#,
            r#"<path class="run" d="M0 9v-9h1v4h1v5">"#,
            r#"<path class="ready" d="M1 9v-7h1v7">"#,
            r#"<path class="wait" d="M1 9v2h1v7h1v-9">"#,
            r#"<path class="asleep" d="M3 9h1">"#,
            r#"<rect x="1" width="2" height="18"><title>&lt;waits&gt;</title></rect>"#,
            "worker &amp; co",
            "&lt;asleep&gt;",
            r#"<path class="asleep" d="M0 9h1">"#,
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("idle"), "{page}");
        // The state in front is drawn last.
        assert!(page.rfind(r#""ready""#) < page.rfind(r#""run""#), "{page}");
    }

    #[test]
    fn equal_neighbours_are_drawn_as_one() {
        let page = draw(600, vec![vec![1.0; 600]]);
        assert!(page.contains(r#"d="M0 9v-9h600v9""#), "{page}");
        let page = draw(600, vec![vec![], vec![], vec![], vec![1.0; 600]]);
        assert!(page.contains(r#"d="M0 9h600""#), "{page}");
        assert_eq!(area(&[0, 2, 2, 0, 1], Side::Around), "M1 7h2v4h-2zM4 8h1v2h-1z");
    }

    #[test]
    fn odd_shares_stay_inside() {
        for odd in [f64::NAN, f64::INFINITY, -3.0, 1e300] {
            let page = draw(2, vec![vec![odd; 9]; 9]);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{odd}: {page}");
        }
        assert!(draw(0, Vec::new()).contains("<svg"));
    }
}
