//! The first line of a profile: is it locks?

use threadtoll_record::profile::{
    HoldingProcess, LastChange, Lock, Meanwhile, Role, SemaphoreUse, StateShare, StateThen,
    SysvSemaphore, ThreadTime, Wait, WaitFor, WaitKind,
};
use threadtoll_report::text::first_screen;

use crate::profile::{MORE, plain};
use crate::profiles;

/// The first line of a profile whose threads spend their time in these ways.
fn answer(shares: &[(&str, f64)], waits: Vec<Wait>) -> String {
    let screen = screen(shares, waits);
    let answer: Vec<&str> = screen.lines().skip(1).take(2).collect();
    flowing(&answer.join(" "))
}

/// The first screen of such a profile.
fn screen(shares: &[(&str, f64)], waits: Vec<Wait>) -> String {
    let share = |kind: &str| {
        shares.iter().filter(|(of, _)| *of == kind).map(|(_, share)| share).sum::<f64>()
    };
    let mut time = profiles::time([share("running"), 0.0, 0.0, share("idle"), share("sleep")], &[]);
    time.thread_wait = share("thread").into();
    time.unknown = share("unknown").into();
    let mut seen = profiles::profile(&["a"], time, Vec::new());
    seen.processes[0].waits = waits;
    first_screen(&seen, MORE, &plain(120))
}

