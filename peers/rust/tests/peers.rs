//! Every peer delivers all messages in order, at polled and blocking ends, from one sender and from
//! several.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use threadtoll_lab::lock::Locks;
use threadtoll_lab::mechanism::Mechanisms;
use threadtoll_lab::queue::{
    CAPACITY, MESSAGE_BYTES, Queue, Queues, RING_BYTES, SCENARIOS, broadcast, scenario,
};
use threadtoll_lab::real::check;
use threadtoll_lab::twin::loops;
use threadtoll_peers_rust::{peers, twin};
use threadtoll_record::{Carry, Graph, Pause};

/// In two passes, each of which fills every queue more than twice.
const MESSAGES: u64 = 2_500;
/// Fewer, because at blocking ends each of them puts a thread to sleep.
const REQUESTS: u64 = 150;

/// One test at a time: ends that spin keep those of another test off the CPUs, which then takes
/// five times as long.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|failed| failed.into_inner())
}

/// Peers that carry streams of messages; the others carry one answer each.
fn channels() -> Vec<Queue> {
    let streams = |queue: &Queue| {
        scenario("stream").is_some_and(|stream| queue.ways.iter().all(|way| stream.takes(way)))
    };
    peers().into_iter().filter(streams).collect()
}

#[test]
fn every_row_delivers_all_messages_in_order() {
    let _alone = alone();
    for queue in channels() {
        for way in &queue.ways {
            check::stream(way, 1, 1, CAPACITY, MESSAGES)
                .unwrap_or_else(|why| panic!("{queue:?}, {way:?}: {why}"));
        }
    }
    let ask_reply = scenario("ask-reply").unwrap();
    for queue in peers() {
        for way in queue.ways.iter().filter(|way| ask_reply.takes(way)) {
            check::ask_reply(way, REQUESTS)
                .unwrap_or_else(|why| panic!("{queue:?}, {way:?}: {why}"));
        }
    }
}

#[test]
fn batches_arrive_whole_whatever_their_size() {
    let _alone = alone();
    for queue in channels() {
        for way in queue.ways.iter().filter(|way| way.batches) {
            // A size that does not divide the capacity, and one larger than it.
            for batch in [100, 1500] {
                check::stream(way, 1, batch, CAPACITY, MESSAGES)
                    .unwrap_or_else(|why| panic!("{queue:?}, {way:?}, {batch}: {why}"));
            }
        }
    }
}

/// Those whose slots are written and read in place.
const IN_PLACE: [&str; 3] = ["rtrb", "ringbuf", "gil"];

#[test]
fn messages_of_all_sizes_arrive_whole() {
    let _alone = alone();
    for queue in channels() {
        // The smallest and the largest with the first wait of a queue, one with the others.
        let ends = [MESSAGE_BYTES[0], MESSAGE_BYTES[MESSAGE_BYTES.len() - 1]];
        let sizes = std::iter::once(&ends[..]).chain(std::iter::repeat(&[512][..]));
        for (way, sizes) in queue.ways.iter().zip(sizes) {
            for (carry, bytes) in
                Carry::ALL.iter().flat_map(|carry| sizes.iter().map(|bytes| (*carry, *bytes)))
            {
                // Large ones through queues that are often full; small ones need not wait as often.
                let few = if bytes > 4096 { 5 } else { 64 };
                let capacity = queue.slots().map_or(1, |slots| slots.capacity(few));
                let messages = ((1 << 20) / bytes).clamp(8, 130);
                let carried = check::payload(way, carry, bytes, capacity, messages);
                let carried = carried
                    .unwrap_or_else(|why| panic!("{queue:?}, {way:?}, {carry}, {bytes} B: {why}"));
                let expected = match carry {
                    Carry::Moved => true,
                    Carry::InPlace => IN_PLACE.contains(&queue.name.as_str()),
                };
                assert_eq!(carried, expected, "{queue:?}, {way:?}, {carry}, {bytes} B");
            }
        }
    }
}

#[test]
fn a_bounded_peer_holds_what_its_slots_say() {
    let _alone = alone();
    for queue in channels().iter().filter(|queue| queue.bounded()) {
        let slots = queue.slots().unwrap();
        let default = slots.capacity_within(RING_BYTES);
        assert!((RING_BYTES / 2..=RING_BYTES).contains(&slots.ring_bytes(default)), "{queue:?}");
        for way in &queue.ways {
            check::holds(way, slots.capacity(64))
                .and_then(|()| check::stream(way, 1, 1, slots.capacity(100), MESSAGES))
                .unwrap_or_else(|why| panic!("{queue:?}, {way:?}: {why}"));
        }
    }
}

/// Those that give every message to each receiver.
const BROADCAST: [&str; 2] = ["disruptor-crate", "tokio-broadcast"];

