pub(crate) mod measured;

use threadtoll_record::{PredictedChange, PredictedRow, Prediction};

use crate::clean::clean;
use crate::label::plural;
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{count, digits_range, per_op, per_second, range_per_op, ratio, share, time};

pub(crate) fn threads(prediction: &Prediction, rows: &[&PredictedRow]) -> Section {
    type Column<'p, 'r> = table::Column<'p, &'r PredictedRow>;
    let mut columns = vec![Column::new("speed-up", "predicted", 0, |row| {
        let best = prediction.recommended_threads == Some(row.threads);
        let emphasis = if best { Emphasis::Best } else { Emphasis::Main };
        Cell::figure(Some(row.speedup), ratio).emphasis(emphasis)
    })];
    let carried = rows.iter().any(|row| row.speedup_interval95.is_some());
    if carried {
        let text = |row: &&PredictedRow| ends(row.speedup_interval95, digits_range);
        columns.push(Column::new("speed-up", "95%", 1, text).faint());
    } else if rows.iter().any(|row| row.speedup_interval99.is_some()) {
        let text = |row: &&PredictedRow| ends(row.speedup_interval99, digits_range);
        columns.push(Column::new("speed-up", "99%", 7, text).faint());
    }
    columns.extend([
        Column::new("speed-up", "at most", 4, |row| Cell::figure(Some(row.bound), ratio)).faint(),
        Column::new("speed-up", "Amdahl", 8, |row| Cell::figure(Some(row.amdahl), ratio)).faint(),
        Column::new("queue", "mean", 2, |row| Cell::figure(Some(row.queue_mean), per_op)),
    ]);
    if carried {
        let text = |row: &&PredictedRow| ends(row.queue_mean_interval95, range_per_op);
        columns.push(Column::new("queue", "95%", 3, text).faint());
    }
    columns.extend([
        Column::new("queue", "on entry", 6, |row| Cell::figure(Some(row.queue_on_entry), per_op)),
        Column::new("", "waiting", 3, |row| Cell::figure(Some(row.wait_share), share)),
    ]);
    if rows.iter().any(|row| row.throughput_per_s.is_some()) {
        columns.push(Column::new("", "tasks per s", 5, |row| {
            Cell::figure(row.throughput_per_s, per_second)
        }));
    }
    let total = rows.iter().any(|row| row.total_s.is_some());
    if let Some(tasks) = prediction.tasks.filter(|_| total) {
        columns.push(Column::new("", plural(tasks, "task"), 1, |row| {
            Cell::figure(row.total_s, |seconds| time(seconds * 1e9))
        }));
    }
    columns.push(Column::new("", "model", 9, |row| Cell::text(clean(&row.model))).faint());
    Section::new("", "threads", columns, rows, |row| Label::new(count(row.threads.into())))
}

fn ends(interval: Option<[f64; 2]>, text: fn([f64; 2]) -> String) -> Cell {
    interval.map_or_else(Cell::empty, |ends| Cell::text(text(ends)))
}

/// A change is said to help if it multiplies throughput by at least this factor.
pub(crate) const HELPS: f64 = 1.01;

pub(crate) fn changes(prediction: &Prediction) -> Option<Section> {
    let helpful: Vec<&PredictedChange> =
        prediction.what_if.iter().filter(|change| change.gain >= HELPS).collect();
    type Column<'p> = table::Column<'static, &'p PredictedChange>;
    let mut columns: Vec<Column<'_>> = vec![
        Column::new("", "against now", 0, |change| Cell::figure(Some(change.gain), ratio))
            .emphasis(Emphasis::Accent),
        Column::new("", "model", 2, |change| Cell::text(clean(&change.model))).faint(),
    ];
    if helpful.iter().any(|change| change.gain_interval95.is_some()) {
        let text = |change: &&PredictedChange| ends(change.gain_interval95, digits_range);
        columns.insert(1, Column::new("", "95%", 3, text).faint());
    }
    if helpful.iter().any(|change| change.throughput_per_s.is_some()) {
        let per_s = |change: &&PredictedChange| Cell::figure(change.throughput_per_s, per_second);
        columns.insert(0, Column::new("", "per s", 1, per_s).main());
    }
    let label = |change: &&PredictedChange| Label::new(self::change(&change.change));
    (!helpful.is_empty()).then(|| Section::new("", "change", columns, &helpful, label))
}

pub(crate) fn change(change: &str) -> String {
    match change.split_once('/') {
        Some(("hold", "2")) => "hold the lock for half as long".to_string(),
        Some(("move-out", "2")) => "move half of the work out of the lock".to_string(),
        Some(("stripe", ways)) => format!("stripe the lock in {}", clean(ways)),
        _ => clean(change),
    }
}
