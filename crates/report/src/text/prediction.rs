use threadtoll_model::bounds::Limits;
use threadtoll_model::{Load, amdahl, bounds};
use threadtoll_record::{PredictedPolicy, PredictedRow, Prediction};

use super::models::by_model;
use super::plot::{Curve, plot};
use super::screen::lines;
use super::table::draw;
use super::{ACCENT, BAD, BOLD, DIM, SIMULATED, Style};
use crate::clean::clean;
use crate::label::{plural, title};
use crate::prediction::measured::{self, ratio_within, within};
use crate::prediction::{HELPS, change, changes, threads};
use crate::scale::Axis;
use crate::screen::{Picture, ROWS, Rows, Screen};
use crate::sentences::{self as say, Sentence};
use crate::table::Heading;
use crate::units::{count, digits, ratio, round_digits, round_time, share, time};

const QUESTION: &str = "How many threads are worth having?";
/// Number of rows on a screen that also tells what was measured.
const MEASURED_ROWS: usize = ROWS - 2;
/// Maximum number of rows of a table; a longer one is reduced to a selection of rows.
const MAX_ROWS: usize = 48;
/// Approximate number of rows of a reduced table.
const SELECTED_ROWS: usize = 24;
const POINTS: u32 = 200;
const HEIGHT: usize = 16;

/// Draws the number of threads worth having, the rows around it, and the change that helps most, on
/// one screen.
pub fn prediction_screen(prediction: &Prediction, style: &Style) -> String {
    let rows = around_the_advice(prediction);
    let more = prediction.rows.len() - rows.len();
    let mut section = threads(prediction, &rows);
    let of_experts = |column: &&mut Heading| ["on entry", "model"].contains(&&*column.text);
    section.columns.iter_mut().filter(of_experts).for_each(|column| column.rank = None);
    let picture = Rows { section, more: (more, "row") };
    let screen = Screen {
        title: QUESTION.into(),
        about: std::iter::once(durations(prediction)).chain(circumstances(prediction)).collect(),
        answer: answer(prediction),
        picture: (!rows.is_empty()).then_some(Picture::Rows(picture)),
        remarks: measured::remarks(prediction)
            .into_iter()
            .chain(best_change(prediction))
            .chain(by_amdahl(prediction).filter(|_| prediction.from.is_none()))
            .collect(),
        ..Screen::default()
    };
    lines(&screen, simulated(prediction), style)
}

/// True if the times were measured on a simulated machine.
fn simulated(prediction: &Prediction) -> bool {
    prediction.from.as_ref().is_some_and(|from| from.simulated)
}

/// Rows close to the advice, with the first one, the last one, and that of the threads that were
/// measured.
fn around_the_advice(prediction: &Prediction) -> Vec<&PredictedRow> {
    let rows = &prediction.rows;
    let advice = f64::from(prediction.recommended_threads.unwrap_or(1));
    let measured = prediction.from.as_ref().map(|from| from.threads);
    let mut nearest: Vec<usize> = (0..rows.len()).collect();
    nearest.sort_by(|a, b| {
        let apart = |nth: &usize| (f64::from(rows[*nth].threads) / advice).ln().abs();
        let is_inner =
            |nth: &usize| *nth > 0 && *nth + 1 < rows.len() && measured != Some(rows[*nth].threads);
        is_inner(a).cmp(&is_inner(b)).then(apart(a).total_cmp(&apart(b)))
    });
    nearest.truncate(if measured.is_some() { MEASURED_ROWS } else { ROWS });
    nearest.sort_unstable();
    nearest.into_iter().map(|nth| &rows[nth]).collect()
}

fn best_change(prediction: &Prediction) -> Option<Sentence> {
    let best = prediction.what_if.iter().max_by(|a, b| a.gain.total_cmp(&b.gain))?;
    let threads = plural(best.threads.into(), "thread");
    let gain = ratio_within(best.gain, best.gain_interval95);
    (best.gain >= HELPS).then(|| say::best_change(threads, change(&best.change), gain))
}

