use maud::{Markup, html};

use super::{Axis, Key, Margins, WIDE, frame, legend, level, percent, px, room, upright};

#[derive(Clone, Debug)]
pub(in crate::html) struct Point {
    pub(in crate::html) x: f64,
    pub(in crate::html) y: f64,
    pub(in crate::html) interval: Option<[f64; 2]>,
    /// Title of the point's mark. If it is empty, the point has no mark.
    pub(in crate::html) title: String,
}

#[derive(Debug)]
pub(in crate::html) struct Line {
    pub(in crate::html) class: String,
    pub(in crate::html) title: String,
    /// A point without a finite figure interrupts the line.
    pub(in crate::html) points: Vec<Point>,
    /// If true, all intervals form one area; otherwise, each marked point has an interval.
    pub(in crate::html) band: bool,
}

#[derive(Debug)]
pub(in crate::html) struct Lines<'a> {
    pub(in crate::html) label: &'a str,
    pub(in crate::html) x: Axis,
    pub(in crate::html) y: Axis,
    pub(in crate::html) height: f64,
    pub(in crate::html) keys: &'a [Key],
    pub(in crate::html) lines: &'a [Line],
    pub(in crate::html) now: Option<(Point, String)>,
}

impl Lines<'_> {
    pub(in crate::html) fn draw(&self) -> Markup {
        let labels = self.y.ticks.iter().map(|(_, text)| text.as_str());
        let margins = Margins {
            left: room(labels, 90.0) + 14.0,
            right: 22.0,
            top: if self.y.title.is_empty() { 8.0 } else { 28.0 },
            bottom: if self.x.title.is_empty() { 24.0 } else { 44.0 },
        };
        let drawing = html! {
            (level(&self.y, self.height, margins.left))
            (upright(&self.x, self.height, false))
            @for line in self.lines { (self.line(line)) }
            @if let Some((point, text)) = &self.now { (self.now(point, text)) }
        };
        frame("lines", self.label, &margins, self.height, legend(self.keys), drawing)
    }

    fn line(&self, line: &Line) -> Markup {
        html! {
            g class={ "series " (line.class) } { "\n"
                svg viewBox={ "0 0 " (WIDE) " " (px(self.height)) } preserveAspectRatio="none" width="100%" height=(px(self.height)) {
                    @if line.band {
                        path class="area" d=(self.band(line)) {}
                    }
                    path class="line" d=(self.path(line)) {
                        @if !line.title.is_empty() { title { (line.title) } }
                    }
                } "\n"
                @for point in line.points.iter().filter(|point| known(point) && !point.title.is_empty()) {
                    @let (x, y) = self.percents(point.x, point.y);
                    @if let (Some([low, high]), false) = (point.interval, line.band) {
                        line class="interval" x1=(x) x2=(x) y1=(self.down(low)) y2=(self.down(high)) {}
                    }
                    circle class="dot" cx=(x) cy=(y) r="4" { title { (point.title) } } "\n"
                }
            } "\n"
        }
    }

    fn now(&self, point: &Point, text: &str) -> Markup {
        let (x, y) = self.percents(point.x, point.y);
        let late = self.x.at(point.x) > 0.6;
        // The text is above or below the mark, on the side where the last line does not pass.
        let line = self.lines.last().and_then(|line| line.points.iter().find(|it| it.x >= point.x));
        let aside = if line.is_some_and(|line| line.y < point.y) { -10.0 } else { 18.0 };
        let y_text = (1.0 - self.y.at(point.y)) * self.height + aside;
        html! {
            circle class="now" cx=(x) cy=(y) r="5.5" { title { (point.title) } }
            text class=(if late { "now end" } else { "now" }) x=(x) dx=(if late { "-10" } else { "10" }) y=(px(y_text.clamp(12.0, self.height - 6.0))) { (text) }
        }
    }

    fn percents(&self, x: f64, y: f64) -> (String, String) {
        (percent(self.x.at(x)), self.down(y))
    }

    fn down(&self, value: f64) -> String {
        px((1.0 - self.y.at(value)) * self.height)
    }

    fn place(&self, x: f64, y: f64) -> String {
        format!("{} {}", px(self.x.at(x) * WIDE), self.down(y))
    }

    fn path(&self, line: &Line) -> String {
        let mut path = String::new();
        let mut pen = 'M';
        for point in &line.points {
            if !known(point) {
                pen = 'M';
                continue;
            }
            path.push(pen);
            path.push_str(&self.place(point.x, point.y));
            pen = 'L';
        }
        path
    }

    fn band(&self, line: &Line) -> String {
        let known: Vec<&Point> = line.points.iter().filter(|point| known(point)).collect();
        let ends = |point: &Point| point.interval.unwrap_or([point.y; 2]);
        let upper = known.iter().map(|point| self.place(point.x, ends(point)[1]));
        let lower = known.iter().rev().map(|point| self.place(point.x, ends(point)[0]));
        let places: Vec<String> = upper.chain(lower).collect();
        if places.is_empty() { String::new() } else { format!("M{}z", places.join("L")) }
    }
}

fn known(point: &Point) -> bool {
    point.x.is_finite() && point.y.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, interval: Some([y / 2.0, y * 2.0]), title: format!("{x} threads") }
    }

    fn draw(points: Vec<Point>, band: bool) -> String {
        let text = |value: f64| value.to_string();
        let axis = |most: f64| Axis::from_zero([most], 1.0, text).unwrap();
        let lines = [Line { class: "c0".into(), title: String::new(), points, band }];
        let now = Some((point(4.0, 2.0), "now".into()));
        let (x, y) = (axis(4.0), axis(4.0));
        let chart = Lines { label: "test", x, y, height: 200.0, keys: &[], lines: &lines, now };
        chart.draw().into_string()
    }

    #[test]
    fn a_line_goes_through_its_points_and_each_says_its_figures() {
        let page = draw(vec![point(1.0, 1.0), point(2.0, 2.0)], false);
        assert!(page.contains(r#"d="M250 150L500 100""#), "{page}");
        assert!(page.contains("<title>2 threads</title>"));
        assert!(page.contains(r#"class="interval" x1="50%" x2="50%" y1="150" y2="0""#), "{page}");
        let band = draw(vec![point(1.0, 1.0), point(2.0, 2.0)], true);
        assert!(band.contains(r#"d="M250 100L500 0L500 150L250 175z""#), "{band}");
    }

    #[test]
    fn unknown_points_interrupt_a_line() {
        let points = vec![point(1.0, 1.0), point(2.0, f64::NAN), point(3.0, 1.0), point(4.0, 1.0)];
        let page = draw(points, true);
        assert!(page.contains(r#"d="M250 150M750 150L1000 150""#), "{page}");
        assert!(!page.contains("NaN") && draw(Vec::new(), true).contains("<svg"));
    }
}
