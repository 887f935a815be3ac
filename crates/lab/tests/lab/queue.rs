//! Plans of queues: which rows share a group, for any registry.

use std::sync::LazyLock;

use threadtoll_lab::Registry;
use threadtoll_lab::backend::Backend;
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::plan::{CpuSelection, QueueChoice, queue, validate};
use threadtoll_lab::queue::{
    BATCH, Capacity, Channel, MAX_BATCH, Message, Overrides, Queue, Queues, RING_BYTES, SCENARIOS,
    Scenario, Sink, Slots, Source, Way, scenario,
};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_record::fold::compared;
use threadtoll_record::{
    Carry, Cell, Experiment, Kind, Origin, Placement, Plan, PlannedCell, Relation, Subject, Wait,
};

#[derive(Clone, Default)]
struct Nothing<const IN_PLACE: bool>;

#[derive(Clone)]
struct NoEnd;

impl<M: Message> Source<M> for NoEnd {
    fn send(&mut self, _: M) {}
}

impl<M: Message> Sink<M> for NoEnd {
    fn receive(&mut self) -> M {
        M::all(0)
    }
}

impl<M: Message, const IN_PLACE: bool> Channel<M> for Nothing<IN_PLACE> {
    type Source = NoEnd;
    type Sink = NoEnd;

    const IN_PLACE: bool = IN_PLACE;

    fn open(&self, _: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        Ok((NoEnd, NoEnd))
    }
}

fn fake(name: &str, bounded: bool, ways: Vec<Way>) -> Queue {
    Queue {
        name: name.into(),
        origin: Origin::Rust,
        version: "9.9.9".into(),
        sentence: "a queue that is never made".into(),
        capacity: if bounded { Capacity::Slots(Slots::PLAIN) } else { Capacity::Unbounded },
        built: None,
        ways,
    }
}

fn fakes() -> Vec<Queue> {
    let rings = || {
        [Wait::Poll, Wait::PollBackoff]
            .map(|wait| Way::one_sender::<Nothing<false>>(wait).in_batches())
            .to_vec()
    };
    let channels = || [Wait::Poll, Wait::Block].map(Way::many_senders::<Nothing<false>>).to_vec();
    let mut fakes: Vec<Queue> =
        (1..=6).map(|number| fake(&format!("ring-{number}"), true, rings())).collect();
    fakes.extend([
        fake("channel-bounded", true, channels()),
        fake("channel-unbounded", false, channels()),
        fake("other-unbounded", false, channels()),
    ]);
    fakes
}

static REGISTRY: LazyLock<Registry> =
    LazyLock::new(|| Registry { queues: Queues::with(fakes()), ..Registry::default() });

fn choice() -> QueueChoice<'static> {
    QueueChoice {
        queues: REGISTRY.queues.all().collect(),
        placements: vec![Placement::Pinned],
        waits: Vec::new(),
        neighbours: vec![None],
        overrides: Overrides::default(),
    }
}

fn overriding(overrides: Overrides) -> QueueChoice<'static> {
    QueueChoice { overrides, ..choice() }
}

fn stream() -> &'static Scenario {
    scenario("stream").unwrap()
}

fn planned(scenario: &Scenario, choice: &QueueChoice<'_>) -> Vec<Vec<PlannedCell>> {
    let topology = SimulatedBackend::topology();
    let allowed: Vec<u32> = topology.places.iter().map(|place| place.cpu).collect();
    let site = CpuSelection::whole(&topology, &allowed);
    let (groups, refused) = queue(&site, scenario, &REGISTRY, choice);
    assert_eq!(refused, []);
    groups
}

