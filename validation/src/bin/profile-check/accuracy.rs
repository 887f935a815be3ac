//! Held shares and queues of random programs, against their accounts.

use crate::{Run, bound, chosen, run, runs, shown, words};
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::judge::{
    HELD_LIMIT, Judged, compare, consistent, queue_limit, rows,
};
use threadtoll_profile_programs::options::number;
use threadtoll_profile_programs::statistics::Random;
use threadtoll_profile_programs::truth::{Modes, realised};

const LANGUAGES: [(&str, &[&str]); 5] = [
    ("c", &["mutex", "mutex", "adaptive", "rwlock", "mutex,mutex,rwlock"]),
    ("c-static", &["mutex", "mutex", "adaptive", "rwlock", "mutex,mutex,rwlock"]),
    ("cpp", &["mutex", "mutex", "atomic", "rwlock", "mutex,rwlock,mutex"]),
    (
        "rust",
        &["std-mutex", "parking-lot", "std-rwlock", "parking-lot-rwlock", "std-mutex,std-rwlock"],
    ),
    (
        "rust-static",
        &["std-mutex", "std-mutex", "parking-lot", "std-rwlock", "std-mutex,std-mutex"],
    ),
];

/// Programs are looked through up to this one for those that `--only` chooses.
const LAST_PROGRAM: usize = 100_000;

/// A random program: its name and arguments, and its number of threads that use locks.
fn program(random: &mut Random, seed: usize) -> (String, String, usize) {
    let (language, kinds) = *random.one_of(&LANGUAGES);
    let kinds = *random.one_of(kinds);
    let locks = kinds.split(',').count() as f64;
    let threads = *random.one_of(&[2usize, 3, 4, 8, 16, 32, 64]);
    let work = *random.one_of(&["compute", "sleep", "sleep", "fsync", "read"]);
    let shape = *random.one_of(&["exponential", "fixed"]);
    let hold_us = 200.0 * 50f64.powf(random.share());
    // The load that the threads would be on each lock if they never waited.
    let load = 0.1 + random.share();
    let think_us = hold_us * (threads as f64 / (locks * load) - 1.0).max(0.2);
    // Threads that compute when they do not hold a lock fill the CPUs.
    let thinking =
        if threads <= 4 { *random.one_of(&["sleep", "sleep", "compute"]) } else { "sleep" };
    let (pool, idle) = *random.one_of(&[(0, 0), (3, 0), (3, 4)]);
    let arguments = format!(
        "--threads {threads} --locks {kinds} --hold {hold_us:.0}us \
         --think {think_us:.0}us --work {work} --think-work {thinking} \
         --shape {shape} --pool {pool} --idle {idle} --seed {seed}"
    );
    (format!("shares-{language}"), arguments, threads)
}

/// A lock that the profile does not show.
struct Missing {
    text: String,
    queue: f64,
}

/// Mean number of waiting threads with which a lock ought to be seen in a run of seconds.
const WAITED_FOR: f64 = 0.001;

/// Locks of a run, judged; the one with the longest queue first.
fn judged(run: &Run) -> Vec<Result<(String, Judged), Missing>> {
    let [from, to] = run.interval;
    let mut judged = Vec::new();
    for lock in run.facts.locks.iter().filter(|lock| lock.judged) {
        let truth = |modes| realised(&run.account, lock.id, modes, from, to);
        let found = rows(&run.profile, lock);
        if found.is_empty() {
            let truth = truth(Modes::Any);
            let queue = truth.queue_mean.unwrap_or(0.0);
            let missing = format!("{} not seen, held {:.3}", lock.kind, truth.held_share);
            let text = format!("{missing}, queue {queue:.3}");
            judged.push((queue, Err(Missing { text, queue })));
        }
        for (row, modes) in found {
            let figures = compare(row, truth(modes));
            let queue = figures.truth.queue_mean.unwrap_or(0.0);
            judged.push((queue, Ok((row.kind.clone(), figures))));
        }
    }
    judged.sort_by(|a, b| b.0.total_cmp(&a.0));
    judged.into_iter().map(|(_, judged)| judged).collect()
}

#[derive(Default)]
struct Tally {
    locks: usize,
    inside: usize,
    withheld: usize,
    outside: usize,
    not_seen: usize,
    held_off: usize,
    queue_off: usize,
    queue_inside: usize,
    queues: usize,
    failed: usize,
    /// Figures that are not withheld.
    helds_given: usize,
    queues_given: usize,
}

impl Tally {
    fn add(&mut self, judged: &Judged) {
        self.locks += 1;
        self.helds_given += usize::from(judged.held.value.is_some());
        match judged.held.covers() {
            Some(true) => self.inside += 1,
            Some(false) => self.outside += 1,
            None => self.withheld += 1,
        }
        self.held_off += usize::from(judged.held.off().is_some_and(|off| off.abs() > HELD_LIMIT));
        if let Some(queue) = &judged.queue {
            self.queues += 1;
            self.queues_given += usize::from(queue.value.is_some());
            self.queue_inside += usize::from(queue.covers() == Some(true));
            let limit = queue_limit(queue.truth);
            self.queue_off += usize::from(queue.off().is_some_and(|off| off.abs() > limit));
        }
    }
}

