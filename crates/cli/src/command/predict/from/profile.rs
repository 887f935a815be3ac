//! Locks of a profile. Samples tell shares of time, not durations: with `U` threads, of which
//! `held` hold the lock and `queue` wait for it on average, the others think. So hold and think
//! times are as `held` to `U − held − queue` (Little's law).

use threadtoll_record::profile::{Lock, LockKind, Process, Profile};
use threadtoll_record::{MeasuredBy, MeasuredLock};

use super::{Candidate, LEAST_SHARE, Source, Taken, Times};

pub(super) fn locks(profile: &Profile, file: &str) -> Vec<Candidate> {
    let of_processes = profile.processes.iter().filter(|process| !process.locks.is_empty());
    let several = of_processes.count() > 1;
    let simulated = profile.machine.as_ref().is_some_and(|machine| machine.simulated);
    let source = Source { file, simulated };
    let of_process = |process: &Process| {
        let candidate = |lock: &Lock| {
            let name = lock.name.to_string();
            let label = match several {
                true => format!("{name} of process {}", process.pid),
                false => name.clone(),
            };
            Candidate { name, label, taken: taken(source, process, lock) }
        };
        process.locks.iter().map(candidate).collect::<Vec<_>>()
    };
    profile.processes.iter().flat_map(of_process).collect()
}

fn taken(source: Source<'_>, process: &Process, lock: &Lock) -> Result<Taken, &'static str> {
    let mut stuck = process.stuck.iter().chain(&process.also_stuck);
    if stuck.any(|stuck| stuck.locks.contains(&lock.id)) {
        return Err("its threads are stuck");
    }
    if matches!(lock.kind, LockKind::RwlockRead | LockKind::RwlockWrite | LockKind::RustRwlock) {
        return Err("readers can hold it together, which the models leave out");
    }
    if lock.takes_turns || lock.released_by_others || lock.never_taken {
        return Err("its threads wait for something other than the end of a hold");
    }
    let known = lock.held_share.zip(lock.queue_mean).filter(|_| lock.efficiency.is_some());
    let Some((held, queue)) = known else {
        return Err("the profile could not tell how long it was held, or how many threads waited");
    };
    if held.get() <= 0.0 || lock.threads == 0 {
        return Err("it was never seen held");
    }
    let users = f64::from(lock.threads);
    let share = |held: f64, queue: f64| {
        let thinking = (users - held - queue).max(0.0);
        held / (held + thinking)
    };
    let held_ends = lock.held_share_interval95.map(|it| [it.low().get(), it.high().get()]);
    let queue_ends = lock.queue_mean_interval95.map(|it| [it.low().get(), it.high().get()]);
    // A longer hold and a longer queue both leave less time for thinking. Taking the ends of both
    // intervals together allows for errors that go together.
    let ends = held_ends.zip(queue_ends).map(|(held, queue)| {
        [0, 1].map(|end| share(held[end].max(f64::MIN_POSITIVE), queue[end]).max(LEAST_SHARE))
    });
    Ok(Taken {
        times: Times::of_share(share(held.get(), queue.get())),
        ends: ends.map(|ends| ends.map(Times::of_share)),
        durations: false,
        spread: None,
        stripes: 1,
        cores: None,
        measured: MeasuredLock {
            file: source.file.to_string(),
            source: MeasuredBy::Profile,
            lock: lock.name.to_string(),
            simulated: source.simulated,
            threads: lock.threads,
            held_share: Some(held.get()),
            held_share_interval95: held_ends,
            hold_ns_interval95: None,
            think_ns_interval95: None,
            queue_mean: Some(queue.get()),
            queue_mean_interval95: queue_ends,
            queue_is_lower_bound: lock.queue_is_lower_bound,
            speedup: None,
            speedup_interval95: None,
            acquisitions_per_s: None,
            acquisitions_per_s_interval95: None,
            handoff_ns: None,
            // Figures of a lock of several processes are right, but nothing else is predicted.
            others_set_pace: lock.predicted.is_empty() && lock.shared_by.is_empty(),
        },
    })
}
