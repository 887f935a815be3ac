//! Queues under a load, on simulated machines whose queues are those of textbooks.

use threadtoll_lab::Registry;
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::plan::{CpuSelection, QueueChoice, remaining_ns, validate};
use threadtoll_lab::queue::{
    ArrivalsChoice, Capacity, Channel, Message, Overrides, Queue, Queues, RING_BYTES, Sink, Slots,
    Source, Way, burst, depth, for_me, funnel_load, night_watch, open_loop, payload, scenario,
    workers,
};
use threadtoll_lab::simulated::{Delays, Service, SimulatedBackend};
use threadtoll_record::file::GroupState;
use threadtoll_record::{
    Against, BlockKind, Carry, DepthFigures, Figures, Histogram, Load, Lose, Lost, Origin,
    Placement, Plan, PlannedCell, Record, Subject, Wait,
};

use crate::{OURS, latency_plan, run_simulated};

/// Time in which the simulated receivers take a message, in nanoseconds.
const SERVICE_NS: f64 = 1000.0;

fn plan(name: &str, overrides: Overrides) -> Plan {
    plan_with(&OURS, name, "pipe", overrides)
}

fn plan_with(registry: &Registry, name: &str, queue: &str, overrides: Overrides) -> Plan {
    plan_waiting(Wait::Spin, registry, name, queue, overrides)
}

fn plan_waiting(
    wait: Wait,
    registry: &Registry,
    name: &str,
    queue: &str,
    overrides: Overrides,
) -> Plan {
    let topology = SimulatedBackend::topology();
    let allowed: Vec<u32> = topology.places.iter().map(|place| place.cpu).collect();
    let site = CpuSelection::whole(&topology, &allowed);
    let choice = QueueChoice {
        queues: vec![registry.queues.find(queue).unwrap()],
        placements: vec![Placement::Pinned],
        waits: vec![wait],
        neighbours: vec![None],
        overrides,
    };
    let scenario = scenario(name).unwrap();
    let plan = latency_plan(1, 1, threadtoll_lab::plan::queue(&site, scenario, registry, &choice));
    assert_eq!(validate(&plan, &topology, registry), Ok(()), "what is planned can be resumed");
    plan
}

fn of(loads: Vec<Load>) -> Overrides {
    Overrides { loads: Some(loads), ..Overrides::default() }
}

/// The records of the queue, in the order of its loads.
fn records(plan: &Plan, delays: Delays) -> Vec<Record> {
    let machine = || SimulatedBackend::new(1).with_registry(OURS.clone()).with_delays(delays);
    let results = run_simulated(&machine, plan);
    results.records().into_iter().filter(|record| record.cell.queue().is_some()).collect()
}

fn paced(arrivals: ArrivalsChoice, rates: &[u64], time_ns: Option<u64>) -> Plan {
    let loads = Some(open_loop::loads(Some(&arrivals), None, Some(rates)));
    plan("open-loop", Overrides { loads, time_ns, ..Overrides::default() })
}

fn served(service: Service) -> Delays {
    Delays { service: Some(service), ..Delays::default() }
}

#[track_caller]
fn near(found: Option<impl Into<f64>>, expected: f64, within: f64) {
    let found: f64 = found.unwrap().into();
    assert!((found / expected - 1.0).abs() <= within, "{found} instead of {expected}");
}

/// F. Pollaczek and A. Khinchin: a mean wait of ρD / 2(1 − ρ) before the service of D.
#[test]
fn poisson_arrivals_and_fixed_service_are_m_d_1() {
    let plan = paced(ArrivalsChoice::Poisson, &[500_000, 800_000], Some(2_000_000_000));
    for (record, load) in records(&plan, served(Service::Fixed(SERVICE_NS))).iter().zip([0.5, 0.8])
    {
        near(record.mean, SERVICE_NS * (1.0 + load / (2.0 * (1.0 - load))), 0.02);
        let open_loop = &record.figures.open_loop().unwrap().open_loop;
        near(open_loop.rate_per_s, load * 1e9 / SERVICE_NS, 0.01);
        near(open_loop.achieved_per_s, load * 1e9 / SERVICE_NS, 0.01);
        assert!(!open_loop.saturated && !open_loop.generator_was_limit);
    }
}

