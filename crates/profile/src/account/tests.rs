use threadtoll_judge::unseen::Unseen;
use threadtoll_stacks::process::{Activity, SystemCall};
use threadtoll_stats::interval::Estimate;

use super::*;
use crate::lookups::NO_LOOKUPS;
use crate::perf::{Direction, Event};
use crate::primitive::{Caller, Kind, declared};
use crate::sample::{Effort, Listing, Reason};

const LOCK: u64 = 0x5000;
const CONTENDED: u32 = 2;

const RATE: f64 = 1000.0;

struct Run {
    account: Account,
    timeline: Option<Timeline>,
    departures: Vec<Departure>,
    due: u64,
    gone: u32,
}

fn waits_on(word: u64) -> Activity {
    Activity::Asleep(SystemCall {
        number: libc::SYS_futex as u32,
        arguments: [word, 128, u64::from(CONTENDED), 0, 0, 0],
        stack_pointer: 0,
        program_counter: 0,
    })
}

impl Run {
    fn new() -> Run {
        let mut account = Account::new(0);
        account.add(0, ProcessAccount::new(1));
        Run { account, timeline: None, departures: Vec::new(), due: 0, gone: 0 }
    }

    /// A process with eight threads and a lock whose word counts its waiters.
    fn with_counting_lock() -> Run {
        let mut run = Run::new();
        let process = run.account.living(0).unwrap();
        process.set_threads((1..=8).collect(), None);
        process.declare(declared("threadtoll::lock::word::Word", LOCK).unwrap(), 0).unwrap();
        run
    }

    /// Takes a sample `late` nanoseconds after it was due. `word` is the value of the lock's word,
    /// if the sample reads it.
    fn sample(&mut self, late: u64, word: Option<u32>, threads: &[(u32, Activity)]) {
        self.due += 1_000_000;
        let mut chunk = Chunk::default();
        chunk.begin(self.due, 1);
        chunk.gap_s = 1.0 / RATE;
        let tick = chunk.tick();
        (tick.at, tick.threads_gone) = (self.due + late, self.gone);
        tick.threads_alive = threads.len() as u32 + self.gone;
        if let Some(value) = word {
            // No known lock contains the bytes around the word.
            let mut bytes = [0xee; 144];
            bytes[80..84].copy_from_slice(&value.to_ne_bytes());
            chunk.push_word(0, LOCK, Reason::Picked, (LOCK - 80, &bytes));
        }
        for &(tid, activity) in threads {
            chunk.push_thread(0, tid, true, activity);
        }
        let reported = Reported {
            timeline: self.timeline.as_ref(),
            departures: &self.departures,
            incomplete: false,
            running: &[],
        };
        self.account.fold(&chunk, &reported, &Stacks::default(), false, &NO_LOOKUPS);
    }

    fn end_stretch(&mut self, length_ms: u64) {
        let effort = Effort { rate_per_s: RATE, words: 1, threads: 1 };
        let (length_ns, until) = (length_ms * 1_000_000, self.due + 1);
        self.account.end_stretch(&StretchReport { length_ns, until, effort, process_ns: 0 });
    }

    fn lock(&self) -> &WaitTarget {
        let lock = self.process().targets.iter().find(|target| target.address == LOCK);
        lock.unwrap()
    }

    fn process(&self) -> &ProcessAccount {
        self.account.process(0).unwrap()
    }

    fn held(&self) -> Estimate {
        self.process().samples(self.lock()).held().known().unwrap()
    }

    fn queue(&self) -> Estimate {
        self.process().samples(self.lock()).queue().known().unwrap()
    }

    fn show_lock(&mut self) {
        for (value, tid) in [(2, 1), (0, 2), (2, 1)] {
            self.sample(0, Some(value), &[(tid, waits_on(LOCK)), (9, Activity::OnCpu)]);
        }
        assert_eq!(self.lock().identity.kind(), Kind::Futex);
    }
}

