use super::Waits::{ForEnd, ForLock, ForOutside, ForThread, ForTime, Not};
use super::*;

const SECONDS: u64 = 1_000_000_000;
const WATCHED: u64 = 4 * SECONDS;

fn thread(tid: u32, waits: Waits) -> ThreadAtEnd {
    ThreadAtEnd {
        tid,
        process: 0,
        waits,
        timed: false,
        asleep_ns: if waits == Not { 0 } else { WATCHED },
        same_ns: WATCHED,
    }
}

fn lock(holder: HolderAtEnd) -> LockAtEnd {
    LockAtEnd { process: 0, holder, same_ns: WATCHED, always: true, watched_ns: WATCHED }
}

fn found(threads: &[ThreadAtEnd], locks: &[LockAtEnd]) -> Vec<StandStill> {
    stand_stills(threads, locks)
}

fn kinds(threads: &[ThreadAtEnd], locks: &[LockAtEnd]) -> Vec<StandStillKind> {
    found(threads, locks).iter().map(|one| one.kind).collect()
}

fn abba() -> (Vec<ThreadAtEnd>, Vec<LockAtEnd>) {
    let threads = vec![thread(1, ForLock(1)), thread(2, ForLock(0))];
    (threads, vec![lock(HolderAtEnd::Thread(1)), lock(HolderAtEnd::Thread(2))])
}

#[test]
fn two_threads_that_hold_what_the_other_wants_are_in_a_deadlock_while_others_go_on() {
    let (mut threads, locks) = abba();
    threads.extend((3..200).map(|tid| thread(tid, Not)));
    threads.push(thread(200, ForLock(0)));
    threads.push(thread(201, ForEnd(2)));
    let found = found(&threads, &locks);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.kind, one.behind, one.for_ns), (StandStillKind::Deadlock, 2, WATCHED));
    assert_eq!(one.locks, [0, 1]);
    let both = [
        Stuck { tid: 1, holds: Some(0), waits: ForLock(1) },
        Stuck { tid: 2, holds: Some(1), waits: ForLock(0) },
    ];
    assert_eq!(one.threads, both);
}

#[test]
fn a_circle_takes_all_its_waits_for_long_enough_and_without_time_outs() {
    let (threads, locks) = abba();
    let mut short = threads.clone();
    short[1].asleep_ns = LEAST_NS - 1;
    assert_eq!(kinds(&short, &locks), []);
    let mut timed = threads.clone();
    timed[0].timed = true;
    assert_eq!(kinds(&timed, &locks), [StandStillKind::Circle]);
    // One of the threads goes on.
    let mut goes_on = threads;
    goes_on[0].waits = Not;
    assert_eq!(kinds(&goes_on, &locks), []);
}

#[test]
fn a_thread_that_waits_for_itself_is_in_a_deadlock_and_those_behind_it_are_counted() {
    let threads = [thread(1, ForLock(0)), thread(2, ForLock(0)), thread(3, ForOutside)];
    let found = found(&threads, &[lock(HolderAtEnd::Thread(1))]);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.kind, one.threads.len(), one.behind), (StandStillKind::SelfDeadlock, 1, 1));
    assert_eq!(one.threads[0], Stuck { tid: 1, holds: Some(0), waits: ForLock(0) });
}

#[test]
fn a_join_of_a_thread_that_waits_for_the_lock_of_the_one_that_joins_is_a_deadlock() {
    let threads = [thread(1, ForEnd(2)), thread(2, ForLock(0)), thread(3, Not)];
    let found = found(&threads, &[lock(HolderAtEnd::Thread(1))]);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!(one.kind, StandStillKind::Deadlock);
    assert_eq!(one.threads[0], Stuck { tid: 1, holds: Some(0), waits: ForEnd(2) });
    assert_eq!(one.threads[1], Stuck { tid: 2, holds: None, waits: ForLock(0) });
    // Joining a thread that works is no deadlock.
    let threads = [thread(1, ForEnd(2)), thread(2, Not), thread(3, ForLock(0))];
    assert_eq!(kinds(&threads, &[lock(HolderAtEnd::Thread(1))]), []);
}