/// A text without its line breaks.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn time_that_is_not_understood_is_no_evidence_against_locks() {
    use WaitFor::{Barrier, ConditionVariable, FileLock, Join, Memory, Other, Semaphore, Word};
    let on =
        |what, threads, frames: &[&str]| profiles::wait(WaitKind::Thread, what, threads, frames);
    let condvar = |function| on(ConditionVariable, 4.0, &["pthread_cond_wait", function, "run"]);
    let said = |begins: &str, shares: &[(&str, f64)], waits: Vec<Wait>| {
        let answer = answer(shares, waits);
        assert!(answer.starts_with(begins), "{answer}");
        assert!(!answer.contains("for work"), "{answer}");
        answer
    };
    let waits = [("thread", 0.8), ("running", 0.2)];
    said(
        "Cannot be told whether locks are to blame: 80% of the time",
        &waits,
        vec![condvar("update")],
    );
    said("Cannot be told whether locks are to blame: 80% of the time", &waits, Vec::new());
    said(
        "Cannot be told whether locks are to blame: 80% of the time",
        &[("unknown", 0.8), ("running", 0.2)],
        Vec::new(),
    );
    let semaphore = vec![on(Semaphore, 4.0, &["sem_wait", "query", "main"])];
    let semaphore = said("Cannot be told", &waits, semaphore);
    assert!(semaphore.contains("a semaphore may be a lock, a limit or a signal"), "{semaphore}");
    let pool = said("Cannot be told for sure: 80%", &waits, vec![condvar("queue_pop")]);
    assert!(pool.contains("condition variable in queue_pop ← run"), "{pool}");
    let pool = said(
        "Cannot be told whether locks are to blame: 80%",
        &waits,
        vec![condvar("cond_pool::checkout")],
    );
    assert!(!pool.contains("pool do"), "{pool}");
    let few = [("thread", 0.2), ("running", 0.8)];
    said(
        "Cannot be told for sure: no lock was seen, and 80% of the time its threads ran; 20%",
        &few,
        vec![condvar("update")],
    );
    let few = [("thread", 0.08), ("running", 0.92)];
    said("Not locks: 92% of the time its threads ran; none", &few, vec![condvar("update")]);
    // Waits that are understood are no doubt.
    let main = on(Join, 1.0, &["pthread_join", "main"]);
    said("Not locks: 20% of the time its threads ran", &waits, vec![main]);
    said("Not locks: ", &waits, vec![on(Barrier, 4.0, &["futex_wait", "step"])]);
    // Names and calls tell of locks.
    let by_name = Wait {
        lock_function: Some("RWLock::lock_shared()".into()),
        ..on(Word, 4.0, &["syscall", "read_table"])
    };
    let named = said("Probably locks: 80% of the time", &waits, vec![by_name]);
    assert!(named.contains("in RWLock::lock_shared ← read_table"), "{named}");
    let file = Wait { syscall: Some("flock".into()), ..on(FileLock, 4.0, &["flock", "save"]) };
    said(
        "Probably locks: 80% of the time its threads waited for file locks (flock)",
        &waits,
        vec![file.clone()],
    );
    let held_by = |idle: f64| HoldingProcess {
        pid: 7,
        name: "cron".into(),
        share: 0.9.into(),
        waiting_for_work: idle.into(),
    };
    let held = |idle| Wait {
        name: Some("/var/lock/jobs".into()),
        held_by: vec![held_by(idle)],
        ..file.clone()
    };
    let by_cron = said("Locks: 80% of the time", &waits, vec![held(0.1)]);
    let who = "waited for the lock on /var/lock/jobs (flock) in save; held by cron (PID 7).";
    assert!(by_cron.contains(who), "{by_cron}");
    // Another process waits for the same lock, which a third one holds.
    let by_other = Wait {
        held_by: vec![HoldingProcess { pid: 8, name: "at".into(), ..held_by(0.0) }],
        ..held(0.0)
    };
    let by_both = answer(&waits, vec![held(0.0), by_other]);
    assert!(by_both.contains("; held in turn by cron (PID 7) and at (PID 8)."), "{by_both}");
    let idle = answer(&waits, vec![held(0.8)]);
    assert!(idle.starts_with("Cannot be told whether locks are to blame: 80%"), "{idle}");
    assert!(idle.contains("while its holder waited for work"), "{idle}");
    let mappings = Wait {
        syscall: Some("munmap".into()),
        ..profiles::wait(WaitKind::Unknown, Memory, 2.0, &["munmap", "recycle", "run"])
    };
    let mappings = said(
        "Probably locks: 40% of the time its threads waited in recycle ← run (munmap)",
        &[("unknown", 0.4), ("running", 0.6)],
        vec![mappings],
    );
    assert!(mappings.contains("mmap_lock"), "{mappings}");
    let asleep = |function, ns: f64| Wait {
        sleep_ns: Some(ns.into()),
        ..profiles::wait(WaitKind::Sleep, Other, 3.0, &["clock_nanosleep", function, "step"])
    };
    let sleeps = [("sleep", 0.8), ("running", 0.2)];
    said(
        "Cannot be told whether locks are to blame: 80% of the time its threads slept",
        &sleeps,
        vec![asleep("busy_handler", 2e6)],
    );
    // Threads that try something between short sleeps look like any others that sleep shortly.
    let tick = said(
        "Cannot be told whether locks are to blame: 80% of the time its threads slept, about 2 ms at a time, again and again",
        &sleeps,
        vec![asleep("tick", 2e6)],
    );
    assert!(tick.contains("in tick ← step, as if polling for something"), "{tick}");
    said("Not locks: 80% of the time its threads slept", &sleeps, vec![asleep("tick", 2e8)]);
    let asks = Wait { lock_function: Some("fe_wait_lock".into()), ..asleep("tune", 2e8) };
    let asks = said(
        "Cannot be told whether locks are to blame: 80% of the time its threads slept",
        &sleeps,
        vec![asks],
    );
    assert!(asks.contains("in fe_wait_lock ← tune"), "{asks}");
    let few = [("sleep", 0.2), ("running", 0.8)];
    said(
        "Cannot be told for sure: no lock was seen, and 80% of the time its threads ran; 20% they slept, about 2 ms",
        &few,
        vec![asleep("tick", 2e6)],
    );
    // Waits that are not understood at all are told first.
    let waits = vec![asleep("tick", 2e6), condvar("checkout")];
    said(
        "Cannot be told whether locks are to blame: 70% of the time its threads waited",
        &[("thread", 0.7), ("sleep", 0.3)],
        waits,
    );
    said(
        "Not locks: 80% of the time its threads slept",
        &sleeps,
        vec![asleep("busy_handler", 2e9)],
    );
}