fn print(judged: &Judged, kind: &str) {
    let Judged { truth, held, queue } = judged;
    let interval = |ends: Option<[f64; 2]>| {
        ends.map_or_else(|| "withheld".to_owned(), |[low, high]| format!("{low:.3}..{high:.3}"))
    };
    let covers = |covers: Option<bool>| match covers {
        Some(true) => "in",
        Some(false) => "OUT",
        None => "-",
    };
    println!(
        "    {kind:14} held {:.3} {:>6} {:15} {:4} {:>6} | \
         queue {:>6} {:>6} {:15} {:4} {:>6} | max {}, users {}",
        truth.held_share,
        shown(held.value),
        interval(held.interval),
        covers(held.covers()),
        shown(held.off()),
        shown(truth.queue_mean),
        shown(queue.and_then(|queue| queue.value)),
        interval(queue.and_then(|queue| queue.interval)),
        covers(queue.and_then(|queue| queue.covers())),
        shown(queue.and_then(|queue| queue.off())),
        truth.queue_max,
        truth.users,
    );
}

pub(crate) fn check() -> Result<bool, Error> {
    let seed = number("seed", "1") as u64;
    let mut random = Random::new(seed);
    // Of each run the lock with the longest queue counts; the others are a tally of their own.
    let (mut first, mut others) = (Tally::default(), Tally::default());
    let runs = runs("100");
    let mut guessed = 0;
    println!("truth, profile, interval, truth in it or not, off by; of held share and of queue");
    let programs = (1..LAST_PROGRAM).map(|number| (number, program(&mut random, number)));
    let programs = programs.filter(|(_, (name, line, _))| chosen(&format!("{name} {line}")));
    for (number, (name, arguments, threads)) in programs.take(runs) {
        println!("{number}: {name} {arguments}");
        let budget: &[&str] = if threads > 16 { &["--budget", "10%"] } else { &[] };
        let run = match run(&name, &words(&arguments), budget, |_| Ok(())) {
            Ok(run) => run,
            Err(error) => {
                println!("    FAILED: {error}");
                first.failed += 1;
                continue;
            }
        };
        consistent(&run.facts, &run.account)?;
        guessed += usize::from(run.profile.interval.is_none());
        for (rank, judged) in judged(&run).into_iter().enumerate() {
            let tally = if rank == 0 { &mut first } else { &mut others };
            match judged {
                Ok((kind, judged)) => {
                    print(&judged, &kind);
                    tally.add(&judged);
                }
                Err(Missing { text, queue }) => {
                    println!("    {text}");
                    // Locks that nobody waits for are beyond the method.
                    tally.not_seen += usize::from(queue >= WAITED_FOR);
                }
            }
        }
    }
    if guessed > 0 {
        println!("{guessed} profiles do not say when they sampled: their intervals are guessed");
    }
    for (name, tally) in [("lock with the longest queue", &first), ("other locks", &others)] {
        println!(
            "{name}: {} judged; held share in its interval {}, outside {}, withheld {}; \
             not seen {}; off by more than 3 points {}; queue in its interval {} of {}, \
             off by more than 5% and 0.05 {}; failed {}",
            tally.locks,
            tally.inside,
            tally.outside,
            tally.withheld,
            tally.not_seen,
            tally.held_off,
            tally.queue_inside,
            tally.queues,
            tally.queue_off,
            tally.failed,
        );
    }
    let all = (first.locks + first.not_seen + first.failed) as f64;
    // Fewer than 100 runs may all be inside by chance.
    let most = if all >= 100.0 { 0.99 } else { 1.0 };
    let within = |count: usize, of: usize| (0.9..=most).contains(&(count as f64 / of as f64));
    let text = format!("held share in its interval in 90 to 99% of {}", first.helds_given);
    let mut passed = bound(&text, within(first.inside, first.helds_given));
    let given = first.helds_given.min(first.queues_given) as f64;
    passed &= bound("both given for at least 90% of them", given >= 0.9 * all);
    let text = format!("held shares off by at most 3 points ({} given)", first.helds_given);
    passed &= bound(&text, first.held_off == 0 && first.helds_given > 0);
    let text = format!("queue in its interval in 90 to 99% of {}", first.queues_given);
    passed &= bound(&text, within(first.queue_inside, first.queues_given));
    let text = format!("queues off by at most 5% or 0.05 ({} given)", first.queues_given);
    Ok(bound(&text, first.queue_off == 0 && first.queues_given > 0) && passed)
}
