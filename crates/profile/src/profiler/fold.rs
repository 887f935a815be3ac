//! Joins samples with the perf events from about the same time, and folds both into the account.

use std::collections::HashSet;
use std::time::Duration;

use threadtoll_stacks::process::{Activity, SystemCall, ThreadFacts};
use threadtoll_stacks::stack::{Registers, StackBytes};

use super::Profiler;
use super::throttle::Throttle;
use crate::account::{Departure, Reported, Wish};
use crate::circumstances::{NEAR_NS, RunningStack};
use crate::clock::now;
use crate::perf::{self, Direction, Event, SETTLE_NS};
use crate::sample::{Chunk, Order, Tick};

const MAX_NAMED: usize = 8;

/// Share of the budget for listing mappings again after stacks show code outside all known
/// mappings.
const LISTING_SHARE: f64 = 0.1;

impl Profiler {
    pub(super) fn fold(&mut self, mut chunk: Chunk) {
        self.stacks.table.allow_listing(self.allowed(LISTING_SHARE));
        let (stacks, watched) = (&mut self.stacks, &self.watched);
        chunk.number_stacks(&mut |read, base, bytes| {
            let process = watched.get(&read.process)?.process.as_ref()?;
            let (stack_pointer, program_counter) = read.activity.position()?;
            let mut registers = Registers::new(program_counter, stack_pointer);
            if let Activity::Asleep(call) = read.activity {
                note_register_of_vfork(&mut registers, &call);
            }
            stacks.number(read.process, process, registers, StackBytes { base, bytes })
        });
        let BetweenSamples { mut departures, mut running, mut lost_until } =
            std::mem::take(&mut self.reported);
        let (mut forks, mut grown) = (Vec::new(), HashSet::new());
        let mut lost = false;
        let first_due = chunk.ticks.first().map_or(0, |tick| tick.due);
        let mut incomplete = first_due < lost_until;
        incomplete |= self.watched.values().any(|watched| !watched.to_follow.is_empty());
        let (launched, inherited) = (self.launched.is_some(), self.events.inherited);
        let timeline = self.events.open.as_mut().ok().map(|events| {
            let timeline = &mut self.timeline;
            // Records from the time of the last sample may not have arrived yet.
            let last = chunk.ticks.last().map_or(0, |tick| tick.at);
            let settled = (last + SETTLE_NS).saturating_sub(now());
            std::thread::sleep(Duration::from_nanos(settled.min(SETTLE_NS)));
            let (stacks, watched, running) = (&mut self.stacks, &self.watched, &mut running);
            let account = &mut self.account;
            let ticks = &chunk.ticks;
            let reports_forks = launched && !inherited;
            let until = events.drain(&mut |event| {
                timeline.note(&event);
                match event {
                    Event::Switch {
                        at,
                        cpu,
                        direction: Direction::Out { preempted: false },
                        ..
                    } => departures.push(Departure { at, cpu }),
                    Event::Lost { until, records, .. } => {
                        incomplete = true;
                        lost_until = lost_until.max(until);
                        // Forks go unreported while records are paused.
                        lost |= records > 0 || reports_forks;
                    }
                    _ => {}
                }
                if let Event::Fork { pid, parent_pid, .. } = event {
                    match pid == parent_pid {
                        true => _ = grown.insert(pid),
                        false => forks.push((pid, parent_pid)),
                    }
                }
                if let Event::Sample(sample) = event
                    && near_a_sample(sample.at, ticks)
                {
                    let of = watched.iter().rfind(|(_, of)| of.pid == sample.pid);
                    let seen = of.and_then(|(&index, of)| {
                        let registers = registers_of(&sample.registers);
                        let bytes = sample.stack;
                        let base = sample.registers.stack_pointer();
                        let process = of.process.as_ref()?;
                        let bytes = StackBytes { base, bytes };
                        let stack = stacks.number(index, process, registers, bytes)?;
                        let process = account.living(index)?;
                        process.note_running(stack);
                        let lock = sample.registers.first_argument();
                        let spins_for = Some(lock).filter(|_| stacks.spins_at_argument(stack));
                        if let Some(lock) = spins_for {
                            process.note_spinning(sample.tid, lock, stack, sample.at);
                        }
                        Some(RunningStack { at: sample.at, tid: sample.tid, stack, spins_for })
                    });
                    running.extend(seen);
                }
            });
            running.sort_unstable_by_key(|sample| sample.at);
            timeline.complete_until(until);
        });
        self.events.keep_within_budget();
        if lost {
            self.family.check_all();
        }
        self.follow_forks(&forks);
        let living = self.watched.iter().filter(|(_, watched)| watched.ended.is_none());
        for (&index, _) in living.filter(|(_, watched)| grown.contains(&watched.pid)) {
            _ = self.orders.send(Order::List(index));
        }
        self.ask_if_stopped();
        // The departures are sorted runs, one per CPU, which this sort merges.
        departures.sort_by_key(|departure: &Departure| departure.at);
        let reported = Reported {
            timeline: timeline.map(|()| &self.timeline),
            departures: &departures,
            incomplete,
            running: &running,
        };
        let throttled = self.throttle.as_ref().is_some_and(Throttle::moved);
        self.account.fold(&chunk, &reported, &self.stacks, throttled, &self.watched);
        for (index, process) in self.account.all_living() {
            for (place, stack) in process.telling_stacks() {
                process.tell(place, self.stacks.callers(stack));
            }
            if let Some(watched) = self.watched.get_mut(&index)
                && let Some(of) = &watched.process
            {
                let memory = of.memory();
                process.find_holders(&mut |address, bytes| memory.read(address, bytes));
                // Names are read for the latest threads first: earlier threads may have ended.
                let to_name = &mut process.to_name;
                for tid in to_name.split_off(to_name.len().saturating_sub(MAX_NAMED)) {
                    if let Ok(name) = of.thread_name(tid) {
                        watched.names.insert(tid, name.to_string_lossy().into());
                    } else if !process.had_thread(tid)
                        && let Some(facts) = ThreadFacts::read(tid)
                    {
                        let name = facts.name.to_string_lossy().into();
                        watched.strangers.insert(tid, (facts.process, name));
                        _ = self.orders.send(Order::Stranger(index, tid));
                    }
                }
            }
            for (word, wish) in process.wishes.drain(..) {
                _ = self.orders.send(match wish {
                    Wish::Watch(watch) => Order::Watch(index, vec![(word, watch)]),
                    Wish::WatchWaiters(span) => Order::WatchWaiters(index, word, span),
                    Wish::Ignore => Order::Ignore(index, word),
                });
            }
        }
        self.reported = BetweenSamples { departures, running, lost_until };
        self.reported.keep_for_samples_after(&chunk.ticks);
        if let Some(tick) = chunk.ticks.first() {
            self.timeline.forget_before(tick.at.saturating_sub(1_000_000_000));
        }
        _ = self.spare.send(chunk);
    }
}