#[test]
fn semaphores_of_system_v_are_named_with_their_use() {
    let semaphore = |usage, value_max| SysvSemaphore {
        set: 7,
        number: Some(2),
        key: Some(0x4d2),
        readings: 40.into(),
        value_max: Some(value_max),
        usage,
        held_share: (usage == SemaphoreUse::Lock).then(|| 0.975.into()),
        changed_by: Some(LastChange { pid: 9, name: "parent".into(), share: 0.9.into() }),
    };
    let said = |begins: &str, what, semaphore, held_by| {
        let wait = Wait {
            syscall: Some("semop".into()),
            name: Some("semaphore 2 of System V set 7 with key 0x4d2".into()),
            semaphore: Some(semaphore),
            held_by,
            ..profiles::wait(WaitKind::Thread, what, 3.0, &["semop", "take", "main"])
        };
        let screen = flowing(&screen(&[("thread", 0.8), ("running", 0.2)], vec![wait]));
        assert!(screen.contains(begins), "{screen}");
        screen
    };
    let held_by = |idle: f64| {
        let (pid, name, share) = (7, "cron".into(), 0.9.into());
        vec![HoldingProcess { pid, name, share, waiting_for_work: idle.into() }]
    };
    let lock = said(
        "Probably locks: 80% of the time its threads waited for semaphore 2 of System V set 7",
        WaitFor::SysvSemaphore,
        semaphore(SemaphoreUse::Lock, 1),
        held_by(0.1),
    );
    let who = "with key 0x4d2 (semop), used as a lock (held in 39 of 40 readings), in take ← \
               main; probably held by cron (PID 7).";
    assert!(lock.contains(who), "{lock}");
    let pool = said(
        "Cannot be told whether locks are to blame: 80% of the time its threads waited for \
         semaphore 2 of System V set 7 with key 0x4d2 (semop) while its holder",
        WaitFor::SysvSemaphore,
        semaphore(SemaphoreUse::Lock, 1),
        held_by(0.8),
    );
    assert!(pool.contains("waited for work, as idle processes of a pool do"), "{pool}");
    let unsure = |usage, value_max| {
        let begins = "Cannot be told whether locks are to blame: 80% of the time its threads \
                      waited for other threads (semop, semaphore 2 of System V set 7 with key \
                      0x4d2 in take ← main); ";
        said(begins, WaitFor::SysvSemaphore, semaphore(usage, value_max), Vec::new())
    };
    let signal = unsure(SemaphoreUse::Signal, 0);
    assert!(signal.contains("a signal and no lock") && !signal.contains("PID 9"), "{signal}");
    let limit = unsure(SemaphoreUse::Unknown, 4);
    assert!(limit.contains("its value was up to 4, so it is a limit or a signal:"), "{limit}");
    let unknown = unsure(SemaphoreUse::Unknown, 1);
    let last = "a semaphore may be a lock, a limit or a signal (changed last by parent (PID 9)): \
                read that code to see which.";
    assert!(unknown.contains(last), "{unknown}");
    let zero = semaphore(SemaphoreUse::Unknown, 3);
    said("Not locks: ", WaitFor::Barrier, zero, Vec::new());
}

#[test]
fn cpu_time_that_goes_into_locks_is_told() {
    let screen = |locking: f64, loops: f64| {
        let mut time = profiles::time([0.8, 0.0, 0.0, 0.0, 0.2], &[]);
        (time.in_locking, time.in_spin_loops) = (locking.into(), loops.into());
        let mut seen = profiles::profile(&["a"], time, Vec::new());
        let site = |frames: &[&str]| vec![profiles::site(Role::Waiter, 50, frames)];
        seen.processes[0].locking = site(&["pthread_rwlock_rdlock", "look_up", "serve"]);
        seen.processes[0].spin_loops = site(&["add_up", "serve"]);
        let screen = first_screen(&seen, MORE, &plain(100));
        flowing(&screen)
    };
    let said = screen(0.5, 0.0);
    let expected = "No waits, but locks cost CPU time: for 62% of their CPU time, threads ran in \
                    functions that take or free locks (pthread_rwlock_rdlock ← look_up).";
    assert!(said.contains(expected), "{said}");
    let said = screen(0.1, 0.6);
    let expected = "Cannot be told whether locks are to blame: for at least 75% of their CPU time, threads spun in a loop until another \
                    thread changes a word, in add_up ← serve;";
    assert!(said.contains(expected), "{said}");
    assert!(screen(0.1, 0.05).contains("Not locks: 80% of the time its threads ran"));
}

