//! A pool of workers that share one store, and refuse work when too many of them wait for it:
//! `cargo run -p threadtoll --example shed_load`.
//!
//! Eight workers would ask for the store twice as fast as it can serve them. Without a bound, half
//! of them stand in the queue of its lock, and each request waits for all of them. With a bound, a
//! request waits for `QUEUE` others at most, or is refused at once, so that its sender can go
//! elsewhere.

use std::thread;
use std::time::{Duration, Instant};

use threadtoll::lock::Mutex;

const WORKERS: usize = 8;
const REQUESTS_EACH: usize = 40;
const HOLD: Duration = Duration::from_millis(1);
const BETWEEN_REQUESTS: Duration = Duration::from_millis(3);
const QUEUE: usize = 2;

#[derive(Debug, Default)]
struct Tally {
    served: usize,
    refused: usize,
    longest_wait: Duration,
}

fn work(store: &Mutex<Vec<usize>>, bound: usize) -> Tally {
    let mut tally = Tally::default();
    for request in 0..REQUESTS_EACH {
        thread::sleep(BETWEEN_REQUESTS);
        let came = Instant::now();
        match store.lock_bounded(bound) {
            Ok(mut store) => {
                tally.longest_wait = tally.longest_wait.max(came.elapsed());
                thread::sleep(HOLD);
                store.push(request);
                tally.served += 1;
            }
            Err(_) => tally.refused += 1,
        }
    }
    tally
}

fn run(bound: usize) -> Tally {
    let store = Mutex::fair(Vec::new());
    let tally = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| work(&store, bound))).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).fold(
            Tally::default(),
            |sum, worker| Tally {
                served: sum.served + worker.served,
                refused: sum.refused + worker.refused,
                longest_wait: sum.longest_wait.max(worker.longest_wait),
            },
        )
    });
    assert_eq!(store.into_inner().len(), tally.served);
    tally
}

fn main() {
    println!("without a bound: {:?}", run(usize::MAX));
    println!("at most {QUEUE} wait: {:?}", run(QUEUE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_sheds_load() {
        assert_eq!(run(usize::MAX).refused, 0);
        let bounded = run(QUEUE);
        assert_eq!(bounded.served + bounded.refused, WORKERS * REQUESTS_EACH);
        assert!(bounded.refused > 0 && bounded.served > 0, "{bounded:?}");
    }
}
