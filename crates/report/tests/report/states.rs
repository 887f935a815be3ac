//! Threads over time on a profile's page.

use std::path::PathBuf;

use threadtoll_record::file::Profiled;
use threadtoll_record::profile::{
    HoldingThread, LockHolders, Profile, ThreadState, Trace, TracedThread,
};
use threadtoll_report::html::page;

use crate::{fixture, profiles};

const COLUMNS: u32 = 568;
const STATES: usize = 8;

/// Samples at random, the same ones each time.
struct Draws(u64);

impl Draws {
    /// A number of samples for each column and state, by the weights of the states.
    fn samples(&mut self, weights: impl Fn(u32) -> [u32; STATES]) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![0; COLUMNS as usize]; STATES];
        for column in 0..COLUMNS {
            let weights = weights(column);
            for _ in 0..12 + self.below(8) {
                let mut left = self.below(weights.iter().sum());
                let of_state = |&weight: &u32| {
                    let here = left < weight;
                    left = left.saturating_sub(weight);
                    here
                };
                let state = weights.iter().position(of_state).unwrap_or(STATES - 1);
                rows[state][column as usize] += 1;
            }
        }
        rows
    }

    fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 33) % u64::from(most)) as u32
    }
}

/// A server whose workers have work from a fifth of the time on, and queue for a lock whenever
/// another thread holds it to refresh a cache.
fn trace(workers: u32) -> Trace {
    let lock =
        |lock, name: &str| ThreadState::Lock { pid: 4711, lock, name: name.to_owned().into() };
    let states = vec![
        ThreadState::Running,
        ThreadState::Runnable,
        lock(3, "cache_lock"),
        lock(4, "log_lock"),
        ThreadState::Io,
        ThreadState::Threads,
        ThreadState::Idle,
        ThreadState::Asleep,
    ];
    let mut draws = Draws(7);
    let refreshes = |column: u32| column >= 114 && column % 190 > 110;
    let worker = |column| match column {
        0..114 => [0, 0, 0, 0, 0, 0, 1, 0],
        _ if refreshes(column) => [0, 0, 1, 0, 0, 0, 0, 0],
        _ => [10, 1, 3, 2, 4, 0, 0, 0],
    };
    let refresher = |column| match refreshes(column) {
        true => [1, 0, 0, 0, 19, 0, 0, 0],
        false => [0, 0, 0, 0, 0, 0, 0, 1],
    };
    let thread = |tid, name: &str, samples| TracedThread {
        pid: 4711,
        tid,
        name: name.to_owned().into(),
        samples,
    };
    let mut threads: Vec<TracedThread> =
        (0..workers).map(|nth| thread(4713 + nth, "worker", draws.samples(worker))).collect();
    threads.push(thread(4712, "refresher", draws.samples(refresher)));
    threads.push(thread(4711, "server", draws.samples(|_| [0, 0, 0, 0, 0, 1, 0, 0])));
    let held = |by_refresher: bool| {
        let held = |column| match (column, refreshes(column)) {
            (0..114, _) => 0,
            (_, refreshes) => u32::from(refreshes == by_refresher) * 3,
        };
        (0..COLUMNS).map(held).collect()
    };
    Trace {
        run: "20261121T100000000-7".into(),
        start_ns: 1e9.into(),
        column_ns: 17.6e6.into(),
        columns: COLUMNS,
        states,
        threads,
        others: draws.samples(|_| [1, 0, 0, 0, 0, 0, 30, 9]),
        holders: Some(LockHolders {
            pid: 4711,
            lock: 3,
            name: "cache_lock".into(),
            threads: vec![
                HoldingThread { tid: 4712, name: "refresher".into(), samples: held(true) },
                HoldingThread { tid: 4714, name: "worker".into(), samples: held(false) },
            ],
            others: Vec::new(),
            not_seen: vec![0; 200].into_iter().chain([1; 100]).collect(),
        }),
    }
}