/// The first screen of a program that spends half of its time asleep and that has this lock.
fn with_lock(lock: Lock, sites: &[&str]) -> String {
    let lock = Lock { sites: vec![profiles::site(Role::Holder, 9, sites)], ..lock };
    let mut seen =
        profiles::profile(&["a"], profiles::time([0.5, 0.0, 0.0, 0.0, 0.5], &[]), vec![lock]);
    let frames = ["clock_nanosleep", "record_event", "w"];
    seen.processes[0].waits = vec![Wait {
        sleep_ns: Some(1e6.into()),
        ..profiles::wait(WaitKind::Sleep, WaitFor::Other, 3.0, &frames)
    }];
    let screen = first_screen(&seen, MORE, &plain(120));
    flowing(&screen)
}

#[test]
fn a_lock_that_is_held_all_the_time_without_a_queue_is_a_contradiction() {
    let lock = |held: f64, threads| Lock {
        held_share: Some(held.into()),
        held_share_interval95: profiles::fraction(held - 0.02, held + 0.02),
        queue_mean: Some(0.0.into()),
        queue_max: Some(0),
        threads,
        gain: None,
        waiters: Vec::new(),
        causes: Vec::new(),
        ..profiles::saturated()
    };
    let said = with_lock(lock(0.95, 4), &["compute", "main"]);
    let held = "; cache_lock was held 95% of the time, although nobody was seen to wait for it.";
    assert!(
        said.contains("Cannot be told whether locks are to blame: ") && said.contains(held),
        "{said}"
    );
    let said = with_lock(lock(0.95, 4), &["write_journal", "record_event", "w"]);
    let held = "in record_event ← w, as if polling for cache_lock, which was held 95% of the time.";
    assert!(said.contains(" Probably locks: ") && said.contains(held), "{said}");
    let narrow = profiles::fraction(0.91, 0.99);
    let wide = profiles::fraction(0.7, 0.99);
    for (interval, held) in [(narrow, "was held 95% of"), (wide, "was held 70–99% of")] {
        let lock = Lock { held_share_interval95: interval, ..lock(0.95, 4) };
        let said = with_lock(lock, &["write_journal", "record_event", "w"]);
        assert!(said.contains(held), "{said}");
    }
    // A thread that keeps a lock for itself shows nothing.
    let said = with_lock(lock(0.95, 1), &["compute", "main"]);
    assert!(!said.contains("cache_lock was held"), "{said}");

    let time = || profiles::time([0.9, 0.1, 0.0, 0.0, 0.0], &[]);
    let answer = |lock: Lock| {
        let screen =
            first_screen(&profiles::profile(&["a"], time(), vec![lock]), MORE, &plain(200));
        screen.lines().skip(1).take(2).collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    let expected = "Cannot be told whether locks are to blame: 90% of the time its threads ran; cache_lock was held 95% of \
                    the time, although nobody was seen to wait for it: they may try again and \
                    again to take it.";
    let said = answer(lock(0.95, 4));
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(expected), "{said}");
    assert!(answer(lock(0.6, 4)).starts_with("Not locks: "));
    let wide = profiles::fraction(0.7, 0.97);
    let said = answer(Lock { held_share_interval95: wide, ..lock(0.85, 4) });
    assert!(flowing(&said).contains("cache_lock was held 70–97% of the time"), "{said}");
    let withheld = |threads| {
        answer(Lock { held_share: None, queue_mean: None, gain: None, ..lock(0.95, threads) })
    };
    let expected = "Cannot be told for sure: no lock was seen to matter, and 90% of the time its \
                    threads ran; the figures of cache_lock are withheld.";
    let (several, one) = (flowing(&withheld(4)), flowing(&withheld(1)));
    assert!(several.contains(expected), "{several}");
    assert!(one.contains("Not locks: 90% of the time its threads ran"), "{one}");
}

#[test]
fn threads_that_yield_again_and_again_may_wait_for_a_lock() {
    let mut time = profiles::time([0.8, 0.0, 0.0, 0.0, 0.2], &[]);
    (time.running, time.runnable, time.in_spin_loops) = (None, None, 0.6.into());
    let mut seen = profiles::profile(&["a"], time, Vec::new());
    seen.processes[0].spin_loops = vec![profiles::site(
        Role::Waiter,
        8,
        &["__sched_yield", "std::this_thread::yield()", "draw"],
    )];
    let said = first_screen(&seen, MORE, &plain(200));
    let expected = "Cannot be told whether locks are to blame: for 75% of their CPU time, threads yielded their CPUs again and \
                    again, in draw;";
    assert!(flowing(&said).contains(expected), "{said}");
}

