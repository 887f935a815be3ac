//! A fictional machine and measurements on it, equal in every run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use threadtoll_record::file::{GroupState, Results};
use threadtoll_record::*;

/// A random generator of its own, so that no library update changes a snapshot.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Draws(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A cell and its behaviour: round trip, user and system CPU time, switches per hand-off.
pub(crate) struct Spec {
    pub(crate) experiment: &'static str,
    pub(crate) cell: Cell,
    pub(crate) round_trip_ns: f64,
    pub(crate) cost: [f64; 3],
}

pub(crate) fn cell(mechanism: &str, placement: Placement) -> Cell {
    let (cpus, relation) = match placement {
        Placement::Pinned => (vec![0, 1], Relation::SameLlc),
        Placement::SameCpu => (vec![0], Relation::SameCpu),
        Placement::Free => (vec![0, 1], Relation::Free),
    };
    Cell {
        subject: Subject::Mechanism { mechanism: mechanism.into(), class: None },
        placement,
        cpus,
        relation,
        payload_bytes: 8,
        line: None,
        pause: None,
        keep_awake: false,
        neighbour: None,
        built: None,
    }
}

pub(crate) fn spec(
    mechanism: &str,
    placement: Placement,
    round_trip_ns: f64,
    cost: [f64; 3],
) -> Spec {
    Spec { experiment: "latency", cell: cell(mechanism, placement), round_trip_ns, cost }
}

pub(crate) fn reference() -> Spec {
    let mut spec = spec("atomic-store", Placement::Pinned, 102.0, [101.0, 0.0, 0.0]);
    spec.cell.line = Some(Layout::Own);
    spec.cell.pause = Some(Pause::Off);
    spec
}

pub(crate) fn machine(cpus: u32) -> Machine {
    let per_llc = 8;
    let topology = (0..cpus)
        .map(|cpu| {
            let core = if cpus > 2 { cpu % (cpus / 2) } else { cpu };
            let node = if cpus > 16 { core / (cpus / 4) } else { 0 };
            let smt = if cpus > 2 { vec![core, core + cpus / 2] } else { vec![cpu] };
            let llc = if cpus > 2 { core / per_llc * per_llc } else { 0 };
            CpuPlace { cpu, core, llc: Some(llc), node, smt, kind: None }
        })
        .collect();
    let noise = |cpu: u32| CpuNoise {
        cpu,
        watched_ns: 200_000_000.into(),
        gaps: vec![
            (1000.into(), (420 + u64::from(cpu) * 7).into()),
            (10_000.into(), 31.into()),
            (100_000.into(), u64::from(cpu % 3 == 1).into()),
            (1_000_000.into(), 0.into()),
        ],
        lost_share: (0.0021 + f64::from(cpu % 5) * 0.0004).into(),
        longest_ns: (88_000 + u64::from(cpu % 3 == 1) * 400_000).into(),
    };
    Machine {
        run: "20261121T100000000-7".into(),
        at: "2026-11-21T10:00:00.000Z".into(),
        tool: "threadtoll 0.1.0 (git 0123456, rustc 1.95.0)".into(),
        simulated: false,
        synthetic: false,
        cpu: "AMD EPYC 9V74 80-Core Processor".into(),
        arch: "x86_64".into(),
        cpus,
        topology,
        allowed: (0..cpus).collect(),
        quota_cpus: None,
        kernel: "6.1.0-18-cloud-amd64".into(),
        governor: None,
        boost: None,
        virtualised: Some("kvm".into()),
        idle_driver: Some("haltpoll".into()),
        timer_slack_ns: Some(50_000.into()),
        membarrier: true,
        clock: ClockFacts {
            source: ClockSource::Tsc,
            step_ns: 10.0.into(),
            read_ns: 10.2.into(),
            invariant: true,
            tick_ns: 0.385.into(),
            drift_ppm: 0.42.into(),
        },
        noise: (0..cpus).map(noise).collect(),
        grade: Grade::B,
        warnings: vec![
            Warning::new(
                "virtualised",
                "This is a virtual machine (kvm): the hypervisor may take a CPU away at any time. Tails are its as much as the mechanism’s; measure on the bare machine where tails matter.",
            ),
            Warning::new(
                "governor-unknown",
                "The kernel does not show how frequencies are governed. Run the measurement twice and compare.",
            ),
        ],
    }
}