/// Returns `true` if the kernel's sample of a running thread at this time is close enough to one of
/// the profiler's samples to be useful. After the profiler's last sample, every time counts,
/// because its next sample may be close.
fn near_a_sample(at: u64, ticks: &[Tick]) -> bool {
    let next = ticks.partition_point(|tick| tick.at < at);
    let near = |tick: &Tick| tick.at.abs_diff(at) <= NEAR_NS;
    let before = next.checked_sub(1).and_then(|before| ticks.get(before));
    ticks.get(next).is_none_or(near) || before.is_some_and(near)
}

/// Perf events that arrived with some samples but may also concern later samples.
#[derive(Debug, Default)]
pub(super) struct BetweenSamples {
    departures: Vec<Departure>,
    running: Vec<RunningStack>,
    lost_until: u64,
}

impl BetweenSamples {
    fn keep_for_samples_after(&mut self, ticks: &[Tick]) {
        let Some(last) = ticks.last() else { return };
        self.departures.retain(|departure| departure.at > last.due);
        self.running.retain(|sample| sample.at + NEAR_NS > last.at);
    }
}

/// The stub of `vfork` keeps its return address in the register of the first argument: on the
/// stack, the child would overwrite the address.
#[cfg(target_arch = "x86_64")]
fn note_register_of_vfork(registers: &mut Registers, call: &SystemCall) {
    /// DWARF's number for `rdi`.
    const RDI: u16 = 5;
    if i64::from(call.number) == libc::SYS_vfork {
        registers.set(RDI, call.arguments[0]);
    }
}

/// This architecture has no `vfork` system call.
#[cfg(not(target_arch = "x86_64"))]
fn note_register_of_vfork(_: &mut Registers, _: &SystemCall) {}

fn registers_of(sample: &perf::UserRegisters<'_>) -> Registers {
    let registers = Registers::new(sample.program_counter(), sample.stack_pointer());
    let registers = registers.with_frame_pointer(sample.frame_pointer());
    #[cfg(target_arch = "aarch64")]
    let registers = {
        let mut registers = registers;
        // DWARF's number for the link register.
        registers.set(30, sample.link_register());
        registers
    };
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_from_between_two_chunks_belong_to_the_next_one() {
        let mut chunk = Chunk::default();
        for (due, at) in [(1_000_000, 1_010_000), (2_000_000, 2_600_000)] {
            chunk.begin(due, 1);
            chunk.tick().at = at;
        }
        let ticks = &chunk.ticks;
        let near = [500_000, 1_600_000, 2_300_000, 9_000_000].map(|at| near_a_sample(at, ticks));
        assert_eq!(near, [false, false, true, true]);

        let left = [1_500_000, 2_300_000, 2_700_000].map(|at| Departure { at, cpu: 0 });
        let ran =
            [1_000_000, 2_700_000].map(|at| RunningStack { at, tid: 1, stack: 0, spins_for: None });
        let mut reported =
            BetweenSamples { departures: left.to_vec(), running: ran.to_vec(), lost_until: 0 };
        reported.keep_for_samples_after(&[]);
        assert_eq!((reported.departures.len(), reported.running.len()), (3, 2));
        reported.keep_for_samples_after(ticks);
        let times: Vec<u64> = reported.departures.iter().map(|departure| departure.at).collect();
        assert_eq!(times, [2_300_000, 2_700_000]);
        assert_eq!(reported.running.len(), 1);
    }
}
