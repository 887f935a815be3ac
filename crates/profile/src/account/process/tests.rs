use threadtoll_judge::verdict::Verdict;
use threadtoll_stacks::process::SystemCall;

use super::*;
use crate::account::SampleCount;
use crate::circumstances::RunningStack;
use crate::futex::FutexWait;
use crate::lookups::NO_LOOKUPS;
use crate::perf::{Direction, Event, Timeline};
use crate::primitive::{Hold, MAX_WAIT_TARGETS, Window, declared};
use crate::sample::Reason;
use crate::stacks::Stacks;

const WAITER: u32 = 5;
const OWNER: u32 = 7;
const IN: Direction = Direction::In;
const BLOCKED: Direction = Direction::Out { preempted: false };
const PREEMPTED: Direction = Direction::Out { preempted: true };

fn circumstances<'a>(timeline: &'a Timeline, stacks: &'a Stacks) -> Circumstances<'a> {
    Circumstances {
        sample: 1,
        second: 0,
        due: 3_000_000,
        gap_s: 1e-3,
        scale: 1.0,
        late: false,
        queue_late: false,
        timeline: Some(timeline),
        stacks,
        running: &[],
        throttled: false,
        lookups: &NO_LOOKUPS,
    }
}

/// Judges the turn of a waiter that was asleep at 1 ms and has been woken by 3 ms. `switches` are
/// the waiter's; the owner computes all the time.
fn turn(lock: &str, hold: Hold, switches: &[(u64, Direction)]) -> Option<Option<u32>> {
    let mut timeline = Timeline::new(100);
    timeline.note(&Event::Switch { tid: OWNER, at: 1, cpu: 0, direction: IN });
    for &(at, direction) in switches {
        timeline.note(&Event::Switch { tid: WAITER, at, cpu: 1, direction });
    }
    timeline.complete_until(10_000_000);
    let mut account = ProcessAccount::new(1);
    account.set_threads(vec![WAITER, OWNER, 8], None);
    account.declare(declared(lock, 0x1000).unwrap(), 0).unwrap();
    account.targets[0].now.hold = Some(hold);
    let stacks = Stacks::default();
    let seen = circumstances(&timeline, &stacks);
    let last = Last { at: 1_000_000, waiting_on: Some(0), asleep_at: 1_000_000, asleep_with: None };
    account.turn(0, WAITER, last, 3_000_000, &seen)
}

#[test]
fn a_thread_counts_once_where_it_was_when_the_sample_was_due() {
    let futex = [0x1000, 128, 2, 0, 0, 0];
    let asleep = Activity::Asleep(SystemCall {
        number: libc::SYS_futex as u32,
        arguments: futex,
        stack_pointer: 0,
        program_counter: 0,
    });
    let woken = (Activity::OnCpu, [(1_000_000, BLOCKED), (3_050_000, IN)]);
    let fallen_asleep = (asleep, [(2_900_000, IN), (3_100_000, BLOCKED)]);
    for ((activity, switches), waiting) in [(woken, 1.0), (fallen_asleep, 0.0)] {
        let mut timeline = Timeline::new(100);
        for (at, direction) in switches {
            timeline.note(&Event::Switch { tid: WAITER, at, cpu: 1, direction });
        }
        timeline.complete_until(10_000_000);
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER], None);
        account.declare(declared(C, 0x1000).unwrap(), 0).unwrap();
        let last =
            Last { at: 2_000_000, waiting_on: Some(0), asleep_at: 2_000_000, asleep_with: None };
        account.last.insert(WAITER, last);
        let stacks = Stacks::default();
        let seen = circumstances(&timeline, &stacks);
        let read = ThreadRead::new(0, WAITER, true, activity);
        account.thread(&read, 3_200_000, &seen);
        assert_eq!(account.targets[0].now.waiting, waiting);
        assert_eq!(account.time.iter().map(|time| time.now).sum::<f64>(), 1.0 - waiting);
    }
}