#[test]
fn locks_that_name_nobody_are_never_released_if_nobody_is_left_to_do_it() {
    let locks = [lock(HolderAtEnd::Untold), lock(HolderAtEnd::Untold)];
    let mut threads = vec![thread(1, ForLock(1)), thread(2, ForLock(0)), thread(3, ForEnd(1))];
    let found = found(&threads, &locks);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (one.kind, one.threads.len(), &one.locks[..]),
        (StandStillKind::Deadlock, 3, &[0, 1][..])
    );
    // An idle worker changes only the kind of the standstill.
    threads.push(thread(4, ForThread));
    assert_eq!(kinds(&threads, &locks), [StandStillKind::Stuck]);
    threads.push(thread(5, ForOutside));
    // With a thread that may be woken from outside, both locks are reported as one standstill.
    assert_eq!(kinds(&threads, &locks), [StandStillKind::NotReleased]);
    let seen = [lock(HolderAtEnd::UntoldButSeen), lock(HolderAtEnd::UntoldButSeen)];
    assert_eq!(kinds(&threads, &seen), []);
}

#[test]
fn a_holder_that_waits_for_a_thread_is_stuck_only_if_all_are() {
    let locks = [lock(HolderAtEnd::Thread(1))];
    let mut threads = vec![thread(1, ForThread), thread(2, ForLock(0))];
    let found = found(&threads, &locks);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.kind, one.threads.len()), (StandStillKind::Stuck, 2));
    // Another thread might answer, but has not done so for long.
    threads.push(thread(3, ForOutside));
    assert_eq!(kinds(&threads, &locks), [StandStillKind::NotReleased]);
    // A running thread may be working on the answer.
    threads[2] = ThreadAtEnd { asleep_ns: 0, ..thread(3, Not) };
    assert_eq!(kinds(&threads, &locks), []);
    threads[2] = thread(3, ForOutside);
    threads[0].asleep_ns = LEAST_NS;
    assert_eq!(kinds(&threads, &locks), []);
}

#[test]
fn idle_threads_are_stuck_only_if_no_other_is_left() {
    let pool: Vec<ThreadAtEnd> = (2..10).map(|tid| thread(tid, ForThread)).collect();
    let nobody_is_left = vec![StandStillKind::Stuck];
    for (main, expected) in [
        (ForOutside, vec![]),
        (Not, vec![]),
        (ForThread, nobody_is_left.clone()),
        (ForEnd(2), nobody_is_left),
    ] {
        let threads = [&pool[..], &[thread(1, main)]].concat();
        assert_eq!(kinds(&threads, &[]), expected, "{main:?}");
    }
}

#[test]
fn a_slow_holder_is_not_called_stuck() {
    // The holder computes, or is unknown.
    let threads = [thread(1, Not), thread(2, ForLock(0)), thread(3, ForLock(0))];
    for holder in [HolderAtEnd::Thread(1), HolderAtEnd::UntoldButSeen, HolderAtEnd::Unknown] {
        assert_eq!(kinds(&threads, &[lock(holder)]), [], "{holder:?}");
    }
    // But no thread was seen to take the lock.
    assert_eq!(never_released(&threads, &[lock(HolderAtEnd::Thread(1))]), [0]);
    let taken = LockAtEnd { always: false, ..lock(HolderAtEnd::Thread(1)) };
    assert_eq!(never_released(&threads, &[taken]), []);
    // A lock that was released in the meantime.
    let threads = [thread(1, ForOutside), thread(2, ForLock(0))];
    let lately = |same_ns| LockAtEnd { same_ns, always: false, ..lock(HolderAtEnd::Thread(1)) };
    assert_eq!(kinds(&threads, &[lately(LEAST_NS)]), []);
    assert_eq!(kinds(&threads, &[lately(2 * SECONDS)]), [StandStillKind::NotReleased]);
    let untold = LockAtEnd { holder: HolderAtEnd::Untold, ..lately(WATCHED) };
    assert_eq!(kinds(&threads, &[untold]), []);
}