/// Sojourns are exponential with mean D / (1 − ρ).
#[test]
fn poisson_arrivals_and_exponential_service_are_m_m_1() {
    let plan = paced(ArrivalsChoice::Poisson, &[500_000, 800_000], Some(2_000_000_000));
    let delays = served(Service::Exponential(SERVICE_NS));
    for (record, load) in records(&plan, delays).iter().zip([0.5, 0.8]) {
        let mean = SERVICE_NS / (1.0 - load);
        near(record.mean, mean, 0.02);
        near(record.quantiles.p50, mean * 2f64.ln(), 0.02);
        near(record.quantiles.p99, mean * 100f64.ln(), 0.03);
    }
}

#[test]
fn uniform_arrivals_never_wait_until_the_queue_is_saturated() {
    let plan = paced(ArrivalsChoice::Uniform, &[100_000, 900_000, 2_000_000], None);
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    for record in &records[..2] {
        near(record.quantiles.p50, SERVICE_NS, 0.001);
        near(record.max, SERVICE_NS, 0.001);
        assert_eq!(record.figures.open_loop().unwrap().open_loop.saturated_at_per_s, None);
    }
    let open_loop = &records[2].figures.open_loop().unwrap().open_loop;
    assert!(open_loop.saturated);
    near(open_loop.rate_per_s, 2e6, 0.001);
    near(open_loop.saturated_at_per_s, 1e6, 0.01);
    let [low, high] = open_loop.saturated_at_interval95.unwrap().map(f64::from);
    assert!(low <= 1.01e6 && high >= 0.99e6, "{low} to {high}");
}

/// The default sweep of this queue's spinning row, on a machine with this service time.
fn sweep(queue: &str) -> (Plan, impl Fn() -> SimulatedBackend) {
    let plan = plan_with(&OURS, "open-loop", queue, Overrides::default());
    let delays = served(Service::Fixed(SERVICE_NS));
    let machine = move || SimulatedBackend::new(1).with_registry(OURS.clone()).with_delays(delays);
    (Plan { until_saturated: true, ..plan }, machine)
}

fn rates_of(records: &[Record]) -> Vec<u64> {
    let load = |record: &Record| record.cell.queue().map(|queue| queue.load.clone());
    let mut rates: Vec<u64> =
        records.iter().filter_map(load).map(|load| load.rate_per_s.unwrap().get()).collect();
    rates.dedup();
    rates
}

/// A queue that takes a million messages per second keeps up with all but 2% of 1,024,000.
#[test]
fn a_sweep_ends_with_the_rate_that_saturates() {
    let (plan, machine) = sweep("pipe");
    let results = run_simulated(&machine, &plan);
    assert!(results.complete());
    let records = results.records();
    let rates = [1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000, 4_096_000];
    assert_eq!(rates_of(&records), rates);
    let saturated =
        |record: &Record| record.figures.open_loop().is_some_and(|own| own.open_loop.saturated);
    let rows: Vec<&Record> =
        records.iter().filter(|one| one.figures.open_loop().is_some()).collect();
    let (last, others) = rows.split_last().unwrap();
    assert!(saturated(last) && !others.iter().any(|record| saturated(record)));
    let rows = results.saturated_rows();
    let rows: Vec<(u64, usize)> = rows.iter().map(|(rate, rows)| (*rate, rows.len())).collect();
    assert_eq!(rows, [(4_096_000, 1)]);
    assert_eq!(remaining_ns(&results, 0), 0);
    // Rates that the user named are all measured.
    let all = run_simulated(&machine, &Plan { until_saturated: false, ..plan });
    assert_eq!(rates_of(&all.records()).len(), 9);
    assert!(all.saturated_rows().is_empty());
}

/// The group of a row that keeps up is measured, with all the rows that share it.
#[test]
fn a_group_is_measured_while_one_of_its_rows_keeps_up() {
    let (plan, machine) = sweep("pipe");
    let mut results = run_simulated(&machine, &plan);
    let complete = results.complete_groups();
    let last = results.groups.iter().rposition(|group| group.records.is_some()).unwrap();
    assert!(complete.iter().all(|complete| *complete) && last + 1 < complete.len());
    let records = results.groups[last].records.as_mut().unwrap();
    for record in records {
        if let Figures::OpenLoop(own) = &mut record.figures {
            own.open_loop.saturated = false;
        }
    }
    assert_eq!(results.above_saturation(), vec![false; complete.len()]);
    assert!(!results.complete());
    assert!(remaining_ns(&results, 0) > 0);
}

