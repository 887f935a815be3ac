use threadtoll_record::{PoolPrediction, PoolRow};

use crate::clean::clean;
use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{
    count, digits, digits_within, per_second, round_digits, round_time, share, share_within, time,
    time_range, time_within,
};

pub(crate) const QUESTION: &str = "How many servers?";

/// Returns `true` if arrivals or hold times come from a simulated machine.
pub(crate) fn is_simulated(pool: &PoolPrediction) -> bool {
    pool.from.as_ref().is_some_and(|from| from.simulated)
}

/// Arrivals, hold times and limits.
pub(crate) fn about(pool: &PoolPrediction) -> Vec<String> {
    let hold = match pool.hold_shape.as_str() {
        shape @ ("fixed" | "exponential") => {
            format!("{} each ({shape})", round_time(pool.hold_ns))
        }
        file => format!(
            "{} each, distributed as in {} (variance {} of the squared mean)",
            time(pool.hold_ns),
            clean(file),
            digits(pool.hold_variation)
        ),
    };
    let queue = pool.queue.map(|places| match places {
        0 => "no queue".to_string(),
        places => format!("queue of {}", count(places.into())),
    });
    let patience = pool.patience_ns.map(|ns| format!("patience {}", round_time(ns)));
    let rate = round_digits(pool.arrivals_per_s);
    let callers = if rate == "1" { "caller" } else { "callers" };
    [format!("{rate} {callers} per s"), hold].into_iter().chain(queue).chain(patience).collect()
}

/// Rows of a pool. Columns that no row fills are left out.
pub(crate) fn servers(pool: &PoolPrediction, rows: &[&PoolRow]) -> Section {
    type Column<'p, 'r> = table::Column<'p, &'r PoolRow>;
    let any = |says: fn(&PoolRow) -> bool| rows.iter().any(|row| says(row));
    let mut columns: Vec<Column<'_, '_>> = Vec::new();
    let p99 = move |row: &&PoolRow| {
        let best = pool.enough_servers == Some(row.servers);
        let emphasis = if best { Emphasis::Best } else { Emphasis::Main };
        Cell::figure(row.wait_p99_ns, time).emphasis(emphasis)
    };
    columns.push(Column::new("", "in use", 2, |row| Cell::figure(row.in_use_mean, digits)));
    if pool.queue != Some(0) {
        let waits = |row: &&PoolRow| Cell::figure(row.wait_probability, share);
        columns.push(Column::new("wait", "share", 3, waits));
        columns.push(Column::new("wait", "mean", 6, |row| Cell::figure(row.wait_mean_ns, time)));
        columns.push(Column::new("wait", "p50", 7, |row| Cell::figure(row.wait_p50_ns, time)));
        columns.push(Column::new("wait", "p99", 0, p99));
    }
    if any(|row| row.wait_p99_ns_interval99.is_some()) {
        columns.push(
            Column::new("wait", "p99, 99%", 5, |row| match row.wait_p99_ns_interval99 {
                Some(interval) => Cell::text(time_range(interval)),
                None => Cell::empty(),
            })
            .faint(),
        );
    }
    if any(|row| row.wait_p99_ns_interval95.is_some()) {
        columns.push(
            Column::new("wait", "p99, 95%", 4, |row| match row.wait_p99_ns_interval95 {
                Some(interval) => Cell::text(time_range(interval)),
                None => Cell::unknown(),
            })
            .faint(),
        );
    }
    if pool.queue.is_some() {
        columns.push(Column::new("", "refused", 0, |row| Cell::figure(row.refused_share, share)));
    }
    if pool.patience_ns.is_some() {
        columns.push(Column::new("", "give up", 1, |row| Cell::figure(row.gave_up_share, share)));
    }
    if any(|row| row.queue_growth_per_s.is_some()) {
        columns.push(Column::new("", "queue", 1, |row| match row.queue_growth_per_s {
            Some(growth) if growth > 0.0 => Cell::text(format!("+{}/s", per_second(growth))),
            Some(_) => Cell::text("grows"),
            None => Cell::empty(),
        }));
    }
    columns.push(Column::new("", "model", 4, |row| Cell::text(clean(&row.model))).faint());
    Section::new("", "servers", columns, rows, |row| Label::new(count(row.servers.into())))
}