/// Leaves the page for people to look at.
fn page_of(name: &str, trace: Option<Trace>, profile: Profile) -> String {
    let profile = Profile { trace: trace.map(Box::new), ..profile };
    let plan = fixture::plan(&fixture::machine(2), &[]);
    let page = page(&[], &[Profiled { plan, profile, notes: Vec::new() }]);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("states-{name}.html"));
    assert!(std::fs::write(&path, &page).is_ok(), "{} cannot be written", path.display());
    page
}

#[test]
fn each_thread_has_a_row_below_the_holders() {
    let page = page_of("server", Some(trace(8)), profiles::sleeping_holder());
    for part in [
        "The threads over time",
        "Who held cache_lock while threads waited for it",
        "From 9400 samples: a thread was seen every",
        ">worker (TID 4720)</text>",
        ">all other threads</text>",
        "waits for cache_lock",
        "class=\"c1\"",
        "class=\"t-holds\"",
        "<title>server (TID 4711), 0 ns–10.0 s: waits for other threads 100%</title>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let rows = |page: &str| page.matches("preserveAspectRatio=\"none\" y=").count();
    assert_eq!(rows(&page), 3 + 8 + 3);
    // Of the page without them.
    let without = page_of("none", None, profiles::sleeping_holder());
    assert!(!without.contains("over time"));
    assert!(page.len() < without.len() + 80_000, "{} and {}", page.len(), without.len());
    assert!(page.len() < 150_000, "{}", page.len());
}

#[test]
fn a_page_of_very_many_threads_stays_small() {
    let page = page_of("many", Some(trace(62)), profiles::sleeping_holder());
    assert!(page.len() < 150_000, "{}", page.len());
    assert!(page.contains("<summary>49 more rows, in columns of "));
    assert!(page.contains("worker (TID 4774)"));
}

#[test]
fn what_was_seen_little_has_wider_columns() {
    let few = Trace { threads: trace(3).threads, ..trace(3) };
    let sparse = |samples: &Vec<u32>| -> Vec<u32> {
        let every = |(column, &it): (usize, &u32)| if column % 16 == 3 { it.min(1) } else { 0 };
        samples.iter().enumerate().map(every).collect()
    };
    let threads = few.threads.iter().map(|thread| TracedThread {
        samples: thread.samples.iter().map(sparse).collect(),
        ..thread.clone()
    });
    let seen = Trace { threads: threads.collect(), ..few };
    let page = page_of("sparse", Some(seen), profiles::sleeping_holder());
    assert!(page.contains("heights are shares of each 282 ms"), "wider than 17.6 ms");
}

#[test]
fn names_and_numbers_of_any_file_are_harmless() {
    let evil = "\u{1b}[31m</text><script>alert(1)</script>\u{202E}evil\u{7}";
    let mut trace = trace(2);
    trace.states[2] = ThreadState::Lock { pid: u32::MAX, lock: u32::MAX, name: evil.into() };
    trace.states[3] = ThreadState::Lock { pid: 7, lock: 9, name: evil.into() };
    for (nth, thread) in trace.threads.iter_mut().enumerate() {
        (thread.name, thread.pid) = (evil.into(), nth as u32);
        thread.samples[0] = vec![u32::MAX; COLUMNS as usize];
    }
    let holders = trace.holders.as_mut().unwrap();
    holders.name = "".into();
    holders.threads[0].name = evil.into();
    holders.others = vec![u32::MAX; COLUMNS as usize];
    for (columns, column_ns) in [(COLUMNS, 1e18), (COLUMNS, 0.0), (1, 1e-9), (0, 1.0)] {
        let trace = Trace { columns, column_ns: column_ns.into(), ..trace.clone() };
        let page = page_of("hostile", Some(trace), profiles::sleeping_holder());
        assert_eq!(page.contains("evil"), columns > 0);
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
        assert!(!page.contains('\u{202E}') && !page.contains("NaN"));
        assert!(!page.contains("d=\"Minf") && !page.contains(">inf"));
    }
}
