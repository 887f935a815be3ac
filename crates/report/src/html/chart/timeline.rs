//! Timelines with a row for each thread. Heights and patterns show the thread's state, not only
//! colours.

use maud::{Markup, html};

use super::{Axis, Margins, WIDE, frame, percent, px, room, upright};
use crate::figure::{State, Stretch, Timeline};
use crate::units::{round_digits, time};

/// Maximum number of rows, and distance in pixels between rows, for charts up to that number.
const PITCHES: [(usize, f64); 3] = [(16, 24.0), (32, 16.0), (usize::MAX, 10.0)];
/// Distance in pixels between two labels.
const LABELS: f64 = 16.0;
/// Timelines of at least this length, in nanoseconds, have an axis in milliseconds.
const IN_MS: u64 = 2_000_000;
/// Ordered from back to front.
const STATES: [State; 3] = [State::Working, State::Waiting, State::Holding];

impl State {
    fn class(self) -> &'static str {
        match self {
            State::Working => "working",
            State::Waiting => "waiting",
            State::Holding => "holding",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            State::Working => "works",
            State::Waiting => "waits",
            State::Holding => "holds",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            State::Working => "stretches of work",
            State::Waiting => "waits",
            State::Holding => "holds",
        }
    }

    /// Height of the state's marks. `pitch` is the distance between rows.
    fn height(self, pitch: f64) -> f64 {
        match self {
            State::Working => 2.0,
            State::Waiting => 0.4 * pitch,
            State::Holding => 0.8 * pitch,
        }
    }
}

/// One stretch, or several that are too close to be drawn separately.
struct Mark {
    from_ns: u64,
    until_ns: u64,
    count: usize,
    sum_ns: u64,
}

pub(in crate::html) fn timeline(timeline: &Timeline) -> Markup {
    let Timeline { length_ns, threads, sentence, .. } = timeline;
    let (unit, scale) = if *length_ns >= IN_MS { ("ms", 1e6) } else { ("µs", 1e3) };
    let Some(axis) = Axis::from_zero([*length_ns as f64 / scale], 1.0, round_digits) else {
        return html! {};
    };
    let pitch = PITCHES.into_iter().find(|(most, _)| threads.len() <= *most);
    let pitch = pitch.map_or(LABELS, |(_, pitch)| pitch);
    let height = threads.len() as f64 * pitch;
    let stride = (LABELS / pitch).ceil() as usize;
    let labels: Vec<String> = (1..=threads.len()).map(|nth| format!("thread {nth}")).collect();
    let margins = Margins {
        left: room(labels.iter().map(String::as_str), 90.0) + 14.0,
        right: 22.0,
        top: 8.0,
        bottom: 44.0,
    };
    let drawing = html! {
        (upright(&axis.titled(unit), height, false))
        @for (nth, (thread, label)) in threads.iter().zip(&labels).enumerate() {
            @let middle = (nth as f64 + 0.5) * pitch;
            @if nth.is_multiple_of(stride) {
                text class="tick end" x="0" dx="-9" y=(px(middle + 4.0)) { (label) }
            }
            @for state in STATES {
                g class=(state.class()) { "\n"
                    @for mark in marks(thread, state, *length_ns) {
                        (drawn(&mark, state, label, *length_ns, middle, pitch)) "\n"
                    }
                }
            }
            "\n"
        }
    };
    frame("timeline", sentence, &margins, height, legend(), drawing)
}

/// Stretches that are less than half a pixel apart form one mark.
fn marks(thread: &[Stretch], state: State, length_ns: u64) -> Vec<Mark> {
    let half_a_pixel = length_ns as f64 / WIDE / 2.0;
    let mut marks: Vec<Mark> = Vec::new();
    for Stretch { from_ns, until_ns, .. } in thread.iter().filter(|it| it.state == state) {
        let long_ns = until_ns.saturating_sub(*from_ns);
        match marks.last_mut() {
            Some(last) if (from_ns.saturating_sub(last.until_ns) as f64) < half_a_pixel => {
                last.until_ns = *until_ns;
                last.count += 1;
                last.sum_ns += long_ns;
            }
            _ => marks.push(Mark {
                from_ns: *from_ns,
                until_ns: *until_ns,
                count: 1,
                sum_ns: long_ns,
            }),
        }
    }
    marks
}

