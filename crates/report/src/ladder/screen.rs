//! The screen of hand-offs: the costs of a cache line and of a wake-up, and when to spin.

use threadtoll_record::{Cell, Class, Placement, Record};

use super::representative::SLEEPER;
use super::{Row, is_plain, not_in, representative, rows};
use crate::class::{class, slept};
use crate::clean::clean;
use crate::cost::cpu_ns;
use crate::screen::{Bar, Card, Picture, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::units::{digits, range, ratio, share, shown, time, time_range};

/// Maximum number of rows of the picture. With more mechanisms, one of each kind represents the
/// others.
const MAX_ROWS: usize = 12;

/// Way in which the two threads of a hand-off wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    OneThread,
    CacheLine,
    Polling,
    Waking,
    Other,
}

impl Kind {
    fn of(cell: &Cell) -> Self {
        match class(cell) {
            Some(Class::OneThread) => Kind::OneThread,
            Some(Class::Spin) => Kind::CacheLine,
            Some(Class::Poll) => Kind::Polling,
            Some(Class::Sleep) => Kind::Waking,
            None => Kind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::OneThread => "one thread",
            Kind::CacheLine => "cache line",
            Kind::Polling => "polling",
            Kind::Waking => "waking",
            Kind::Other => "other",
        }
    }
}

struct Ladder<'r, 'a> {
    rows: &'r [Row<'a>],
    /// Represents a cache line. If possible, the record is from the sleeper's group, so that the
    /// two times of the ratio were measured close together.
    line: Option<&'r Record>,
    sleeper: Option<&'r Record>,
}

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let rows = rows(run.of_one);
    let all = super::rows(run.records);
    if all.is_empty() {
        return None;
    }
    let sleeper = representative(&rows, Class::Sleep);
    let line = representative(&rows, Class::Spin).map(|line| {
        let beside = |record: &&Record| {
            record.cell == line.cell && sleeper.is_some_and(|sleeper| record.group == sleeper.group)
        };
        run.of_one.iter().find(beside).filter(|it| it.one_way_p50().is_some()).unwrap_or(line)
    });
    let ladder = Ladder { rows: &rows, line, sleeper };
    // Mechanisms measured only at another speed of the machine.
    let others = not_in(&rows, &all);
    Some(Screen {
        title: "What a hand-off costs".into(),
        answer: ladder.answer(),
        cards: ladder.cards(),
        picture: Some(Picture::Bars(ladder.bars(&others))),
        ..Screen::default()
    })
}

impl Ladder<'_, '_> {
    fn answer(&self) -> Vec<Sentence> {
        let p50 = |record: Option<&Record>| record.and_then(Record::one_way_p50);
        let mut answer = Vec::new();
        match (p50(self.line), p50(self.sleeper)) {
            (Some(line), Some(sleep)) if sleep >= line => answer.push(say::line_and_wake(
                time(line),
                time(sleep),
                // The ratio of the figures as shown, so that the reader can check it.
                digits(shown(sleep) / shown(line)),
            )),
            (Some(line), Some(sleep)) => {
                answer.extend([say::line(time(line)), say::wake(time(sleep))]);
            }
            (Some(line), None) => answer.push(say::line(time(line))),
            (None, Some(sleep)) => answer.push(say::wake(time(sleep))),
            // With one CPU, only wake-ups on it are known.
            (None, None) if self.on_one_cpu().is_some() => {}
            (None, None) => answer.extend(self.cheapest()),
        }
        let burnt = self.sleeper.and_then(|sleeper| cpu_ns(&sleeper.cost)).filter(|ns| *ns > 0.0);
        let advice = burnt.map(|burnt| say::spin_or_sleep(time(burnt)));
        match (advice, self.idle()) {
            (Some(advice), idle) => answer.push(advice.and(idle)),
            (None, idle) => answer.extend(idle),
        }
        answer.extend(self.on_one_cpu());
        answer
    }