fn plan_of(groups: Vec<Vec<PlannedCell>>) -> Plan {
    Plan {
        processes: 1,
        run: "x".into(),
        command: vec!["queue".into()],
        seed: 1,
        over_ns: 10_000,
        options: Default::default(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused: Vec::new(),
        groups,
    }
}

fn plain(cell: &Cell) -> String {
    let label = cell.label();
    match cell.queue().and_then(|queue| queue.capacity) {
        Some(capacity) => label.replace(&format!(", capacity {capacity}"), ""),
        None => label,
    }
}

/// Returns `true` if a group compares the first with the second.
fn compares(groups: &[Vec<PlannedCell>], of: &str, to: &str) -> bool {
    groups.iter().any(|group| {
        (0..group.len()).any(|index| {
            plain(&group[index].cell) == of
                && compared(group, index).into_iter().any(|other| plain(&group[other].cell) == to)
        })
    })
}

#[test]
fn groups_are_small_and_begin_with_the_reference() {
    for scenario in SCENARIOS {
        for senders in [vec![1], vec![2, 4]] {
            if !scenario.any_senders && (senders != [1] || scenario.has_several_senders()) {
                continue;
            }
            let overrides = Overrides { senders: Some(senders), ..Overrides::default() };
            let groups = planned(scenario, &overriding(overrides));
            for group in &groups {
                assert!((2..=8).contains(&group.len()), "{group:#?}");
                assert_eq!(group[0].cell.name(), "atomic-store");
                assert!(group.iter().all(|planned| planned.experiment == scenario.experiment()));
                let mut cells: Vec<&Cell> = group.iter().map(|planned| &planned.cell).collect();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.len(), "duplicate cell in {group:#?}");
            }
            let topology = SimulatedBackend::topology();
            assert_eq!(
                validate(&plan_of(groups), &topology, &REGISTRY),
                Ok(()),
                "what is planned can be resumed"
            );
        }
    }
}

#[test]
fn every_row_of_every_queue_is_measured() {
    for scenario in SCENARIOS {
        let groups = planned(scenario, &choice());
        let batches: &[u64] = if scenario.name == "stream" { &[1, BATCH] } else { &[1] };
        for queue in REGISTRY.queues.all().filter(|queue| queue.origin != Origin::Raw) {
            for way in queue.ways.iter().filter(|way| scenario.takes(way)) {
                for batch in batches.iter().filter(|batch| **batch == 1 || way.batches) {
                    let found =
                        groups.iter().flatten().filter_map(|planned| planned.cell.queue()).any(
                            |cell| {
                                (cell.queue.as_str(), cell.wait, cell.batch)
                                    == (queue.name.as_str(), way.wait, *batch)
                            },
                        );
                    assert!(found, "{} {} {batch} {}", scenario.name, queue.name, way.wait);
                }
            }
        }
    }
}

#[test]
fn ours_stand_beside_every_peer_that_they_are_compared_with() {
    let groups = planned(stream(), &choice());
    for ring in ["ring-1, poll", "ring-3, poll", "ring-6, poll", "channel-bounded, poll"] {
        assert!(compares(&groups, "pipe, spin", ring), "{ring}");
        assert!(compares(&groups, "pipe-bounded, spin", ring), "{ring}");
        assert!(!compares(&groups, "funnel, spin", ring), "{ring}");
    }
    for channel in ["channel-unbounded, poll", "other-unbounded, poll"] {
        assert!(
            compares(&groups, "pipe, spin", channel) && compares(&groups, "funnel, spin", channel)
        );
    }
    for wait in ["park", "adaptive"] {
        assert!(compares(&groups, &format!("funnel, {wait}"), "other-unbounded, block"));
        assert!(compares(&groups, &format!("pipe-bounded, {wait}"), "channel-bounded, block"));
        assert!(!compares(&groups, &format!("funnel, {wait}"), "other-unbounded, poll"));
    }
    assert!(compares(&groups, "pipe, spin, batches of 256", "ring-2, poll, batches of 256"));
    for queue in ["pipe", "pipe-bounded", "funnel"] {
        assert!(compares(&groups, &format!("{queue}, adaptive"), &format!("{queue}, spin")));
        for words in [512, 2048, 8192, 32_768] {
            let raw = format!("raw-copy, blocks of {words} words");
            assert!(
                compares(&groups, &format!("{queue}, adaptive, batches of 256"), &raw),
                "{queue} {raw}"
            );
        }
    }
    let groups = planned(scenario("ask-reply").unwrap(), &choice());
    assert!(
        compares(&groups, "pipe, park", "futex") && compares(&groups, "funnel, adaptive", "futex")
    );
    assert!(compares(&groups, "pipe, spin", "ring-5, poll"));
}