#[test]
fn threads_that_yield_may_wait_for_locks_whose_waiters_do() {
    for (ran_ns, yielding) in [(20_000, 1.0), (2_000_000, 0.0)] {
        let mut timeline = Timeline::new(100);
        for (at, direction) in [(2_900_000 - ran_ns, IN), (2_900_000, PREEMPTED)] {
            timeline.note(&Event::Switch { tid: WAITER, at, cpu: 1, direction });
        }
        timeline.complete_until(10_000_000);
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER], None);
        for (address, lock) in [(0x1000, C), (0x2000, PARKING_LOT)] {
            account.declare(declared(lock, address).unwrap(), 0).unwrap();
        }
        let stacks = Stacks::default();
        let seen = circumstances(&timeline, &stacks);
        let (mut chunk, mut samples) = (Chunk::default(), SampleCount::default());
        chunk.begin(3_000_000, 1);
        let read = ThreadRead::new(0, WAITER, true, Activity::OnCpu);
        account.thread(&read, 3_000_000, &seen);
        account.end_sample(&chunk, &chunk.ticks[0], &seen);
        samples.add(1);
        account.end_stretch(1.0, &StretchSamples { samples, ..StretchSamples::default() });
        let unseen = [0, 1].map(|place: usize| account.unseen(&account.targets[place]).anywhere);
        assert_eq!(unseen, [0.0, yielding]);
    }
}

/// Waiters of parking_lot sleep on words of their own. A token distinguishes readers from writers.
#[test]
fn parked_readers_wait_in_the_account_of_readers() {
    let (parker, lock) = (0x9000, 0x1000);
    for (token, waiting) in [(0x10, [0.0, 1.0]), (0x8, [1.0, 0.0])] {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER], None);
        account.declare(declared(PARKING_LOT_RWLOCK, lock).unwrap(), 0).unwrap();
        account.readers(0).unwrap();
        account.parked.insert(parker, (lock, token));
        let call = [parker, 128, 0, 0, 0, 0];
        let wait = Wait::Futex(FutexWait::of(libc::SYS_futex as u32, call).unwrap());
        account.wait(WAITER, parker, wait, 1.0, 0, 1).unwrap();
        assert_eq!([0, 1].map(|place: usize| account.targets[place].now.waiting), waiting);
    }
}

/// A reader of a Rust `RwLock` sleeps on a word of all ones, as a parked thread does. A writer that
/// sleeps on the next word reveals the lock.
#[test]
fn a_parked_thread_turns_out_to_be_a_reader() {
    let lock: u64 = 0x1000;
    let wait_of = |word, value| {
        let call = [word, 128 | 9, value, 0, 0, u32::MAX.into()];
        Wait::Futex(FutexWait::of(libc::SYS_futex as u32, call).unwrap())
    };
    for samples_before in [200, 1] {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER, OWNER], None);
        let read = |account: &mut ProcessAccount, word: u64, state: u32, sample: u64| {
            let bytes = [state.to_le_bytes(), 1u32.to_le_bytes()].concat();
            let mut chunk = Chunk::default();
            chunk.begin(sample, 1);
            chunk.push_word(0, word, Reason::Picked, (lock, &bytes));
            let tick = chunk.ticks[0];
            let (word, bytes) = chunk.words(&tick).next().unwrap();
            account.word(word, bytes, &tick, sample);
        };
        for sample in 1..=samples_before {
            // In every other sample, the thread has been unparked.
            read(&mut account, lock, if sample % 2 > 0 { u32::MAX } else { 0 }, sample);
            account.wait(WAITER, lock, wait_of(lock, u32::MAX.into()), 1.0, sample, sample);
        }
        let before = account.targets[0].identity.name();
        let (sample, state) = (samples_before + 1, 0x8000_0003);
        read(&mut account, lock + 4, state, sample);
        account.wait(OWNER, lock + 4, wait_of(lock + 4, 1), 1.0, sample, sample);
        let after = account.targets[0].identity.name();
        assert_eq!(after, "Rust rwlock", "{before:?} before");
    }
}

#[test]
fn waits_beyond_what_can_be_told_apart_are_said() {
    let mut account = ProcessAccount::new(1);
    account.set_threads(vec![WAITER], None);
    let (timeline, stacks) = (Timeline::new(100), Stacks::default());
    let seen = circumstances(&timeline, &stacks);
    let mut wait = |word| {
        let activity = Activity::Asleep(SystemCall {
            number: libc::SYS_futex as u32,
            arguments: [word, 128, 2, 0, 0, 0],
            stack_pointer: 0,
            program_counter: 0,
        });
        account.thread(&ThreadRead::new(0, WAITER, true, activity), 3_200_000, &seen);
        (account.is_full, account.time[Time::Other.place()].now)
    };
    for word in 1..=MAX_WAIT_TARGETS as u64 {
        assert_eq!(wait(4 * word), (false, 0.0));
    }
    assert_eq!(wait(0x10_0000), (true, 1.0));
}

