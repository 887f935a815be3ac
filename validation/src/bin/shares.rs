//! `native/shares.c` in Rust: `--locks` of std-mutex, std-rwlock, parking-lot, parking-lot-rwlock.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use threadtoll_profile_programs::account::{self, EXCLUSIVE, Entry, stopping};
use threadtoll_profile_programs::locks::Lock;
use threadtoll_profile_programs::options::{duration_ns, given, number, option};
use threadtoll_profile_programs::statistics::Random;
use threadtoll_profile_programs::work::{Work, calibrate, compute_for, sleep_for};

struct Load {
    locks: Vec<Lock>,
    hold: f64,
    think: f64,
    fixed: bool,
    holding: Work,
    thinking: Work,
    read_share: f64,
}

impl Load {
    fn time(&self, random: &mut Random, mean: f64) -> f64 {
        if self.fixed { mean } else { random.exponential(mean) }
    }

    #[inline(never)]
    fn update_cache(&self, lock: &Lock, ns: f64) {
        lock.hold(|| self.holding.run(ns));
    }

    #[inline(never)]
    fn look_up(&self, lock: &Lock, ns: f64) {
        lock.hold_shared(|| self.holding.run(ns));
    }

    fn use_locks(&self, mut random: Random) {
        while !stopping() {
            self.thinking.run(self.time(&mut random, self.think));
            let lock = random.one_of(&self.locks);
            let ns = self.time(&mut random, self.hold);
            if lock.has_readers() && random.share() <= self.read_share {
                self.look_up(lock, ns);
            } else {
                self.update_cache(lock, ns);
            }
        }
    }
}

/// Identity of the lock of the pool.
const JOBS: u32 = 20_000;

#[derive(Default)]
struct Pool {
    jobs: Mutex<Jobs>,
    posted: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: usize,
    closed: bool,
}

impl Pool {
    fn serve(&self) {
        loop {
            let mut entry = Entry::ask(JOBS, EXCLUSIVE);
            let mut jobs = self.jobs.lock().expect("nobody panics");
            entry.got();
            while jobs.waiting == 0 && !jobs.closed {
                entry.leave();
                jobs = self.posted.wait(jobs).expect("nobody panics");
                entry = Entry::reacquired(JOBS);
            }
            let closed = jobs.closed;
            jobs.waiting = jobs.waiting.saturating_sub(1);
            entry.leave();
            drop(jobs);
            if closed {
                return;
            }
            compute_for(50e3);
        }
    }

    fn post(&self, mut random: Random) {
        while !stopping() {
            sleep_for(random.exponential(5e6));
            let entry = Entry::ask(JOBS, EXCLUSIVE);
            let mut jobs = self.jobs.lock().expect("nobody panics");
            entry.got();
            jobs.waiting += 1;
            self.posted.notify_one();
            entry.leave();
        }
    }

    fn close(&self) {
        self.jobs.lock().expect("nobody panics").closed = true;
        self.posted.notify_all();
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(256 << 10)
        .spawn(run)
        .expect("a thread can be started")
}

fn main() {
    account::start(given("truth").map(Into::into), false);
    calibrate();
    let kinds = option("locks", "std-mutex");
    let copies = number("copies", "1") as usize;
    let kinds = kinds.split(',').flat_map(|kind| std::iter::repeat_n(kind, copies));
    let load = Arc::new(Load {
        locks: kinds.zip(0..).map(|(kind, id)| Lock::new(id, kind)).collect(),
        hold: duration_ns("hold", "1ms"),
        think: duration_ns("think", "7ms"),
        fixed: option("shape", "exponential") == "fixed",
        holding: Work::named(&option("work", "sleep")),
        thinking: Work::named(&option("think-work", "sleep")),
        read_share: number("read-share", "0.8"),
    });
    load.locks.iter().for_each(Lock::print);

    let seed = number("seed", "1") as u64 * 1_000_003;
    let (workers, idlers) = (number("pool", "0") as u64, number("idle", "0") as u64);
    let (pool, idle) = (Arc::new(Pool::default()), Arc::new(Pool::default()));
    let mut users = Vec::new();
    for user in 0..number("threads", "8") as u64 {
        let load = load.clone();
        users.push(start("user", move || load.use_locks(Random::new(seed + user))));
    }
    let mut waiting = Vec::new();
    for (name, count, pool) in [("pool", workers, &pool), ("idle", idlers, &idle)] {
        for _ in 0..count {
            let pool = pool.clone();
            waiting.push(start(name, move || pool.serve()));
        }
    }
    if workers > 0 {
        println!("side lock {JOBS} std-mutex {:#x} 16 jobs", &raw const pool.jobs as usize);
        let pool = pool.clone();
        users.push(start("poster", move || pool.post(Random::new(seed + 1_000_000))));
    }
    account::run_until_told();
    for user in users {
        user.join().expect("nobody panics");
    }
    pool.close();
    idle.close();
    for waiter in waiting {
        waiter.join().expect("nobody panics");
    }
    load.locks.iter().for_each(Lock::print_gaps);
}