fn drawn(
    mark: &Mark,
    state: State,
    thread: &str,
    length_ns: u64,
    middle: f64,
    pitch: f64,
) -> Markup {
    let share = |ns: u64| ns as f64 / length_ns as f64;
    let width = share(mark.until_ns - mark.from_ns).max(0.5 / WIDE);
    let height = state.height(pitch);
    let sum = time(mark.sum_ns as f64);
    let title = match mark.count {
        1 => format!("{thread} {}, {sum}", state.verb()),
        several => format!("{thread}: {several} {}, {sum} in all", state.plural()),
    };
    html! {
        rect x=(percent(share(mark.from_ns))) y=(px(middle - height / 2.0)) width=(percent(width)) height=(px(height)) { title { (title) } }
    }
}

fn legend() -> Markup {
    html! {
        ul class="legend" { "\n"
            @for state in STATES {
                @let height = state.height(14.0);
                li {
                    svg class={ "key " (state.class()) } width="18" height="14" aria-hidden="true" {
                        rect y=(px(7.0 - height / 2.0)) width="18" height=(px(height)) {}
                    }
                    (state.verb())
                } "\n"
            }
        } "\n"
    }
}

pub(super) fn pattern() -> Markup {
    html! {
        pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
            rect width="5" height="5" {}
            path d="M1 0v5" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(state: State, from_ns: u64, until_ns: u64) -> Stretch {
        Stretch { state, from_ns, until_ns }
    }

    fn draw(length_ns: u64, threads: Vec<Vec<Stretch>>) -> String {
        let (heading, sentence) = ("<b>".into(), "what & who".into());
        timeline(&Timeline { heading, sentence, length_ns, threads }).into_string()
    }

    #[test]
    fn each_thread_has_a_row_and_each_state_a_form_of_its_own() {
        use State::{Holding, Waiting, Working};
        let first = vec![stretch(Working, 0, 100_000), stretch(Holding, 100_000, 400_000)];
        let second = vec![stretch(Waiting, 0, 300_000), stretch(Holding, 300_000, 400_000)];
        let page = draw(400_000, vec![first, second]);
        for part in [
            r#"<rect x="0%" y="11" width="25%" height="2"><title>thread 1 works, 100 µs<"#,
            r#"<rect x="25%" y="2.4" width="75%" height="19.2"><title>thread 1 holds, 300 µs<"#,
            r#"<rect x="0%" y="31.2" width="75%" height="9.6"><title>thread 2 waits, 300 µs<"#,
            ">100</text>",
            ">µs</text>",
            r#"aria-label="what &amp; who""#,
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let classes = ["working", "waiting", "holding"].map(|class| format!("\"key {class}\""));
        assert!(classes.iter().all(|class| page.contains(class)), "{page}");
        let page = draw(4_000_000, vec![vec![stretch(Working, 0, 4_000_000)]]);
        assert!(page.contains(">ms</text>") && page.contains("thread 1 works, 4.00 ms"), "{page}");
    }

    #[test]
    fn what_no_screen_tells_apart_is_one_mark() {
        let short = |nth: u64| stretch(State::Holding, nth * 100, nth * 100 + 50);
        let thread: Vec<Stretch> = (0..1000).map(short).collect();
        let page = draw(100_000_000, vec![thread]);
        assert!(page.contains("thread 1: 1000 holds, 50.0 µs in all"), "{page}");
        assert!(page.contains(r#"width="0.1%""#), "{page}");
        let page = draw(100_000_000, vec![vec![stretch(State::Holding, 0, 1)]]);
        assert!(page.contains(r#"width="0.05%""#), "it is seen however short it is: {page}");
    }

    #[test]
    fn many_threads_and_none_are_drawn() {
        let page = draw(1000, vec![vec![stretch(State::Working, 0, 1000)]; 64]);
        assert_eq!(page.matches("class=\"tick end\"").count(), 32);
        assert!(!draw(0, Vec::new()).contains("NaN"));
        assert!(!draw(0, vec![vec![stretch(State::Holding, 0, u64::MAX)]]).contains("NaN"));
    }
}