/// The most important sentence first.
pub(crate) fn answer(pool: &PoolPrediction) -> Vec<Sentence> {
    let fewer = pool.fewer_may_do && pool.enough_servers.is_some();
    let fewer = fewer.then(say::pool_with_fewer);
    let at_ends = at_ends(pool);
    [enough(pool)]
        .into_iter()
        .chain(at_ends)
        .chain(fewer)
        .chain(growth(pool))
        .chain(from(pool))
        .collect()
}

/// Servers that are enough with arrivals and hold times at both ends of their intervals.
fn at_ends(pool: &PoolPrediction) -> Option<Sentence> {
    let measured = pool.hold_ns_interval95.is_some() || pool.arrivals_per_s_interval95.is_some();
    Some(match pool.enough_servers_interval95 {
        Some([least, most]) if least == most => say::pool_at_both_ends(),
        Some([least, most]) => say::pool_within(count(least.into()), count(most.into())),
        None if measured => say::pool_unsure(),
        None => return None,
    })
}

/// Lists the figures that were taken from a file.
fn from(pool: &PoolPrediction) -> Option<Sentence> {
    let from = pool.from.as_ref()?;
    let held = time_within(pool.hold_ns, pool.hold_ns_interval95);
    let figures = match (from.held_share, pool.arrivals_per_s_interval95) {
        (Some(share), _) => format!(
            "held {} of the time, which is {held} each at {} acquisitions a second",
            share_within(share, from.held_share_interval95),
            round_digits(pool.arrivals_per_s),
        ),
        (None, Some(rate)) => format!(
            "held for {held}, taken {} times a second",
            digits_within(pool.arrivals_per_s, Some(rate))
        ),
        (None, None) => format!("held for {held}"),
    };
    let threads = plural(from.threads.into(), "thread");
    Some(say::taken(clean(&from.file), clean(&from.lock), threads, figures))
}

fn enough(pool: &PoolPrediction) -> Sentence {
    let turns_away = pool.queue.is_some() || pool.patience_ns.is_some();
    let busy = match (turns_away, round_digits(pool.offered_load)) {
        (false, one) if one == "1" => "1 server is".to_string(),
        (false, many) => format!("{many} servers are"),
        (true, one) if one == "1" => "1 server would be".to_string(),
        (true, many) => format!("{many} servers would be"),
    };
    let target = round_time(pool.target_ns);
    let Some(enough) = pool.enough_servers else {
        let unknown = pool.fewer_may_do;
        let say = if unknown { say::pool_unknown } else { say::pool_too_small };
        return say(busy, target);
    };
    let of = |one: &str, many: &str| {
        format!("{} {}", count(enough.into()), if enough == 1 { one } else { many })
    };
    if pool.queue == Some(0) {
        return say::pool_of_losses(busy, of("turns", "turn"));
    }
    let keep = of("keeps", "keep");
    if turns_away {
        let turn = if enough == 1 { "turns" } else { "turn" };
        return say::pool_that_turns_away(busy, keep, target, turn);
    }
    match pool.offered_load as u32 {
        0 => say::pool(busy, keep, target),
        1 => say::pool_and_too_few(busy, keep, target, "1 is"),
        few => {
            say::pool_and_too_few(busy, keep, target, format!("{} or fewer are", count(few.into())))
        }
    }
}

/// Growth of the queue with the most servers of the rows in which it is not too slow to tell.
fn growth(pool: &PoolPrediction) -> Option<Sentence> {
    let grows = |row: &&PoolRow| row.queue_growth_per_s.is_some_and(|growth| growth > 0.0);
    let row = pool.rows.iter().filter(grows).max_by_key(|row| row.servers)?;
    let growth = round_digits(row.queue_growth_per_s?);
    Some(say::pool_queue_grows(plural(row.servers.into(), "server"), growth))
}
