//! `native/causes.c` in Rust: `causes CAUSE --lock std-mutex|parking-lot`.
//!
//! A writer starves only behind a lock that prefers readers, which std's does not: that cause needs
//! `--lock parking-lot-recursive`. Herds wait on std's condition variable.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use threadtoll_profile_programs::account::{self, EXCLUSIVE, Entry, stopping};
use threadtoll_profile_programs::locks::Lock;
use threadtoll_profile_programs::options::{fail, given, option};
use threadtoll_profile_programs::statistics::Random;
use threadtoll_profile_programs::work::{Work, calibrate, compute_for, sleep_for};

static PRINCIPAL: AtomicI32 = AtomicI32::new(0);

struct Table {
    lock: Lock,
    holding: Work,
}

impl Table {
    #[inline(never)]
    fn rebuild(&self, ns: f64) {
        self.lock.hold(|| self.holding.run(ns));
    }

    #[inline(never)]
    fn read(&self, ns: f64) {
        self.lock.hold_shared(|| self.holding.run(ns));
    }

    fn principal(&self, hold: f64, think: f64) {
        PRINCIPAL.store(account::thread_id(), Ordering::Relaxed);
        while !stopping() {
            self.rebuild(hold);
            if think > 0.0 {
                sleep_for(think);
            }
        }
    }

    fn other(&self, hold: f64, think: f64, mut random: Random) {
        while !stopping() {
            sleep_for(random.exponential(think));
            self.rebuild(hold);
        }
    }

    fn reader(&self, mut random: Random) {
        while !stopping() {
            self.read(random.exponential(3e6));
            sleep_for(0.3e6);
        }
    }
}

/// A mutex with a condition variable, at which a herd is woken.
#[derive(Default)]
struct Gate {
    generation: Mutex<u64>,
    changed: Condvar,
}

impl Gate {
    fn follow(&self) {
        let mut entry = Entry::ask(0, EXCLUSIVE);
        let mut generation = self.generation.lock().expect("nobody panics");
        entry.got();
        while !stopping() {
            let seen = *generation;
            while *generation == seen && !stopping() {
                entry.leave();
                generation = self.changed.wait(generation).expect("nobody panics");
                entry = Entry::reacquired(0);
            }
            compute_for(150e3);
        }
        entry.leave();
    }

    fn announce(&self) {
        loop {
            sleep_for(4e6);
            let last = stopping();
            let entry = Entry::ask(0, EXCLUSIVE);
            let mut generation = self.generation.lock().expect("nobody panics");
            entry.got();
            *generation += 1;
            self.changed.notify_all();
            entry.leave();
            drop(generation);
            if last {
                return;
            }
        }
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).expect("a thread can be started")
}

/// Threads of a cause: hold and think of the principal thread and of the others.
struct Cast {
    principal: Option<(f64, f64)>,
    others: u64,
    other: (f64, f64),
    readers: u64,
    spinners: usize,
    also: &'static str,
}

const USUAL: Cast = Cast {
    principal: Some((2e6, 1.5e6)),
    others: 3,
    other: (0.5e6, 6e6),
    readers: 0,
    spinners: 0,
    also: "-",
};

fn cast(cause: &str) -> Cast {
    match cause {
        "slept-holding" | "computing" => USUAL,
        "preempted" => {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            Cast { spinners: 4 * cpus, also: "computing", ..USUAL }
        }
        "throttled" => Cast { also: "computing,preempted", ..USUAL },
        "convoy" => {
            // SAFETY: the option takes a number.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            Cast { principal: None, others: 8, other: (5e3, 60e3), also: "computing", ..USUAL }
        }
        "hog" => {
            Cast { principal: Some((100e3, 0.0)), other: (20e3, 1e6), also: "computing", ..USUAL }
        }
        "starved-writer" => Cast {
            principal: Some((0.1e6, 5e6)),
            others: 0,
            readers: 4,
            also: "slept-holding",
            ..USUAL
        },
        _ => fail(&format!("no such cause: {cause}")),
    }
}

fn main() {
    let cause = std::env::args().nth(1).unwrap_or_default();
    account::start(given("truth").map(Into::into), cause != "convoy");
    calibrate();
    if cause == "herd" {
        return herd();
    }
    let cast = cast(&cause);
    let holding = match cause.as_str() {
        "slept-holding" => Work::named(&option("work", "sleep")),
        "starved-writer" => Work::Sleep,
        _ => Work::Compute,
    };
    let table = Arc::new(Table { lock: Lock::new(0, &option("lock", "std-mutex")), holding });
    table.lock.print();

    let mut threads = Vec::new();
    if let Some((hold, think)) = cast.principal {
        let table = table.clone();
        threads.push(start("principal", move || table.principal(hold, think)));
        while PRINCIPAL.load(Ordering::Relaxed) == 0 {
            sleep_for(1e6);
        }
    }
    for seed in 0..cast.others {
        let (table, (hold, think)) = (table.clone(), cast.other);
        threads.push(start("other", move || table.other(hold, think, Random::new(seed))));
    }
    for seed in 0..cast.readers {
        let table = table.clone();
        threads.push(start("reader", move || table.reader(Random::new(seed))));
    }
    for _ in 0..cast.spinners {
        threads.push(start("spinner", || {
            while !stopping() {
                compute_for(1e6);
            }
        }));
    }
    let holder = if cast.readers > 0 { 0 } else { PRINCIPAL.load(Ordering::Relaxed) };
    println!("cause {cause} 0 {holder} {} {}", cast.also, holding.call());
    account::run_until_told();
    for thread in threads {
        thread.join().expect("nobody panics");
    }
    table.lock.print_gaps();
}

fn herd() {
    let gate = Arc::new(Gate::default());
    println!("lock 0 std-mutex {:#x} 16 gate", &raw const gate.generation as usize);
    let mut threads = Vec::new();
    for _ in 0..8 {
        let gate = gate.clone();
        threads.push(start("woken", move || gate.follow()));
    }
    let announcing = gate.clone();
    threads.push(start("announcer", move || announcing.announce()));
    println!("cause herd 0 0 computing -");
    account::run_until_told();
    for thread in threads {
        thread.join().expect("nobody panics");
    }
}
