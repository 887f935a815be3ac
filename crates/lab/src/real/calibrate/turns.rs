//! Inputs of the simulation of an overloaded lock: hold times, hand-offs, and how late a sleeping
//! thread notices its caller.

use std::time::Duration;

use threadtoll_model::HandOff;
use threadtoll_model::overload::OverloadedLock;
use threadtoll_record::{Cell, LockSubject, Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::TURNS;
use crate::contention::lengths::TimeDistributions;
use crate::contention::overload::OverloadCalibration;
use crate::contention::predict::hand_off;
use crate::contention::repeated::{Part, Repeated};
use crate::lock::LockSpec;

use super::super::lock_threads::{Task, cpus_by_thread};
use super::cache::Repeats;
use super::{Bench, Calibrator, handoff};

/// Maximum number of threads that contend: with more, the lock is not held any more often.
const MAX_THREADS: u32 = 4;

/// Holds of threads that ask for the lock again as soon as they have released it, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    hold_ns: Vec<f64>,
    /// For each release while others waited: 1 if the thread that released the lock got it again,
    /// 0 if a waiting thread got it.
    overtaken: Vec<f64>,
}

impl Repeats for Turns {
    fn append(&mut self, more: Self) {
        self.hold_ns.extend(more.hold_ns);
        self.overtaken.extend(more.overtaken);
    }
}

impl Calibrator {
    /// Makes the cell's measurements, unless this pass has made them. Returns the hold time in
    /// units of work, and the calibration from all passes so far.
    pub(in crate::real) fn turns(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        lock: &LockSpec,
    ) -> Result<(u64, Option<OverloadCalibration>), LabError> {
        let unit_ns = match subject.work {
            Work::Spin => self.unit_ns(&cpus_by_thread(cell.placement, &cell.cpus[..1], 1))?,
            Work::Sleep => Repeated::exact(1.0),
        };
        let hold = (subject.hold_ns as f64 / unit_ns.get(Part::All)).round();
        let key =
            format!("{} {} {} {}", subject.lock, subject.work, subject.hold_ns, subject.threads);
        let bench = self.bench;
        let turns =
            self.turns.measured(key, self.pass, || turns(&bench, cell, subject, lock, hold))?;
        let handoffs = match subject.threads {
            1 => handoff::CellHandoffs::default(),
            _ => handoff::measure(&bench, &mut self.handoffs, self.pass, cell, subject, lock)?,
        };
        // A thread that waits for its caller sleeps, whatever it does with the lock.
        let asleep = LockSubject { work: Work::Sleep, think_ns: 0, threads: 1, ..subject.clone() };
        let late = self.overshoots(cell, &asleep, 1)?.hold;
        let calibration = OverloadCalibration::by_part(|part| {
            let handoffs = handoffs.at(part);
            Some(OverloadedLock {
                hold_ns: Repeated::median(&turns.hold_ns).get(part),
                hand_off: match handoffs.is_empty() {
                    true => HandOff::free(),
                    false => hand_off(&handoffs).ok()?,
                },
                overtaken_share: match turns.overtaken.is_empty() {
                    true => 0.0,
                    false => Repeated::mean(&turns.overtaken).get(part),
                },
                late_ns: Repeated::mean(&late).get(part).max(0.0),
                threads: subject.threads,
            })
        });
        Ok((hold as u64, calibration))
    }
}

fn turns(
    bench: &Bench,
    cell: &Cell,
    subject: &LockSubject,
    lock: &LockSpec,
    hold: f64,
) -> Result<Turns, LabError> {
    let places = cpus_by_thread(cell.placement, &cell.cpus, subject.threads.min(MAX_THREADS));
    let mut threads = bench.threads(&subject.lock, lock, subject.work, &places)?;
    let lengths = TimeDistributions {
        spread: [Spread::Fixed; 2],
        hold,
        think: 0.0,
        stripes: 1,
        read_share: 0.0,
    };
    threads.prepare(lengths, 3)?;
    let window = threads.window(2 * subject.hold_ns, TURNS * subject.hold_ns);
    let tasks = vec![Task::Stamped(4 * TURNS as usize); places.len()];
    let longer = Duration::from_nanos(subject.hold_ns) * 20;
    let reports = threads.run(tasks, window, longer)?;
    let mut holds: Vec<(u64, u64, usize)> = reports
        .iter()
        .enumerate()
        .flat_map(|(thread, report)| {
            report.acquisitions.iter().map(move |one| (one.acquired_at, one.released_at, thread))
        })
        // A thread that releases the lock later does not ask again.
        .filter(|(_, released_at, _)| (window.from..window.until).contains(released_at))
        .collect();
    holds.sort_unstable();
    let again = |pair: &[(u64, u64, usize)]| f64::from(u8::from(pair[0].2 == pair[1].2));
    Ok(Turns {
        hold_ns: holds.iter().map(|(at, until, _)| bench.clock.ns(until - at)).collect(),
        overtaken: match places.len() {
            1 => Vec::new(),
            _ => holds.windows(2).map(again).collect(),
        },
    })
}