pub(crate) fn plan(machine: &Machine, groups: &[(u32, Vec<Spec>)]) -> Plan {
    Plan {
        processes: 1,
        run: machine.run.clone(),
        command: vec!["survey".into(), "--quick".into()],
        seed: 42,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused: vec![
            Refused {
                what: "tcp-loopback, pinned".into(),
                why: "the network namespace has no loopback".into(),
            },
            Refused {
                what: "tcp-loopback, free".into(),
                why: "the network namespace has no loopback".into(),
            },
        ],
        groups: groups
            .iter()
            .map(|(rounds, specs)| {
                let budget = Budget {
                    rounds: *rounds,
                    stretch_ns: 10_000_000,
                    stamped_ns: 10_000_000,
                    stamped_count: None,
                };
                let planned = |spec: &Spec| {
                    let experiment = Experiment::try_from(spec.experiment.to_string());
                    let experiment = experiment.unwrap_or_else(|why| panic!("{why}"));
                    PlannedCell::new(experiment, spec.cell.clone(), budget)
                };
                specs.iter().map(planned).collect()
            })
            .collect(),
    }
}

/// Measures every group: draws blocks, folds them, and drops them.
pub(crate) fn results(machine: Machine, groups: &[(u32, Vec<Spec>)]) -> Results {
    let plan = plan(&machine, groups);
    let mut results = Results::empty(machine, plan);
    for (index, (rounds, specs)) in groups.iter().enumerate() {
        let blocks = blocks(&results, index, *rounds, specs);
        let records = fold(
            &results.machine,
            &results.plan,
            index,
            1,
            &blocks,
            &[],
            "2026-11-21T10:00:09.000Z",
        );
        results.groups[index] =
            GroupState { attempts: 1, records: Some(records), ..GroupState::default() };
    }
    results
}

pub(crate) fn blocks(results: &Results, group: usize, rounds: u32, specs: &[Spec]) -> Vec<Block> {
    let mut draws = Draws::new(group as u64 + 1);
    let mut blocks = Vec::new();
    for seq in 0..rounds {
        for (cell, spec) in specs.iter().enumerate() {
            for kind in [BlockKind::Stretch, BlockKind::Stamped] {
                blocks.push(block(results, group, cell, seq, spec, kind, &mut draws));
            }
        }
    }
    blocks
}

