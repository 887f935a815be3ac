//! Rare messages, and the gap above which spinning does not pay off.

use threadtoll_record::{Cell as RecordCell, Ns, Placement, WaitFamily, file::Results};

use super::columns::Column;
use super::open_loop::{self, open_loop};
use super::screen::by_case;
use super::view::{Shown, View};
use super::{Comparison, Row, idle, pairs};
use crate::label::plural;
use crate::screen::{Curve, Curves};
use crate::sentences as say;
use crate::table::{self, Cell, Label, Section};
use crate::units::{UNKNOWN, range, round_time, time};

pub(super) const VIEW: View = View {
    scenario: "night-watch",
    question: "How long a receiver should stay awake",
    sentence: "messages so rare that a receiver may have fallen asleep, sent when they are due; a delivery lasts from then until the receiver has the message. CPU is that of the receiver and of send calls.",
    columns,
    summary,
    screen,
    ..open_loop::VIEW
};

fn columns<'c, 'a>(results: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    // CPU time matters as much as delivery time here; saturation does not.
    let ranks = [("CPU", 1), ("p99", 4), ("limit", 5)];
    let ranked = |column: Column<'c, 'a>| {
        ranks.into_iter().fold(column, |column, (heading, rank)| column.ranked(heading, rank))
    };
    let columns = (open_loop::VIEW.columns)(results, comparison).into_iter().map(ranked);
    columns.chain(idle::column(comparison)).collect()
}

/// A queue at one gap between messages, with a spinning and with a sleeping receiver.
#[derive(Clone, Copy)]
struct Watch {
    gap_ns: f64,
    /// CPU time per message: `[spinning, sleeping]`.
    cpu_ns: [f64; 2],
    /// 95% intervals of `cpu_ns`.
    cpu_intervals: Option<[[f64; 2]; 2]>,
    /// Median delivery time: `[spinning, sleeping]`.
    p50_ns: [f64; 2],
}

struct Watches {
    name: String,
    placement: Placement,
    capacity: Option<u64>,
    /// Wait strategies: `[spinning, sleeping]`.
    waits: [&'static str; 2],
    /// In ascending order of gaps.
    all: Vec<Watch>,
}

impl Watches {
    /// The gap at which spinning and sleeping take the same CPU time per message. The last measured
    /// gap at which spinning takes less, and the next gap, enclose it.
    fn pays_below(&self) -> Gap {
        self.crossing(|watch| watch.cpu_ns[0] / watch.cpu_ns[1], false)
    }

    /// Bounds of [`Self::pays_below`], from the highest and the lowest ratios of spinning to
    /// sleeping that the intervals allow. Spinning certainly pays off below the first bound, and
    /// certainly does not above the second.
    fn bounds(&self) -> Option<[Gap; 2]> {
        if self.all.iter().any(|watch| watch.cpu_intervals.is_none()) {
            return None;
        }
        let bound = |spinning: usize, asleep: usize, first: bool| {
            let ratio = |watch: &Watch| match watch.cpu_intervals {
                Some([spins, sleeps]) => spins[spinning] / sleeps[asleep],
                None => f64::NAN,
            };
            self.crossing(ratio, first)
        };
        Some([bound(1, 0, true), bound(0, 1, false)])
    }

    /// Part of a sentence with the bounds of the break-even gap. Empty if they read the same as the
    /// gap.
    fn within(&self) -> String {
        let told = self.bounds().map(between).filter(|told| *told != self.pays_below().text());
        told.map_or_else(String::new, |told| {
            format!(". Within 95% intervals, the break-even gap is {told}")
        })
    }

    /// The name, followed by placement and capacity if these differ among the queues of that name.
    fn distinct_name(&self, all: &[Watches]) -> String {
        let varies = |differs: &dyn Fn(&Watches) -> bool| {
            all.iter().any(|other| other.name == self.name && differs(other))
        };
        let mut parts = vec![self.name.clone()];
        if varies(&|other| other.placement != self.placement) {
            parts.push(self.placement.to_string());
        }
        if varies(&|other| other.capacity != self.capacity) {
            parts.extend(self.capacity.map(|capacity| plural(capacity, "message")));
        }
        parts.join(", ")
    }