#[test]
fn a_sweep_that_was_interrupted_ends_with_the_same_rate() {
    let (plan, machine) = sweep("pipe");
    let whole = run_simulated(&machine, &plan);
    // Without the record that saturates, nothing is above saturation yet.
    let last = whole.groups.iter().rposition(|group| group.records.is_some()).unwrap();
    let mut cut = whole.clone();
    cut.groups[last] = GroupState::default();
    assert!(!cut.complete() && !cut.above_saturation().contains(&true));
    // A gap before it decides nothing about what comes after.
    let mut gap = whole.clone();
    gap.groups[0] = GroupState::default();
    assert!(!gap.above_saturation().contains(&true));
}

fn longer_than(histogram: &Histogram, ps: u64) -> u64 {
    histogram.buckets().filter(|(value, _)| *value > ps).map(|(_, count)| count).sum()
}

/// Ten messages are due in each millisecond, and a hundred while the sender stalls.
#[test]
fn a_sender_that_stalls_shows_in_both_histograms() {
    let plan = paced(ArrivalsChoice::Uniform, &[10_000], None);
    let rounds = u64::from(plan.groups[0][0].budget.rounds);
    let delays = Delays { sender_stalls_ns: 10_000_000, ..served(Service::Fixed(SERVICE_NS)) };
    let record = &records(&plan, delays)[0];
    let open_loop = &record.figures.open_loop().unwrap().open_loop;
    let late = longer_than(open_loop.lateness.histogram.as_ref().unwrap(), 2_000_000);
    assert_eq!(late, 100 * rounds);
    assert_eq!(open_loop.lateness.quantiles.p50, Some(0.0.into()));
    // Those that are sent at its end also wait for each other, and the next one for them.
    let slow = longer_than(record.histogram.as_ref().unwrap(), 3_000_000);
    assert_eq!(slow, 101 * rounds);
    near(record.max, 10e6, 0.02);
    assert!(open_loop.generator_was_limit, "of the 1% that were slowest");
    assert!(record.warnings.iter().any(|warning| warning.code == "generator-was-limit"));
}

#[test]
fn a_receiver_that_sleeps_makes_all_messages_late_that_were_due_meanwhile() {
    let plan = paced(ArrivalsChoice::Uniform, &[1000], None);
    let rounds = u64::from(plan.groups[0][0].budget.rounds);
    let delays = Delays { receiver_sleeps_ns: 50_000_000, ..served(Service::Fixed(SERVICE_NS)) };
    let record = &records(&plan, delays)[0];
    let histogram = record.histogram.as_ref().unwrap();
    assert_eq!(longer_than(histogram, 100_000_000), 50 * rounds);
    // They are late by 50 ms, 49 ms, …: the first ten by more than 40.
    assert_eq!(longer_than(histogram, 40_500_000_000), 10 * rounds);
    let open_loop = &record.figures.open_loop().unwrap().open_loop;
    let lateness = open_loop.lateness.histogram.as_ref().unwrap();
    assert_eq!(longer_than(lateness, 1000), 0, "the sender was on time");
    assert!(!open_loop.generator_was_limit);
}

#[test]
fn bursts_drain_one_service_a_message() {
    let plan = plan("burst", of(burst::loads(Some(&[1, 8, 16]), Some(&[10_000]))));
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    for (record, (size, empty)) in records.iter().zip([(1.0, 1.0), (8.0, 1.0), (16.0, 0.0)]) {
        let burst = record.figures.open_loop().unwrap().burst.unwrap();
        assert_eq!(burst.next_found_empty, Some(empty.into()), "{size}");
        if empty == 1.0 {
            near(burst.first_ns, SERVICE_NS, 0.02);
            near(burst.last_ns, size * SERVICE_NS, 0.02);
            near(burst.drain_ns, size * SERVICE_NS, 0.02);
        } else {
            assert!(burst.last_ns.unwrap() > 10.0 * size * SERVICE_NS, "it jams: {burst:?}");
        }
    }
}

#[test]
fn calls_cost_what_the_queue_takes_whatever_its_depth() {
    let plan = plan("depth", of(depth::loads(Some(&[1, 1000, 100_000]))));
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    for (record, depth) in records.iter().zip([1, 1000, 100_000]) {
        let DepthFigures { calls, resident_bytes } = *record.figures.depth().unwrap();
        near(calls.send_ns, SERVICE_NS, 0.001);
        near(calls.receive_ns, SERVICE_NS, 0.001);
        let bytes = resident_bytes.unwrap();
        assert_eq!(bytes.full.get() - bytes.before.get(), 16 * depth);
        assert_eq!(bytes.drained, bytes.before);
    }
}

