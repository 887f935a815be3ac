use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use threadtoll_judge::stuck::{StandStillKind, Waits, stand_stills};
use threadtoll_record::profile::{Address, LockKind, ThreadShare};
use threadtoll_stacks::process::{Activity, SystemCall};

use super::*;
use crate::account::Reported;
use crate::compose::locks::not_judged;
use crate::lookups::NO_LOOKUPS;
use crate::primitive::declared;
use crate::sample::{Chunk, Effort, Reason, StretchReport};

const LOCKS: [u64; 2] = [0x1000, 0x2000];
const MS: u64 = 1_000_000;

fn mutex(owner: u32) -> Vec<u8> {
    [2, 0, owner, 1, 0].map(u32::to_le_bytes).concat()
}

fn waits_for(word: u64) -> Activity {
    Activity::Asleep(SystemCall {
        number: libc::SYS_futex as u32,
        arguments: [word, 128, 2, 0, 0, 0],
        stack_pointer: 0,
        program_counter: 0,
    })
}

/// State after two seconds of samples of three threads: two that wait for each other's locks, and
/// one that computes. `switches` is the first thread's number of switches at the end.
fn at_end(switches: u64) -> StateAtEnd {
    let mut account = Account::new(0);
    let mut process = ProcessAccount::new(1);
    process.set_threads(vec![11, 12, 13], None);
    for lock in LOCKS {
        process.declare(declared("pthread_mutex_t", lock).unwrap(), 0).unwrap();
    }
    account.add(0, process);
    for at in (0..=2_000 * MS).step_by(100_000_000) {
        let mut chunk = Chunk::default();
        chunk.begin(at, 1);
        chunk.gap_s = 0.1;
        for (lock, owner) in LOCKS.into_iter().zip([11, 12]) {
            chunk.push_word(0, lock, Reason::Picked, (lock, &mutex(owner)));
        }
        chunk.push_thread(0, 11, true, waits_for(LOCKS[1]));
        chunk.push_thread(0, 12, true, waits_for(LOCKS[0]));
        chunk.push_thread(0, 13, true, Activity::OnCpu);
        let (departures, running) = (&[][..], &[][..]);
        let reported = Reported { timeline: None, departures, incomplete: false, running };
        account.fold(&chunk, &reported, &Stacks::default(), false, &NO_LOOKUPS);
    }
    let process = account.living(0).unwrap();
    for (at, first) in [(100 * MS, 5), (2_000 * MS, switches)] {
        process.standing.count(11, first, at);
        process.standing.count(12, 7, at);
    }
    let effort = Effort { rate_per_s: 10.0, words: 2, threads: 3 };
    let (length_ns, until) = (2_000 * MS, 2_000 * MS);
    account.end_stretch(&StretchReport { length_ns, until, effort, process_ns: 0 });
    let watched = Watched {
        pid: 1,
        process: None,
        is_32_bit: false,
        command: Vec::new(),
        program: PathBuf::new(),
        image: 1,
        parent: None,
        ended: None,
        signal: None,
        names: HashMap::new(),
        strangers: HashMap::new(),
        started: None,
        listed: Vec::new(),
        cpus_listed: None,
        replaced: None,
        followed: Vec::new(),
        to_follow: VecDeque::new(),
        held_back: 0,
        ended_soon: 0,
    };
    StateAtEnd::of(&account, &[(0, watched)].into(), &Stacks::default(), &[0])
}

#[test]
fn samples_of_threads_that_do_not_move_show_a_deadlock() {
    let at_end = at_end(5);
    let found = stand_stills(&at_end.threads, &at_end.locks);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (one.kind, one.threads.len(), one.for_ns),
        (StandStillKind::Deadlock, 2, 1_900 * MS)
    );
    assert_eq!((one.threads[0].tid, one.threads[0].waits), (11, Waits::ForLock(0)));
    let places: Vec<u32> = at_end.places.iter().map(|&(_, place)| place).collect();
    assert_eq!(places, [1, 0]);
}

#[test]
fn threads_that_have_run_meanwhile_are_not_stuck() {
    let at_end = at_end(6);
    assert!(stand_stills(&at_end.threads, &at_end.locks).is_empty());
    // But the lock for which thread 12 waits was never seen released.
    assert_eq!(never_released(&at_end.threads, &at_end.locks), [1]);
}

#[test]
fn a_lock_that_was_never_free_names_no_holder_by_elimination() {
    let share = |inferred| ThreadShare {
        tid: 11,
        name: "heart".into(),
        pid: None,
        ended: false,
        share: 1.0.into(),
        interval95: None,
        inferred,
    };
    let withdrawn = |inferred| {
        let lock = not_judged(1, LockKind::Futex, Address(0x1000), 2, 3);
        let mut lock = Lock { holders: vec![share(inferred)], ..lock };
        without_inferred_holder(&mut lock);
        (lock.holders.len(), lock.holder_not_seen_share.map(|share| share.get()))
    };
    assert_eq!(withdrawn(true), (0, Some(1.0)));
    assert_eq!(withdrawn(false), (1, None));
}
