//! Judges printed sentences.

use threadtoll_lab::simulated::Regimes;
use threadtoll_record::{Cell, OneWay, OneWayMethod, Placement, Record};

use super::figures::{Figure, figure, parts};
use super::machine::Measured;

/// Tells of a statement: its kind, and if it holds.
pub(super) type Tell<'t> = &'t mut dyn FnMut(&str, bool);

/// Judges one sentence, or the sentences of one bullet.
pub(super) fn judge(told: &str, run: &Measured, tell: Tell<'_>) {
    for judge in [line_and_wake, idle, enough_threads, claim, regimes, disturbed] {
        judge(told, run, tell);
    }
}

/// The regimes in which a figure's interval comes within 2% of the truth about a cell's one-way
/// median; none if it is not that of one of its records. How often intervals hold the truth itself
/// is judged of all records; regimes are much further apart.
fn medians(found: &Figure, run: &Measured, cell: &Cell) -> Vec<bool> {
    let of_cell = run.records.iter().filter(|record| record.cell == *cell);
    let shown = |one_way: &&OneWay| {
        let p50 = one_way.p50.map(f64::from);
        p50.is_some_and(|p50| (p50 / found.value - 1.0).abs() < 0.006)
    };
    let all = of_cell.flat_map(|record| {
        let regimes = record.regimes.iter().filter_map(|regime| regime.one_way.as_ref());
        record.one_way.iter().chain(regimes)
    });
    let method = all.filter(shown).map(|one_way| one_way.method).next();
    let Some(method) = method.filter(|_| found.is_sound()) else { return Vec::new() };
    let near = |[least, most]: &[f64; 2]| found.overlaps([least / 1.02, most * 1.02]);
    run.one_way(cell, method).0.iter().map(near).collect()
}

/// All figures of a sentence hold in one regime: that of which the findings are, if they say so.
fn in_one(run: &Measured, figures: &[Vec<bool>]) -> bool {
    let hold = |regime: usize| figures.iter().all(|of| of.get(regime).copied().unwrap_or(false));
    run.stated().into_iter().any(hold)
}

/// The two figures of the first screen, and their ratio.
fn line_and_wake(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "Passing a cache line takes {line}, waking a sleeper {sleep}: {times}× as long.";
    let Some(parts) = parts(told, form) else { return };
    let (line, sleeper) = (pinned(run, "atomic-store"), pinned(run, "futex"));
    let found = |text: &str| figure(text).unwrap().0;
    let (low, high, times) = (found(parts[0]), found(parts[1]), found(parts[2]));
    assert!((times.value / (high.value / low.value) - 1.0).abs() < 0.006, "{told}");
    let of = |figure: &Figure, record: &Record| medians(figure, run, &record.cell);
    let longer = run.ratios(&sleeper.cell, &line.cell).iter().map(|truth| *truth > 1.0).collect();
    tell("a line and a wake-up", in_one(run, &[of(&low, line), of(&high, sleeper), longer]));
}

fn pinned<'r>(run: &'r Measured, name: &str) -> &'r Record {
    run.named(name, Placement::Pinned).unwrap_or_else(|| panic!("{name} is not in the records"))
}

/// A row of the table of compared rows: `futex (free) against futex  2.5 µs  1.4 µs  1.8× (1.7–1.9)
/// worse`.
pub(super) fn compared(row: &str, run: &Measured, tell: Tell<'_>) {
    let Some((named, ratio)) = row.split_once(" against ").filter(|_| row.contains('×')) else {
        return;
    };
    let base = ratio.split("  ").next().unwrap();
    let (before, verdict) = ratio.rsplit_once(") ").unwrap();
    let (found, _) = figure(&format!("{})", before.rsplit("  ").next().unwrap())).unwrap();
    let cell = |name: &str| match name.strip_suffix(" (free)") {
        Some(name) => run.named(name, Placement::Free).unwrap().cell.clone(),
        None => pinned(run, name).cell.clone(),
    };
    let is_so = |truth: &f64| match verdict {
        "better" => *truth < 1.0 / 1.05,
        "worse" => *truth > 1.05,
        "within 5%" => (1.0 / 1.05..=1.05).contains(truth),
        "no worse" => *truth <= 1.05,
        "no better" => *truth >= 1.0 / 1.05,
        _ => true,
    };
    let truths = run.ratios(&cell(named), &cell(base));
    let few = before.contains("only ");
    let holds = |truth: &f64| found.is_sound() && (few || found.holds(*truth)) && is_so(truth);
    tell(&format!("compared: {verdict}"), in_one(run, &[truths.iter().map(holds).collect()]));
}

