use threadtoll_record::{PoolPrediction, PoolRow};

use super::models::by_model;
use super::screen::lines;
use super::table::draw;
use super::{BOLD, DIM, Style};
use crate::label::title;
use crate::pool::{QUESTION, about, answer, is_simulated, servers};
use crate::screen::{Picture, ROWS, Rows, Screen};

/// Draws the servers that are enough, and the rows around them, on one screen.
pub fn pool_screen(pool: &PoolPrediction, style: &Style) -> String {
    let rows = around_the_answer(pool);
    let more = (pool.rows.len() - rows.len(), "row");
    let screen = Screen {
        title: QUESTION.into(),
        about: about(pool),
        answer: answer(pool),
        picture: Some(Picture::Rows(Rows { section: servers(pool, &rows), more })),
        ..Screen::default()
    };
    lines(&screen, is_simulated(pool), style)
}

/// The rows next to the answer, and those at both ends.
fn around_the_answer(pool: &PoolPrediction) -> Vec<&PoolRow> {
    let center = f64::from(pool.enough_servers.unwrap_or(u32::MAX));
    let last = pool.rows.len().saturating_sub(1);
    let mut nearest: Vec<usize> = (0..pool.rows.len()).collect();
    nearest.sort_by(|a, b| {
        let apart = |nth: &usize| (f64::from(pool.rows[*nth].servers) - center).abs();
        let is_inner = |nth: &usize| *nth > 0 && *nth < last;
        is_inner(a).cmp(&is_inner(b)).then(apart(a).total_cmp(&apart(b)))
    });
    nearest.truncate(ROWS);
    nearest.sort_unstable();
    nearest.into_iter().map(|nth| &pool.rows[nth]).collect()
}

/// Draws all rows of a pool, and how each was computed.
///
/// If `style` has a width, columns are dropped until the others fit, and listed below the table.
pub fn pool(pool: &PoolPrediction, style: &Style) -> String {
    let mut text = style.simulated(is_simulated(pool)) + &style.paragraph(BOLD, QUESTION);
    let about =
        format!("{}; arrivals at random, first come, first served.", about(pool).join("; "));
    text.push_str(&style.paragraph(DIM, &title(&about)));
    let rows: Vec<&PoolRow> = pool.rows.iter().collect();
    let (table, left_out) = draw(&servers(pool, &rows), style);
    text.push('\n');
    text.push_str(&table);
    text.push('\n');
    let mut notes = vec![
        "share: of all callers, including those who give up. mean, p50, p99: of the callers who are served, zero for those who find a free server."
            .to_string(),
    ];
    if pool.rows.iter().any(|row| row.wait_p99_ns_interval99.is_some()) {
        notes
            .push("p99, 99%: interval of a simulated p99; --json has those of all figures.".into());
    }
    if pool.rows.iter().any(|row| row.wait_p99_ns_interval95.is_some()) {
        notes.push(
            "p99, 95%: with arrivals and hold times at both ends of their intervals; --json has those of all figures."
                .into(),
        );
    }
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        notes.push(format!(
            "Columns that did not fit: {left_out}. Widen the terminal, or see --json."
        ));
    }
    let models = pool.rows.iter().map(|row| (row.servers, &*row.model, &*row.why));
    notes.extend(by_model(models, "server"));
    for note in notes {
        text.push_str(&style.paragraph(DIM, &note));
    }
    text.push('\n');
    text + &style.bullets(&answer(pool))
}