#[test]
fn single_messages_and_batches_never_share_a_group_nor_do_waits_of_peers() {
    for group in planned(stream(), &choice()) {
        let queues: Vec<_> = group.iter().filter_map(|planned| planned.cell.queue()).collect();
        assert!(
            queues.iter().all(|queue| (queue.batch > 1) == (queues[0].batch > 1)),
            "{queues:#?}"
        );
        let peers: Vec<_> = queues.iter().filter(|queue| queue.origin == Origin::Rust).collect();
        assert!(
            peers.iter().all(|peer| peer.wait.family() == peers[0].wait.family()),
            "{peers:#?}"
        );
    }
}

#[test]
fn several_senders_take_further_cpus_and_the_receiver_the_second_of_the_pair() {
    let three = Overrides { senders: Some(vec![3]), batch: Some(1), ..Overrides::default() };
    let groups = planned(stream(), &overriding(three.clone()));
    let cells: Vec<&Cell> = groups.iter().flatten().map(|planned| &planned.cell).collect();
    let queues: Vec<&&Cell> = cells.iter().filter(|cell| cell.queue().is_some()).collect();
    assert!(!queues.is_empty());
    let pair = &groups[0][0].cell.cpus;
    for cell in queues {
        assert_eq!(cell.cpus.len(), 4);
        assert_eq!((cell.cpus[0], cell.cpus[3]), (pair[0], pair[1]));
        assert!(!cell.oversubscribed() && cell.relation >= Relation::SameLlc, "{cell:?}");
        let ours = ["funnel", "funnel-bounded", "owned", "owned-socket", "owned-ready-socket"];
        let peers = ["channel-bounded", "channel-unbounded", "other-unbounded"];
        assert!([&ours[..], &peers[..]].concat().contains(&cell.name()));
    }
    // On two CPUs the senders share one.
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[4, 6]);
    let funnel = REGISTRY.queues.find("funnel").unwrap();
    let many = QueueChoice { queues: vec![funnel], waits: vec![Wait::Spin], ..overriding(three) };
    let (groups, _) = queue(&site, stream(), &REGISTRY, &many);
    assert_eq!(groups[0][1].cell.cpus, [4, 6]);
    assert!(groups[0][1].cell.oversubscribed());
    assert!(
        groups[0].iter().all(|planned| planned.budget.stretch_ns >= 100_000_000),
        "over many time slices"
    );
}

#[test]
fn what_was_asked_for_is_what_is_planned() {
    let only = |choice: QueueChoice<'_>| -> Vec<Cell> {
        let groups = planned(stream(), &choice);
        groups
            .into_iter()
            .flatten()
            .map(|planned| planned.cell)
            .filter(|cell| cell.queue().is_some())
            .collect()
    };
    let cells = only(QueueChoice { waits: vec![Wait::Block], ..choice() });
    assert!(
        cells
            .iter()
            .filter_map(Cell::queue)
            .all(|queue| queue.wait == Wait::Block || queue.origin == Origin::Raw)
    );
    let waits = |asked: &[Wait]| -> Vec<Wait> {
        let cells = only(QueueChoice { waits: asked.to_vec(), ..choice() });
        let queues =
            cells.iter().filter_map(Cell::queue).filter(|queue| queue.origin != Origin::Raw);
        let mut waits: Vec<Wait> = queues.map(|queue| queue.wait).collect();
        waits.sort();
        waits.dedup();
        waits
    };
    assert_eq!(
        waits(&[Wait::Spin]),
        [Wait::Spin, Wait::Poll, Wait::PollBackoff],
        "and the peers that poll"
    );
    assert_eq!(waits(&[Wait::Park]), [Wait::Park, Wait::Block]);
    assert_eq!(waits(&[Wait::SpinYield]), [Wait::SpinYield]);
    assert_eq!(
        waits(&[Wait::PollBackoff, Wait::Adaptive]),
        [Wait::Adaptive, Wait::PollBackoff, Wait::Block]
    );
    let cells = only(overriding(Overrides { batch: Some(64), ..Overrides::default() }));
    assert!(
        cells
            .iter()
            .filter_map(Cell::queue)
            .all(|queue| queue.batch == 64 || queue.origin == Origin::Raw)
    );
    let cells = only(overriding(Overrides { batch: Some(1), ..Overrides::default() }));
    assert!(cells.iter().all(|cell| cell.queue().unwrap().batch == 1), "and no bare copy");
    // Spinning ends on one CPU are refused once, not for each queue.
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::whole(&topology, &[0, 1]);
    let same = QueueChoice { placements: vec![Placement::SameCpu], ..choice() };
    let (groups, refused) = queue(&site, stream(), &REGISTRY, &same);
    assert!(!groups.is_empty());
    assert_eq!(refused.len(), 1, "{refused:#?}");
    assert_eq!(refused[0].what, "queues that spin, same-cpu");
}