fn block(
    results: &Results,
    group: usize,
    cell: usize,
    seq: u32,
    spec: &Spec,
    kind: BlockKind,
    draws: &mut Draws,
) -> Block {
    let mut histogram = Histogram::new();
    let mut values = Vec::new();
    let samples = if kind == BlockKind::Stretch { 40 } else { 3000 };
    let weather = 1.0 + 0.01 * (draws.next() - 0.5);
    for _ in 0..samples {
        let bell = draws.next() + draws.next() + draws.next() + draws.next() - 2.0;
        let mut value = spec.round_trip_ns * weather;
        if kind == BlockKind::Stretch {
            value *= 1.0 + 0.004 * bell;
        } else {
            value *= 1.0 + 0.08 * bell;
            let luck = draws.next();
            if luck < 0.001 {
                value += 4000.0 + 60_000.0 * draws.next() * draws.next();
            } else if luck < 0.012 {
                value *= 1.4 + 1.8 * draws.next();
            }
            // The clock's step is 10 ns.
            value = (value / 10.0).round().max(1.0) * 10.0;
        }
        values.push(value);
        histogram.record_ps((value * 1000.0) as u64);
    }
    let count = if kind == BlockKind::Stretch { 40_000 } else { samples };
    let max = values.iter().copied().fold(0.0, f64::max);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let disturbed = kind == BlockKind::Stamped && max > 55_000.0;
    let operations = 2.0 * count as f64;
    Block {
        run: results.plan.run.clone(),
        group,
        attempt: 1,
        cell,
        process: 0,
        seq,
        at: "2026-11-21T10:00:01.000Z".into(),
        kind,
        count: count.into(),
        elapsed_ns: ((mean * count as f64) as u64).into(),
        mean: mean.into(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min).into(),
        max: max.into(),
        histogram: Some(histogram),
        over: ((kind == BlockKind::Stamped)
            .then(|| values.iter().filter(|value| **value > 10_000.0).count() as u64))
        .map(Into::into),
        figures: BlockFigures::HandOffs(HandOffBlockFigures {
            one_way: None,
            same_cpu_share: ((kind == BlockKind::Stamped
                && spec.cell.placement == Placement::Free)
                .then(|| 0.4 + 0.2 * draws.next()))
            .map(Into::into),
        }),
        own_program: None,
        worst: if kind == BlockKind::Stamped && max > 20_000.0 {
            let cause = disturbed.then_some(Cause::InvoluntarySwitch);
            vec![Worst {
                at_s: (f64::from(seq) * 0.5 + 0.25).into(),
                ns: max.into(),
                cpu: 0,
                cause,
            }]
        } else {
            Vec::new()
        },
        cost_round_trips: count.into(),
        cost: BlockCost {
            user_ns: ((spec.cost[0] * operations) as u64).into(),
            system_ns: ((spec.cost[1] * operations) as u64).into(),
            voluntary_switches: ((spec.cost[2] * operations) as u64).into(),
            involuntary_switches: u64::from(disturbed).into(),
        },
        disturbance: Disturbance {
            causes: if disturbed {
                vec![Cause::InvoluntarySwitch, Cause::RunQueueDelay]
            } else {
                Vec::new()
            },
            ..Disturbance::default()
        },
        clean: !disturbed,
    }
}

/// The survey of a small virtual machine: most mechanisms, three placements, some variants.
pub(crate) fn survey() -> Results {
    // Folding takes seconds without optimisation, so it is done once.
    static SURVEY: LazyLock<Results> = LazyLock::new(measure);
    SURVEY.clone()
}