/// The ratio to the row with one receiver, one hop, or messages that are moved.
fn to_one(record: &Record) -> f64 {
    let base = record.cell.queue().unwrap().load.base().unwrap();
    let is_base = |against: &&Against| against.cell.queue().is_some_and(|queue| queue.load == base);
    record.against.iter().find(is_base).unwrap().ratio.get()
}

#[test]
fn receivers_that_are_the_limit_take_a_service_time_a_message_each() {
    let plan = plan("workers", of(workers::loads(Some(&[2, 5]))));
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    for (record, receivers) in records.iter().zip([1.0, 2.0, 5.0]) {
        near(record.rate_per_s, receivers * 1e9 / SERVICE_NS, 0.01);
        let workers = record.figures.workers().unwrap();
        assert!(workers.bundle, "a pipe has one receiver");
        near(workers.fairness, 1.0, 0.001);
        if receivers > 1.0 {
            near(Some(to_one(record)), receivers, 0.01);
        }
    }
}

#[test]
fn more_receivers_than_cpus_are_said_to_be() {
    let plan = plan("workers", of(workers::loads(Some(&[8]))));
    for record in records(&plan, served(Service::Fixed(SERVICE_NS))) {
        let several = record.cell.queue().unwrap().load.base().is_some();
        let said = record.warnings.iter().any(|warning| warning.code == "oversubscribed");
        assert_eq!(said, several, "{}", record.cell.label());
    }
}

/// More threads than CPUs make blocks longer, and none of another kind.
#[test]
fn crowded_open_loops_have_only_stamped_blocks() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let choice = QueueChoice {
        queues: vec![OURS.queues.find("funnel").unwrap()],
        placements: vec![Placement::Pinned],
        waits: vec![Wait::Park],
        neighbours: vec![None],
        overrides: Overrides::default(),
    };
    let (groups, _) =
        threadtoll_lab::plan::queue(&site, scenario("funnel").unwrap(), &OURS, &choice);
    let crowded: Vec<&PlannedCell> =
        groups.iter().flatten().filter(|planned| planned.cell.oversubscribed()).collect();
    assert!(!crowded.is_empty());
    for planned in crowded {
        assert_eq!(planned.budget.kinds(), [BlockKind::Stamped], "{}", planned.cell.label());
        assert_eq!(planned.budget.stamped_ns, 100_000_000);
    }
}

/// On the simulated machine a word after the first takes 0.8 ns moved and 0.5 ns in place.
#[test]
fn messages_in_place_are_as_much_faster_as_the_machine_makes_them() {
    let overrides = of(payload::loads(Some(&[Carry::Moved, Carry::InPlace])));
    let plan = plan("payload", Overrides { payloads: Some(vec![4096, 65_536]), ..overrides });
    let records = records(&plan, Delays::default());
    for payload_bytes in [4096, 65_536] {
        let words = payload_bytes as f64 / 8.0;
        let own = records.iter().filter(|record| record.cell.payload_bytes == payload_bytes);
        let mut pairs = 0;
        for record in own {
            let load = &record.cell.queue().unwrap().load;
            let word_ns = if load.carry == Some(Carry::Moved) { 0.8 } else { 0.5 };
            let rate = record.rate_per_s.map(|rate| rate.get());
            near(rate, 1e9 / (9.0 + word_ns * words), 0.05);
            let has_moved = |against: &Against| {
                against.cell.queue().is_some_and(|queue| Some(&queue.load) == load.base().as_ref())
            };
            if record.against.iter().any(has_moved) {
                near(Some(to_one(record)), (9.0 + 0.8 * words) / (9.0 + 0.5 * words), 0.02);
                pairs += 1;
            }
        }
        assert_eq!(pairs, 1, "{payload_bytes} B in place are compared with moved ones once");
    }
}

/// Bounded queues have the same memory whatever the size, but never fewer than two messages.
#[test]
fn capacities_follow_the_size_of_messages() {
    let overrides = Overrides { payloads: Some(vec![64, 65_536]), ..Overrides::default() };
    let plan = plan_with(&OURS, "payload", "pipe-bounded", overrides);
    let cells = plan.groups.iter().flatten().filter_map(|planned| {
        let queue = planned.cell.queue().filter(|queue| queue.origin == Origin::Ours)?;
        Some((planned.cell.payload_bytes, queue))
    });
    let mut seen = 0;
    for (payload_bytes, queue) in cells {
        let (capacity, ring_bytes) = (queue.capacity.unwrap(), queue.ring_bytes.unwrap());
        seen += 1;
        match payload_bytes {
            // Eight lines for seven messages.
            64 => assert_eq!((capacity, ring_bytes), (3556, RING_BYTES)),
            _ => assert_eq!((capacity, ring_bytes), (2, 6 * (65_536 + 64))),
        }
    }
    assert!(seen >= 4, "{seen}");
}

