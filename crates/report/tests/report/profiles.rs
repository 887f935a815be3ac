//! Profiles of fictional programs.

mod spinlocks;

use std::collections::BTreeMap;

use threadtoll_record::profile::{
    Address, Cause, CauseKind, ChainLink, Change, Ended, IdleWait, Interval, IoKind, Late, Lock,
    LockKind, Method, NameFrom, Perturbation, Predicted, Process, Profile, Role, Runtime, Site,
    Stuck, StuckKind, StuckThread, ThreadShare, ThreadTime, TimeIntervals, Verdict, Wait, WaitFor,
    WaitKind, WhatIf,
};
use threadtoll_record::{Fraction, Ratio, Text};

use crate::fixture;

fn interval<T: Copy + PartialOrd + From<f64>>(low: f64, high: f64) -> Option<Interval<T>> {
    Interval::new(low.into(), high.into())
}

pub(crate) fn fraction(low: f64, high: f64) -> Option<Interval<Fraction>> {
    interval(low, high)
}

fn ratio(low: f64, high: f64) -> Option<Interval<Ratio>> {
    interval(low, high)
}

fn texts(texts: &[&str]) -> Vec<Text> {
    texts.iter().map(|text| (*text).into()).collect()
}

/// Ten seconds of a program, with what is given.
pub(crate) fn profile(command: &[&str], time: ThreadTime, locks: Vec<Lock>) -> Profile {
    Profile {
        interval_ns: None,
        run: "20261121T100000000-7".into(),
        at: "2026-11-21T10:00:10.000Z".into(),
        finished: true,
        program: texts(command),
        exit_code: None,
        seconds: 10.0.into(),
        machine: Some(Box::new(fixture::machine(2))),
        trace: None,
        method: Method::Sampled,
        samples: 9400.into(),
        rate_per_s: Some(940.0.into()),
        late: Some(Late { p99_ns: 72_000.0.into(), share: 0.001.into() }),
        budget: 0.01.into(),
        perf_event: true,
        stacks_cut_share: Some(0.02.into()),
        time: None,
        processes: vec![process(4711, command, time, locks)],
        background: Vec::new(),
        unseen: Vec::new(),
        perturbation: Perturbation {
            per_acquisition_ns: None,
            share_of_cpu: Some(0.009.into()),
            cpu_seconds: Some(0.09.into()),
        },
    }
}

pub(crate) fn process(pid: u32, command: &[&str], time: ThreadTime, locks: Vec<Lock>) -> Process {
    Process {
        pid,
        image: 1,
        command: texts(command),
        parent: None,
        children: 0,
        threads_max: 9,
        ended: Ended::Running,
        signal: None,
        time: Some(time),
        stuck: None,
        also_stuck: Vec::new(),
        locks,
        locks_left_out: 0,
        condvars: Vec::new(),
        semaphores: Vec::new(),
        barriers: Vec::new(),
        joins: Vec::new(),
        onces: Vec::new(),
        spins: Vec::new(),
        spin_loops: Vec::new(),
        locking: Vec::new(),
        seconds: Some(10.0.into()),
        parkers: Vec::new(),
        unknown: Vec::new(),
        waits: Vec::new(),
        runtime: None,
    }
}

/// Threads that wait in a function.
pub(crate) fn wait(kind: WaitKind, what: WaitFor, threads: f64, frames: &[&str]) -> Wait {
    Wait {
        kind,
        io: None,
        what,
        syscall: None,
        name: None,
        of_runtime: false,
        function: frames.get(1).map(|name| (*name).into()),
        lock_function: None,
        queue_mean: threads.into(),
        sleep_ns: None,
        run_by: None,
        held_by: Vec::new(),
        semaphore: None,
        meanwhile: None,
        sites: vec![site(Role::Waiter, 100, frames)],
    }
}