/// Draws a prediction: a table by number of threads, the knee, the useful number of threads, the
/// curves, and the effects of changes.
///
/// If `style` has a width, columns are dropped until the others fit, and listed below the table.
pub fn prediction(prediction: &Prediction, style: &Style) -> String {
    let mut text = String::new();
    text.push_str(&style.paragraph(BOLD, QUESTION));
    text.push_str(
        &style.paragraph(DIM, &title(&format!("{}.", description(prediction).join("; ")))),
    );
    if simulated(prediction) {
        text.push_str(&style.paragraph(BAD, SIMULATED));
    }
    let rows = selected(prediction);
    let mut notes = Vec::new();
    if !rows.is_empty() {
        text.push('\n');
        let (table, left_out) = draw(&threads(prediction, &rows), style);
        text.push_str(&table);
        if rows.len() < prediction.rows.len() {
            notes.push(format!(
                "{} of {} rows; all are in --json.",
                rows.len(),
                prediction.rows.len()
            ));
        }
        notes.extend(end(prediction));
        if !left_out.is_empty() {
            notes.push(format!(
                "Columns that did not fit: {}. Widen the terminal, or see --json.",
                left_out.join(", ")
            ));
        }
        notes.extend(models(&prediction.rows));
        text.push('\n');
    }
    for note in notes {
        text.push_str(&style.paragraph(DIM, &note));
    }
    if let Some(drawing) = drawing(prediction, style) {
        text.push('\n');
        text.push_str(&drawing);
    }
    text.push('\n');
    let sentences: Vec<Sentence> = answer(prediction)
        .into_iter()
        .chain(measured::remarks(prediction))
        .chain(measured::without_durations(prediction))
        .chain(by_amdahl(prediction))
        .collect();
    text.push_str(&style.bullets(&sentences));
    if let Some(first) = prediction.what_if.first() {
        text.push('\n');
        let threads = plural(first.threads.into(), "thread");
        let [hold, think] = times(prediction);
        let changes = changes(prediction);
        let said = match changes {
            Some(_) => say::changes(threads, hold, think),
            None => say::no_change_helps(threads, hold, think),
        };
        text.push_str(&style.paragraph(BOLD, &said.to_string()));
        text.extend(changes.map(|changes| draw(&changes, style).0));
    }
    text
}

/// A thread's time with the lock, and its time without, if it never waits.
fn times(prediction: &Prediction) -> [String; 2] {
    let of = |ns: Option<f64>, part: f64| match ns {
        Some(ns) => round_time(ns),
        None => format!("{} of its time", share(part)),
    };
    let held = prediction.hold_share;
    [of(prediction.hold_ns, held), of(prediction.think_ns, 1.0 - held)]
}

fn durations(prediction: &Prediction) -> String {
    let [hold, think] = times(prediction);
    match prediction.hold_ns {
        Some(_) => format!("held {hold}, not held {think}"),
        None => format!("one thread alone holds the lock {hold}"),
    }
}

fn description(prediction: &Prediction) -> Vec<String> {
    let distributed = |file: &str, variation: f64| {
        let variance = digits(variation);
        format!("distributed as in {} (variance {variance} of the squared mean)", clean(file))
    };
    let duration = |ns: f64, shape: &str, variation: f64| match shape {
        _ if ns == 0.0 => "no time".to_string(),
        "fixed" => format!("{} (fixed)", round_time(ns)),
        "exponential" => format!("{} on average (exponential)", round_time(ns)),
        file => format!("{} on average, {}", time(ns), distributed(file, variation)),
    };
    let shape = |shape: &str, variation: f64| match shape {
        "fixed" | "exponential" => shape.to_string(),
        file => distributed(file, variation),
    };
    let Prediction { hold_shape, think_shape, .. } = prediction;
    let (hold_variation, think_variation) = (prediction.hold_variation, prediction.think_variation);
    let durations = match (prediction.hold_ns, prediction.think_ns) {
        (Some(hold_ns), Some(think_ns)) => format!(
            "lock held for {}, not held for {}",
            duration(hold_ns, hold_shape, hold_variation),
            duration(think_ns, think_shape, think_variation)
        ),
        _ => format!(
            "hold times {}, think times {}",
            shape(hold_shape, hold_variation),
            shape(think_shape, think_variation)
        ),
    };
    std::iter::once(durations).chain(circumstances(prediction)).collect()
}