fn idle(told: &str, run: &Measured, tell: Tell<'_>) {
    let awake = |usual: &Record| {
        let awake = Cell { keep_awake: true, ..usual.cell.clone() };
        run.records.iter().find(|record| record.cell == awake).unwrap()
    };
    let Some((before, _)) =
        told.split_once(" of the wake-up time is the CPU leaving its idle state.")
    else {
        return;
    };
    let share: f64 =
        before.rsplit(' ').next().unwrap().trim_matches(['%', '<', '>']).parse().unwrap();
    let usual = pinned(run, "futex");
    let truths = run.ratios(&awake(usual).cell, &usual.cell);
    let saved = |truth: &f64| (100.0 - 100.0 * truth - share).abs() < 3.0;
    tell("leaving idle", in_one(run, &[truths.iter().map(saved).collect()]));
}

/// The cells with several threads of a lock in a sweep or a pool.
fn cells<'r>(run: &'r Measured, lock: &str) -> Vec<&'r Cell> {
    let of = |cell: &&Cell| {
        cell.lock().is_some_and(|subject| subject.lock == lock && !subject.is_alone())
    };
    run.records.iter().map(|record| &record.cell).filter(of).collect()
}

fn threads(cell: &Cell) -> u32 {
    cell.lock().map_or(0, |lock| lock.threads)
}

/// Threads at the start of a text: `20 threads`.
fn count(text: &str) -> u32 {
    text.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap()
}

fn enough_threads(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "{lock}: {threads} do all tasks in {time}; more threads (up to {most} were measured) gain less than 5%.";
    let Some(parts) = parts(told, form) else { return };
    let (lock, enough) = (parts[0], count(parts[1]));
    let (found, _) = figure(parts[2]).unwrap();
    let cells = cells(run, lock);
    let most = cells.iter().map(|cell| threads(cell)).max();
    let chosen = cells.iter().find(|cell| threads(cell) == enough).unwrap();
    let times = run.totals(chosen);
    let more = cells.iter().filter(|cell| threads(cell) > enough).map(|cell| run.totals(cell));
    let more: Vec<Vec<f64>> = more.collect();
    let good = |(at, time): (usize, &f64)| more.iter().all(|more| *time <= 1.05 * more[at]);
    // As in `medians`, within 2%.
    let holds = |time: &f64| found.low <= 1.02 * *time && *time <= 1.02 * found.high * run.crest();
    let figures = [
        vec![most == Some(count(parts[3])); times.len()],
        times.iter().map(holds).collect(),
        times.iter().enumerate().map(good).collect(),
    ];
    tell("enough threads", in_one(run, &figures));
}

/// The cell that a sentence names by threads and, in a sweep, by its hold share.
fn cell<'r>(run: &'r Measured, lock: &str, named: &str) -> Option<&'r Cell> {
    let share: Option<f64> = named.split([' ', ',']).find_map(|word| {
        word.strip_suffix('%').and_then(|percent| Some(percent.parse::<f64>().ok()? / 100.0))
    });
    cells(run, lock).into_iter().find(|cell| {
        let near = |wanted: f64| {
            cell.lock().is_some_and(|lock| (lock.hold_share() - wanted).abs() < 0.006)
        };
        threads(cell) == count(named) && share.is_none_or(near)
    })
}