fn measure() -> Results {
    use Placement::{Free, Pinned, SameCpu};
    let one_thread = |mechanism: &str, round_trip: f64| {
        let mut spec = spec(mechanism, Pinned, round_trip, [round_trip / 2.0, 0.0, 0.0]);
        spec.cell.cpus = vec![0];
        spec.cell.relation = Relation::SameThread;
        spec
    };
    let line = |mechanism: &str, line: Layout, pause: Pause, round_trip: f64| {
        let mut spec = spec(mechanism, Pinned, round_trip, [round_trip, 0.0, 0.0]);
        spec.cell.line = Some(line);
        spec.cell.pause = Some(pause);
        spec
    };
    let mut awake = spec("futex", Pinned, 1530.0, [420.0, 1290.0, 1.0]);
    awake.cell.keep_awake = true;
    let mut fat = line("atomic-store", Layout::Own, Pause::Off, 164.0);
    fat.cell.payload_bytes = 4096;
    let mut same_cpu = spec("atomic-store", SameCpu, 5_900_000.0, [2_900_000.0, 3000.0, 0.5]);
    same_cpu.cell.line = Some(Layout::Own);
    same_cpu.cell.pause = Some(Pause::Off);
    results(
        machine(2),
        &[
            (
                21,
                vec![
                    reference(),
                    one_thread("function-call", 2.4),
                    one_thread("fiber-switch", 17.0),
                    line("atomic-rmw", Layout::Shared, Pause::Off, 62.0),
                    line("atomic-rmw", Layout::Own, Pause::Off, 94.0),
                    line("atomic-seqcst", Layout::Shared, Pause::On, 110.0),
                    fat,
                ],
            ),
            (
                6,
                vec![
                    reference(),
                    spec("futex", Pinned, 2780.0, [900.0, 1800.0, 1.0]),
                    awake,
                    spec("futex", SameCpu, 2310.0, [700.0, 1600.0, 1.0]),
                    spec("futex", Free, 5020.0, [950.0, 2100.0, 1.0]),
                    same_cpu,
                    spec("spin-yield", Pinned, 640.0, [180.0, 460.0, 0.0]),
                    spec("spin-yield", SameCpu, 980.0, [120.0, 370.0, 0.0]),
                ],
            ),
            (
                6,
                vec![
                    reference(),
                    spec("std-condvar", Pinned, 3420.0, [1300.0, 2700.0, 1.84]),
                    spec("std-condvar", SameCpu, 3900.0, [1300.0, 2700.0, 1.4]),
                    spec("std-condvar", Free, 6100.0, [1400.0, 2900.0, 1.7]),
                    spec("std-condvar-after", Pinned, 2960.0, [1000.0, 2100.0, 1.02]),
                    spec("os-pipe", Pinned, 4480.0, [1100.0, 3400.0, 1.0]),
                    spec("os-pipe", Free, 7800.0, [1100.0, 3600.0, 1.0]),
                    spec("sleep-poll", Pinned, 116_000.0, [900.0, 2600.0, 1.0]),
                ],
            ),
        ],
    )
}

pub(crate) fn relation(machine: &Machine, a: u32, b: u32) -> Relation {
    let (one, other) = (&machine.topology[a as usize], &machine.topology[b as usize]);
    if one.core == other.core {
        Relation::Smt
    } else if one.llc == other.llc {
        Relation::SameLlc
    } else if one.node == other.node {
        Relation::SameNode
    } else {
        Relation::OtherNode
    }
}

/// Pairs of CPUs: near ones cheap, far ones expensive.
pub(crate) fn matrix(cpus: u32) -> Results {
    let machine = machine(cpus);
    let mut draws = Draws::new(9);
    let template = results(machine.clone(), &[(2, vec![reference()])]).records().remove(0);
    let mut plan = plan(&machine, &[(2, vec![reference()])]);
    let mut records = Vec::new();
    for a in 0..cpus {
        for b in a + 1..cpus {
            let relation = relation(&machine, a, b);
            let near = match relation {
                Relation::Smt => 14.0,
                Relation::SameLlc => 31.0,
                Relation::SameNode => 88.0,
                _ => 210.0,
            };
            let p50 = near * (1.0 + 0.1 * draws.next());
            let mut record = template.clone();
            record.experiment = Experiment::Matrix;
            record.cell.cpus = vec![a, b];
            record.cell.relation = relation;
            if let Some(one_way) = &mut record.one_way {
                one_way.p50 = Some(p50.into());
                one_way.p50_interval95 = Some([(p50 * 0.99).into(), (p50 * 1.01).into()]);
            }
            if cpus > 64 {
                record.histogram = None;
            }
            record.worst.clear();
            records.push(record);
        }
    }
    plan.command = vec!["matrix".into()];
    plan.refused.clear();
    let mut results = Results::empty(machine, plan);
    results.groups[0] = GroupState { attempts: 1, records: Some(records), ..GroupState::default() };
    results
}