#[test]
fn a_semaphore_that_never_counts_may_be_a_lock() {
    let (timeline, stacks) = (Timeline::new(100), Stacks::default());
    let seen = circumstances(&timeline, &stacks);
    for (most, waiting, may_lock) in [(1, 1, true), (1, 2, false), (2, 1, false)] {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER, OWNER], None);
        account.declare(declared("sem_t", 0x1000).unwrap(), 0).unwrap();
        let mut samples = SampleCount::default();
        for sample in 1..=100 {
            let value = u8::try_from(sample % (most + 1)).unwrap();
            let mut bytes = [0; 16];
            bytes[0] = value;
            let mut chunk = Chunk::default();
            chunk.begin(sample, 1);
            chunk.push_word(0, 0x1000, Reason::Picked, (0x1000, &bytes));
            let tick = chunk.ticks[0];
            let (read, bytes) = chunk.words(&tick).next().unwrap();
            account.word(read, bytes, &tick, sample);
            let threads = [WAITER, OWNER].into_iter().cycle().skip(sample as usize);
            for tid in threads.take(waiting) {
                account.targets[0].now.waiters.push(tid);
                account.targets[0].now.waiting += 1.0;
            }
            account.end_sample(&chunk, &tick, &seen);
            samples.add(1);
        }
        let ended = StretchSamples { samples, ..StretchSamples::default() };
        account.end_stretch(1.0, &ended);
        let counted = account.wishes.iter().any(|wish| matches!(wish.1, Wish::Ignore));
        assert_eq!(counted, most > 1);
        assert_eq!(account.may_lock(&account.targets[0]), may_lock, "{most} {waiting}");
    }
}

fn read_rwlock(account: &mut ProcessAccount, sample: u64, readers: u32) -> Tick {
    const WRITER_HOLDS: u32 = 3;
    let mut bytes = [0; 32];
    let (state, owner) = if readers > 0 { (readers << 3, 0) } else { (WRITER_HOLDS, OWNER) };
    bytes[..4].copy_from_slice(&state.to_ne_bytes());
    bytes[24..28].copy_from_slice(&owner.to_ne_bytes());
    let mut chunk = Chunk::default();
    chunk.begin(sample, 1);
    chunk.push_word(0, 0x1000, Reason::Picked, (0x1000, &bytes));
    let tick = chunk.ticks[0];
    let (read, bytes) = chunk.words(&tick).next().unwrap();
    account.word(read, bytes, &tick, sample);
    tick
}

#[test]
fn readers_keep_writers_out_and_not_each_other() {
    let (timeline, stacks) = (Timeline::new(100), Stacks::default());
    let seen = circumstances(&timeline, &stacks);
    let mut account = ProcessAccount::new(1);
    account.set_threads(vec![WAITER, OWNER], None);
    account.declare(declared("pthread_rwlock_t", 0x1000).unwrap(), 0).unwrap();
    assert_eq!(account.readers(0), Some(1));
    let mut ended = StretchSamples::default();
    for sample in 1..=1_000 {
        let readers = if sample % 20 == 0 { 0 } else { 2 };
        let tick = read_rwlock(&mut account, sample, readers);
        account.targets[usize::from(readers == 0)].now.waiting += 1.0;
        account.end_sample(&Chunk::default(), &tick, &seen);
        ended.add(1, &seen);
    }
    account.end_stretch(1.0, &ended);
    let [writers, readers] = [&account.targets[0], &account.targets[1]];
    let held = |row: &WaitTarget| account.samples(row).held().known().unwrap().value;
    assert_eq!((held(writers), held(readers)), (1.0, 0.05));
    let verdict = |row: &WaitTarget| {
        let samples = account.samples(row);
        let queue = samples.queue().known().unwrap();
        Verdict::new(queue, samples.busy().unwrap(), 2)
    };
    let judged = |comfortable, saturated| Verdict { comfortable, crowded: false, saturated };
    assert_eq!((verdict(writers), verdict(readers)), (judged(false, true), judged(true, false)));
    // In a twentieth of the time, only one thread can go on: the writer.
    let exclusive = [writers, readers].map(|row| held(row) * row.exclusive_share());
    assert!(exclusive.iter().all(|share| (share - 0.05).abs() < 1e-9), "{exclusive:?}");
}

#[test]
fn owners_in_a_container_are_named_as_outside() {
    let mut account = ProcessAccount::new(1);
    account.set_threads(vec![40, 41], Some(InnerTids::from([(1, 40), (2, 41)])));
    account.declare(declared(C, 0x1000).unwrap(), 0).unwrap();
    for (named, owner) in [(2, Some(41)), (41, None)] {
        let words = [1, 0, named, 1, 0].map(u32::to_ne_bytes).concat();
        let window = Window { address: 0x1000, bytes: &words };
        assert_eq!(account.named_hold(0, &window), Hold::Held { owner });
    }
}