#[test]
fn threads_that_yield_are_told_if_no_sample_shows_where() {
    let mut time = profiles::time([0.8, 0.0, 0.0, 0.0, 0.2], &[]);
    (time.running, time.runnable) = (None, None);
    let said = |yielding: f64| {
        let time = ThreadTime { yielding: yielding.into(), ..time.clone() };
        flowing(&first_screen(&profiles::profile(&["a"], time, Vec::new()), MORE, &plain(200)))
    };
    let expected = "Cannot be told whether locks are to blame: 70% of the time its threads left \
                    their CPUs again and again without going to sleep";
    assert!(said(0.7).contains(expected), "{}", said(0.7));
    assert!(said(0.05).contains("Not locks: 80% of the time"), "{}", said(0.05));
}

#[test]
fn threads_of_llvms_openmp_spin_at_barriers() {
    let said = |frames: &[&str]| {
        let mut time = profiles::time([0.8, 0.0, 0.0, 0.0, 0.2], &[]);
        (time.running, time.runnable, time.in_spin_loops) = (None, None, 0.6.into());
        let mut seen = profiles::profile(&["a"], time, Vec::new());
        seen.processes[0].spin_loops = vec![profiles::site(Role::Waiter, 8, frames)];
        flowing(&first_screen(&seen, MORE, &plain(200)))
    };
    let for_others = "where OpenMP's threads wait for one another at a barrier, or for work.";
    let yields = said(&["__sched_yield", "libomp.so.5+0x7c072", "__kmpc_fork_call", "solve"]);
    let expected = "Not locks: for 75% of their CPU time, threads yielded their CPUs again and \
                    again in";
    assert!(yields.contains(expected) && yields.contains(for_others), "{yields}");
    let spins = said(&["__kmp_hyper_barrier_release", "__kmp_launch_worker"]);
    let expected = "Not locks: for at least 75% of their CPU time, threads spun in";
    assert!(spins.contains(expected) && spins.contains(for_others), "{spins}");
    let other = said(&["__sched_yield", "solve"]);
    assert!(other.contains("Cannot be told"), "{other}");
}

#[test]
fn a_ruby_without_symbols_does_not_show_what_its_threads_wait_for() {
    let frames = ["pthread_cond_wait", "libruby-3.1.so.3.1.2+0x20a2ac", "rb_vm_exec"];
    let waits = |threads| Wait {
        function: Some("libruby-3.1.so.3.1.2+0x20a2ac".into()),
        ..profiles::wait(WaitKind::Thread, WaitFor::ConditionVariable, threads, &frames)
    };
    let said = answer(&[("thread", 0.6), ("running", 0.4)], vec![waits(3.0)]);
    let expected = "Cannot be told whether locks are to blame: 60% of the time its threads waited \
                    in Ruby: for its global lock (GVL), for other threads, or asleep.";
    assert!(said.starts_with(expected) && !said.contains("0x20a2ac"), "{said}");
    let said = answer(&[("thread", 0.2), ("running", 0.8)], vec![waits(1.0)]);
    assert!(!said.contains("Ruby"), "{said}");
}