/// A queue that grows takes a line at once. In one that is full, a line waits for the next message
/// that leaves: for half a service on average. Calls that do not wait lose all lines.
#[test]
fn a_line_waits_for_room_in_a_flooded_queue_only_if_it_is_bounded() {
    let mean_ns = |queue, registry: &Registry| {
        let plan = plan_with(registry, "flood", queue, Overrides::default());
        let machine = || {
            let delays = served(Service::Fixed(SERVICE_NS));
            SimulatedBackend::new(1).with_registry(registry.clone()).with_delays(delays)
        };
        let results = run_simulated(&machine, &plan);
        let records = results.records().into_iter();
        let own = records.filter(|record| record.cell.queue().is_some());
        own.map(|record| {
            let Lost { refused, dropped } = record.figures.lost().unwrap();
            let lost = [refused.get(), dropped.get()];
            (record.mean.unwrap().get(), record.count.get(), lost)
        })
        .collect::<Vec<_>>()
    };
    // Dumped into one by one, and in batches.
    let grown = mean_ns("funnel", &OURS);
    assert_eq!(grown.len(), 2, "it cannot be full");
    for (mean, _, lost) in grown {
        near(Some(mean), SERVICE_NS, 0.001);
        assert_eq!(lost, [0, 0]);
    }
    let registry = with_full_queue();
    let [waited, refused] = mean_ns("full", &registry)[..] else { panic!("it never overwrites") };
    near(Some(waited.0), 1.5 * SERVICE_NS, 0.02);
    assert_eq!(waited.2, [0, 0]);
    near(Some(refused.0), SERVICE_NS, 0.001);
    assert_eq!(refused.2, [refused.1, 0]);
}

/// With a bounded queue of many senders, which is only simulated.
fn with_full_queue() -> Registry {
    #[derive(Clone, Default)]
    struct Simulated;
    #[derive(Clone)]
    struct End;
    impl<M: Message> Source<M> for End {
        fn send(&mut self, _: M) {}
    }
    impl<M: Message> Sink<M> for End {
        fn receive(&mut self) -> M {
            M::all(0)
        }
    }
    impl<M: Message> Channel<M> for Simulated {
        type Source = End;
        type Sink = End;
        fn open(&self, _: usize) -> Result<(End, End), Unavailable> {
            Ok((End, End))
        }
    }
    let full = Queue {
        name: "full".into(),
        origin: Origin::Rust,
        version: "1.0.0".into(),
        sentence: "a queue of a test".into(),
        capacity: Capacity::Slots(Slots::PLAIN),
        built: None,
        ways: vec![Way::many_senders::<Simulated>(Wait::Poll)],
    };
    Registry { queues: Queues::with(vec![full]), ..OURS.clone() }
}

/// Messages of independent Poisson senders together are Poisson, and important ones wait like all.
#[test]
fn important_messages_wait_for_chatty_ones_as_in_m_d_1() {
    let loads = Some(funnel_load::loads(Some(&[500_000]), None));
    let senders = Some(vec![1, 5]);
    let time_ns = Some(12_000_000_000);
    let plan = plan_with(
        &OURS,
        "funnel",
        "funnel",
        Overrides { senders, time_ns, loads, ..Overrides::default() },
    );
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    let [alone, among] = &records[..] else { panic!("{} records", records.len()) };
    near(alone.quantiles.p50, SERVICE_NS, 0.001);
    let none = alone.figures.open_loop().unwrap().funnel.as_ref().unwrap();
    assert_eq!((none.chatty.p50, none.fairness), (None, None));
    // 500,000 a second and the important thousand, each served in 1 µs.
    let load = 0.501;
    near(among.mean, SERVICE_NS * (1.0 + load / (2.0 * (1.0 - load))), 0.05);
    let funnel = among.figures.open_loop().unwrap().funnel.as_ref().unwrap();
    near(funnel.fairness, 1.0, 0.01);
    near(funnel.chatty.p50, among.quantiles.p50.unwrap().get(), 0.1);
}