fn circumstances(prediction: &Prediction) -> [String; 5] {
    [
        match prediction.cores {
            None => "each thread has a core".into(),
            Some(cores) => plural(cores.into(), "core"),
        },
        match prediction.stripes {
            1 => "one lock".to_string(),
            stripes => format!("{} locks, one chosen at random each time", count(stripes.into())),
        },
        match prediction.policy {
            PredictedPolicy::Fifo => "first come, first served".into(),
            PredictedPolicy::Barging => {
                "a running thread may overtake one that is being woken".into()
            }
        },
        match prediction.handoff_ns {
            0.0 => "hand-offs are free".to_string(),
            ns => format!("a hand-off takes {}", round_time(ns)),
        },
        format!("one thread alone holds the lock for {} of its time", share(prediction.hold_share)),
    ]
}

/// All rows; if there are too many, evenly spaced rows, the last row, the rows next to the knee,
/// and the row with the recommended number of threads.
fn selected(prediction: &Prediction) -> Vec<&PredictedRow> {
    let rows = &prediction.rows;
    if rows.len() <= MAX_ROWS {
        return rows.iter().collect();
    }
    let every = rows.len().div_ceil(SELECTED_ROWS);
    let near = |row: &PredictedRow| {
        prediction.recommended_threads == Some(row.threads)
            || prediction.knee.is_some_and(|knee| (f64::from(row.threads) - knee).abs() < 1.0)
    };
    let last = rows.len() - 1;
    let shown =
        |(index, row): &(usize, &PredictedRow)| index % every == 0 || *index == last || near(row);
    rows.iter().enumerate().filter(shown).map(|(_, row)| row).collect()
}

/// Note for rows that end before the knee, or before the recommended number of threads.
fn end(prediction: &Prediction) -> Option<String> {
    let last = prediction.rows.iter().map(|row| row.threads).max()?;
    let knee = prediction.knee.filter(|knee| *knee > f64::from(last));
    let advice = prediction.recommended_threads.filter(|threads| *threads > last);
    let beyond = match (knee, advice) {
        (Some(_), Some(_)) => "the limit and the number of threads worth having",
        (Some(_), None) => "the limit",
        (None, Some(_)) => "the number of threads worth having",
        (None, None) => return None,
    };
    let last = plural(last.into(), "thread");
    Some(format!("The rows end at {last}, below {beyond}."))
}

/// Notes on the columns, and the models that predicted the rows, with the reason for each model.
fn models(rows: &[PredictedRow]) -> Vec<String> {
    let mut sentences = vec![
        "waiting: share of the threads' time. on entry: queue when a thread has just acquired the lock. at most: upper bound, whatever the distribution of times."
            .to_string(),
    ];
    if rows.iter().any(|row| row.speedup_interval95.is_some()) {
        sentences.push(
            "95%: interval that follows from those of the measured times; it leaves out how well the model fits."
                .into(),
        );
    } else if rows.iter().any(|row| row.speedup_interval99.is_some()) {
        sentences.push("99%: interval of the simulated speed-up.".into());
    }
    let rows = rows.iter().map(|row| (row.threads, &*row.model, &*row.why));
    sentences.extend(by_model(rows, "thread"));
    sentences
}