/// Shares of running, waiting for a CPU, for locks, for work, sleeping; the rest is unknown.
pub(crate) fn time(shares: [f64; 5], io: &[(IoKind, f64)]) -> ThreadTime {
    let [running, runnable, lock_wait, idle, sleep] = shares;
    let io: BTreeMap<IoKind, Fraction> =
        io.iter().map(|(kind, share)| (*kind, (*share).into())).collect();
    let known = shares.iter().sum::<f64>() + io.values().map(|share| share.get()).sum::<f64>();
    let around = |share: f64| fraction((share - 0.01).max(0.0), (share + 0.01).min(1.0));
    ThreadTime {
        on_cpu: (running + runnable).into(),
        running: Some(running.into()),
        spinning: 0.0.into(),
        in_locking: 0.0.into(),
        in_spin_loops: 0.0.into(),
        yielding: 0.0.into(),
        runnable: Some(runnable.into()),
        lock_wait: lock_wait.into(),
        thread_wait: 0.0.into(),
        idle: idle.into(),
        sleep: sleep.into(),
        unknown: (1.0 - known).max(0.0).into(),
        interval95: TimeIntervals {
            on_cpu: around(running + runnable),
            running: around(running),
            spinning: None,
            runnable: around(runnable),
            lock_wait: around(lock_wait),
            thread_wait: None,
            idle: around(idle),
            io: io.iter().filter_map(|(kind, share)| Some((*kind, around(share.get())?))).collect(),
            sleep: around(sleep),
            unknown: None,
        },
        io,
    }
}

/// A lock that nobody waited for.
pub(crate) fn lock(id: u32, name: &str) -> Lock {
    Lock {
        id,
        kind: LockKind::Mutex,
        name: name.into(),
        name_from: NameFrom::Symbol,
        address: Address(0x55d0_c0de_0000 + u64::from(id) * 64),
        generation: 1,
        first_seen: Vec::new(),
        acquisitions: None,
        contended: None,
        hold: None,
        wait: None,
        threads: 8,
        threads_interval: Interval::new(8, 8),
        held_share: Some(0.021.into()),
        held_share_interval95: fraction(0.018, 0.024),
        queue_mean: Some(0.0.into()),
        queue_mean_interval95: ratio(0.0, 0.001),
        queue_is_lower_bound: false,
        queue_max: Some(0),
        seen_in_part: false,
        shared_by: Vec::new(),
        gain: Some(0.0.into()),
        gain_interval95: None,
        efficiency: Some(1.0.into()),
        efficiency_interval95: fraction(0.999, 1.0),
        verdict: Some(Verdict::Comfortable),
        holder_not_seen_share: None,
        holder_not_seen_interval95: None,
        waiting_samples: Some(4000.into()),
        holder_let_go_share: None,
        never_taken: false,
        released_by_others: false,
        takes_turns: false,
        holders: Vec::new(),
        waiters: Vec::new(),
        waits_for: Vec::new(),
        causes: Vec::new(),
        handoff_ns: None,
        predicted: Vec::new(),
        what_if: Vec::new(),
        sites: Vec::new(),
    }
}

pub(crate) fn cause(cause: CauseKind, share: f64, syscall: Option<&str>, mend: &str) -> Cause {
    Cause {
        cause,
        share: share.into(),
        interval95: fraction((share - 0.03).max(0.0), (share + 0.03).min(1.0)),
        syscall: syscall.map(Into::into),
        awaited: None,
        mend: Some(mend.into()),
    }
}

pub(crate) fn thread(tid: u32, name: &str, share: f64) -> ThreadShare {
    ThreadShare {
        tid,
        name: name.into(),
        pid: None,
        ended: false,
        share: share.into(),
        interval95: None,
        inferred: false,
    }
}

pub(crate) fn site(role: Role, samples: u64, frames: &[&str]) -> Site {
    Site {
        role,
        frames: texts(frames),
        inferred_frames: 0,
        samples: samples.into(),
        count: None,
        wait_ns: None,
        hold_ns: None,
        share: None,
        interval95: None,
    }
}

pub(crate) fn what_if(change: Change, threads: u32, gain: f64) -> WhatIf {
    WhatIf {
        change,
        threads,
        speedup: (gain * 1.1).into(),
        interval95: ratio(gain * 1.05, gain * 1.15),
        gain: Some(gain.into()),
        gain_interval95: ratio(gain * 0.96, gain * 1.04),
    }
}

pub(crate) fn idle(name: &str, threads: u32, mean: f64) -> IdleWait {
    IdleWait {
        name: name.into(),
        name_from: NameFrom::Symbol,
        address: Address(0x7f00_1000),
        threads,
        queue_mean: mean.into(),
        queue_mean_interval95: ratio(mean * 0.98, mean * 1.02),
        queue_max: threads,
        sites: vec![site(
            Role::Waiter,
            900,
            &["pthread_cond_wait", "next_job", "worker", "clone3"],
        )],
    }
}

