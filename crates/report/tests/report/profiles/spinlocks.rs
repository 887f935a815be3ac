//! Profiles of programs whose threads spin for a lock.

use super::*;

/// Threads that spin for a lock, which none of them sleeps for.
pub(super) fn spinlock() -> Profile {
    let mut profile = profile(&["./table"], time([0.95, 0.02, 0.0, 0.0, 0.03], &[]), Vec::new());
    if let Some(time) = &mut profile.processes[0].time {
        (time.spinning, time.interval95.spinning) = (0.41.into(), fraction(0.38, 0.44));
    }
    profile.processes[0].spins = vec![
        site(Role::Waiter, 640, &["pthread_spin_lock", "insert", "worker", "start_thread"]),
        site(Role::Waiter, 211, &["pthread_spin_lock", "look_up", "worker", "start_thread"]),
    ];
    profile
}

/// Threads that spin for a lock whose address a register shows.
pub(super) fn named_spinlock() -> Profile {
    let waiters = ["pthread_spin_lock", "insert", "worker", "start_thread"];
    let mend = "Use a mutex for table_lock, or at most 2 threads instead of 6: while the holder \
                of a spinlock has no CPU, others spin.";
    let lock = Lock {
        kind: LockKind::Spinlock,
        threads: 6,
        threads_interval: Interval::new(6, 6),
        held_share: Some(0.83.into()),
        held_share_interval95: fraction(0.81, 0.85),
        queue_mean: Some(2.1.into()),
        queue_mean_interval95: ratio(2.0, 2.2),
        queue_max: Some(5),
        gain: Some(0.9.into()),
        gain_interval95: ratio(0.8, 1.0),
        efficiency: Some(0.65.into()),
        efficiency_interval95: fraction(0.63, 0.67),
        verdict: Some(Verdict::Crowded),
        causes: vec![
            cause(CauseKind::Preempted, 0.55, None, mend),
            cause(CauseKind::Computing, 0.41, None, "Do less under table_lock."),
        ],
        waiters: vec![thread(4712, "table", 0.5), thread(4713, "table", 0.5)],
        sites: vec![site(Role::Waiter, 640, &waiters)],
        ..lock(1, "table_lock")
    };
    let time = time([0.33, 0.67, 0.0, 0.0, 0.0], &[]);
    let mut profile = profile(&["./table"], time, vec![lock]);
    if let Some(time) = &mut profile.processes[0].time {
        (time.spinning, time.interval95.spinning) = (0.17.into(), fraction(0.16, 0.18));
    }
    profile.processes[0].spins = vec![site(Role::Waiter, 640, &waiters)];
    profile
}
