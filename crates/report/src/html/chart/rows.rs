//! Charts with a labelled row for each item, and a common logarithmic axis. Items are dots with
//! intervals, or distributions as strips.

use maud::{Markup, html};

use super::{Axis, Key, Margins, Shape, WIDE, frame, legend, percent, px, room, short, upright};

/// Maximum length of a label, in characters.
const MAX_LABEL: usize = 40;
/// A chart with more rows than this does not fit on a screen, and has its axis also at the top.
const MAX_WITHOUT_TOP: usize = 14;
/// Distance between two rows with dots, in pixels. Narrow screens show the labels between the rows.
const PITCH: f64 = 28.0;
/// Distance between two strips, and their maximum height, in pixels.
const STRIP: (f64, f64) = (38.0, 28.0);

#[derive(Debug)]
pub(in crate::html) struct Row {
    pub(in crate::html) label: String,
    pub(in crate::html) figure: String,
}

#[derive(Debug)]
pub(in crate::html) struct Dot {
    pub(in crate::html) row: usize,
    /// Index of the dot's legend entry.
    pub(in crate::html) key: usize,
    pub(in crate::html) value: f64,
    pub(in crate::html) interval: Option<[f64; 2]>,
    pub(in crate::html) title: String,
}

#[derive(Debug)]
pub(in crate::html) struct Dots<'a> {
    pub(in crate::html) label: &'a str,
    pub(in crate::html) axis: Axis,
    pub(in crate::html) keys: &'a [Key],
    pub(in crate::html) rows: &'a [Row],
    pub(in crate::html) dots: &'a [Dot],
}

impl Dots<'_> {
    pub(in crate::html) fn draw(&self) -> Markup {
        let middle = |row: usize| (row as f64 + 0.5) * PITCH;
        let has = |key: usize| self.dots.iter().any(|dot| dot.key == key);
        let used = self.keys.iter().enumerate().filter(|(key, _)| has(*key));
        let keys: Vec<Key> = used.map(|(_, key)| key.clone()).collect();
        let marks = html! {
            @for (row, _) in self.rows.iter().enumerate() {
                @let values = || self.dots.iter().filter(|dot| dot.row == row).map(|dot| dot.value);
                @let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
                @if low < high {
                    line class="span" x1=(percent(self.axis.at(low))) x2=(percent(self.axis.at(high))) y1=(px(middle(row))) y2=(px(middle(row))) {}
                }
            }
            "\n"
            @for (nth, key) in self.keys.iter().enumerate() {
                @if has(nth) {
                    g class=(key.class) { "\n"
                        @for dot in self.dots.iter().filter(|dot| dot.key == nth) { (self.dot(dot, key.shape, middle(dot.row))) "\n" }
                    } "\n"
                }
            }
        };
        list(self.label, &self.axis, self.rows, PITCH, &keys, marks)
    }

    fn dot(&self, dot: &Dot, shape: Shape, y: f64) -> Markup {
        html! {
            @if let Some([low, high]) = dot.interval {
                line class="interval" x1=(percent(self.axis.at(low.min(dot.value)))) x2=(percent(self.axis.at(high.max(dot.value)))) y1=(px(y)) y2=(px(y)) {}
            }
            use class="mark" href={ "#" (shape.id()) } x=(percent(self.axis.at(dot.value))) y=(px(y)) { title { (dot.title) } }
        }
    }
}

/// A distribution as an area with marks at its percentiles.
#[derive(Debug)]
pub(in crate::html) struct Strip {
    /// Beginning, end and share of each bin, in ascending order.
    pub(in crate::html) bins: Vec<[f64; 3]>,
    pub(in crate::html) marks: Vec<f64>,
    pub(in crate::html) title: String,
}

#[derive(Debug)]
pub(in crate::html) struct Strips<'a> {
    pub(in crate::html) label: &'a str,
    pub(in crate::html) axis: Axis,
    pub(in crate::html) class: &'a str,
    pub(in crate::html) rows: &'a [Row],
    pub(in crate::html) strips: &'a [Strip],
}