/// A queue in a scenario: the round trip, or the time per message of a stream.
pub(crate) fn queue(
    scenario: &'static str,
    subject: (&str, Origin, Wait, u64),
    senders: u32,
    ns: f64,
) -> Spec {
    let (name, origin, wait, batch) = subject;
    let sleeps = matches!(wait, Wait::Park | Wait::Block);
    let mut spec = spec("", Placement::Pinned, ns, [ns, ns / 9.0, if sleeps { 0.97 } else { 0.0 }]);
    spec.experiment = scenario;
    let holds = match name {
        "pipe-bounded" => Some((28_672, 262_144)),
        "rtrb" => Some((32_768, 262_144)),
        "ringbuf" => Some((1024, 8192)),
        _ => None,
    };
    spec.cell.subject = Subject::Queue(QueueSubject {
        queue: name.into(),
        origin,
        wait,
        capacity: holds.map(|(capacity, _)| capacity),
        ring_bytes: holds.map(|(_, bytes)| bytes),
        batch,
        version: if origin == Origin::Rust { "1.2.3".into() } else { "0.1.0".into() },
        senders,
        load: Load::NONE,
    });
    spec
}

/// Our queues next to peers: streams of single messages, from two senders, and in batches next to
/// the bare copy, and ask-reply.
pub(crate) fn queues() -> Results {
    static QUEUES: LazyLock<Results> = LazyLock::new(measure_queues);
    QUEUES.clone()
}

fn measure_queues() -> Results {
    use Origin::{Ours, Raw, Rust};
    use Wait::{Adaptive, Block, Park, Poll, Spin};
    let stream = |subject, senders, ns| queue("queue/stream", subject, senders, ns);
    let ask = |subject, ns| queue("queue/ask-reply", subject, 1, ns);
    let of = |experiment| Spec { experiment, ..reference() };
    let mut futex = spec("futex", Placement::Pinned, 2780.0, [900.0, 1800.0, 1.0]);
    futex.experiment = "queue/ask-reply";
    let mut results = results(
        machine(2),
        &[
            (
                21,
                vec![
                    of("queue/stream"),
                    stream(("pipe", Ours, Spin, 1), 1, 5.0),
                    stream(("pipe-bounded", Ours, Spin, 1), 1, 12.1),
                    stream(("rtrb", Rust, Poll, 1), 1, 12.0),
                    stream(("ringbuf", Rust, Poll, 1), 1, 15.0),
                ],
            ),
            (
                21,
                vec![
                    of("queue/stream"),
                    stream(("funnel", Ours, Spin, 1), 2, 130.0),
                    stream(("crossbeam-unbounded", Rust, Poll, 1), 2, 80.0),
                ],
            ),
            (
                6,
                vec![
                    of("queue/stream"),
                    stream(("raw-copy", Raw, Spin, 512), 1, 0.9),
                    stream(("raw-copy", Raw, Spin, 32_768), 1, 0.5),
                    stream(("pipe", Ours, Spin, 256), 1, 1.0),
                    stream(("rtrb", Rust, Poll, 256), 1, 1.6),
                ],
            ),
            (
                21,
                vec![
                    of("queue/ask-reply"),
                    ask(("pipe", Ours, Spin, 1), 198.0),
                    ask(("rtrb", Rust, Poll, 1), 200.0),
                ],
            ),
            (
                21,
                vec![
                    of("queue/ask-reply"),
                    futex,
                    ask(("pipe", Ours, Park, 1), 2900.0),
                    ask(("pipe", Ours, Adaptive, 1), 310.0),
                    ask(("kanal-unbounded", Rust, Block, 1), 640.0),
                ],
            ),
        ],
    );
    results.plan.command = vec!["queue".into(), "stream".into()];
    results.plan.refused.clear();
    results
}

/// The survey and the queues in one file.
pub(crate) fn everything() -> Results {
    let mut all = survey();
    let queues = queues();
    let before = all.groups.len();
    all.plan.groups.extend(queues.plan.groups);
    all.groups.extend(queues.groups);
    for (index, group) in all.groups.iter_mut().enumerate().skip(before) {
        group.records.iter_mut().flatten().for_each(|record| record.group = index);
    }
    all
}
