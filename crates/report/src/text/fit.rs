use threadtoll_record::Fit;

use super::screen::lines;
use super::table::draw;
use super::{BOLD, DIM, Style};
use crate::fit::{finding, of_numbers, threads, throughput};
use crate::label::plural;
use crate::screen::{Picture, ROWS, Rows, Screen};
use crate::sentences::Sentence;
use crate::units::{coefficient, share};

/// Maximum number of rows of a table; a longer one is reduced to a selection of rows.
const MAX_ROWS: usize = 48;

/// Draws the peak and the rows that show it on one screen.
pub fn fit_screen(fit: &Fit, style: &Style) -> String {
    let every = fit.rows.len().div_ceil(ROWS).max(1);
    let rows: Vec<_> = fit.rows.iter().step_by(every).copied().collect();
    let more = (fit.rows.len() - rows.len(), "row");
    let screen = Screen {
        title: format!(
            "Throughput by threads: a fit of the universal scalability law, off by {}",
            share(fit.relative_rms)
        ),
        answer: vec![finding(fit)],
        picture: Some(Picture::Rows(Rows { section: threads(fit, &rows), more })),
        remarks: of_numbers(fit).into_iter().collect(),
        ..Screen::default()
    };
    lines(&screen, false, style)
}

/// Draws a fit: measured and fitted throughput by number of threads, the coefficients, the peak.
///
/// If `style` has a width, columns are dropped until the others fit.
pub fn fit(fit: &Fit, style: &Style) -> String {
    let mut text = style.paragraph(BOLD, "Throughput by threads: a fit, not a prediction");
    text.push_str(&style.paragraph(
        DIM,
        "The universal scalability law, X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)), follows the measured points and cannot see beyond them: measure more threads than you plan to use.",
    ));
    let every = fit.rows.len().div_ceil(MAX_ROWS).max(1);
    let rows: Vec<_> = fit.rows.iter().step_by(every).copied().collect();
    text.push('\n');
    text.push_str(&draw(&threads(fit, &rows), style).0);
    if rows.len() < fit.rows.len() {
        let note = format!("{} of {} rows; all are in --json.", rows.len(), fit.rows.len());
        text.push_str(&style.paragraph(DIM, &note));
    }
    text.push('\n');
    for (name, value) in coefficients(fit) {
        text.push_str(&format!("{}  {value}\n", style.paint(DIM, &format!("{name:10}"))));
    }
    text.push('\n');
    let sentences: Vec<Sentence> = std::iter::once(finding(fit)).chain(of_numbers(fit)).collect();
    text + &style.bullets(&sentences)
}

fn coefficients(fit: &Fit) -> [(&'static str, String); 5] {
    let peak = match (fit.peak_threads, fit.curve_peak_threads) {
        (Some(peak), _) => plural(peak.into(), "thread"),
        (None, Some(peak)) => {
            format!("{} on the curve, not shown by the points", plural(peak.into(), "thread"))
        }
        (None, None) => format!("none up to {}", plural(fit.trusted_up_to.into(), "thread")),
    };
    [
        ("gamma", format!("{} (one thread)", throughput(fit.gamma))),
        ("alpha", format!("{} (contention)", coefficient(fit.alpha))),
        ("beta", format!("{} (coherency)", coefficient(fit.beta))),
        ("fit error", share(fit.relative_rms)),
        ("peak", peak),
    ]
}