    /// The gap above which spinning takes more CPU time than sleeping. If the two cross several
    /// times, `first_time` selects the first crossing; otherwise, the last crossing counts.
    fn crossing(&self, ratio: impl Fn(&Watch) -> f64, first_time: bool) -> Gap {
        let (Some(first), Some(last)) = (self.all.first(), self.all.last()) else {
            return Gap::Unknown;
        };
        let pays = if first_time {
            let not = self.all.iter().position(|watch| ratio(watch) > 1.0);
            not.unwrap_or(self.all.len()).checked_sub(1)
        } else {
            self.all.iter().rposition(|watch| ratio(watch) <= 1.0)
        };
        match pays {
            None => Gap::Below(first.gap_ns),
            Some(at) => match self.all.get(at + 1) {
                None => Gap::Above(last.gap_ns),
                // Interpolates on logarithmic scales, because both CPU times are roughly powers of
                // the gap.
                Some(next) => {
                    let (from, to) = (&self.all[at], next);
                    let (less, more) = (ratio(from).ln(), ratio(to).ln());
                    let part = -less / (more - less);
                    Gap::At(from.gap_ns * (to.gap_ns / from.gap_ns).powf(part))
                }
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gap {
    Unknown,
    /// Below the shortest measured gap.
    Below(f64),
    At(f64),
    /// Above the longest measured gap.
    Above(f64),
}

impl Gap {
    fn text(self) -> String {
        match self {
            Gap::Unknown => UNKNOWN.into(),
            Gap::Below(ns) => format!("below {}", round_time(ns)),
            Gap::At(ns) => time(ns),
            Gap::Above(ns) => format!("above {}", round_time(ns)),
        }
    }
}

fn between(bounds: [Gap; 2]) -> String {
    let [from, to] = bounds.map(Gap::text);
    match bounds {
        _ if from == to => from,
        [Gap::At(from), Gap::At(to)] => range(from, to),
        _ => format!("{from} to {to}"),
    }
}

/// The queues measured both with a spinning and with a sleeping receiver.
fn watches(comparisons: &[&Comparison<'_>]) -> Vec<Watches> {
    let mut all: Vec<Watches> = Vec::new();
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let family = |row: &Row<'_>| row.queue().map(|queue| queue.wait.family());
    let asleep = || rows().filter(|row| family(row) == Some(WaitFamily::Blocking));
    let gap = |row: &Row<'_>| Some(row.queue()?.load.gap_ns?.as_f64());
    for awake in rows().filter(|row| family(row) == Some(WaitFamily::Spinning)) {
        for other in asleep() {
            let itself = |of| {
                let of: &Row<'_> = of;
                let queue = of.queue()?;
                let RecordCell { placement, neighbour, .. } = &of.record.cell;
                Some((&queue.queue, queue.origin, queue.capacity, placement, neighbour))
            };
            if gap(awake) != gap(other) || itself(awake) != itself(other) {
                continue;
            }
            let both = [awake, other];
            let cpu_ns = both.map(|row| open_loop(&row.record)?.cpu_ns_per_message.map(Ns::get));
            let intervals = both.map(|row| open_loop(&row.record)?.cpu_interval95);
            let cpu_intervals = match intervals {
                [Some(spins), Some(sleeps)] => {
                    Some([spins, sleeps].map(|interval| interval.map(Ns::get)))
                }
                _ => None,
            };
            let p50_ns = both.map(|row| row.record.quantiles.p50.map(Ns::get));
            let ([Some(spins), Some(sleeps)], [Some(at_once), Some(woken)], Some(gap_ns)) =
                (cpu_ns, p50_ns, gap(awake))
            else {
                continue;
            };
            let p50_ns = [at_once, woken];
            let watch = Watch { gap_ns, cpu_ns: [spins, sleeps], cpu_intervals, p50_ns };
            let waits = both.map(Row::wait);
            let name = pairs::name_without_wait(awake);
            let placement = awake.record.cell.placement;
            let capacity = awake.queue().and_then(|queue| queue.capacity);
            let is_known = |known: &&mut Watches| {
                known.name == name
                    && known.waits == waits
                    && known.placement == placement
                    && known.capacity == capacity
            };
            match all.iter_mut().find(is_known) {
                Some(known) => known.all.push(watch),
                None => all.push(Watches { name, placement, capacity, waits, all: vec![watch] }),
            }
        }
    }
    all.iter_mut().for_each(|known| known.all.sort_by(|a, b| a.gap_ns.total_cmp(&b.gap_ns)));
    all.sort_by(|a, b| {
        let key = |of: &Watches| (of.waits, of.placement, of.capacity);
        a.name.cmp(&b.name).then_with(|| key(a).cmp(&key(b)))
    });
    let names: Vec<String> = all.iter().map(|known| known.distinct_name(&all)).collect();
    all.iter_mut().zip(names).for_each(|(known, name)| known.name = name);
    all
}

fn summary(_: &Results, comparisons: &[&Comparison<'_>]) -> Vec<Section> {
    let all = watches(comparisons);
    type Column = table::Column<'static, Watches>;
    let longest = |which: usize| {
        Column::new("at the longest gap", ["spinning", "asleep"][which], 2, move |row| {
            Cell::figure(row.all.last().map(|last| last.p50_ns[which]), time)
        })
    };
    let columns: Vec<Column> = vec![
        Column::new("", "spinning", 1, |row| Cell::text(row.waits[0])).faint(),
        Column::new("", "asleep", 1, |row| Cell::text(row.waits[1])).faint(),
        Column::new("", "pays below", 0, |row| Cell::text(row.pays_below().text())).main(),
        Column::new("", "bounds", 3, |row| {
            row.bounds().map_or_else(Cell::unknown, |bounds| Cell::text(between(bounds)))
        }),
        longest(0),
        longest(1),
    ];
    let heading =
        "Longest gap at which a receiver that spins takes no more CPU time than one that sleeps";
    let section = || Section::new(heading, "queue", columns, &all, |row| Label::new(&row.name));
    (!all.is_empty()).then(section).into_iter().collect()
}

fn screen(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    let all = watches(comparisons);
    let Some(first) = all.first() else { return by_case(results, comparisons) };
    let (name, within) = (&first.name, first.within());
    let crossing = match first.pays_below() {
        Gap::Unknown => None,
        Gap::Below(gap) => Some(say::sleep_at_all_gaps(name, round_time(gap), within)),
        Gap::At(gap) => Some(say::stay_awake_below(name, time(gap), within)),
        Gap::Above(gap) => Some(say::stay_awake_at_all_gaps(name, round_time(gap), within)),
    };
    let woken = first.all.last().map(|watch| {
        let [awake, asleep] = watch.p50_ns.map(time);
        say::woken_later(round_time(watch.gap_ns), asleep, awake)
    });
    let curves = [0, 1].map(|which| Curve {
        name: format!("{name}, {}: {}", first.waits[which], ["stays awake", "may sleep"][which]),
        points: first.all.iter().map(|watch| (watch.gap_ns, watch.cpu_ns[which])).collect(),
    });
    let answer = crossing.into_iter().chain(woken).collect();
    let titles = ["gap between messages", "CPU time of a message"];
    (answer, Curves::of(titles, [round_time, time], curves.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_pays_up_to_the_gap_that_takes_as_long_as_a_wake_up() {
        let pays = |gaps: &[f64]| {
            // Spinning takes the whole gap, a wake-up takes 5 µs.
            let watch = |gap_ns: &f64| Watch {
                gap_ns: *gap_ns,
                cpu_ns: [*gap_ns, 5e3],
                cpu_intervals: Some([[0.8 * gap_ns, 1.2 * gap_ns], [4e3, 6e3]]),
                p50_ns: [1.0, 2.0],
            };
            let all = gaps.iter().map(watch).collect();
            Watches {
                name: "pipe".into(),
                placement: Placement::Pinned,
                capacity: None,
                waits: ["spin", "park"],
                all,
            }
        };
        let is_about = |gap: Gap, expected: f64| {
            let Gap::At(found) = gap else { panic!("{gap:?} is between two") };
            assert!((found / expected - 1.0).abs() < 1e-9, "{found}");
        };
        let measured = pays(&[1e3, 1e4, 1e5]);
        is_about(measured.pays_below(), 5e3);
        let [from, to] = measured.bounds().unwrap();
        is_about(from, 4e3 / 1.2);
        is_about(to, 6e3 / 0.8);
        assert_eq!(pays(&[1e4, 1e5]).pays_below(), Gap::Below(1e4));
        assert_eq!(pays(&[1e2, 1e3]).pays_below(), Gap::Above(1e3));
        assert_eq!(pays(&[]).pays_below(), Gap::Unknown);
    }
}