#[test]
fn each_capacity_has_groups_of_its_own() {
    let of = |groups: &[Vec<PlannedCell>], name: &str| -> Vec<(Option<u64>, Option<u64>)> {
        let cells = groups.iter().flatten().filter_map(|planned| planned.cell.queue());
        let mut found: Vec<_> = cells
            .filter(|queue| queue.queue == name)
            .map(|queue| (queue.capacity, queue.ring_bytes))
            .collect();
        found.sort();
        found.dedup();
        found
    };
    let usual = planned(stream(), &choice());
    assert_eq!(of(&usual, "ring-1"), [(Some(RING_BYTES / 8), Some(RING_BYTES))]);
    assert_eq!(of(&usual, "pipe-bounded"), [(Some(28_196), Some(RING_BYTES))]);
    assert_eq!(of(&usual, "pipe"), [(None, None)]);
    let asking = planned(scenario("ask-reply").unwrap(), &choice());
    assert_eq!(of(&asking, "ring-1"), [(Some(1024), Some(8192))]);

    let overrides = Overrides { capacities: Some(vec![64, 1000]), ..Overrides::default() };
    let groups = planned(stream(), &overriding(overrides));
    assert_eq!(of(&groups, "ring-1"), [(Some(64), Some(512)), (Some(1000), Some(8000))]);
    for group in &groups {
        let mut capacities: Vec<_> =
            group.iter().filter_map(|planned| planned.cell.queue()?.capacity).collect();
        capacities.dedup();
        assert!(capacities.len() < 2, "{group:#?}");
    }
    let unlimited =
        groups.iter().flatten().filter(|planned| planned.cell.label() == "other-unbounded, poll");
    assert_eq!(unlimited.count(), 1, "measured once, whatever the capacity of bounded queues");
    assert_eq!(validate(&plan_of(groups), &SimulatedBackend::topology(), &REGISTRY), Ok(()));
}

#[test]
fn one_cpu_leaves_what_can_sleep() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[3]);
    let same = QueueChoice { placements: vec![Placement::SameCpu], ..choice() };
    let (groups, _) = queue(&site, scenario("ask-reply").unwrap(), &REGISTRY, &same);
    assert!(!groups.is_empty());
    for group in groups {
        assert_eq!(group[0].cell.name(), "futex", "the reference with one CPU");
        assert_eq!(group.iter().filter(|planned| planned.cell.name() == "futex").count(), 1);
    }
}