fn waits_for_rust() -> Activity {
    let Activity::Asleep(call) = waits_on(LOCK) else { unreachable!() };
    let [word, _, value, ..] = call.arguments;
    Activity::Asleep(SystemCall { arguments: [word, 9 | 128, value, 0, 0, !0], ..call })
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn samples_count_from_before_it_was_known_what_threads_wait_for() {
    let mut run = Run::new();
    for tid in [1, 2, 1, 2, 1, 2] {
        run.sample(0, Some(CONTENDED), &[(tid, waits_on(LOCK)), (9, Activity::OnCpu)]);
    }
    assert!(!run.lock().is_lock());
    run.show_lock();
    run.sample(0, Some(0), &[(1, Activity::OnCpu), (2, Activity::OnCpu)]);
    run.end_stretch(10);
    assert!(is_near(run.queue().value, 0.9), "{:?}", run.queue());
    assert!(is_near(run.held().value, 0.8));
}

#[test]
fn memory_that_gets_another_use_is_watched_as_such() {
    let mut run = Run::new();
    for (value, tid) in [(2, 1), (0, 2), (2, 1)] {
        run.sample(0, Some(value), &[(tid, waits_for_rust()), (9, Activity::OnCpu)]);
    }
    assert_eq!((run.lock().generation, run.lock().identity.kind()), (0, Kind::RustMutex));
    run.account.living(0).unwrap().wishes.clear();
    // No Rust mutex has the value 77. But a sample may fall between two stores of a lock's code, so
    // a few such values prove nothing.
    for (times, value) in [(15, 77), (1, 0), (16, 77)] {
        assert_eq!(run.lock().generation, 0);
        (0..times).for_each(|_| run.sample(0, Some(value), &[(1, Activity::OnCpu)]));
    }
    assert_eq!((run.lock().generation, run.lock().identity.kind()), (1, Kind::Unknown));
    let wishes = std::mem::take(&mut run.account.living(0).unwrap().wishes);
    let window = run.lock().evidence.window();
    let watched = |&(word, wish): &(u64, Wish)| {
        word == LOCK && matches!(wish, Wish::Watch(watch) if watch.window == window)
    };
    assert!(wishes.iter().any(watched), "{wishes:?}");

    run.show_lock();
    assert_eq!(run.lock().generation, 1);
}

#[test]
fn time_counts_from_before_anybody_waited() {
    let mut run = Run::new();
    for _ in 0..9 {
        (0..10).for_each(|_| run.sample(0, None, &[(1, Activity::OnCpu)]));
        run.end_stretch(10);
    }
    (0..7).for_each(|_| run.sample(0, None, &[(1, Activity::OnCpu)]));
    run.show_lock();
    run.end_stretch(10);
    assert!(is_near(run.queue().value, 0.03), "{:?}", run.queue());
    let waiters = run.process().waiters(run.lock()).unwrap();
    assert!(is_near(waiters.mean, 0.03), "{waiters:?}");
}

#[test]
fn samples_of_nothing_do_not_count() {
    let mut run = Run::new();
    (0..5).for_each(|_| run.sample(0, None, &[]));
    run.show_lock();
    run.end_stretch(8);
    assert!(is_near(run.queue().value, 1.0), "{:?}", run.queue());
    assert_eq!((run.account.started, run.account.due), (6_000_000, [3, 0]));
}

#[test]
fn time_after_a_process_has_ended_does_not_count() {
    let mut run = Run::new();
    run.show_lock();
    (0..7).for_each(|_| run.sample(0, None, &[(1, waits_on(LOCK)), (9, Activity::OnCpu)]));
    run.account.living(0).unwrap().ended = true;
    run.end_stretch(10);
    (0..10).for_each(|_| run.sample(0, None, &[(1, Activity::OnCpu)]));
    run.end_stretch(10);
    assert!(is_near(run.queue().value, 1.0), "{:?}", run.queue());
}

#[test]
fn a_process_that_has_ended_keeps_only_what_reports_need() {
    let mut run = Run::new();
    for tid in [1, 2, 1, 2, 1, 2] {
        run.sample(0, Some(CONTENDED), &[(tid, waits_on(LOCK)), (9, Activity::OnCpu)]);
    }
    run.account.living(0).unwrap().ended = true;
    run.end_stretch(6);
    let waiters = run.process().waiters(run.lock()).unwrap();
    assert!(is_near(waiters.mean, 1.0), "{waiters:?}");
    assert_eq!(run.lock().waiting.len(), 2);
    assert!(run.lock().evidence.is_empty() && run.lock().now.waiters.is_empty());
    let process = run.account.ended.get_mut(&0).unwrap();
    assert!(process.targets[0].take_unjudged().is_empty());
}

#[test]
fn the_processes_that_did_most_are_kept_of_many_that_have_ended() {
    let mut run = Run::new();
    (0..10).for_each(|_| run.sample(0, None, &[(1, Activity::OnCpu)]));
    let ended = |run: &mut Run, index| run.account.living(index).unwrap().ended = true;
    ended(&mut run, 0);
    run.end_stretch(10);
    let most = MAX_ENDED as u32;
    for index in 1..most {
        run.account.add(index, ProcessAccount::new(index));
        ended(&mut run, index);
    }
    run.end_stretch(10);
    assert!(run.account.forget_ended().is_empty());
    for index in [most, most + 1] {
        run.account.add(index, ProcessAccount::new(index));
        let mut chunk = Chunk::default();
        chunk.begin(run.due, 1);
        chunk.gap_s = 1.0 / RATE;
        chunk.tick().threads_alive = 1;
        chunk.push_thread(index, 1, true, Activity::OnCpu);
        let reported =
            Reported { timeline: None, departures: &[], incomplete: false, running: &[] };
        run.account.fold(&chunk, &reported, &Stacks::default(), false, &NO_LOOKUPS);
        ended(&mut run, index);
        run.end_stretch(10);
    }
    let forgotten = run.account.forget_ended().into_iter().map(|(index, _)| index);
    assert_eq!(forgotten.collect::<Vec<u32>>(), [1, 2]);
    let kept: Vec<u32> = run.account.processes().map(|process| process.pid).collect();
    assert_eq!((kept.len(), kept[0], kept[1]), (MAX_ENDED, 1, 3));
    assert!(run.account.process(most).is_some() && run.account.process(1).is_none());
}

#[test]
fn threads_that_have_ended_do_not_make_others_count_for_more() {
    let mut run = Run::new();
    run.show_lock();
    run.gone = 6;
    (0..7).for_each(|_| run.sample(0, None, &[(1, waits_on(LOCK)), (9, Activity::OnCpu)]));
    run.end_stretch(10);
    assert!(is_near(run.queue().value, 1.0), "{:?}", run.queue());
}

/// Adds a late sample to three others of a lock. When it was due, two threads slept.
fn sample_late(run: &mut Run, word: u32) {
    // The sample is due at 4 ms and comes 50 µs late, just as thread 1 falls asleep on the same
    // CPU.
    let mut timeline = Timeline::new(100);
    let switch = |tid, at, direction| Event::Switch { tid, at, cpu: 0, direction };
    let asleep = Direction::Out { preempted: false };
    for event in [
        switch(1, 3_900_000, Direction::In),
        switch(1, 4_040_000, asleep),
        switch(2, 1_500_000, asleep),
        switch(2, 4_020_000, Direction::In),
        switch(3, 3_500_000, asleep),
        switch(4, 3_200_000, asleep),
    ] {
        timeline.note(&event);
    }
    timeline.complete_until(10_000_000);
    run.timeline = Some(timeline);
    run.departures = vec![Departure { at: 4_040_000, cpu: 0 }];
    // Thread 1 waited at 3 ms, too, but in another sleep. The place of thread 4's sleep is unknown.
    let threads =
        [(1, waits_on(LOCK)), (2, Activity::OnCpu), (3, waits_on(LOCK)), (4, Activity::OnCpu)];
    run.sample(50_000, Some(word), &threads);
    run.end_stretch(4);
    assert_eq!(run.account.due, [3, 1]);
}

#[test]
fn a_late_sample_tells_the_queue_of_the_instant_that_it_was_meant_for() {
    let mut run = Run::new();
    run.show_lock();
    sample_late(&mut run, CONTENDED);
    assert!(is_near(run.queue().value, 5.0 / 4.0), "{:?}", run.queue());

    let mut run = Run::with_counting_lock();
    for tid in [1, 2, 1] {
        run.sample(0, Some(waited_for_by(2)), &[(tid, waits_on(LOCK)), (9, Activity::OnCpu)]);
    }
    sample_late(&mut run, waited_for_by(4));
    assert!(is_near(run.queue().value, 8.0 / 4.0), "{:?}", run.queue());
}

/// Word of threadtoll's mutex while a thread holds it and so many wait, of which one sleeps.
fn waited_for_by(waiters: u32) -> u32 {
    1 | u32::from(waiters > 0) << 5 | waiters << 8
}

#[test]
fn the_queue_is_the_number_of_waiters_in_the_word() {
    let mut run = Run::with_counting_lock();
    let threads = [(1, waits_on(LOCK)), (2, Activity::OnCpu), (3, Activity::OnCpu)];
    for _ in 0..10 {
        run.sample(0, Some(waited_for_by(0)), &threads[1..]);
        // One thread sleeps, and another spins.
        run.sample(0, Some(waited_for_by(2)), &threads);
    }
    // One sample does not read the word, and another reads a number that cannot be a count.
    run.sample(0, None, &threads);
    run.sample(0, Some(waited_for_by(9)), &threads);
    run.end_stretch(22);
    assert!(is_near(run.queue().value, 1.0), "{:?}", run.queue());
    let (process, lock) = (run.process(), run.lock());
    assert!(lock.counts_waiters());
    // Only one of these threads was seen, asleep.
    assert_eq!((lock.waiters_max, lock.users_counted, lock.users.len()), (2, 3, 1));
    assert_eq!((process.unseen(lock), process.most_waiting(lock)), (Unseen::default(), Some(8.0)));
    let asleep = process.waiters(lock).unwrap();
    assert!(is_near(asleep.mean, 12.0 / 22.0), "{asleep:?}");

    // Most samples do not read the word.
    let mut run = Run::with_counting_lock();
    (0..3).for_each(|_| run.sample(0, None, &threads));
    run.sample(0, Some(waited_for_by(2)), &threads);
    run.end_stretch(4);
    assert!(!run.lock().counts_waiters() && is_near(run.queue().value, 5.0 / 4.0));
}

#[test]
fn waiters_are_counted_in_samples_from_before_the_lock_was_known() {
    let mut run = Run::new();
    run.account.living(0).unwrap().set_threads((1..=8).collect(), None);
    let Activity::Asleep(call) = waits_on(LOCK) else { unreachable!() };
    let arguments = [LOCK, 9 | 128, waited_for_by(2).into(), 0, 0, 2];
    let waits = Activity::Asleep(SystemCall { arguments, ..call });
    (0..5).for_each(|_| run.sample(0, Some(waited_for_by(2)), &[(1, waits), (2, Activity::OnCpu)]));
    assert!(!run.lock().is_lock());
    let function = Some("threadtoll::lock::word::Word::lock".to_owned());
    let caller = Caller { function, module: "server".to_owned() };
    for _ in 0..2 {
        run.account.living(0).unwrap().tell(0, vec![caller.clone()]);
    }
    assert_eq!(run.lock().identity.kind(), Kind::Mutex);
    run.end_stretch(5);
    assert!(is_near(run.queue().value, 2.0), "{:?}", run.queue());
    assert!(run.lock().counts_waiters() && run.lock().waiters_max == 2);
}

#[test]
fn a_sample_is_late_if_a_thread_left_while_it_waited_for_that_cpu() {
    let (timeline, left) = (Timeline::new(100), [Departure { at: 140, cpu: 0 }]);
    let reported =
        Reported { timeline: Some(&timeline), departures: &left, incomplete: false, running: &[] };
    let is_late = |cpu, began, run_delay_ns| {
        let mut chunk = Chunk::default();
        chunk.begin(100, 1);
        let tick = chunk.tick();
        (tick.cpu, tick.began, tick.at, tick.run_delay_ns) = (cpu, began, 200, run_delay_ns);
        reported.is_late(tick)
    };
    assert!(is_late(0, 190, None) && is_late(0, 190, Some(60)));
    // It waited for the timer until then, or on another CPU.
    assert!(!is_late(0, 190, Some(20)) && !is_late(1, 190, Some(60)));
    // The thread had taken the CPU from the sampler.
    assert!(is_late(0, 130, Some(0)));
}

#[test]
fn threads_are_those_that_lived_when_the_sample_was_taken() {
    let mut run = Run::new();
    let mut chunk = Chunk::default();
    for (tids, gone) in [(vec![1, 2], 0), (vec![2, 3, 4], 1), (vec![4], 0)] {
        run.due += 1_000_000;
        chunk.begin(run.due, 1);
        chunk.tick().threads_alive = tids.len() as u32;
        tids[gone..].iter().for_each(|&tid| chunk.push_thread(0, tid, true, Activity::OnCpu));
        (0..gone).for_each(|_| chunk.push_gone(0));
        chunk.push_listing(Listing { process: 0, threads: tids, inner: None });
    }
    let reported = Reported { timeline: None, departures: &[], incomplete: false, running: &[] };
    run.account.fold(&chunk, &reported, &Stacks::default(), false, &NO_LOOKUPS);
    run.end_stretch(3);
    let process = run.process();
    assert_eq!((process.threads.len(), process.threads_max), (1, 3));
    assert!((1..5).all(|tid| process.had_thread(tid)) && !process.had_thread(5));
    assert!(is_near(process.ended_unseen(), 1.0 / 3.0), "{}", process.ended_unseen());
}

#[test]
fn a_process_counts_for_the_time_in_which_it_was_sampled() {
    let mut run = Run::new();
    let mut account = ProcessAccount::new(2);
    account.presence = Presence::awaited();
    run.account.add(1, account);
    // The process is observed in eight of twenty samples, and its thread sleeps in each of the
    // eight.
    let mut chunk = Chunk::default();
    chunk.gap_s = 1.0 / RATE;
    for sample in 0..20 {
        run.due += 1_000_000;
        chunk.begin(run.due, 1);
        chunk.push_thread(0, 1, true, Activity::OnCpu);
        if sample == 5 {
            chunk.push_listing(Listing { process: 1, threads: vec![7], inner: None });
        }
        if (5..13).contains(&sample) {
            chunk.push_thread(1, 7, true, waits_on(LOCK));
        }
        if sample == 13 {
            chunk.push_left(1);
        }
        chunk.tick().threads_alive = chunk.tick().threads_picked;
    }
    let reported = Reported { timeline: None, departures: &[], incomplete: false, running: &[] };
    run.account.fold(&chunk, &reported, &Stacks::default(), false, &NO_LOOKUPS);
    run.end_stretch(20);
    run.end_stretch(20);
    let process = run.account.process(1).unwrap();
    let waiters = process.waiters(&process.targets[0]).unwrap();
    assert!(is_near(process.seconds(), 0.008), "{}", process.seconds());
    assert!(is_near(waiters.mean, 1.0), "{waiters:?}");
    assert!(is_near(run.process().seconds(), 0.04));
}

#[test]
fn each_sample_of_a_thread_has_a_state_at_its_time() {
    let mut run = Run::new();
    run.show_lock();
    let threads = [(1, waits_on(LOCK)), (9, Activity::OnCpu)];
    (0..1_000).for_each(|_| run.sample(0, Some(CONTENDED), &threads));
    (0..1_000).for_each(|_| run.sample(0, Some(0), &[(1, Activity::OnCpu)]));
    let trace = &run.account.trace;
    let samples =
        |tid: u32, columns: std::ops::Range<u16>, shows: fn(SampledState) -> bool| -> u32 {
            let row = trace.rows().iter().find(|row| row.tid == tid).unwrap();
            let seen = row.strip.seen().iter().filter(|seen| columns.contains(&seen.column));
            seen.filter(|seen| shows(seen.shown)).map(|seen| seen.samples).sum()
        };
    let waits = |state| matches!(state, SampledState::On { .. });
    let half = trace.column(1_002_000_000) + 1;
    assert_eq!(samples(1, 0..half, waits), 1_002);
    assert_eq!(samples(1, half..600, waits), 0);
    assert_eq!(samples(1, 0..600, |state| state == SampledState::Doing(Time::OnCpu)), 1_000);
    assert_eq!(samples(9, 0..600, |state| state == SampledState::Doing(Time::OnCpu)), 1_003);
    let mut named = std::mem::take(&mut run.account.living(0).unwrap().to_name);
    named.sort();
    named.dedup();
    assert_eq!(named, [1, 2, 9], "their names are wanted");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_spinlock_is_known_from_threads_that_spin() {
    let mut run = Run::new();
    let threads = [(1, Activity::OnCpu), (2, Activity::OnCpu)];
    run.sample(0, None, &threads);
    let at = run.due;
    for nth in 0..8 {
        let process = run.account.living(0).unwrap();
        process.note_running(nth);
        if nth % 4 == 0 {
            process.note_spinning(1, LOCK, nth, at);
        }
    }
    assert!(!run.lock().is_lock());
    for word in [1, 0, -1_i32, -1].repeat(2) {
        run.sample(0, Some(word.cast_unsigned()), &threads);
    }
    run.sample(0, None, &threads);
    run.end_stretch(10);
    let lock = run.lock();
    assert_eq!((lock.identity.kind(), lock.waiters_max), (Kind::Spinlock, 1));
    assert_eq!((lock.users.len(), &lock.waiting), (1, &[(1, 2)].into()));
    // Two of eight samples of the two running threads saw one spin.
    assert!(is_near(run.held().value, 0.75) && is_near(run.queue().value, 0.5));
    assert!(is_near(run.process().waiters(lock).unwrap().mean, 0.5));
}

#[test]
fn samples_of_running_threads_are_shares_of_all_time_on_cpus() {
    let mut run = Run::new();
    for nth in 0..10 {
        run.sample(0, None, &[(1, Activity::OnCpu), (2, Activity::OnCpu)]);
        run.account.living(0).unwrap().note_running(nth / 8);
    }
    run.end_stretch(10);
    let in_part = |samples| run.process().running_in(samples).unwrap();
    assert!(is_near(in_part(8).mean, 1.6) && in_part(8).error > 0.1);
    assert!(is_near(in_part(0).mean, 0.0));
}