#[test]
fn waits_for_the_lock_of_a_runtime_are_added_up() {
    let lock = |threads, function: &str| Wait {
        name: Some("GVL (Ruby)".into()),
        function: Some(function.into()),
        lock_function: Some("rb_threadptr_execute_interrupts".into()),
        ..profiles::wait(WaitKind::Thread, WaitFor::LibraryLock, threads, &["pthread_cond_wait"])
    };
    let time = [("thread", 0.6), ("running", 0.4)];
    let said = answer(&time, vec![lock(2.0, "libruby.so+0x1"), lock(1.0, "libruby.so+0x2")]);
    let expected = "Locks: 60% of the time its threads waited for the GVL (Ruby). One thread at a \
                    time runs Ruby: use processes, Ractors, or extensions that release the lock.";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn the_tasks_of_an_asynchronous_runtime_are_not_seen() {
    let frames = [
        "syscall",
        "tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar",
        "tokio::runtime::scheduler::multi_thread::worker::run",
    ];
    let parked = profiles::wait(WaitKind::Thread, WaitFor::ConditionVariable, 2.0, &frames);
    let said = answer(&[("thread", 0.6), ("sleep", 0.4)], vec![parked.clone()]);
    let expected = "Cannot be told whether locks are to blame: 60% of the time Tokio parked its threads, and tasks that wait \
                    for an asynchronous lock are not seen; tokio-console shows them.";
    assert!(said.starts_with(expected), "{said}");
    let said = answer(&[("thread", 0.4), ("running", 0.6)], vec![parked]);
    let expected = "Cannot be told for sure: no lock was seen, and 60% of the time its threads \
                    ran; 40% Tokio parked them, and tasks";
    assert!(said.starts_with(expected), "{said}");
    // A task that blocks its thread is seen.
    let frames = ["futex", "std::sync::Condvar::wait", "load", "tokio::runtime::task::raw::poll"];
    let blocks = Wait {
        function: Some("load".into()),
        ..profiles::wait(WaitKind::Thread, WaitFor::ConditionVariable, 2.0, &frames)
    };
    let said = answer(&[("thread", 0.6), ("running", 0.4)], vec![blocks]);
    assert!(!said.contains("Tokio"), "{said}");
}

#[test]
fn a_single_thread_waits_for_no_other_thread() {
    let mut time = profiles::time([0.1, 0.0, 0.0, 0.0, 0.0], &[]);
    (time.thread_wait, time.unknown) = (0.9.into(), 0.0.into());
    let mut seen = profiles::profile(&["a"], time, Vec::new());
    seen.processes[0].threads_max = 1;
    let frames = ["epoll_wait", "serve", "main"];
    seen.processes[0].waits =
        vec![profiles::wait(WaitKind::Thread, WaitFor::Descriptor, 0.9, &frames)];
    let screen = first_screen(&seen, MORE, &plain(200));
    let waited = "its threads waited for other processes or something else (";
    assert!(flowing(&screen).contains(waited), "{screen}");
    assert!(!screen.contains("other threads"), "{screen}");
}

#[test]
fn locks_that_only_names_tell_stand_beside_those_that_were_seen() {
    let mut time = profiles::time([0.2, 0.0, 0.1, 0.0, 0.0], &[]);
    (time.thread_wait, time.unknown) = (0.7.into(), 0.0.into());
    let lock = Lock { gain: None, ..profiles::saturated() };
    let mut seen = profiles::profile(&["a"], time, vec![lock]);
    let frames = ["pthread_cond_wait", "update_catalog", "writer"];
    let by_name = Wait {
        lock_function: Some("boost::shared_mutex::lock()".into()),
        ..profiles::wait(WaitKind::Thread, WaitFor::ConditionVariable, 5.0, &frames)
    };
    seen.processes[0].waits = vec![by_name];
    let screen = first_screen(&seen, MORE, &plain(120));
    let said = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let more = "cache_lock costs most. They probably also wait for locks: 70% of the time, in \
                boost::shared_mutex::lock ← update_catalog ← writer.";
    assert!(said.contains(more), "{said}");
}

#[test]
fn an_initialisation_names_who_waits_and_who_runs_it() {
    let once = Wait {
        run_by: Some("load_config".into()),
        ..profiles::wait(WaitKind::Thread, WaitFor::Once, 5.0, &["futex", "get_config", "worker"])
    };
    let said = answer(&[("thread", 0.71), ("sleep", 0.29)], vec![once]);
    assert!(said.starts_with("Initialisation: 71%"), "{said}");
    assert!(said.contains("in get_config ← worker; load_config runs it."), "{said}");
}

#[test]
fn what_one_thread_did_meanwhile_is_told_with_the_wait() {
    let state = |state, syscall: Option<&str>, frames: &[&str], share: f64| StateShare {
        state,
        syscall: syscall.map(Into::into),
        frames: frames.iter().map(|&name| name.into()).collect(),
        share: share.into(),
    };
    let asleep = ["fdatasync", "write_log", "commit", "client"];
    let meanwhile = Meanwhile {
        function: "write_log".into(),
        threads: 4,
        takes_turns: true,
        is_like_a_lock: false,
        states: vec![
            state(StateThen::Asleep, Some("fdatasync"), &asleep, 0.8),
            state(StateThen::Running, None, &["crc32", "write_log", "client"], 0.15),
            state(StateThen::Runnable, None, &[], 0.05),
        ],
    };
    let wait = Wait {
        meanwhile: Some(meanwhile),
        ..profiles::wait(WaitKind::Thread, WaitFor::Word, 5.0, &["syscall", "commit", "client"])
    };
    let time = profiles::time([0.1, 0.0, 0.0, 0.0, 0.2], &[]);
    let time = ThreadTime { thread_wait: 0.7.into(), unknown: 0.0.into(), ..time };
    let mut seen = profiles::profile(&["a"], time, Vec::new());
    seen.processes[0].waits = vec![wait];
    let said = flowing(&first_screen(&seen, MORE, &plain(120)));
    let first = "70% of the time its threads waited for other threads (futex in commit ← client) \
                 while another was in write_log ← commit; read that code";
    assert!(said.contains(first), "{said}");
    let line = "While they waited, another thread was in write_log ← commit: fdatasync 80%, \
                running in crc32 15%, waiting for a CPU 5%";
    assert!(said.contains(line), "{said}");
    seen.processes[0].waits[0].meanwhile.as_mut().unwrap().is_like_a_lock = true;
    let said = flowing(&first_screen(&seen, MORE, &plain(120)));
    let first = "Probably locks: 70% of the time its threads waited for other threads (futex) in \
                 commit ← client while another was in write_log ← commit, and went on one at a \
                 time.";
    assert!(said.contains(first), "{said}");
}

#[test]
fn figures_from_few_samples_are_rough() {
    let line = |samples, threads| {
        let frames = ["clock_nanosleep", "nap", "main"];
        let wait = Wait {
            sleep_ns: Some(3e6.into()),
            sites: vec![profiles::site(Role::Waiter, samples, &frames)],
            ..profiles::wait(WaitKind::Sleep, WaitFor::Other, threads, &frames)
        };
        let time = profiles::time([0.1, 0.0, 0.0, 0.0, 0.9], &[]);
        let mut seen = profiles::profile(&["a"], time, Vec::new());
        seen.processes[0].waits = vec![wait];
        flowing(&first_screen(&seen, MORE, &plain(120)))
    };
    let (few, many) = (line(9, 1.9), line(400, 1.9));
    assert!(few.contains("nap ← main ~2 threads (1.56–5.77 ms at a time)"), "{few}");
    assert!(many.contains("nap ← main 1.9 threads (about 3 ms at a time)"), "{many}");
}

/// First lines of a profile with these locks, whose threads wait for them 60% of the time.
fn answer_for(locks: Vec<Lock>) -> String {
    let time = profiles::time([0.1, 0.0, 0.6, 0.3, 0.0], &[]);
    let screen = first_screen(&profiles::profile(&["a"], time, locks), MORE, &plain(120));
    flowing(&screen)
}

#[test]
fn many_locks_that_share_the_waiting_are_told_together() {
    let lock = |id| {
        let queue_mean = Some(0.4.into());
        let sites = vec![profiles::site(Role::Waiter, 30, &["pthread_mutex_lock", "touch", "run"])];
        Lock { queue_mean, queue_max: Some(2), sites, ..profiles::lock(id, "") }
    };
    let said = answer_for((1..=40).map(lock).collect());
    let expected = "spread over 40 locks, most of it for those taken in touch.";
    assert!(said.contains(expected), "{said}");
    assert!(!answer_for((1..=4).map(lock).collect()).contains("spread over"));
}

#[test]
fn a_lock_that_nobody_was_seen_to_take_is_told_first() {
    let never = Lock { never_taken: true, gain: None, ..profiles::saturated() };
    let said = answer_for(vec![never]);
    assert!(
        said.contains("; cache_lock was held in every sample, and none of its waiters got it."),
        "{said}"
    );
}

#[test]
fn a_parent_says_nothing_of_the_processes_that_do_its_work() {
    let said = |children| {
        let time = profiles::time([0.0, 0.0, 0.0, 0.0, 1.0], &[]);
        let mut profile = profiles::profile(&["sh"], time, Vec::new());
        profile.processes[0].children = children;
        first_screen(&profile, MORE, &plain(120))
    };
    assert!(said(4).contains("Not locks in this process: 100%"), "{}", said(4));
    assert!(said(4).contains("Its 4 child processes"), "{}", said(4));
    assert!(said(1).contains("Its child process was"), "{}", said(1));
    assert!(said(0).contains("Not locks: 100%"), "{}", said(0));
    assert!(!said(0).contains("child"), "{}", said(0));
}