impl Strips<'_> {
    pub(in crate::html) fn draw(&self) -> Markup {
        let marks = html! {
            @for (row, strip) in self.strips.iter().enumerate() {
                @let base = row as f64 * STRIP.0 + (STRIP.0 + STRIP.1) / 2.0;
                svg class={ "strip " (self.class) } viewBox={ "0 0 " (WIDE) " " (STRIP.1) } preserveAspectRatio="none" y=(px(base - STRIP.1)) width="100%" height=(STRIP.1) {
                    title { (strip.title) }
                    path class="area" d=(self.area(strip)) {}
                    path class="percentile" d=(self.marks(strip)) {}
                } "\n"
            }
        };
        list(self.label, &self.axis, self.rows, STRIP.0, &[], marks)
    }

    fn marks(&self, strip: &Strip) -> String {
        let x = |value: &f64| (self.axis.at(*value) * WIDE).round();
        let (base, ends) = (STRIP.1, strip.marks.first().zip(strip.marks.last()));
        let tail = ends.map(|(first, last)| format!("M{} {base}H{}", x(first), x(last)));
        let marks = strip.marks.iter().map(|value| format!("M{} {}v9", x(value), base - 5.0));
        tail.into_iter().chain(marks).collect()
    }

    /// The highest bin has the full height. Bins too low to be visible are omitted.
    fn area(&self, strip: &Strip) -> String {
        let most = strip.bins.iter().map(|bin| bin[2]).fold(f64::MIN_POSITIVE, f64::max);
        let x = |value: f64| (self.axis.at(value) * WIDE).round();
        let mut path = String::new();
        let mut at = None;
        for [begin, end, share] in &strip.bins {
            let height = (share / most * STRIP.1).round();
            if height < 1.0 {
                if at.take().is_some() {
                    path.push_str(&format!("V{}", STRIP.1));
                }
                continue;
            }
            if at.is_none() {
                path.push_str(&format!("M{} {}", x(*begin), STRIP.1));
            }
            if at != Some(height) {
                path.push_str(&format!("V{}", STRIP.1 - height));
            }
            path.push_str(&format!("H{}", x(*end)));
            at = Some(height);
        }
        if at.is_some() {
            path.push_str(&format!("V{}", STRIP.1));
        }
        path
    }
}

fn list(label: &str, axis: &Axis, rows: &[Row], pitch: f64, keys: &[Key], marks: Markup) -> Markup {
    let labels: Vec<String> = rows.iter().map(|row| short(&row.label, MAX_LABEL)).collect();
    let above = rows.len() > MAX_WITHOUT_TOP;
    let margins = Margins {
        left: room(labels.iter().map(String::as_str), 320.0) + 12.0,
        right: room(rows.iter().map(|row| row.figure.as_str()), 150.0) + 22.0,
        top: if above { 26.0 } else { 4.0 },
        bottom: if axis.title.is_empty() { 24.0 } else { 44.0 },
    };
    let height = rows.len() as f64 * pitch;
    let drawing = html! {
        (upright(axis, height, above))
        @for (nth, (row, text)) in rows.iter().zip(&labels).enumerate() {
            @let y = (nth as f64 + 0.5) * pitch;
            g class="row" {
                rect class="band" y=(px(nth as f64 * pitch)) width="100%" height=(px(pitch)) {}
                text class="label" x="0" dx="-12" y=(px(y + 4.5)) {
                    @if *text != row.label { title { (row.label) } }
                    (text)
                }
                @if !row.figure.is_empty() {
                    text class="figure" x="100%" dx="12" y=(px(y + 4.5)) { (row.figure) }
                }
            } "\n"
        }
        (marks)
    };
    frame("list", label, &margins, height, legend(keys), drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str) -> Row {
        Row { label: label.into(), figure: String::new() }
    }

    fn dots(rows: &[Row], dots: &[Dot]) -> String {
        let axis = Axis::log([10.0, 1000.0], 1.0, |value| value.to_string()).unwrap();
        let keys = [Key::new("pinned", Shape::Circle, "c0"), Key::new("free", Shape::Square, "c1")];
        Dots { label: "test", axis, keys: &keys, rows, dots }.draw().into_string()
    }

    fn dot(value: f64, interval: Option<[f64; 2]>) -> Dot {
        Dot { row: 0, key: 0, value, interval, title: "<futex> & more".into() }
    }

    #[test]
    fn a_dot_has_its_place_its_interval_and_its_title() {
        let page = dots(&[row("futex")], &[dot(100.0, Some([31.622_776_6, 316.227_766]))]);
        assert!(page.contains(r##"href="#circle" x="50%" y="14""##), "{page}");
        assert!(page.contains(r#"class="interval" x1="25%" x2="75%""#), "{page}");
        assert!(page.contains("<title>&lt;futex&gt; &amp; more</title>"), "{page}");
        assert!(page.contains("pinned") && !page.contains("free"), "a legend of what is there");
    }

    #[test]
    fn odd_rows_and_figures_stay_inside() {
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e-300] {
            let page = dots(&[row(&"x".repeat(5000))], &[dot(odd, Some([odd, -odd]))]);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{odd}: {page}");
            assert!(page.len() < 12_000, "{odd}");
        }
        assert!(dots(&[], &[]).contains("<svg"));
        let many: Vec<Row> = (0..500).map(|_| row("<b>")).collect();
        let page = dots(&many, &[dot(20.0, None)]);
        assert_eq!(page.matches("&lt;b&gt;").count(), 500);
    }

    #[test]
    fn an_area_returns_to_its_base_where_nothing_is() {
        let axis = Axis::log([1.0, 1000.0], 1.0, |value| value.to_string()).unwrap();
        let bins = vec![[1.0, 10.0, 0.5], [10.0, 100.0, 0.0], [100.0, 1000.0, 0.25]];
        let strip = Strip { bins, marks: Vec::new(), title: String::new() };
        let strips = Strips { label: "", axis, class: "c0", rows: &[], strips: &[] };
        assert_eq!(strips.area(&strip), "M0 28V0H333V28M667 28V14H1000V28");
        let nothing = Strip { bins: Vec::new(), marks: Vec::new(), title: String::new() };
        assert_eq!(strips.area(&nothing), "");
    }
}
