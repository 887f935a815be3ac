//! All methods of a mutex, called by four threads one after the other, against a plain model: who
//! holds the lock, who waits, whether it is poisoned.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{Full, LockBoundedTimeoutError};
use threadtoll::lock::{Mutex, MutexGuard};

const WORKERS: usize = 4;
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_micros(50);

/// A method that locks.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Lock,
    Try,
    Timeout,
    Bounded(usize),
    BoundedTimeout(usize),
}

/// Something that the holder does.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Drop,
    Fairly,
    Panic,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(usize, Entry),
    Exit(Exit),
    ClearPoison,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Enter(Entry),
    Exit(Exit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Entered,
    Refused,
    Full(usize),
    TimedOut,
    Poisoned,
    Left,
}

fn step() -> impl Strategy<Value = Step> {
    let bound = 0..WORKERS;
    let entry = prop_oneof![
        4 => Just(Entry::Lock),
        1 => Just(Entry::Try),
        1 => Just(Entry::Timeout),
        3 => bound.clone().prop_map(Entry::Bounded),
        1 => bound.prop_map(Entry::BoundedTimeout),
    ];
    let exit = prop_oneof![4 => Just(Exit::Drop), 3 => Just(Exit::Fairly), 1 => Just(Exit::Panic)];
    prop_oneof![
        6 => (0..WORKERS, entry).prop_map(|(worker, entry)| Step::Enter(worker, entry)),
        5 => exit.prop_map(Step::Exit),
        1 => Just(Step::ClearPoison),
    ]
}

/// Carries out orders, and answers each when it is done.
fn work(mutex: &Mutex<u64>, name: usize, orders: Receiver<Order>, done: Sender<(usize, Outcome)>) {
    let mut held: Option<MutexGuard<'_, u64>> = None;
    for order in orders {
        let outcome = match order {
            Order::Enter(entry) => {
                let entered = catch_unwind(AssertUnwindSafe(|| enter(mutex, entry)));
                match entered.unwrap_or(Err(Outcome::Poisoned)) {
                    Ok(guard) => {
                        held = Some(guard);
                        Outcome::Entered
                    }
                    Err(outcome) => outcome,
                }
            }
            Order::Exit(exit) => {
                let mut guard = held.take().expect("only the holder is told to leave");
                *guard += 1;
                match exit {
                    Exit::Drop => drop(guard),
                    Exit::Fairly => MutexGuard::unlock_fair(guard),
                    Exit::Panic => {
                        let panicked = catch_unwind(AssertUnwindSafe(|| {
                            let _guard = guard;
                            resume_unwind(Box::new("halfway"));
                        }));
                        assert!(panicked.is_err());
                    }
                }
                Outcome::Left
            }
        };
        done.send((name, outcome)).expect("the test waits for it");
    }
}

fn enter(mutex: &Mutex<u64>, entry: Entry) -> Result<MutexGuard<'_, u64>, Outcome> {
    match entry {
        Entry::Lock => Ok(mutex.lock()),
        Entry::Try => mutex.try_lock().ok_or(Outcome::Refused),
        Entry::Timeout => mutex.lock_timeout(SOON).map_err(|_| Outcome::TimedOut),
        Entry::Bounded(bound) => {
            mutex.lock_bounded(bound).map_err(|Full { queue }| Outcome::Full(queue))
        }
        Entry::BoundedTimeout(bound) => {
            mutex.lock_bounded_timeout(bound, SOON).map_err(|error| match error {
                LockBoundedTimeoutError::Full { queue } => Outcome::Full(queue),
                LockBoundedTimeoutError::Timeout => Outcome::TimedOut,
            })
        }
    }
}

/// A mutex with its workers, and what is expected of it.
struct Run<'a> {
    mutex: &'a Mutex<u64>,
    poisons: bool,
    orders: Vec<Sender<Order>>,
    done: Receiver<(usize, Outcome)>,
    holder: Option<usize>,
    waiting: Vec<usize>,
    is_poisoned: bool,
    visits: u64,
}

