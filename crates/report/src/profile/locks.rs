use threadtoll_record::Ratio;
use threadtoll_record::profile::{
    Interval, Lock, LockKind, NameFrom, Predicted, Role, Site, ThreadShare, Verdict, WhatIf,
};

use super::{Seen, change, lock_name};
use crate::clean::clean;
use crate::label::plural;
use crate::table::{Cell, Column, Emphasis, Label, Section};
use crate::units::{
    UNKNOWN, digits, digits_within, percent, range_of_shares, ratio, share, share_within, time,
};

/// Minimum length to which a lock's name is shortened to make room for its process.
const LEAST_NAME: usize = 8;

pub(crate) const MAX_THREADS: usize = 6;

pub(crate) fn section(locks: &[Seen<'_>], max_name: usize) -> Section {
    let labels = labels(locks, max_name);
    Section::new("", "lock", columns(), locks, |seen| {
        let nth = locks.iter().position(|other| std::ptr::eq(other, seen));
        Label::new(nth.and_then(|nth| labels.get(nth).cloned()).unwrap_or_else(|| seen.name()))
    })
    .without_unknown()
}

/// Distinct names of at most `max_chars` characters. Shortened names that are equal are followed by
/// the lock's number.
fn labels(locks: &[Seen<'_>], max_chars: usize) -> Vec<String> {
    let cut: Vec<String> = locks.iter().map(|seen| shortened(&seen.name(), max_chars)).collect();
    let numbered = |(nth, label): (usize, &String)| {
        let is_same = |(other, name): (usize, &String)| other != nth && name == label;
        match cut.iter().enumerate().any(is_same) {
            false => label.clone(),
            true => {
                let (lock, process) = (locks[nth].lock, locks[nth].process);
                let end = match locks[nth].ambiguous {
                    true => format!(" #{}/{}", process.pid, lock.id),
                    false => format!(" #{}", lock.id),
                };
                let room = max_chars.saturating_sub(end.len());
                format!("{}{end}", shortened(label, room.max(2)))
            }
        }
    };
    cut.iter().enumerate().map(numbered).collect()
}

fn columns<'a>() -> Vec<Column<'a, Seen<'a>>> {
    vec![
        Column::new("", "gain", 0, |seen: &Seen<'_>| gain(seen.lock)).main(),
        Column::new("", "held", 0, |seen: &Seen<'_>| held(seen.lock)),
        Column::new("", "queue", 0, |seen: &Seen<'_>| queue(seen.lock)),
        Column::new("", "most", 3, |seen: &Seen<'_>| most(seen.lock)),
        Column::new("", "threads", 1, |seen: &Seen<'_>| threads(seen.lock)),
        Column::new("", "efficiency", 4, |seen: &Seen<'_>| {
            Cell::figure(seen.lock.efficiency, share)
        }),
        Column::new("", "verdict", 0, |seen: &Seen<'_>| verdict(seen.lock)),
    ]
}

/// A gain is written as a range if its interval is at least as wide as this, and as the gain
/// itself.
const RANGE: f64 = 0.1;
/// Maximum number of threads seen waiting. This is a lower bound if some threads were not sampled,
/// or if the mean is higher: the mean includes threads that no sample saw asleep.
fn most(lock: &Lock) -> Cell {
    let mean = lock.queue_mean.map_or(0.0, |mean| mean.get());
    Cell::figure(lock.queue_max, |most| match lock.seen_in_part || mean > most {
        true => format!("≥{most:.0}"),
        false => format!("{most:.0}"),
    })
}

/// The number of threads seen to use a lock is marked as a minimum if there may be this many times
/// as many.
const MANY_MORE: u32 = 2;

fn threads(lock: &Lock) -> Cell {
    let is_least = lock.threads_interval.is_some_and(|it| {
        let seen_in_part = lock.seen_in_part && it.low() < it.high();
        seen_in_part || it.high() >= MANY_MORE.saturating_mul(it.low())
    });
    Cell::figure(Some(lock.threads), |threads| match is_least {
        true => format!("≥{threads:.0}"),
        false => format!("{threads:.0}"),
    })
}

pub(crate) fn gain(lock: &Lock) -> Cell {
    let within = lock.gain_interval95.map(|it| [it.low().get(), it.high().get()]);
    Cell::figure(lock.gain, |gain| match within.and_then(|within| wide(gain, within)) {
        Some(range) => range,
        None => gained(gain, None),
    })
}

/// The range of a gain that is too uncertain for a single figure, such as `41–202%`.
fn wide(gain: f64, [low, high]: [f64; 2]) -> Option<String> {
    (low >= 0.0 && high - low >= RANGE.max(gain)).then(|| match high < 9.995 {
        true => format!("{:.0}–{:.0}%", low * 100.0, high * 100.0),
        false => format!("{:.0}–{:.0}×", 1.0 + low, 1.0 + high),
    })
}

/// A gain in throughput, such as `+62%`, followed by its interval; or only a range, if the interval
/// is wide. `within` is relative to the current throughput.
pub(crate) fn gained(gain: f64, within: Option<Interval<Ratio>>) -> String {
    let ends = within.map(|within| [within.low(), within.high()].map(|end| end.get() - 1.0));
    if let Some(range) = ends.and_then(|ends| wide(gain, ends)) {
        return range;
    }
    let size = |gain: f64| match gain {
        gain if gain <= -0.0005 => format!("−{:.0}%", -gain * 100.0),
        gain if gain < 0.0005 => "0%".into(),
        gain if gain < 0.0095 => "<1%".into(),
        gain if gain < 9.995 => format!("+{:.0}%", gain * 100.0),
        gain => ratio(1.0 + gain),
    };
    let within = within.map_or_else(String::new, |within| {
        let [low, high] = [within.low(), within.high()].map(|end| size(end.get() - 1.0));
        format!(" ({low} to {high})")
    });
    format!("{}{within}", size(gain))
}

fn held(lock: &Lock) -> Cell {
    let interval = lock.held_share_interval95.map(|it| [it.low().get(), it.high().get()]);
    Cell::figure(lock.held_share, |held| share_within(held, interval))
}

fn queue(lock: &Lock) -> Cell {
    let interval = lock.queue_mean_interval95.map(|it| [it.low().get(), it.high().get()]);
    Cell::figure(lock.queue_mean, |queue| {
        if lock.queue_is_lower_bound {
            let least = interval.map_or(queue, |[low, _]| low);
            // `digits` would write a small number as "less than" another number.
            let least = if least < 0.0005 { 0.0 } else { least };
            format!("≥{}", digits(least))
        } else {
            digits_within(queue, interval)
        }
    })
}

fn verdict(lock: &Lock) -> Cell {
    let Some(verdict) = lock.verdict else { return Cell::unknown() };
    let emphasis = match verdict {
        Verdict::Comfortable => Emphasis::Best,
        Verdict::Saturated => Emphasis::Bad,
        _ => Emphasis::Middling,
    };
    Cell::text(verdict_words(verdict)).emphasis(emphasis)
}

/// Such as `crowded`, or `crowded or saturated` if an interval spans a threshold.
pub(crate) fn verdict_words(verdict: Verdict) -> String {
    match verdict {
        Verdict::ComfortableOrCrowdedOrSaturated => "undecided".into(),
        verdict => verdict.name().replace('-', " "),
    }
}

/// Shortens a name that is too long: omits the beginning of its path or, if that is not enough, its
/// middle. The end, such as an address, remains, because it distinguishes names.
pub(crate) fn shortened(name: &str, max_chars: usize) -> String {
    let chars = |text: &str| text.chars().count();
    if chars(name) <= max_chars {
        return name.to_string();
    }
    // Without the process, several locks could have this name.
    let of_process = |of: &str| of.starts_with(" (PID ") || of.ends_with(" processes)");
    if let Some(at) = name.rfind(" (").filter(|&at| of_process(&name[at..])) {
        let (name, process) = name.split_at(at);
        let room = max_chars.saturating_sub(chars(process)).max(LEAST_NAME);
        return shortened(name, room) + process;
    }
    let mut ends = name.match_indices("::").map(|(at, _)| &name[at..]);
    match ends.find(|end| chars(end) < max_chars) {
        Some(end) => format!("…{end}"),
        None => {
            let (room, length) = (max_chars.saturating_sub(1), chars(name));
            let end = room / 2;
            let begin = name.chars().take(room - end);
            begin.chain(['…']).chain(name.chars().skip(length - end)).collect()
        }
    }
}

/// Kind and address of the lock, and origin of its name.
pub(crate) fn description(lock: &Lock) -> String {
    let from = match lock.name_from {
        NameFrom::Given => "named by the program",
        NameFrom::Symbol => "named by its symbol",
        NameFrom::CreationSite => "named after the code that made it",
        NameFrom::WaiterSite => "named after the code that waits for it most",
        NameFrom::Address => "named by its address",
    };
    let generation = match lock.generation {
        0 | 1 => String::new(),
        nth => format!(", lock {nth} at this address"),
    };
    format!("{} at {}{generation}, {from}", lock.kind.name(), lock.address)
}

fn figures(lock: &Lock) -> Vec<String> {
    let mut figures = Vec::new();
    let known = |cell: Cell| (cell.text != UNKNOWN).then_some(cell.text);
    figures.extend(known(gain(lock)).map(|gain| {
        let within = lock.gain_interval95.map_or_else(String::new, |it| {
            format!(" ({})", range_of_shares(it.low().get(), it.high().get()))
        });
        format!("gain {gain}{within}")
    }));
    let by = if lock.kind == LockKind::RwlockRead { "held by writers" } else { "held" };
    figures.extend(known(held(lock)).map(|held| format!("{by} {held}")));
    figures.extend(known(queue(lock)).map(|queue| {
        let most =
            known(most(lock)).map_or_else(String::new, |most| match most.strip_prefix('≥') {
                Some(most) => format!(", {most} or more at once"),
                None => format!(", up to {most} seen"),
            });
        let bound = match (lock.queue_is_lower_bound, lock.kind) {
            (false, _) => "",
            (true, LockKind::Spinlock) => " (a lower bound: waiters may have lost their CPUs)",
            (true, _) => " (a lower bound: holds are short)",
        };
        format!("queue {queue}{bound}{most}")
    }));
    let threads = plural(lock.threads.into(), "thread");
    figures.push(match lock.threads_interval {
        Some(it) if it.low() < it.high() => {
            format!("{threads} seen, perhaps {} to {}", it.low(), it.high())
        }
        _ => threads,
    });
    figures.extend(lock.efficiency.map(|efficiency| {
        let within = lock.efficiency_interval95.map_or_else(String::new, |it| {
            format!(" ({})", range_of_shares(it.low().get(), it.high().get()))
        });
        format!("efficiency {}{within}", share(efficiency.get()))
    }));
    figures.extend(lock.acquisitions.map(|taken| plural(taken.get(), "acquisition")));
    figures.extend(lock.verdict.map(verdict_words));
    figures
}

pub(crate) fn details(seen: &Seen<'_>) -> Vec<(&'static str, String)> {
    let lock = seen.lock;
    let mut details = vec![("Figures", figures(lock).join(" · "))];
    details.extend(lock.causes.iter().map(|cause| {
        let mend = cause.mend.as_ref().map_or_else(String::new, |mend| format!(" {}", clean(mend)));
        ("Cause", format!("{}.{mend}", super::cause(cause)))
    }));
    details.push(("Holder", holders(lock, MAX_THREADS)));
    let let_go = lock.holder_let_go_share.map(|share| share.get()).filter(|share| *share >= 0.005);
    details.extend(let_go.map(|share| {
        ("Short holds", format!("{} ended before the holder was read", percent(share)))
    }));
    details.extend(chain(seen).map(|chain| ("Holder waits for", chain)));
    details.push(("Waiters", waiters(lock, MAX_THREADS)));
    let handoff = lock.handoff_ns.and_then(|handoff| handoff.mean);
    details.extend(handoff.map(|mean| ("Hand-off", format!("{} on average", time(mean.get())))));
    details
}

/// At most `most` stacks of each role; those of holders come first.
pub(crate) fn sites(lock: &Lock, most: usize) -> Vec<&Site> {
    let of = |role: Role| lock.sites.iter().filter(move |site| site.role == role).take(most);
    of(Role::Holder).chain(of(Role::Candidate)).chain(of(Role::Waiter)).collect()
}

/// Name of threads that had ended before their names were read.
const UNNAMED: &str = "";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threads {
    pub(crate) name: String,
    pub(crate) share: f64,
    pub(crate) inferred: bool,
}

/// Threads by name, those with the largest shares first. The last entry may represent all others.
pub(crate) fn by_name(threads: &[ThreadShare], max: usize) -> Vec<Threads> {
    let mut groups: Vec<(String, u32, Vec<u32>, f64, bool)> = Vec::new();
    for thread in threads {
        let name = match (clean(&thread.name), thread.pid) {
            (name, Some(pid)) => format!("{} (PID {pid})", name.trim()),
            (name, None) if name.trim().is_empty() => UNNAMED.into(),
            (name, None) => name,
        };
        match groups.iter_mut().find(|group| group.0 == name) {
            Some((_, _, tids, share, inferred)) => {
                tids.push(thread.tid);
                *share += thread.share.get();
                *inferred |= thread.inferred;
            }
            None => groups.push((
                name,
                thread.tid,
                vec![thread.tid],
                thread.share.get(),
                thread.inferred,
            )),
        }
    }
    groups.sort_by(|a, b| b.3.total_cmp(&a.3));
    let left_out = groups.len().saturating_sub(max);
    let rest: f64 = groups.iter().skip(max).map(|group| group.3).sum();
    let mut named: Vec<Threads> = groups
        .into_iter()
        .take(max)
        .map(|(name, tid, tids, share, inferred)| Threads {
            name: match tids.len() {
                1 if name == UNNAMED => format!("a thread that has ended (TID {tid})"),
                several if name == UNNAMED => format!("{several} threads that have ended"),
                1 => match name.strip_suffix(')').filter(|name| name.contains(" (PID ")) {
                    Some(name) => format!("{name}, TID {tid})"),
                    None => format!("{name} (TID {tid})"),
                },
                several => format!("{several} × {name}"),
            },
            share: share.min(1.0),
            inferred,
        })
        .collect();
    if left_out > 0 {
        named.push(Threads {
            name: format!("{left_out} more"),
            share: rest.min(1.0),
            inferred: false,
        });
    }
    named
}

/// Maximum number of threads that a profile lists for a lock.
const LISTED: usize = 100;

/// Total share of the threads that did not fit into the list.
fn others(listed: &[ThreadShare]) -> f64 {
    let all: f64 = listed.iter().map(|thread| thread.share.get()).sum();
    if listed.len() < LISTED { 0.0 } else { 1.0 - all }
}

fn with_shares(threads: &[Threads], others: f64) -> String {
    let named = threads.iter().map(|one| format!("{} {}", one.name, percent(one.share)));
    let others = (others >= 0.01).then(|| format!("others {}", percent(others)));
    named.chain(others).collect::<Vec<_>>().join(", ")
}

pub(crate) fn holders(lock: &Lock, max: usize) -> String {
    // Caps the share of unseen holders so that all shares sum to at most 1. Named and unseen
    // holders may overlap: a lock's word may name a holder that was not seen at that moment.
    let named: f64 = lock.holders.iter().map(|holder| holder.share.get()).sum();
    let unseen = lock.holder_not_seen_share.map_or(0.0, |share| share.get());
    let unseen = unseen.min((1.0 - named).max(0.0));
    let holders = by_name(&lock.holders, max);
    let others = others(&lock.holders);
    let names = |threads: &[Threads]| with_shares(threads, others);
    let inferred = if holders.iter().any(|one| one.inferred) {
        " (inferred from its place in the code)"
    } else {
        ""
    };
    match unseen {
        _ if holders.is_empty() => "not seen".into(),
        unseen if unseen < 0.01 => format!("{}{inferred}", names(&holders)),
        unseen => format!("{}, not seen {}{inferred}", names(&holders), percent(unseen)),
    }
}

pub(crate) fn waiters(lock: &Lock, max: usize) -> String {
    match by_name(&lock.waiters, max).as_slice() {
        [] => plural(lock.threads.into(), "thread"),
        [only] => only.name.clone(),
        named => with_shares(named, others(&lock.waiters)),
    }
}

/// The locks for which the holder waits.
pub(crate) fn chain(seen: &Seen<'_>) -> Option<String> {
    let links: Vec<String> = seen
        .lock
        .waits_for
        .iter()
        .take(MAX_THREADS)
        .map(|link| format!("{} {}", seen.name_of(link.lock), percent(link.share.get())))
        .collect();
    (!links.is_empty()).then(|| links.join(", "))
}

pub(crate) fn changes(lock: &Lock) -> Section {
    let columns = vec![
        Column::new("", "threads", 1, |row: &WhatIf| {
            Cell::figure(Some(row.threads), |threads| format!("{threads:.0}"))
        }),
        Column::new("", "throughput", 0, |row: &WhatIf| Cell::figure(row.gain, ratio)).main(),
        Column::new("", "95%", 2, |row: &WhatIf| {
            interval(row.gain_interval95.map(|it| [it.low().get(), it.high().get()]))
        }),
        Column::new("", "speed-up", 0, |row: &WhatIf| Cell::figure(Some(row.speedup), digits)),
        Column::new("", "95%", 2, |row: &WhatIf| {
            interval(row.interval95.map(|it| [it.low().get(), it.high().get()]))
        }),
    ];
    Section::new("", "change", columns, &lock.what_if, |row| Label::new(change(row.change)))
}

pub(crate) fn predictions(lock: &Lock) -> Section {
    let columns = vec![
        Column::new("", "speed-up", 0, |row: &Predicted| Cell::figure(Some(row.speedup), digits))
            .main(),
        Column::new("", "95%", 0, |row: &Predicted| {
            interval(row.interval95.map(|it| [it.low().get(), it.high().get()]))
        }),
    ];
    Section::new("", "threads", columns, &lock.predicted, |row| Label::new(row.threads.to_string()))
}

fn interval(ends: Option<[f64; 2]>) -> Cell {
    ends.map_or_else(Cell::unknown, |[low, high]| {
        Cell::new(Some(low), format!("{}–{}", digits(low), digits(high)))
    })
}

pub(super) fn role(lock: &Lock, role: Role) -> String {
    let name = lock_name(lock);
    match role {
        Role::Waiter => format!("waits for {name}"),
        Role::Holder => format!("holds {name}"),
        Role::Candidate => format!("may hold {name}"),
    }
}
