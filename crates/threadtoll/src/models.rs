//! Models of the protocols between threads, small enough for a checker to try every execution.
//!
//! loom tries every interleaving up to a number of preemptions, and every value that a load may
//! return under the memory model. shuttle runs many random, sequentially consistent schedules of
//! longer models. `ci/loom.sh`, `ci/long/loom.sh` and `ci/long/shuttle.sh` run them.
//!
//! Each model lists the mutations that it must notice: places in the code, marked by `mutate!`,
//! that are broken one at a time. Each runs in a process of its own, since a broken program may
//! crash.

#[cfg(threadtoll_loom)]
use loom as checker;
#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
use shuttle as checker;

mod call;
mod funnel;
mod lock;
#[cfg(threadtoll_shuttle)]
mod long;
mod oneshot;
mod owned;
mod pipe;
mod ring;
mod select;
mod task;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sync::{self, Kernel};

/// The environment variable with the place to break.
const BREAK: &str = "THREADTOLL_BREAK";

/// A test that a model holds, and a test that it notices its mutations. Mutations under `orders`
/// are left to loom: they are wrong only if memory is weakly ordered, which shuttle does not model,
/// or in schedules that random ones rarely hit. `fewer` reduces the number of preemptions that loom
/// tries while nothing is broken; `more` raises it in every run.
macro_rules! model {
    ($(#[doc = $what:literal])* $name:ident($($kernel:ident),+) $(fewer $fewer:literal)? $(more $more:literal)? $(orders [$($order:ident),*])? $(steps [$($step:ident),*])? $body:block) => {
        $(#[doc = $what])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn body() $body

            #[test]
            fn holds() {
                for kernel in [$(crate::sync::Kernel::$kernel),+] {
                    crate::models::check(kernel, 0 $(+ $fewer)? $(- $more)?, body);
                }
            }

            #[test]
            fn notices() {
                #[allow(unused_mut)]
                let mut places: Vec<&str> = Vec::new();
                $(if cfg!(threadtoll_loom) {
                    places.extend([$(stringify!($order)),*]);
                })?
                $(places.extend([$(stringify!($step)),*]);)?
                crate::models::assert_notices(concat!(module_path!(), "::holds"), &places);
            }
        }
    };
}
use model;

/// Checks a model with one kind of kernel.
fn check(kernel: Kernel, fewer: isize, body: fn()) {
    let broken = std::env::var(BREAK).unwrap_or_default();
    // A mutation is noticed early, and may need all preemptions.
    let fewer = if broken.is_empty() { fewer } else { fewer.min(0) };
    let executions = Arc::new(AtomicUsize::new(0));
    let began = std::time::Instant::now();
    let count = Arc::clone(&executions);
    explore(fewer, move || {
        count.fetch_add(1, Relaxed);
        sync::begin(kernel, &broken);
        body();
        assert_eq!(sync::boxes(), 0, "memory was not freed");
    });
    println!("{kernel:?}: {executions:?} executions in {:.1} s", began.elapsed().as_secs_f64());
}

#[cfg(threadtoll_loom)]
fn explore(fewer: isize, execution: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound =
        Some(builder.preemption_bound.unwrap_or(2).saturating_add_signed(-fewer));
    builder.max_branches = 20_000;
    builder.check(execution);
}

#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
fn explore(_: isize, execution: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("SHUTTLE_SCHEDULES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1000);
    let execution = Arc::new(execution);
    let random = Arc::clone(&execution);
    shuttle::check_random(move || random(), schedules);
    shuttle::check_pct(move || execution(), schedules, 3);
}

/// Asserts that a model fails if any of the places is broken.
fn assert_notices(test: &str, places: &[&str]) {
    // The harness omits the crate from a test's name.
    let (_, test) = test.split_once("::").unwrap();
    // shuttle skips mutations under `orders`.
    assert!(cfg!(threadtoll_shuttle) || !places.is_empty(), "{test} has nothing to notice");
    let mut missed = Vec::new();
    for place in places {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(BREAK, place)
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("running 1 test"), "{test} did not run: {said}");
        if output.status.success() {
            missed.push(place);
            continue;
        }
        let why = said
            .lines()
            .skip_while(|line| !line.contains("panicked at"))
            .nth(1)
            .unwrap_or("it crashed");
        println!("{test}: {place}: {why}");
    }
    assert!(missed.is_empty(), "{test} does not notice that this is broken: {missed:?}");
}

/// The places that can be broken are exactly those that models list.
#[test]
fn every_place_has_a_model() {
    fn find(
        folder: &std::path::Path,
        marked: &mut BTreeSet<String>,
        listed: &mut BTreeSet<String>,
    ) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find(&path, marked, listed);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            if path.components().any(|part| part.as_os_str() == "models") {
                let lists = code
                    .map(str::trim)
                    .filter(|line| line.starts_with("orders [") || line.starts_with("steps ["));
                let places = lists.flat_map(|line| line.split(['[', ']', ',']).skip(1));
                listed.extend(
                    places.map(|place| place.trim().to_owned()).filter(|place| !place.is_empty()),
                );
            } else if !path.ends_with("models.rs") {
                let code: String = code.collect();
                let places =
                    code.split("mutate!(").skip(1).filter_map(|rest| rest.split(',').next());
                marked.extend(places.map(|place| place.trim().to_owned()));
            }
        }
    }
    let (mut marked, mut listed) = (BTreeSet::new(), BTreeSet::new());
    find(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut marked, &mut listed);
    assert_eq!(marked, listed);
}

thread_local! {
    /// Number of drops of each message. All threads of a model run on one thread.
    static DROPS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Starts counting the drops of `messages`.
fn tally(messages: usize) {
    DROPS.set(vec![0; messages]);
}

/// Returns `true` if a message was dropped.
fn is_dropped(message: usize) -> bool {
    DROPS.with_borrow(|drops| drops[message] > 0)
}

/// Asserts that each message was dropped exactly once.
fn settled() {
    let drops = DROPS.take();
    assert!(drops.iter().all(|drops| *drops == 1), "number of drops of each message: {drops:?}");
}

/// A message that is counted when it is dropped.
#[derive(Debug)]
struct Message(usize);

impl Drop for Message {
    fn drop(&mut self) {
        DROPS.with_borrow_mut(|drops| drops[self.0] += 1);
    }
}