/// Limits between which a claim puts the speed-up.
fn limits(claim: &str, cell: &Cell) -> [f64; 2] {
    let threads = f64::from(threads(cell));
    if claim.starts_with("speed-up of 1.5 ") {
        [1.4, 1.6]
    } else if claim.starts_with("almost perfect") {
        [0.95 * threads, f64::INFINITY]
    } else if claim.starts_with("speed-up below 1 ") {
        [0.0, 1.0]
    } else {
        assert!(claim.starts_with("speed-up of 10 "), "unknown claim: {claim}");
        [9.5, f64::INFINITY]
    }
}

/// `std-mutex, 2 threads, 10% yes (1.97, 1.96–1.99)`, alone, or after `yes in 7, no in 6 of 13
/// cases, for example`.
fn claim(told: &str, run: &Measured, tell: Tell<'_>) {
    let sources = ["J. Preshing (2011), ", "A. Sukhovitsky, "];
    let Some(rest) = sources.iter().find_map(|source| told.strip_prefix(source)) else { return };
    let (claim, answers) = rest.rsplit_once(": ").unwrap();
    let (counts, examples) = answers.trim_end_matches('.').split_once(", for example ").unzip();
    let single = counts.unwrap_or(answers.trim_end_matches('.')).split("; ");
    let single = single.filter(|answer| !answer.ends_with(" cases"));
    for answer in single.chain(examples.into_iter().flat_map(|all| all.split(" and "))) {
        let (named, figures) = answer.split_once(" (").unwrap();
        let (named, word) = named.rsplit_once(' ').unwrap();
        let (lock, case) = named.split_once(", ").unwrap_or((named, ""));
        let case = case.strip_prefix("sleeping, ").unwrap_or(case);
        let case = if case.is_empty() { "2 threads, 50%" } else { case };
        let cell = cell(run, lock, case).unwrap_or_else(|| panic!("{told}"));
        let mut figures = figures.trim_end_matches(')').split(", ");
        let (value, range) = (figures.next().unwrap(), figures.next().unwrap());
        let (found, _) = figure(&format!("{value} ({range})")).unwrap();
        let [least, limit] = limits(claim, cell);
        let truths = run.speedups(cell);
        let inside = |truth: &f64| least <= *truth && *truth < limit;
        let holds = truths.iter().map(|truth| match word {
            "yes" => inside(truth),
            "no" => !inside(truth),
            _ => true,
        });
        tell(&format!("claim: {word}"), in_one(run, &[holds.collect()]) && found.is_sound());
    }
}

fn regimes(told: &str, run: &Measured, tell: Tell<'_>) {
    let Some((times, _)) = changed_speed(told) else { return };
    let truths = run.one_way(run.reference().unwrap(), OneWayMethod::HalfRoundTrip);
    let changes = matches!(run.kind.regimes, Regimes::Two { .. } | Regimes::Drifting { .. });
    let mut named = times.split([',', '&']).map(|part| figure(part.trim()).unwrap().0);
    let near = |found: Figure| truths.any_in([found.low / 1.05, found.high * 1.05]);
    tell("several regimes", changes && named.all(near));
}

/// The times of the reference, and the one of which findings are.
pub(super) fn changed_speed(told: &str) -> Option<(String, Figure)> {
    let form = "The machine ran at several speeds (the reference hand-off took {times}); figures are from the speed at which it took {main}.";
    let parts = parts(told, form)?;
    Some((parts[0].replace(" and ", " & "), figure(parts[1])?.0))
}

/// The counts are those of the records.
fn disturbed(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "{disturbed} of {blocks} blocks of measurements ({share}) were disturbed{rest}";
    let Some(parts) = parts(told, form) else { return };
    let sum = |of: fn(&Record) -> u32| run.records.iter().map(of).sum::<u32>().to_string();
    let held = parts[0] == sum(|record| record.disturbance.disturbed)
        && parts[1] == sum(|record| record.disturbance.blocks);
    tell("disturbed", held);
}