const C: &str = "pthread_mutex_t";
const RUST: &str = "std::sys::sync::mutex::futex::Mutex";
const PARKING_LOT: &str = "parking_lot::raw_mutex::RawMutex";
const PARKING_LOT_RWLOCK: &str = "parking_lot::raw_rwlock::RawRwLock";
const NAMELESS: Hold = Hold::Held { owner: None };

const fn held_by(tid: u32) -> Hold {
    Hold::Held { owner: Some(tid) }
}

/// Switches of a waiter that is woken twice, each time for a few microseconds.
const IN_VAIN: [(u64, Direction); 5] = [
    (500_000, BLOCKED),
    (2_000_000, IN),
    (2_005_000, BLOCKED),
    (3_030_000, IN),
    (3_036_000, BLOCKED),
];

#[test]
fn threads_that_never_meet_do_not_use_a_lock_together() {
    let mut account = ProcessAccount::new(1);
    for first in (10..50).step_by(4) {
        account.set_threads((first..first + 4).collect(), None);
        for tid in first..first + 4 {
            (0..8).for_each(|sample| account.cpu.sample(tid, 1.0, sample < 4, sample > 5));
        }
    }
    let users: HashSet<u32> = (10..50).collect();
    assert_eq!((account.at_once(users.len()), account.at_once(3)), (4, 3));
    assert_eq!((account.on_cpu(&users), account.at_rest(&users)), (2.0, 0.25));
    assert_eq!(account.on_cpu(&HashSet::new()), 0.0);
}

#[test]
fn a_waiter_that_is_woken_in_vain_is_overtaken() {
    assert_eq!(turn(C, held_by(OWNER), &IN_VAIN), Some(Some(OWNER)));
    // The only thread on a CPU has taken a lock that names no owner.
    assert_eq!(turn(RUST, NAMELESS, &IN_VAIN), Some(Some(OWNER)));
}

#[test]
fn a_lock_that_is_passed_on_overtakes_nobody() {
    assert_eq!(turn(C, Hold::Free, &IN_VAIN), Some(None));
    assert_eq!(turn(C, held_by(WAITER), &IN_VAIN), Some(None));
    // The lock was handed over: the waiter works under the lock when it runs.
    let works = [(500_000, BLOCKED), (3_030_000, IN), (3_500_000, BLOCKED)];
    assert_eq!(turn(RUST, NAMELESS, &works), Some(None));
    assert_eq!(turn(C, held_by(OWNER), &works), Some(None));
}

#[test]
fn a_waiter_that_had_the_lock_meanwhile_tells_nothing() {
    let mut switches = IN_VAIN;
    switches[2].0 = 2_500_000;
    assert_eq!(turn(C, held_by(OWNER), &switches), None);
    // The turn is unknown until the waiter's next run has ended.
    assert_eq!(turn(C, held_by(OWNER), &IN_VAIN[..4]), None);
}

#[test]
fn a_thread_waits_where_a_sample_at_about_this_time_saw_it_spin() {
    let mut timeline = Timeline::new(100);
    timeline.note(&Event::Switch { tid: WAITER, at: 2_700_000, cpu: 0, direction: IN });
    timeline.note(&Event::Switch { tid: WAITER, at: 3_300_000, cpu: 0, direction: PREEMPTED });
    timeline.complete_until(10_000_000);
    let stacks = Stacks::default();
    let spins = |lock| [RunningStack { at: 3_000_000, tid: WAITER, stack: 0, spins_for: lock }];
    for (at, lock, waits) in [
        (3_050_000, Some(0x1000), true),
        (2_800_000, Some(0x1000), true),
        (2_600_000, Some(0x1000), false),
        (3_400_000, Some(0x1000), false),
        (3_050_000, Some(0x2000), false),
        (3_050_000, None, false),
    ] {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER], None);
        account.declare(declared("pthread_spinlock_t", 0x1000).unwrap(), 0).unwrap();
        let running = spins(lock);
        let seen = circumstances(&timeline, &stacks);
        let seen = Circumstances { running: &running, due: at, ..seen };
        account.thread(&ThreadRead::new(0, WAITER, true, Activity::OnCpu), at, &seen);
        let (now, last) = (&mut account.targets[0].now, account.last[&WAITER]);
        assert_eq!((now.spins, now.is_waited_for()), (waits, waits), "{at} {lock:?}");
        assert_eq!(last.waiting_on, waits.then_some(0));
        now.hold = Some(Hold::Free);
        assert!(!now.is_waited_for(), "a free spinlock is taken at once");
    }
}
