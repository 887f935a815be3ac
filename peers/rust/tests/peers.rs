//! Every peer delivers what was sent, in order, at both kinds of ends, from one sender and from several.

use std::collections::BTreeSet;

use threadtoll_lab::queue::{SCENARIOS, check};
use threadtoll_peers_rust::PEERS;

const MESSAGES: u64 = 10_000;

#[test]
fn every_row_delivers_all_messages_in_order() {
    for queue in PEERS {
        for way in queue.ways {
            check::stream(way, 1, 1, MESSAGES).unwrap_or_else(|why| panic!("{queue:?}, {way:?}: {why}"));
            check::ask_reply(way, MESSAGES).unwrap_or_else(|why| panic!("{queue:?}, {way:?}: {why}"));
        }
    }
}

#[test]
fn batches_arrive_whole_whatever_their_size() {
    for queue in PEERS {
        for way in queue.ways.iter().filter(|way| way.batches) {
            // One that does not divide the capacity, one that is larger than it, and the usual one.
            for batch in [100, 3000, 256] {
                check::stream(way, 1, batch, MESSAGES)
                    .unwrap_or_else(|why| panic!("{queue:?}, {way:?}, {batch}: {why}"));
            }
        }
    }
}

#[test]
fn several_senders_keep_their_order() {
    for queue in PEERS {
        for way in queue.ways.iter().filter(|way| way.many_senders) {
            for batch in if way.batches { vec![1, 256] } else { vec![1] } {
                check::stream(way, 2, batch, MESSAGES)
                    .unwrap_or_else(|why| panic!("{queue:?}, {way:?}, {batch}: {why}"));
            }
        }
    }
}

#[test]
fn names_and_versions_are_those_of_the_contract_and_the_lock_file() {
    let names: BTreeSet<&str> = PEERS.iter().map(|queue| queue.name).collect();
    assert_eq!(names.len(), PEERS.len(), "a name stands twice");
    for queue in PEERS {
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
            assert_eq!(queue.bounded, queue.name.ends_with("-bounded"), "{queue:?}");
        }
        assert!(queue.ways.iter().all(|way| SCENARIOS.iter().all(|scenario| scenario.takes(way))));
    }
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let packages = [
        "crossbeam-channel",
        "crossbeam-queue",
        "flume",
        "kanal",
        "async-channel",
        "tokio",
        "rtrb",
        "ringbuf",
    ];
    for package in packages {
        let found = lock.matches(&format!("\nname = \"{package}\"\n")).count();
        assert_eq!(found, 1, "there are several versions of {package}, and a row can name only one");
    }
}