#[test]
fn every_receiver_gets_every_message() {
    let _alone = alone();
    for queue in peers() {
        let is_broadcast = BROADCAST.contains(&queue.name.as_str());
        for way in &queue.ways {
            for load in broadcast::loads(Some(&[1, 2, 3]), None) {
                for batch in if way.batches { vec![1, 64] } else { vec![1] } {
                    let carried = check::broadcast(way, &load, batch, 16)
                        .unwrap_or_else(|why| panic!("{queue:?}, {load:?}, {batch}: {why}"));
                    let is_diamond = load.graph == Some(Graph::Diamond);
                    let is_able = is_broadcast && !(is_diamond && queue.name == "tokio-broadcast");
                    assert_eq!(carried, is_able, "{queue:?}, {load:?}, {batch}");
                }
            }
        }
    }
}

#[test]
fn several_senders_keep_their_order() {
    let _alone = alone();
    for queue in channels() {
        for way in queue.ways.iter().filter(|way| way.many_senders) {
            for batch in if way.batches { vec![1, 256] } else { vec![1] } {
                check::stream(way, 2, batch, CAPACITY, MESSAGES)
                    .unwrap_or_else(|why| panic!("{queue:?}, {way:?}, {batch}: {why}"));
            }
        }
    }
}

#[test]
fn names_follow_the_contract_and_versions_are_known() {
    let peers = peers();
    let names: BTreeSet<&str> = peers.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names.len(), peers.len(), "a name occurs twice");
    for queue in &peers {
        assert!(queue.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{queue:?}");
        assert!(queue.version.split('.').count() >= 3, "{queue:?} has version {}", queue.version);
        assert!(!queue.ways.is_empty() && queue.sentence.len() < 100, "{queue:?}");
        let twin = match queue.name.rsplit_once('-') {
            Some((name, "bounded")) => Some(format!("{name}-unbounded")),
            Some((name, "unbounded")) => Some(format!("{name}-bounded")),
            _ => None,
        };
        if let Some(twin) = twin {
            assert!(names.contains(twin.as_str()), "{queue:?} has no other form");
            assert_eq!(queue.bounded(), queue.name.ends_with("-bounded"), "{queue:?}");
        }
        for (way, scenario) in
            queue.ways.iter().flat_map(|way| SCENARIOS.iter().map(move |scenario| (way, scenario)))
        {
            let can = match queue.name.as_str() {
                "oneshot-crate" => scenario.name == "ask-reply",
                name if BROADCAST.contains(&name) => scenario.name == "broadcast",
                _ => (way.many_senders || scenario.name != "flood") && scenario.name != "broadcast",
            };
            assert_eq!(scenario.takes(way), can, "{queue:?} {scenario:?}");
        }
    }
}

/// Name of a twin's row.
fn original(twin: &str) -> &str {
    twin.strip_suffix("-twin").unwrap_or_else(|| panic!("{twin} is no twin"))
}

/// A twin that shares its row's code would not show the effect of compiling it twice. A debug build
/// merges nothing.
#[test]
#[cfg_attr(debug_assertions, ignore = "only optimised builds merge functions that are alike")]
fn the_twin_of_a_queue_has_loops_of_its_own() {
    let queues = Queues::default();
    for twin in twin::queues() {
        let of = queues.find(original(&twin.name)).unwrap();
        for way in &twin.ways {
            let same_wait = of.way(way.wait).unwrap();
            assert_eq!(
                (way.batches, way.many_senders),
                (same_wait.batches, same_wait.many_senders)
            );
            for batch in [1, 256] {
                let (own, others) =
                    (check::loops(way, batch).unwrap(), check::loops(same_wait, batch).unwrap());
                assert!(
                    own.iter().all(|address| !others.contains(address)),
                    "{twin:?}, {way:?}, {batch}"
                );
            }
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "only optimised builds merge functions that are alike")]
fn the_twin_of_a_mechanism_has_loops_of_its_own() {
    let mechanisms = Mechanisms::default();
    for twin in twin::mechanisms() {
        let of = mechanisms.find(original(&twin.name)).unwrap();
        for pause in [Pause::Off, Pause::On] {
            let own = loops::of_mechanism(&twin, pause).unwrap();
            let others = loops::of_mechanism(of, pause).unwrap();
            assert_eq!((own.len(), others.len()), (2, 2));
            assert!(own.iter().all(|address| !others.contains(address)), "{twin:?}");
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "only optimised builds merge functions that are alike")]
fn the_twin_of_a_lock_has_loops_of_its_own() {
    let locks = Locks::default();
    let twins = twin::locks();
    assert_eq!(twins.len(), locks.all().count());
    for twin in &twins {
        let of = locks.find(original(&twin.name)).unwrap();
        let (Ok(own), Ok(others)) = (loops::of_lock(twin), loops::of_lock(of)) else {
            println!("skipped: this machine does not let us have {twin:?}");
            continue;
        };
        assert!(own.iter().all(|address| !others.contains(address)), "{twin:?}");
    }
}