#[test]
fn a_plan_that_uses_a_queue_as_it_cannot_be_used_is_refused() {
    let topology = SimulatedBackend::topology();
    let spoilt = |spoil: &dyn Fn(&mut PlannedCell)| -> String {
        let mut groups = planned(stream(), &choice());
        let ring =
            groups.iter_mut().flatten().find(|planned| planned.cell.name() == "ring-1").unwrap();
        spoil(ring);
        validate(&plan_of(groups), &topology, &REGISTRY).err().unwrap_or_default()
    };
    let queue = |spoil: &dyn Fn(&mut threadtoll_record::QueueSubject)| {
        spoilt(&|planned| {
            if let Subject::Queue(queue) = &mut planned.cell.subject {
                spoil(queue);
            }
        })
    };
    assert_eq!(spoilt(&|_| {}), "");
    assert!(queue(&|queue| queue.queue = "tube".into()).contains("no such queue"));
    assert!(queue(&|queue| queue.version = "0.0.1".into()).contains("another version"));
    assert!(queue(&|queue| queue.wait = Wait::Block).contains("cannot measure the queue"));
    assert!(queue(&|queue| queue.senders = 2).contains("cannot measure the queue"));
    assert!(queue(&|queue| queue.senders = 0).contains("cannot measure the queue"));
    assert!(queue(&|queue| queue.batch = MAX_BATCH + 1).contains("cannot measure the queue"));
    assert!(queue(&|queue| queue.capacity = None).contains("cannot have this capacity"));
    assert!(queue(&|queue| queue.ring_bytes = Some(1)).contains("cannot have this capacity"));
    assert!(
        spoilt(&|planned| planned.experiment = Experiment::queue("day-watch"))
            .contains("no such scenario")
    );
    let of_kind = |planned: &mut PlannedCell| {
        let PlannedCell { experiment, cell, budget, .. } = planned.clone();
        *planned = PlannedCell::of_kind(Kind::Exchange, experiment, cell, budget);
    };
    assert!(spoilt(&of_kind).contains("in another way"));
    assert!(spoilt(&|planned| planned.cell.payload_bytes = 64).contains("message size"));
    assert!(spoilt(&|planned| planned.cell.cpus = vec![0, 1, 2]).contains("placed as planned"));
    assert!(
        spoilt(&|planned| planned.cell.relation = Relation::OtherNode)
            .contains("placed as planned")
    );
}

#[test]
fn a_plan_of_messages_that_a_queue_cannot_carry_is_refused() {
    let topology = SimulatedBackend::topology();
    let spoilt = |spoil: &dyn Fn(&mut PlannedCell)| -> String {
        let mut groups = planned(scenario("payload").unwrap(), &choice());
        let is_moved = |planned: &&mut PlannedCell| {
            let queue = planned.cell.queue().filter(|queue| queue.queue.as_str() == "ring-1");
            let moved = queue.is_some_and(|queue| queue.load.carry == Some(Carry::Moved));
            moved && planned.cell.payload_bytes == 4096
        };
        spoil(groups.iter_mut().flatten().find(is_moved).unwrap());
        validate(&plan_of(groups), &topology, &REGISTRY).err().unwrap_or_default()
    };
    let queue = |spoil: &dyn Fn(&mut threadtoll_record::QueueSubject)| {
        spoilt(&|planned| {
            if let Subject::Queue(queue) = &mut planned.cell.subject {
                spoil(queue);
            }
        })
    };
    assert_eq!(spoilt(&|_| {}), "");
    for bytes in [0, 12, 1 << 21] {
        let why = spoilt(&|planned| planned.cell.payload_bytes = bytes);
        assert!(why.contains("the message size is out of range"), "{bytes}: {why}");
    }
    // There is no such type, the ring has other slots, and it has no calls for slots.
    let cannot = "cannot measure the queue";
    assert!(spoilt(&|planned| planned.cell.payload_bytes = 24).contains("of their scenario"));
    assert!(
        spoilt(&|planned| planned.cell.payload_bytes = 64).contains("cannot have this capacity")
    );
    assert!(queue(&|queue| queue.load.carry = Some(Carry::InPlace)).contains(cannot));
    assert!(queue(&|queue| queue.load.carry = None).contains(cannot));
    assert!(queue(&|queue| queue.batch = 16).contains(cannot));
    let gigabytes = |queue: &mut threadtoll_record::QueueSubject| {
        queue.capacity = Some(1 << 20);
        queue.ring_bytes = Some(4096 << 20);
    };
    assert!(queue(&gigabytes).contains("cannot have this capacity"));
}

#[test]
fn a_queue_that_is_not_known_is_named_when_it_is_opened() {
    let groups = planned(stream(), &choice());
    let mut rig = SimulatedBackend::new(1);
    let machine = rig.machine();
    let error = rig.open(&machine, &groups[0], &mut |_| Ok(())).err().unwrap().to_string();
    assert!(error.contains("ring-1"), "{error}");
}