/// A lock that is always held by a thread that sleeps.
pub(crate) fn saturated() -> Lock {
    Lock {
        threads_interval: Interval::new(8, 14),
        held_share: Some(0.972.into()),
        held_share_interval95: fraction(0.968, 0.976),
        queue_mean: Some(5.2.into()),
        queue_mean_interval95: ratio(5.12, 5.28),
        queue_max: Some(7),
        gain: Some(1.85.into()),
        gain_interval95: ratio(1.7, 2.0),
        efficiency: Some(0.35.into()),
        efficiency_interval95: fraction(0.34, 0.36),
        verdict: Some(Verdict::Saturated),
        holder_not_seen_share: Some(0.02.into()),
        holders: vec![thread(4712, "refresher", 0.91), thread(4713, "worker", 0.07)],
        waiters: (0..8).map(|nth| thread(4713 + nth, "worker", 0.125)).collect(),
        causes: vec![
            cause(
                CauseKind::SleptHolding,
                0.91,
                Some("clock_nanosleep"),
                "Release the lock before you sleep, and take it again only to store the result.",
            ),
            cause(
                CauseKind::Computing,
                0.07,
                None,
                "Shorten the work under the lock, or stripe it.",
            ),
        ],
        predicted: [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
            .into_iter()
            .map(|threads: f64| {
                let speedup = threads.min(2.4 + threads / 40.0);
                Predicted {
                    threads: threads as u32,
                    speedup: speedup.into(),
                    interval95: ratio(speedup * 0.95, speedup * 1.05),
                }
            })
            .collect(),
        what_if: vec![
            what_if(Change::MoveOut, 8, 2.84),
            what_if(Change::MoveOut, 14, 4.6),
            what_if(Change::HalveHold, 8, 1.9),
            what_if(Change::Stripe(4), 8, 2.4),
        ],
        sites: vec![
            site(
                Role::Holder,
                6300,
                &[
                    "clock_nanosleep",
                    "usleep",
                    "Cache::refresh(std::string const&)",
                    "refresh_loop",
                    "start_thread",
                    "clone3",
                ],
            ),
            site(
                Role::Waiter,
                31_000,
                &[
                    "__lll_lock_wait",
                    "pthread_mutex_lock",
                    "Cache::get(int)",
                    "handle_request",
                    "serve",
                    "start_thread",
                    "clone3",
                ],
            ),
            site(
                Role::Waiter,
                4000,
                &[
                    "__lll_lock_wait",
                    "pthread_mutex_lock",
                    "Cache::put(int, std::string)",
                    "handle_request",
                    "serve",
                    "start_thread",
                    "clone3",
                ],
            ),
        ],
        ..lock(3, "cache_lock")
    }
}

pub(crate) fn sleeping_holder() -> Profile {
    let mut profile = profile(
        &["./server", "--threads", "8"],
        time([0.21, 0.01, 0.62, 0.03, 0.05], &[(IoKind::Socket, 0.08)]),
        vec![saturated(), lock(4, "log_lock")],
    );
    profile.processes[0].condvars.push(idle("jobs", 3, 0.27));
    profile
}

pub(crate) fn disk() -> Profile {
    let mut profile = profile(
        &["sqlite-bench", "/data/test.db"],
        time([0.12, 0.0, 0.004, 0.1, 0.03], &[(IoKind::Disk, 0.71), (IoKind::Pipe, 0.02)]),
        vec![lock(1, "pager_lock")],
    );
    profile.processes[0].condvars.push(idle("queue_ready", 4, 0.9));
    profile
}

pub(crate) fn nothing() -> Profile {
    let mut profile = profile(&["true"], time([0.0; 5], &[]), Vec::new());
    profile.processes[0].time = None;
    profile.processes[0].ended = Ended::Exit;
    profile.exit_code = Some(0);
    profile.samples = 0.into();
    profile.rate_per_s = None;
    profile.late = None;
    profile.stacks_cut_share = None;
    profile.seconds = 0.001.into();
    profile
}

/// Three locks with a cause each, of different kinds, one waiting for another.
pub(crate) fn three_locks() -> Profile {
    let crowded = |id, name: &str, gain: f64, cause: Cause| Lock {
        held_share: Some(0.55.into()),
        held_share_interval95: fraction(0.53, 0.57),
        queue_mean: Some(1.25.into()),
        queue_mean_interval95: ratio(1.2, 1.3),
        queue_max: Some(5),
        gain: Some(gain.into()),
        efficiency: Some(0.84.into()),
        efficiency_interval95: fraction(0.83, 0.85),
        verdict: Some(Verdict::Crowded),
        holders: vec![thread(81, "tokio-runtime-w", 0.5), thread(82, "tokio-runtime-w", 0.5)],
        waiters: vec![thread(83, "tokio-runtime-w", 1.0)],
        causes: vec![cause],
        ..lock(id, name)
    };
    let sessions = Lock {
        kind: LockKind::RustMutex,
        name_from: NameFrom::WaiterSite,
        waits_for: vec![ChainLink { lock: 2, share: 0.34.into(), interval95: None }],
        what_if: vec![what_if(Change::Stripe(4), 8, 1.31)],
        sites: vec![
            site(
                Role::Holder,
                300,
                &[
                    "<server::session::Sessions<K, V> as server::Store>::evict_expired::h0123456789abcdef",
                    "server::session::sweep",
                    "server::main::{{closure}}",
                    "std::thread::spawn",
                    "start_thread",
                ],
            ),
            site(
                Role::Waiter,
                700,
                &[
                    "syscall",
                    "std::sys::sync::mutex::futex::Mutex::lock_contended",
                    "server::session::Sessions<K, V>::touch",
                    "server::http::handle",
                    "server::http::serve::{{closure}}",
                    "std::thread::spawn",
                    "start_thread",
                ],
            ),
        ],
        ..crowded(
            1,
            "server::session::Sessions::touch",
            0.31,
            cause(
                CauseKind::Computing,
                0.66,
                None,
                "Do less under the lock, or use several locks: stripe it by key.",
            ),
        )
    };
    let metrics = crowded(
        2,
        "metrics",
        0.12,
        cause(
            CauseKind::Convoy,
            0.8,
            None,
            "Spin for a few microseconds before sleeping, or do more work per acquisition.",
        ),
    );
    let pool = crowded(
        3,
        "pool::free_list",
        0.06,
        cause(
            CauseKind::Herd,
            0.7,
            None,
            "Wake one thread, not all: notify_one instead of notify_all.",
        ),
    );
    let mut unused: Vec<Lock> = (4..9).map(|id| lock(id, &format!("static_{id}"))).collect();
    let mut locks = vec![pool, sessions, metrics];
    locks.append(&mut unused);
    profile(&["/usr/bin/server"], time([0.4, 0.05, 0.25, 0.2, 0.0], &[(IoKind::Poll, 0.1)]), locks)
}

/// A word that names no owner, held at one of two places.
pub(crate) fn holder_not_seen() -> Profile {
    let lock = Lock {
        kind: LockKind::RustMutex,
        name_from: NameFrom::Address,
        name: "".into(),
        held_share: None,
        held_share_interval95: None,
        queue_mean: Some(0.31.into()),
        queue_is_lower_bound: true,
        queue_max: Some(2),
        gain: Some(0.07.into()),
        efficiency: Some(0.9.into()),
        efficiency_interval95: None,
        verdict: Some(Verdict::Crowded),
        holder_not_seen_share: Some(1.0.into()),
        threads: 3,
        sites: vec![
            site(Role::Candidate, 120, &["app::index::insert", "app::main"]),
            site(Role::Candidate, 90, &["app::index::compact", "app::main"]),
            site(Role::Waiter, 210, &["syscall", "app::index::insert", "app::main"]),
        ],
        ..lock(1, "")
    };
    let mut profile = profile(&["app"], time([0.6, 0.1, 0.1, 0.1, 0.1], &[]), vec![lock]);
    profile.perf_event = false;
    let time = profile.processes[0].time.as_mut().unwrap_or_else(|| unreachable!());
    (time.running, time.runnable) = (None, None);
    profile.unseen = texts(&[
        "Running holders: the kernel refuses perf_event (kernel.perf_event_paranoid is 3); set it to 2 to see them.",
    ]);
    profile
}

pub(crate) fn go() -> Profile {
    let mut profile =
        profile(&["./api"], time([0.3, 0.0, 0.0, 0.15, 0.0], &[(IoKind::Poll, 0.15)]), Vec::new());
    if let Some(time) = &mut profile.processes[0].time {
        (time.thread_wait, time.unknown) = (0.4.into(), 0.0.into());
    }
    profile.processes[0].parkers = vec![idle("runtime.m.park", 11, 6.1)];
    profile.processes[0].runtime = Some(Runtime::Go);
    let frames = ["runtime.futex", "runtime.findRunnable", "runtime.schedule"];
    profile.processes[0].waits = vec![wait(WaitKind::Thread, WaitFor::Parker, 6.1, &frames)];
    profile.unseen = texts(&[
        "Locks of Go: goroutines wait for them without the kernel; use Go's own mutex profile (pprof).",
    ]);
    profile
}

/// Threads that wait for a lock of dashmap, which no word shows, and others for work.
pub(crate) fn unknown_lock() -> Profile {
    let mut profile = profile(&["./counts"], time([0.1, 0.0, 0.0, 0.0, 0.1], &[]), Vec::new());
    if let Some(time) = &mut profile.processes[0].time {
        (time.thread_wait, time.unknown) = (0.8.into(), 0.0.into());
    }
    let frames = [
        "syscall",
        "dashmap::DashMap<K, V>::entry",
        "count_hit",
        "std::thread::spawn",
        "start_thread",
    ];
    let for_lock = Wait {
        lock_function: Some("dashmap::lock::RawRwLock::lock_exclusive_slow".into()),
        ..wait(WaitKind::Thread, WaitFor::Word, 3.9, &frames)
    };
    let frames = ["pthread_cond_wait", "queue_pop", "worker", "start_thread"];
    let for_work = wait(WaitKind::Thread, WaitFor::ConditionVariable, 2.0, &frames);
    let asleep = Wait {
        sleep_ns: Some(1_200_000.0.into()),
        ..wait(WaitKind::Sleep, WaitFor::Other, 0.8, &["clock_nanosleep", "tick", "main"])
    };
    profile.processes[0].waits = vec![for_lock, for_work, asleep];
    profile
}

/// Intervals that span a verdict's bound, and a file that ends before its run.
pub(crate) fn undecided() -> Profile {
    let lock = Lock {
        held_share: Some(0.88.into()),
        held_share_interval95: fraction(0.8, 0.96),
        queue_mean: Some(0.9.into()),
        queue_mean_interval95: ratio(0.3, 1.5),
        queue_max: Some(4),
        gain: Some(0.2.into()),
        waiting_samples: Some(5.into()),
        verdict: Some(Verdict::CrowdedOrSaturated),
        efficiency: Some(0.89.into()),
        efficiency_interval95: fraction(0.81, 0.96),
        ..lock(1, "a_lock_with_a_very_long_name_in_a_namespace::of_its_own")
    };
    let mut profile = profile(&["./short"], time([0.5, 0.1, 0.3, 0.1, 0.0], &[]), vec![lock]);
    profile.finished = false;
    profile.seconds = 1.0.into();
    profile.samples = 60.into();
    profile
}

/// Two threads that hold what the other wants, while a third lock is in use.
pub(crate) fn deadlock() -> Profile {
    let held = |id, name: &str, queue: f64| Lock {
        held_share: Some(1.0.into()),
        held_share_interval95: fraction(0.99, 1.0),
        queue_mean: Some(queue.into()),
        queue_mean_interval95: ratio(queue - 0.1, queue + 0.1),
        queue_max: Some(queue as u32),
        gain: None,
        verdict: None,
        efficiency: Some(0.2.into()),
        efficiency_interval95: fraction(0.1, 0.3),
        waiters: vec![thread(4713, "transfers", 1.0)],
        ..lock(id, name)
    };
    let log = Lock { gain: Some(0.08.into()), ..saturated() };
    let mut profile = profile(
        &["./bank"],
        time([0.2, 0.0, 0.4, 0.4, 0.0], &[]),
        vec![held(1, "accounts", 3.0), held(2, "journal", 1.0), Lock { id: 5, ..log }],
    );
    let stuck = |tid, name: &str, holds, waits_for, frames: &[&str]| StuckThread {
        tid,
        name: name.into(),
        holds: Some(holds),
        waits_for: Some(waits_for),
        joins: None,
        frames: texts(frames),
    };
    let waits = ["__lll_lock_wait", "pthread_mutex_lock"];
    let frames = |function, caller| [&waits[..], &[function, caller, "start_thread"]].concat();
    profile.processes[0].stuck = Some(Stuck {
        kind: StuckKind::Deadlock,
        seconds: Some(9.8.into()),
        locks: vec![1, 2],
        threads: vec![
            stuck(4713, "transfers", 1, 2, &frames("transfer", "serve")),
            stuck(4714, "audit", 2, 1, &frames("check_all", "audit_loop")),
        ],
        more_threads: 2.into(),
        text: "Deadlock for at least 9.8 s: transfers (TID 4713) holds accounts and waits for \
               journal; audit (TID 4714) holds journal and waits for accounts. 2 more threads wait \
               behind. 5 of its 9 threads are not part of it."
            .into(),
        mend: Some("Take accounts and journal in one order everywhere.".into()),
    });
    profile.processes[0].also_stuck = vec![Stuck {
        kind: StuckKind::LostWakeUp,
        seconds: Some(4.0.into()),
        locks: Vec::new(),
        threads: Vec::new(),
        more_threads: 0.into(),
        text: "Lost wake-up: pool_lock is free, yet 3 threads have slept on it for at least 4.0 s."
            .into(),
        mend: None,
    }];
    profile
}

/// A program at the prompt of a debugger.
pub(crate) fn stopped() -> Profile {
    let mut profile = sleeping_holder();
    profile.processes[0].stuck = Some(Stuck {
        kind: StuckKind::Stopped,
        seconds: Some(10.0.into()),
        locks: vec![3, 4],
        threads: Vec::new(),
        more_threads: 0.into(),
        text: "Stopped by gdb (PID 99), which traces it: none of its threads runs.".into(),
        mend: None,
    });
    profile
}

/// Names from a program that means no good.
pub(crate) fn hostile() -> Profile {
    let name = "\u{1b}]0;pwned\u{7}\u{1b}[2J\n<script>alert(1)</script>\u{202e}\"\\;";
    let mut lock = Lock { name: name.into(), ..saturated() };
    for site in &mut lock.sites {
        site.frames = vec![name.into(); 300];
    }
    lock.holders = vec![thread(1, name, 0.9)];
    lock.waiters = vec![thread(2, name, 0.9)];
    lock.predicted = [(0, 0.0), (7, 1e18), (u32::MAX, 1.0)]
        .into_iter()
        .map(|(threads, speedup): (u32, f64)| Predicted {
            threads,
            speedup: speedup.into(),
            interval95: ratio(0.0, 1e18),
        })
        .collect();
    (lock.threads, lock.queue_max) = (0, Some(u32::MAX));
    (lock.gain, lock.queue_mean) = (Some(1e18.into()), Some(1e18.into()));
    lock.what_if[0] = what_if(Change::Threads(u32::MAX), u32::MAX, 1e17);
    lock.causes[0].syscall = Some(name.into());
    lock.causes[0].mend = Some(name.into());
    let mut profile = profile(&[name, name], time([0.2, 0.2, 0.6, 0.0, 0.0], &[]), vec![lock]);
    profile.processes.push(process(
        2,
        &[name],
        time([1.0, 0.0, 0.0, 0.0, 0.0], &[]),
        vec![Lock { name: name.into(), ..saturated() }],
    ));
    profile.processes[0].condvars.push(idle(name, u32::MAX, 1e17));
    profile.unseen = texts(&[name]);
    profile
}

pub(crate) fn all() -> Vec<(&'static str, Profile)> {
    vec![
        ("sleeping-holder", sleeping_holder()),
        ("disk", disk()),
        ("nothing", nothing()),
        ("three-locks", three_locks()),
        ("holder-not-seen", holder_not_seen()),
        ("go", go()),
        ("spinlock", spinlocks::spinlock()),
        ("named-spinlock", spinlocks::named_spinlock()),
        ("unknown-lock", unknown_lock()),
        ("undecided", undecided()),
        ("deadlock", deadlock()),
        ("stopped", stopped()),
        ("hostile", hostile()),
    ]
}