impl Run<'_> {
    fn tell(&self, worker: usize, order: Order) {
        self.orders[worker].send(order).expect("the worker lives");
    }

    fn hear(&self) -> (usize, Outcome) {
        self.done.recv_timeout(PATIENCE).expect("no wait is for ever")
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Enter(worker, entry) => {
                if self.holder != Some(worker) && !self.waiting.contains(&worker) {
                    self.enter(worker, entry);
                }
            }
            Step::Exit(exit) => {
                if let Some(holder) = self.holder {
                    self.exit(holder, exit);
                }
            }
            Step::ClearPoison => {
                self.mutex.clear_poison();
                self.is_poisoned = false;
            }
        }
        assert_eq!(self.mutex.queue_len(), self.waiting.len());
        assert_eq!(self.mutex.is_poisoned(), self.is_poisoned);
    }

    fn enter(&mut self, worker: usize, entry: Entry) {
        self.tell(worker, Order::Enter(entry));
        let queue = self.waiting.len();
        let expected = match entry {
            _ if self.holder.is_none() && self.is_poisoned => Outcome::Poisoned,
            _ if self.holder.is_none() => Outcome::Entered,
            Entry::Try => Outcome::Refused,
            Entry::Bounded(bound) | Entry::BoundedTimeout(bound) if queue >= bound => {
                Outcome::Full(queue)
            }
            Entry::Timeout | Entry::BoundedTimeout(_) => Outcome::TimedOut,
            Entry::Lock | Entry::Bounded(_) => {
                // It waits.
                self.waiting.push(worker);
                while self.mutex.queue_len() < self.waiting.len() {
                    thread::yield_now();
                }
                return;
            }
        };
        assert_eq!(self.hear(), (worker, expected));
        if expected == Outcome::Entered {
            self.holder = Some(worker);
        }
    }

    fn exit(&mut self, holder: usize, exit: Exit) {
        self.tell(holder, Order::Exit(exit));
        self.holder = None;
        self.visits += 1;
        self.is_poisoned |= self.poisons && matches!(exit, Exit::Panic);
        // The lock goes to one waiter, or, if it is poisoned, to all of them in turn.
        let served = if self.is_poisoned { self.waiting.len() } else { 1.min(self.waiting.len()) };
        let mut answers: Vec<_> = (0..=served).map(|_| self.hear()).collect();
        answers.retain(|answer| *answer != (holder, Outcome::Left));
        assert_eq!(answers.len(), served);
        for (worker, outcome) in answers {
            let place = self.waiting.iter().position(|waiting| *waiting == worker);
            self.waiting.remove(place.expect("it waited"));
            if self.is_poisoned {
                assert_eq!(outcome, Outcome::Poisoned);
            } else {
                assert_eq!(outcome, Outcome::Entered);
                self.holder = Some(worker);
            }
        }
    }

    /// Lets everybody in and out, and counts the visits.
    fn finish(mut self) {
        while let Some(holder) = self.holder {
            self.exit(holder, Exit::Drop);
        }
        assert!(self.waiting.is_empty());
        self.mutex.clear_poison();
        assert_eq!(*self.mutex.try_lock().expect("it is free"), self.visits);
    }
}

fn agrees(is_fair: bool, poisons: bool, steps: Vec<Step>) {
    let mutex = if is_fair { Mutex::fair(0) } else { Mutex::new(0) };
    let mutex = if poisons { mutex.poisoning() } else { mutex };
    let (tell, done) = channel();
    thread::scope(|scope| {
        let orders = (0..WORKERS)
            .map(|name| {
                let (order, orders) = channel();
                let (mutex, tell) = (&mutex, tell.clone());
                scope.spawn(move || work(mutex, name, orders, tell));
                order
            })
            .collect();
        let mut run = Run {
            mutex: &mutex,
            poisons,
            orders,
            done,
            holder: None,
            waiting: Vec::new(),
            is_poisoned: false,
            visits: 0,
        };
        for step in steps {
            run.apply(step);
        }
        run.finish();
    });
}

/// Number of cases: `PROPTEST_CASES`, or else 300.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_mutex_agrees_with_a_plain_model(
        is_fair: bool,
        poisons: bool,
        steps in vec(step(), 0..60),
    ) {
        agrees(is_fair, poisons, steps);
    }
}
