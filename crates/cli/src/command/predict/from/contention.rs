//! Cells of `contention`, with the hold and think times that their threads had.

use threadtoll_record::file::Results;
use threadtoll_record::{Contention, LockSubject, MeasuredBy, MeasuredLock, Record, Work};

use super::{Candidate, Source, Taken, Times};

/// Beginning of the names of counters, which stand among the locks.
const COUNTERS: &str = "counter-";

/// The cells with a lock. Of a cell that stands in several groups, the last record counts.
pub(super) fn cells(results: &Results, file: &str) -> Vec<Candidate> {
    let mut cells: Vec<(Record, LockSubject)> = Vec::new();
    for record in results.records() {
        let Some(subject) = record.cell.lock().filter(|subject| !subject.is_alone()) else {
            continue;
        };
        let subject = subject.clone();
        match cells.iter_mut().find(|(other, _)| other.cell == record.cell) {
            Some(kept) => *kept = (record, subject),
            None => cells.push((record, subject)),
        }
    }
    let source = Source { file, simulated: results.machine.simulated };
    let candidate = |(record, subject): (Record, LockSubject)| Candidate {
        name: subject.lock.to_string(),
        label: record.cell.label(),
        taken: taken(source, &record, &subject),
    };
    cells.into_iter().map(candidate).collect()
}

fn taken(
    source: Source<'_>,
    record: &Record,
    subject: &LockSubject,
) -> Result<Taken, &'static str> {
    if subject.lock.starts_with(COUNTERS) {
        return Err("a counter is never held");
    }
    if subject.overload.is_some() {
        return Err("its callers arrived from outside, so they have no think time");
    }
    if subject.read_share.is_some() {
        return Err("readers can hold it together, which the models leave out");
    }
    let known = record.figures.contention().and_then(|contention| {
        let (hold_ns, think_ns) = (contention.hold_ns?.get(), contention.think_ns?.get());
        (hold_ns > 0.0).then_some((contention, Times { hold_ns, think_ns }))
    });
    let Some((contention, times)) = known else {
        return Err("its hold and think times were not measured");
    };
    let Some(stripes) = subject.stripes() else { return Err("its name is not that of a lock") };
    let Contention { hold_ns_interval95, think_ns_interval95, .. } = contention;
    let hold_ends = hold_ns_interval95.map(|ends| ends.map(f64::from));
    let think_ends = think_ns_interval95.map(|ends| ends.map(f64::from));
    let rate_ends = record.interval95.rate_per_s.map(|ends| ends.map(f64::from));
    Ok(Taken {
        times,
        ends: hold_ends.zip(think_ends).map(|(hold, think)| {
            [
                Times { hold_ns: hold[0].min(times.hold_ns), think_ns: think[1] },
                Times { hold_ns: hold[1].max(times.hold_ns), think_ns: think[0] },
            ]
        }),
        durations: true,
        spread: Some(subject.spread),
        stripes,
        cores: (subject.work == Work::Spin).then_some(record.cell.cpus.len() as u32),
        measured: MeasuredLock {
            file: source.file.to_string(),
            source: MeasuredBy::Contention,
            lock: subject.lock.to_string(),
            simulated: source.simulated,
            threads: contention.threads,
            held_share: None,
            held_share_interval95: None,
            hold_ns_interval95: hold_ends,
            think_ns_interval95: think_ends,
            queue_mean: contention.queue_mean.map(f64::from),
            queue_mean_interval95: None,
            queue_is_lower_bound: false,
            speedup: contention.speedup.map(f64::from),
            speedup_interval95: contention.speedup_interval95.map(|ends| ends.map(f64::from)),
            acquisitions_per_s: record.rate_per_s.map(f64::from),
            acquisitions_per_s_interval95: rate_ends,
            handoff_ns: contention.handoff_ns.map(f64::from).filter(|ns| *ns > 0.0),
            others_set_pace: false,
        },
    })
}