#[test]
fn rare_messages_find_the_receiver_idle() {
    let plan = plan("night-watch", of(night_watch::loads(Some(&[10_000, 1_000_000_000]))));
    let records = records(&plan, served(Service::Fixed(SERVICE_NS)));
    for (record, gap_ns) in records.iter().zip([1e4, 1e9]) {
        near(record.quantiles.p50, SERVICE_NS, 0.001);
        near(record.max, SERVICE_NS, 0.001);
        let open_loop = &record.figures.open_loop().unwrap().open_loop;
        near(open_loop.rate_per_s, 1e9 / gap_ns, 0.01);
        // The receiver spins all the time, from the begin of a block until its last message.
        let cpu_ns = open_loop.cpu_ns_per_message.unwrap().get();
        assert!((0.5..=1.1).contains(&(cpu_ns / gap_ns)), "{cpu_ns} of {gap_ns}");
    }
}

/// A simulated CPU is in its deepest state whenever the receiver does not serve a message.
#[test]
fn a_receiver_that_sleeps_lets_its_cpu_idle() {
    let overrides = of(night_watch::loads(Some(&[1_000_000])));
    let plan = plan_waiting(Wait::Park, &OURS, "night-watch", "pipe", overrides);
    let records = records(&plan, served(Service::Fixed(100_000.0)));
    let record = records.first().unwrap();
    let idle = record.figures.open_loop().unwrap().idle.as_ref().unwrap().deepest().unwrap();
    assert_eq!(idle.name.as_str(), "C6");
    near(Some(idle.share), 0.9, 0.02);
    assert!(idle.entered >= record.count);
}

/// The messages of all senders are those of one Poisson process, served exponentially.
#[test]
fn your_traffic_is_m_m_1_however_many_senders_share_it() {
    for senders in [1, 3] {
        let overrides = Overrides {
            senders: Some(vec![senders]),
            time_ns: Some(2_000_000_000),
            ..of(for_me::loads(None, None, Some(&[500_000]), None))
        };
        let plan = plan_with(&OURS, "for-me", "funnel", overrides);
        let record = &records(&plan, served(Service::Exponential(SERVICE_NS)))[0];
        near(record.mean, 2.0 * SERVICE_NS, 0.02);
        near(record.quantiles.p99, 2.0 * SERVICE_NS * 100f64.ln(), 0.03);
        assert_eq!(record.figures.lost(), Some(Lost::default()));
    }
}

/// A. K. Erlang: with one place to wait in and as many messages as can be served, each third one
/// finds it taken (M/M/1/2).
#[test]
fn a_full_queue_refuses_as_many_as_the_textbook_says() {
    let overrides = Overrides {
        capacities: Some(vec![1]),
        time_ns: Some(2_000_000_000),
        ..of(for_me::loads(None, None, Some(&[1_000_000]), Some(Lose::Newest)))
    };
    let plan = plan_with(&OURS, "for-me", "pipe-bounded", overrides);
    let records = records(&plan, served(Service::Exponential(SERVICE_NS)));
    let lossy =
        records.iter().find(|record| record.cell.queue().unwrap().load.lose == Some(Lose::Newest));
    let record = lossy.unwrap();
    let refused = record.figures.lost().unwrap().refused.as_f64();
    near(Some(refused / (refused + record.count.as_f64())), 1.0 / 3.0, 0.02);
    // Half of those that are received had to wait for one service before their own.
    near(record.mean, 1.5 * SERVICE_NS, 0.02);
    assert!(
        !record.figures.open_loop().unwrap().open_loop.saturated,
        "it keeps up with what it took"
    );
}

#[test]
fn loads_out_of_range_are_not_resumed() {
    let spoilt = |spoil: &dyn Fn(&mut Load)| {
        let mut plan = paced(ArrivalsChoice::Poisson, &[1000], None);
        for PlannedCell { cell, .. } in plan.groups.iter_mut().flatten() {
            if let Subject::Queue(queue) = &mut cell.subject {
                spoil(&mut queue.load);
            }
        }
        let found = validate(&plan, &SimulatedBackend::topology(), &OURS);
        found.err().unwrap_or_default()
    };
    assert_eq!(spoilt(&|_| {}), "");
    assert!(spoilt(&|load| load.rate_per_s = Some(0.into())).contains("rate is out of range"));
    assert!(spoilt(&|load| load.burst = Some(1.into())).contains("rate is out of range"));
    assert!(spoilt(&|load| *load = Load::NONE).contains("when messages are due"));
    let file = |load: &mut Load| load.arrivals = Some(threadtoll_record::Arrivals::File);
    assert!(spoilt(&file).contains("does not name the file"));
}
