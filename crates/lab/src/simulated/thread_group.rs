//! Thread groups on the simulated machine.

use rand::RngExt;
use threadtoll_record::{BlockKind, Cell, IdleBlock, IdleStateBlock};

use crate::LabError;
use crate::backend::OpenCell;
use crate::mechanism::Class;
use crate::samples::{BlockSamples, Counters, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, ThreadGroupProgram, VirtualQueue};

use super::messages;
use super::variation::noise;
use super::{Delays, Draws, Service, Thief};

/// Number of messages per simulated block, enough for every quantile except the highest.
const MESSAGES: usize = 1200;

/// Returns the time that a queue's receiver takes for each message: the one-way time, which is half
/// of the round trip.
pub(super) fn service_ns(class: Class, cell: &Cell) -> f64 {
    messages::value_ns(class, false, cell) / 2.0
}

pub(super) struct ThreadGroupCell {
    draws: Draws,
    program: ThreadGroupProgram,
    delays: Delays,
    service_ns: f64,
}

impl ThreadGroupCell {
    pub(super) fn new(draws: Draws, program: ThreadGroupProgram, delays: Delays) -> Self {
        let service_ns = service_ns(program.class, &draws.planned.cell);
        ThreadGroupCell { draws, program, delays, service_ns }
    }
}

impl OpenCell for ThreadGroupCell {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.draws.instances.next();
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let Draws { time, planned, loops, seed, machine, slower, instances, .. } = &mut self.draws;
        let (cell, delays, class) = (&planned.cell, self.delays, self.program.class);
        let now_ns = time.elapsed_ns.get();
        let speed = machine.regimes.slower(now_ns, *seed, cell);
        let (rng, round) = &mut loops[usize::from(kind == BlockKind::Stamped)];
        *round += 1;
        let slowed = *slower * instances.slower * speed * machine.regimes.noise(rng);
        let stolen = match delays.service {
            Some(_) => None,
            None => Thief::takes(rng, MESSAGES),
        };
        let length_ns = planned.budget.length_ns(kind) as f64;
        let block = BlockSpec { length_ns, seed: rng.random() };
        let mut served = 0;
        let mut busy_ps = 0;
        let mut service_ps = |at: usize, of: usize| {
            served += 1;
            let own_ns = match delays.service {
                Some(Service::Fixed(ns)) => ns,
                Some(Service::Exponential(mean)) => -mean * (1.0 - rng.random::<f64>()).ln(),
                None => self.service_ns * slowed * noise(rng),
            };
            let own_ps = (own_ns * 1000.0) as u64;
            busy_ps += own_ps;
            let stolen = stolen.filter(|(place, _)| place % of == at).map_or(0, |(_, ps)| ps);
            let asleep = if at == of / 2 { delays.receiver_sleeps_ns * 1000 } else { 0 };
            own_ps + stolen + asleep
        };
        let mut queue = VirtualQueue {
            block,
            begins_ps: now_ns * 1000,
            most: if delays == Delays::default() { MESSAGES } else { usize::MAX },
            service_ps: &mut service_ps,
            stall_ps: &|at, of| if at == of / 2 { delays.sender_stalls_ns * 1000 } else { 0 },
        };
        let unavailable =
            |reason| LabError::Unavailable { mechanism: cell.name().to_string(), reason };
        let logs = (self.program.simulate)(&mut queue).map_err(unavailable)?;
        let end_ps = logs.iter().flat_map(|log| &log.times).flatten().copied().max();
        let elapsed_ns = (end_ps.unwrap_or(0) / 1000).saturating_sub(now_ns).max(1);
        let busy_ns = busy_ps / 1000;
        let (receiver_ns, switches) = match class {
            Class::OneThread | Class::Spin | Class::Poll => (elapsed_ns, 0),
            Class::Sleep => (busy_ns.min(elapsed_ns), served),
        };
        let stolen_ns = stolen.map_or(0, |(_, ps)| ps / 1000);
        let mut cpu_ns = vec![elapsed_ns; logs.len()];
        if let Some(last) = cpu_ns.last_mut() {
            *last = receiver_ns;
        }
        let whole_ns: u64 = cpu_ns.iter().sum();
        let cpu = cell.cpus.last().copied().unwrap_or(0);
        let block_logs = BlockLogs { logs, cpu_ns, cpu, clock_bound_ns: Some(1.0) };
        let Some((mut samples, operations)) = (self.program.read)(block_logs) else {
            unreachable!("a simulated queue loses no message")
        };
        if let Samples::OpenLoop(deliveries) = &mut samples
            && cell.queue().is_some_and(|queue| queue.load.is_rare())
        {
            deliveries.idle = Some(idle(elapsed_ns, receiver_ns, served));
        }
        time.block_took(elapsed_ns);
        let counters = machine.thief.counters(stolen_ns, [whole_ns, 0, switches], operations);
        Ok(BlockSamples { counters: Counters { grows: self.program.grows, ..counters }, samples })
    }
}

/// Returns the idle states of a CPU that is in the deepest state whenever its thread sleeps.
fn idle(window_ns: u64, busy_ns: u64, sleeps: u64) -> IdleBlock {
    let state = |name: &str, time_ns: u64, entered: u64| IdleStateBlock {
        name: name.into(),
        time_ns: time_ns.into(),
        entered: entered.into(),
    };
    let asleep_ns = window_ns.saturating_sub(busy_ns);
    let entered = if asleep_ns > 0 { sleeps } else { 0 };
    let states = vec![state("POLL", 0, 0), state("C6", asleep_ns, entered)];
    IdleBlock { window_ns: window_ns.into(), states }
}