fn drawing(prediction: &Prediction, style: &Style) -> Option<String> {
    let least = prediction.rows.iter().map(|row| row.threads).min().unwrap_or(1).max(1);
    let most = prediction.rows.iter().map(|row| row.threads).max().unwrap_or(1);
    if least >= most {
        return None;
    }
    // Both curves depend on the hold share alone, so the length of a cycle is arbitrary.
    let [hold, think] = [prediction.hold_share, 1.0 - prediction.hold_share];
    let load = Load::new(hold * 1e9, think * 1e9).ok();
    let ceiling = |threads: u32| {
        let limits =
            Limits { locks: prediction.stripes, cores: prediction.cores, hand_off_ns: 0.0 };
        bounds::speedup(load?, threads, limits).ok()
    };
    let floor = |threads: u32| {
        let load = load?;
        amdahl::speedup(load, threads.min(prediction.cores.unwrap_or(threads)), prediction.stripes)
            .ok()
    };
    let every = ((most - least) / POINTS).max(1);
    let mut places: Vec<u32> = (least..=most).step_by(every as usize).collect();
    places.push(most);
    // The upper bound rises with the number of threads up to a maximum. The curve needs points at
    // the corner where this rise ends.
    if let Some(bend) = ceiling(most).map(|bend| bend as u32) {
        places.extend(
            [bend, bend.saturating_add(1)]
                .into_iter()
                .filter(|place| (least..=most).contains(place)),
        );
    }
    places.sort_unstable();
    places.dedup();
    let curve = |name: &str, line, mark, with, points| Curve {
        name: name.into(),
        line,
        mark,
        with,
        points,
    };
    let along = |height: &dyn Fn(u32) -> Option<f64>| {
        places.iter().filter_map(|&place| Some((f64::from(place), height(place)?))).collect()
    };
    let rows = prediction.rows.iter().map(|row| (f64::from(row.threads), row.speedup)).collect();
    let amdahl = if prediction.handoff_ns > 0.0 {
        "Amdahl's law, without hand-offs"
    } else {
        "Amdahl's law: all threads want the lock at the same moment"
    };
    let curves = [
        curve("at most", '-', None, DIM, along(&ceiling)),
        curve(amdahl, ':', None, DIM, along(&floor)),
        curve("predicted", '·', Some('●'), ACCENT, rows),
    ];
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = Axis::from_zero(points().map(|point| point.0), 1.0, round_digits)?.titled("threads");
    let y = Axis::from_zero(points().map(|point| point.1), 1.0, round_digits)?.titled("speed-up");
    Some(plot(&x, &y, &curves, HEIGHT, style)).filter(|drawing| !drawing.is_empty())
}

/// Says what was taken from a file, how many threads are worth having, what limits them, and the
/// number of tasks, if given.
fn answer(prediction: &Prediction) -> Vec<Sentence> {
    let worth = match prediction.recommended_threads {
        Some(1) => Some(say::worth_one()),
        Some(threads) => {
            let interval = prediction.recommended_threads_interval95;
            let interval = interval.filter(|[low, high]| low < high);
            let interval = interval.map(|ends| ends.map(|end| count(end.into())).join("–"));
            Some(say::worth(within(plural(threads.into(), "thread"), interval)))
        }
        None => prediction.knee.map(|_| say::worth_many()),
    };
    let of_tasks = prediction.tasks.map(|tasks| say::rows_of_tasks(plural(tasks, "task")));
    let taken = measured::taken(prediction);
    taken.into_iter().chain(worth).chain([limit(prediction)]).chain(of_tasks).collect()
}

fn limit(prediction: &Prediction) -> Sentence {
    let Some(knee) = prediction.knee else { return say::no_knee() };
    let limit = if prediction.stripes == 1 { "the lock is" } else { "the locks are" };
    let most = ratio_within(knee, prediction.knee_interval95);
    match prediction.policy {
        _ if prediction.cores.is_some_and(|cores| f64::from(cores) <= knee) => {
            say::limit_of_cores(most)
        }
        _ if prediction.handoff_ns == 0.0 => say::limit(limit, most),
        PredictedPolicy::Fifo => say::limit_with_hand_offs(limit, most),
        PredictedPolicy::Barging => say::limit_at_most(limit, most),
    }
}

fn by_amdahl(prediction: &Prediction) -> Option<Sentence> {
    let row = furthest_from_amdahl(&prediction.rows)?;
    let threads = plural(row.threads.into(), "thread");
    let (amdahl, speedup) = (ratio(row.amdahl), ratio(row.speedup));
    Some(if prediction.handoff_ns > 0.0 {
        say::amdahl_without_hand_offs(threads, amdahl, speedup)
    } else {
        say::amdahl(threads, amdahl, speedup)
    })
}

/// The row that Amdahl's law underestimates most. `None` without a noticeable difference.
fn furthest_from_amdahl(rows: &[PredictedRow]) -> Option<&PredictedRow> {
    rows.iter()
        .filter(|row| row.speedup / row.amdahl > 1.05)
        .max_by(|a, b| (a.speedup / a.amdahl).total_cmp(&(b.speedup / b.amdahl)))
}