#[test]
fn a_holder_that_runs_again_and_again_without_releasing_the_lock_is_told() {
    let mut threads = vec![thread(1, ForTime), thread(2, ForLock(0)), thread(3, ForLock(0))];
    let named = [lock(HolderAtEnd::Thread(1))];
    let unnamed = [lock(HolderAtEnd::Untold)];
    // A single long sleep of the holder ends by itself.
    assert_eq!(kinds(&threads, &named), []);
    threads[0].asleep_ns = SECONDS / 20;
    assert_eq!(kinds(&threads, &named), [StandStillKind::NotReleased]);
    assert_eq!(kinds(&threads, &unnamed), [StandStillKind::NotReleased]);
    // The holder was elsewhere in between, and may have worked there.
    threads[0].same_ns = SECONDS / 20;
    assert_eq!(kinds(&threads, &named), []);
    assert_eq!(kinds(&threads, &unnamed), []);
}

#[test]
fn a_free_lock_whose_waiters_sleep_has_lost_a_wake_up() {
    let mut threads = vec![thread(1, ForLock(0)), thread(2, ForLock(0)), thread(3, Not)];
    let free = lock(HolderAtEnd::Nobody);
    let found = found(&threads, &[free]);
    assert_eq!((found[0].kind, found[0].threads.len()), (StandStillKind::LostWakeUp, 2));
    // A lock that is taken now and then, and a waiter that has just come.
    assert_eq!(kinds(&threads, &[LockAtEnd { same_ns: LEAST_NS / 2, ..free }]), []);
    threads[1].asleep_ns = LEAST_NS / 2;
    assert_eq!(kinds(&threads, &[free]), []);
}

#[test]
fn a_holder_that_does_not_exist_keeps_the_lock_and_all_that_its_waiters_hold() {
    let threads = [thread(1, ForLock(0)), thread(2, ForLock(1)), thread(3, Not)];
    let locks = [lock(HolderAtEnd::Gone), lock(HolderAtEnd::Thread(1))];
    let found = found(&threads, &locks);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.kind, one.behind, &one.locks[..]), (StandStillKind::OwnerGone, 1, &[0, 1][..]));
    // The result is the same if no other thread is left.
    assert_eq!(kinds(&threads[..2], &locks), [StandStillKind::OwnerGone]);
}

#[test]
fn circles_reach_across_processes() {
    let (mut threads, mut locks) = abba();
    (threads[1].process, locks[0].process) = (7, 7);
    assert_eq!(kinds(&threads, &locks), [StandStillKind::Deadlock]);
}

#[test]
fn long_queues_and_many_circles_are_taken_apart() {
    let mut threads: Vec<ThreadAtEnd> = (0..1_000).map(|nth| thread(nth, ForLock(0))).collect();
    let mut locks = vec![lock(HolderAtEnd::Thread(5_000))];
    // A chain: each thread waits for the lock of the next.
    for nth in 1..1_000 {
        threads[nth as usize].waits = ForLock(nth as usize);
        locks.push(lock(HolderAtEnd::Thread(nth - 1)));
    }
    threads.push(thread(5_000, ForLock(999)));
    let found = found(&threads, &locks);
    assert_eq!((found.len(), found[0].kind), (1, StandStillKind::Deadlock));
    assert_eq!((found[0].threads.len(), found[0].behind), (1_000, 1));
}

#[test]
fn a_holder_elsewhere_is_told_if_it_is_stopped_or_never_lets_go() {
    let threads = [thread(1, ForLock(0)), thread(2, Not)];
    let held = |stopped, always, same_ns| LockAtEnd {
        same_ns,
        always,
        ..lock(HolderAtEnd::Elsewhere { stopped })
    };
    assert_eq!(kinds(&threads, &[held(true, false, LEAST_NS)]), [StandStillKind::OwnerElsewhere]);
    assert_eq!(kinds(&threads, &[held(false, true, WATCHED)]), [StandStillKind::OwnerElsewhere]);
    assert_eq!(kinds(&threads, &[held(false, false, 3 * SECONDS)]), []);
}