    fn cards(&self) -> Vec<Card> {
        let card = |record: Option<&Record>, caption: &str| {
            let (record, caption) = (record?, caption.to_string());
            let mut detail = clean(&record.cell.label());
            if let Some(interval) = record.one_way_p50_interval95() {
                detail.push_str(&format!(", {}", time_range(interval)));
            }
            Some(Card { figure: time(record.one_way_p50()?), caption, detail })
        };
        let ratio = || {
            let (line, sleep) = (self.line?.one_way_p50()?, self.sleeper?.one_way_p50()?);
            let figure = ratio(shown(sleep) / shown(line));
            let detail = "one way, pinned, p50".into();
            Some(Card { figure, caption: "ratio of the two".into(), detail })
        };
        let line = card(self.line, "through a cache line");
        [line, card(self.sleeper, "to wake a sleeping thread"), ratio()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Names the cheapest and the most expensive mechanism, if no record represents a cache line or
    /// a sleeper.
    fn cheapest(&self) -> Option<Sentence> {
        let known = || self.rows.iter().filter_map(|row| Some((row.main()?.one_way_p50()?, row)));
        let ((low, cheapest), (high, dearest)) = (known().next()?, known().next_back()?);
        Some(if cheapest.label == dearest.label {
            say::one_mechanism(&cheapest.label, time(low))
        } else {
            say::cheapest(&cheapest.label, time(low), &dearest.label, time(high))
        })
    }

    /// The share of the wake-up time in which the CPU leaves its idle state.
    fn idle(&self) -> Option<Sentence> {
        let (sleeper, awake) = (self.sleeper?, self.awake()?);
        let (sleep, awake) = (sleeper.one_way_p50()?, awake.one_way_p50()?);
        let times = crate::quotient::Quotient::of(self.awake()?, sleeper)?;
        times.is_below_1().then(|| say::part_is_idle(share(1.0 - shown(awake) / shown(sleep))))
    }

    fn awake(&self) -> Option<&Record> {
        let sleeper = self.sleeper?;
        let cell = Cell { keep_awake: true, ..sleeper.cell.clone() };
        let mut records = self.rows.iter().filter_map(|row| row.record(Placement::Pinned));
        records.find(|record| record.cell == cell && record.one_way_p50().is_some())
    }

    fn on_one_cpu(&self) -> Option<Sentence> {
        Some(say::on_one_cpu(time(self.woken_on_one_cpu()?.one_way_p50()?)))
    }

    fn woken_on_one_cpu(&self) -> Option<&Record> {
        let name = self.sleeper.map_or(SLEEPER, |sleeper| sleeper.cell.name());
        let mut rows = self.rows.iter().filter_map(|row| row.record(Placement::SameCpu));
        rows.find(|it| it.cell.name() == name && is_plain(&it.cell) && slept(it))
    }

    fn bars(&self, others: &[&Row<'_>]) -> Vec<Bar> {
        let mut kinds: Vec<(Kind, Vec<&Row<'_>>)> = Vec::new();
        let known = self.rows.iter().chain(others.iter().copied());
        for row in known.filter(|row| p50(row).is_some()) {
            let Some(main) = row.main() else { continue };
            let kind = Kind::of(&main.cell);
            match kinds.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, rows)) => rows.push(row),
                None => kinds.push((kind, vec![row])),
            }
        }
        kinds.sort_by_key(|(kind, _)| *kind);
        let faint = |row: &Row<'_>| others.iter().any(|other| other.label == row.label);
        let all: usize = kinds.iter().map(|(_, rows)| rows.len()).sum();
        let mut bars = Vec::new();
        for (kind, rows) in &kinds {
            let shown: Vec<&Row<'_>> = match kind {
                _ if all <= MAX_ROWS || rows.len() <= 2 => rows.clone(),
                Kind::OneThread => rows.iter().take(3).copied().collect(),
                _ => self.standing_for(rows),
            };
            let first = bars.len();
            bars.extend(shown.iter().map(|row| self.bar(*kind, row, faint(row))));
            let rest: Vec<f64> = rows
                .iter()
                .filter(|row| !shown.iter().any(|other| other.label == row.label))
                .filter_map(|row| p50(row))
                .collect();
            if let (Some(bar), Some(note)) = (bars.get_mut(first), more(&rest)) {
                bar.note = note;
            }
        }
        if let Some(bar) = bars.iter_mut().find(|bar| bar.note.is_empty()) {
            bar.note = "log scale".into();
        }
        bars
    }

    /// Returns the row that represents all `rows` of one kind. The sleeper's row is followed by the
    /// row of the same mechanism with the CPUs kept awake.
    fn standing_for<'r, 'b>(&self, rows: &[&'r Row<'b>]) -> Vec<&'r Row<'b>> {
        let is = |cell: Option<&Cell>, row: &&&Row<'_>| {
            row.main().is_some_and(|main| Some(&main.cell) == cell)
        };
        let of = |record: Option<&Record>| {
            let cell = record.map(|record| &record.cell);
            rows.iter().find(|row| is(cell, row)).copied()
        };
        let main = of(self.line).or_else(|| of(self.sleeper));
        let main = main.or_else(|| of(self.woken_on_one_cpu())).or_else(|| rows.first().copied());
        main.into_iter().chain(of(self.awake())).collect()
    }

    fn bar(&self, kind: Kind, row: &Row<'_>, faint: bool) -> Bar {
        let main = row.main();
        let of_line = |line: &&Record| main.is_some_and(|main| main.cell == line.cell);
        let record = self.line.filter(of_line).or(main);
        let ns = record.and_then(Record::one_way_p50).unwrap_or_default();
        let placement = main.map(|main| main.cell.placement);
        let placed = placement.filter(|placement| *placement != Placement::Pinned);
        let placed = placed.map_or_else(String::new, |placement| format!(" ({placement})"));
        Bar {
            kind: kind.name(),
            label: format!("{}{placed}", row.label),
            ns,
            figure: time(ns),
            note: if faint { "at another speed".into() } else { String::new() },
            faint,
        }
    }
}

fn p50(row: &Row<'_>) -> Option<f64> {
    row.main()?.one_way_p50().filter(|ns| ns.is_finite() && *ns > 0.0)
}

/// Such as `3 more, 45.0–59.0 ns`.
fn more(times: &[f64]) -> Option<String> {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    (!times.is_empty()).then(|| format!("{} more, {}", times.len(), range(least, most)))
}
