//! Judges printed sentences.

use threadtoll_lab::simulated::Regimes;
use threadtoll_record::{Cell, Class, OneWay, OneWayMethod, Placement, Record, Subject};

use super::figures::{Figure, figure, parts};
use super::machine::Measured;

/// Tells of a statement: its kind, and if it holds.
pub(super) type Tell<'t> = &'t mut dyn FnMut(&str, bool);

/// Judges one sentence, or the sentences of one bullet.
pub(super) fn judge(told: &str, run: &Measured, tell: Tell<'_>) {
    for judge in [
        line_and_wake,
        larger_message,
        unpinned,
        idle,
        signal,
        same,
        published,
        enough_threads,
        one_thread,
        claim,
        regimes,
        disturbed,
        predictions,
    ] {
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

/// The regimes in which a ratio's interval holds the truth, which lies on the same side of 1.
fn ratios(found: &Figure, truths: &[f64]) -> Vec<bool> {
    let same_side = |truth: &f64| (*truth > 1.0) == (found.value > 1.0);
    truths.iter().map(|truth| found.is_sound() && same_side(truth) && found.holds(*truth)).collect()
}

/// All figures of a sentence hold in one regime: that of which the findings are, if they say so.
fn in_one(run: &Measured, figures: &[Vec<bool>]) -> bool {
    let hold = |regime: usize| figures.iter().all(|of| of.get(regime).copied().unwrap_or(false));
    run.stated().into_iter().any(hold)
}

/// The two figures of the first screen, and their ratio.
fn line_and_wake(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "A cache line takes {line}, waking a sleeper {sleep}: {times} times as long.";
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

fn larger_message(told: &str, run: &Measured, tell: Tell<'_>) {
    let forms = [
        "A message of {bytes} B takes {ratio} the time of one of 8 B: {mechanism} {time} against {small}, so {each} for each further 64 B.",
        "A message of {bytes} B took less time than one of 8 B, {ratio} of it: {mechanism} {time} against {small}.",
    ];
    let Some(parts) = forms.into_iter().find_map(|form| parts(told, form)) else { return };
    let small = pinned(run, parts[2]);
    let large = Cell { payload_bytes: parts[0].parse().unwrap(), ..small.cell.clone() };
    let large = run.records.iter().find(|record| record.cell == large).unwrap();
    let (found, _) = figure(parts[1]).unwrap();
    let of = |text: &str, record: &Record| medians(&figure(text).unwrap().0, run, &record.cell);
    let ratios = ratios(&found, &run.ratios(&large.cell, &small.cell));
    tell("larger message", in_one(run, &[of(parts[3], large), of(parts[4], small), ratios]));
}

/// `1.60× (futex, 1.59–1.61) to 1.62× (std-condvar, 1.61–1.64)`.
fn unpinned(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "Unpinned, sleeping threads took {ratios} the time of pinned ones.";
    // Other sentences may follow.
    let end =
        told.find(" the time of pinned ones.").map(|at| at + " the time of pinned ones.".len());
    let Some(parts) = end.and_then(|end| parts(&told[..end], form)) else { return };
    for ratio in parts[0].split(" to ") {
        let (factor, rest) = ratio.split_once(" (").unwrap();
        let (name, interval) = rest.trim_end_matches(')').rsplit_once(", ").unwrap();
        let (found, _) = figure(&format!("{factor} ({interval})")).unwrap();
        let free = run.named(name, Placement::Free).unwrap();
        let truths = run.ratios(&free.cell, &pinned(run, name).cell);
        tell("unpinned", in_one(run, &[ratios(&found, &truths)]));
    }
}

fn idle(told: &str, run: &Measured, tell: Tell<'_>) {
    let slower = "Keeping the CPUs awake with a spinner makes {mechanism} slower, {awake} instead of {time}: the spinner costs more than it saves.";
    let awake = |usual: &Record| {
        let awake = Cell { keep_awake: true, ..usual.cell.clone() };
        run.records.iter().find(|record| record.cell == awake).unwrap()
    };
    if let Some(parts) = parts(told, slower) {
        let usual = pinned(run, parts[0]);
        let of = |text: &str, record: &Record| medians(&figure(text).unwrap().0, run, &record.cell);
        let truths = run.ratios(&awake(usual).cell, &usual.cell);
        let sides = truths.iter().map(|truth| *truth > 1.0).collect();
        let figures = [of(parts[2], usual), of(parts[1], awake(usual)), sides];
        tell("slower awake", in_one(run, &figures));
    }
    let Some((before, _)) = told.split_once(" of a wake-up is the CPU leaving idle.") else {
        return;
    };
    let share: f64 =
        before.rsplit(' ').next().unwrap().trim_matches(['%', '<', '>']).parse().unwrap();
    let usual = pinned(run, "futex");
    let truths = run.ratios(&awake(usual).cell, &usual.cell);
    let saved = |truth: &f64| (100.0 - 100.0 * truth - share).abs() < 3.0;
    tell("leaving idle", in_one(run, &[truths.iter().map(saved).collect()]));
}

/// `std-condvar 1.02× (1.01–1.03) faster: 3.5 µs instead of 3.6 µs`.
fn signal(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "Signalling after unlocking, not before, makes {mechanisms}.";
    let Some(parts) = parts(told, form) else { return };
    for mechanism in parts[0].split("; ") {
        let (name, rest) = mechanism.split_once(' ').unwrap();
        let (found, rest) = figure(rest).unwrap();
        let inside = pinned(run, name);
        let after = Subject::mechanism(format!("{name}-after"), Class::Sleep);
        let after = Cell { subject: after, ..inside.cell.clone() };
        let truths = if rest.starts_with(" faster") {
            run.ratios(&inside.cell, &after)
        } else {
            run.ratios(&after, &inside.cell)
        };
        tell("signal after unlocking", in_one(run, &[ratios(&found, &truths)]));
    }
}

/// `std-condvar 1.01× (1.00–1.03)`, of which there may be several.
fn same(told: &str, run: &Measured, tell: Tell<'_>) {
    let signal = "Signalling after unlocking, or before, took equal times within 5%: {mechanisms}.";
    let pinned_or_not = "Pinned or not, sleeping threads took equal times within 5%: ";
    let named = match (parts(told, signal), told.find(pinned_or_not)) {
        (Some(parts), _) => parts[0],
        (None, Some(at)) => told[at + pinned_or_not.len()..].split(").").next().unwrap(),
        (None, None) => return,
    };
    for mechanism in named.split(", ").flat_map(|both| both.split(" and ")) {
        let (name, ratio) = mechanism.split_once(' ').unwrap();
        let (found, _) = figure(&format!("{})", ratio.trim_end_matches(')'))).unwrap();
        let one = &pinned(run, name).cell;
        let truths = if told.contains(pinned_or_not) {
            run.ratios(&run.named(name, Placement::Free).unwrap().cell, one)
        } else {
            let after = Subject::mechanism(format!("{name}-after"), Class::Sleep);
            run.ratios(&Cell { subject: after, ..one.clone() }, one)
        };
        let alike = |truth: &f64| (1.0 / 1.05..=1.05).contains(truth) && found.holds(*truth);
        tell("within 5%", in_one(run, &[truths.iter().map(alike).collect()]));
    }
}

fn published(told: &str, run: &Measured, tell: Tell<'_>) {
    let Some(parts) = parts(told, "{mechanism}: {here} here; published: {figures}.") else {
        return;
    };
    let (name, placement) = parts[0].rsplit_once(", ").unwrap();
    let placement = Placement::ALL.into_iter().find(|at| at.to_string() == placement).unwrap();
    let (found, _) = figure(parts[1]).unwrap();
    let cell = &run.named(name, placement).unwrap().cell;
    tell("published", in_one(run, &[medians(&found, run, cell)]));
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
    let form = "{lock}: {threads} do all tasks in {time}; more threads, up to {most} measured, gain less than 5%.";
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

/// `0.623×, 0.620–0.626`.
fn speedup(text: &str) -> Figure {
    let (value, range) = text.split_once(", ").unwrap();
    figure(&format!("{value} ({range})")).unwrap().0
}

fn one_thread(told: &str, run: &Measured, tell: Tell<'_>) {
    let with = [
        "{lock}: one thread alone does more than several in {worse} of {cells} cells, for example more ({one}) than {threads} ({speedup}).",
        "{lock}: one thread alone does more ({one}) than {threads} ({speedup}).",
    ];
    let without = [
        "{lock}: one thread without the lock does more than several in {worse} of {cells} cells, for example than {threads} ({speedup}).",
        "{lock}: one thread without the lock does more than {threads} ({speedup}).",
    ];
    let found = |forms: [&str; 2]| forms.into_iter().find_map(|form| parts(told, form));
    let (parts, one) = match (found(with), found(without)) {
        (Some(parts), _) => {
            let one = parts[parts.len() - 3];
            (parts, Some(speedup(one)))
        }
        (None, Some(parts)) => (parts, None),
        (None, None) => return,
    };
    let [lock, .., named, several] = parts[..] else { panic!("{told}") };
    let several = speedup(several);
    let of_several = cell(run, lock, named).unwrap_or_else(|| panic!("{told}"));
    let alone = cells(run, lock).into_iter().find(|cell| {
        let times = |cell: &Cell| cell.lock().map(|lock| (lock.hold_ns, lock.think_ns));
        threads(cell) == 1 && times(cell) == times(of_several)
    });
    let truths = run.speedups(of_several);
    let of_one = match (alone, one) {
        (Some(alone), Some(_)) => run.speedups(alone),
        _ => vec![1.0; truths.len()],
    };
    let one_holds = |truth: f64| one.as_ref().is_none_or(|one| one.holds(truth));
    let holds = truths.iter().zip(of_one).map(|(several_does, one_does)| {
        *several_does < one_does && several.holds(*several_does) && one_holds(one_does)
    });
    tell("one thread alone", alone.is_some() == one.is_some() && in_one(run, &[holds.collect()]));
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
/// cells, for example`.
fn claim(told: &str, run: &Measured, tell: Tell<'_>) {
    let sources = ["J. Preshing (2011), ", "A. Sukhovitsky, "];
    let Some(rest) = sources.iter().find_map(|source| told.strip_prefix(source)) else { return };
    let (claim, answers) = rest.rsplit_once(": ").unwrap();
    let (counts, examples) = answers.trim_end_matches('.').split_once(", for example ").unzip();
    let single = counts.unwrap_or(answers.trim_end_matches('.')).split("; ");
    let single = single.filter(|answer| !answer.ends_with(" cells"));
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
    let rest = told.strip_prefix("The machine changed speed during this run: ")?;
    let (times, rest) = rest.strip_prefix("the reference hand-off took ")?.split_once(". T")?;
    let (_, main) = rest.split_once("of the one with the most blocks, ")?;
    Some((times.replace(" and ", " & "), figure(main)?.0))
}

/// The counts are those of the records.
fn disturbed(told: &str, run: &Measured, tell: Tell<'_>) {
    let form = "{disturbed} of {blocks} blocks ({share}) were disturbed{rest}";
    let Some(parts) = parts(told, form) else { return };
    let sum = |of: fn(&Record) -> u32| run.records.iter().map(of).sum::<u32>().to_string();
    let held = parts[0] == sum(|record| record.disturbance.disturbed)
        && parts[1] == sum(|record| record.disturbance.blocks);
    tell("disturbed", held);
}

/// The counts are those of the records.
fn predictions(told: &str, run: &Measured, tell: Tell<'_>) {
    let Some((_, counts)) = told.split_once("lies in the predicted 95% interval in ") else {
        return;
    };
    let forms = [
        "{within} of {undisturbed} undisturbed cells, and in {of_all} of all {all}.",
        "{of_all} of {all} cell",
    ];
    let counts = counts.replace("cells.", "cell");
    let found = forms.iter().find_map(|form| parts(&counts, form));
    let found = found.unwrap_or_else(|| panic!("{told}"));
    let [.., of_all, all] = found[..] else { panic!("{told}") };
    let told_of =
        |record: &&Record| record.figures.contention().is_some_and(|lock| lock.threads > 1);
    let within = run.records.iter().filter(told_of).filter_map(|record| {
        let contention = record.figures.contention()?;
        let [low, high] = contention.predicted.as_ref()?.speedup_interval95?;
        let speedup = contention.speedup?;
        Some(low <= speedup && speedup <= high)
    });
    let within: Vec<bool> = within.collect();
    let inside = within.iter().filter(|within| **within).count();
    let held = of_all == inside.to_string() && all == within.len().to_string();
    tell("predictions", held);
}
