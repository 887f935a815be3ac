//! An owner against a plain model, one operation after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use threadtoll::owned::{self, Context};
use threadtoll::pipe;

use crate::element::{Counted, Element, Ledger, cases, surviving};

#[derive(Clone, Copy, Debug)]
enum Step {
    Post,
    /// A closure that posts this many from inside.
    PostInside(u8),
    /// A closure that panics.
    PostPanic,
    PostStop,
    /// A timer that is due at once.
    Timer,
    CancelledTimer,
    Message,
    Round,
    Stop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => Just(Step::Post),
        6 => (0..90u8).prop_map(Step::PostInside),
        2 => Just(Step::PostPanic),
        1 => Just(Step::PostStop),
        6 => Just(Step::Timer),
        2 => Just(Step::CancelledTimer),
        10 => Just(Step::Message),
        12 => Just(Step::Round),
        1 => Just(Step::Stop),
    ]
}

/// What a closure of the model does, besides noting its number.
#[derive(Clone, Copy, Debug)]
struct Work {
    number: u64,
    inside: u8,
    panics: bool,
    stops: bool,
}

/// A plain owner, by the words of the documentation.
#[derive(Debug, Default)]
struct Plain {
    log: Vec<u64>,
    outside: VecDeque<Work>,
    /// Timers whose post has not run.
    later: VecDeque<Work>,
    timers: VecDeque<u64>,
    messages: VecDeque<u64>,
    stopped: bool,
}

impl Plain {
    /// Runs a closure. Returns `false` if it panics.
    fn run(&mut self, work: Work) -> bool {
        self.log.push(work.number);
        for index in 0..u64::from(work.inside) {
            let number = work.number * 1000 + index;
            self.later.push_back(Work { number, inside: 0, panics: false, stops: false });
        }
        self.stopped |= work.stops;
        !work.panics
    }

    /// A round. Returns `false` if a closure panics.
    fn round(&mut self) -> bool {
        let mut inside = self.later.len();
        let mut posts = 0;
        while posts < 64 {
            let before = posts;
            if inside > 0 && !self.stopped {
                inside -= 1;
                if let Some(work) = self.later.pop_front() {
                    posts += 1;
                    if !self.run(work) {
                        return false;
                    }
                }
            }
            if !self.stopped
                && let Some(work) = self.outside.pop_front()
            {
                posts += 1;
                // Numbers from this on are timers.
                if work.number >= TIMER {
                    if !work.stops {
                        self.timers.push_back(work.number);
                    }
                } else if !self.run(work) {
                    return false;
                }
            }
            if posts == before {
                break;
            }
        }
        let mut events = 0;
        while events < 16 {
            let before = events;
            if !self.stopped
                && let Some(timer) = self.timers.pop_front()
            {
                events += 1;
                self.log.push(timer);
            }
            if !self.stopped
                && let Some(message) = self.messages.pop_front()
            {
                events += 1;
                self.log.push(message);
            }
            if events == before {
                break;
            }
        }
        true
    }
}

const TIMER: u64 = 1 << 40;
const MESSAGE: u64 = 1 << 50;

struct State {
    log: Vec<u64>,
    ledger: Arc<Ledger>,
}

fn note(state: &mut State, number: u64) {
    state.log.push(number);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    #[test]
    fn an_owner_does_what_a_plain_one_does(steps in prop::collection::vec(step(), 1..400)) {
        let ledger = Arc::new(Ledger::default());
        let state = State { log: Vec::new(), ledger: Arc::clone(&ledger) };
        let (mut owner, handle) = owned::new(state);
        let (mut sender, receiver) = pipe::unbounded::<u64>();
        handle.post(|_, context| context.serve(receiver, |state, _, message| note(state, message)))
            .expect("the owner lives");
        owner.run_once(Duration::ZERO);
        let mut plain = Plain::default();
        let mut next = 0;
        for step in steps {
            next += 1;
            let mut work = Work { number: next, inside: 0, panics: false, stops: false };
            match step {
                Step::Post | Step::PostInside(_) | Step::PostPanic | Step::PostStop => {
                    work.inside = if let Step::PostInside(count) = step { count } else { 0 };
                    work.panics = matches!(step, Step::PostPanic);
                    work.stops = matches!(step, Step::PostStop);
                    let captured = Counted::make(next, &ledger);
                    let posted = handle.post(move |state: &mut State, context: &mut Context<State>| {
                        assert!(captured.is(work.number));
                        note(state, work.number);
                        for index in 0..u64::from(work.inside) {
                            let number = work.number * 1000 + index;
                            let captured = Counted::make(number, &state.ledger);
                            context.post(move |state, _| {
                                assert!(captured.is(number));
                                note(state, number);
                            });
                        }
                        if work.stops {
                            context.stop();
                        }
                        if work.panics {
                            std::panic::resume_unwind(Box::new("a closure that panics"));
                        }
                    });
                    prop_assert_eq!(posted.is_ok(), !plain.stopped);
                }
                Step::Timer | Step::CancelledTimer => {
                    let captured = Counted::make(next, &ledger);
                    work.number += TIMER;
                    work.stops = matches!(step, Step::CancelledTimer);
                    let timer = handle.after(Duration::ZERO, move |state, _| {
                        assert!(captured.is(work.number - TIMER));
                        note(state, work.number);
                    });
                    if work.stops {
                        timer.cancel();
                    }
                }
                Step::Message => {
                    prop_assert_eq!(sender.send(MESSAGE + next).is_ok(), !plain.stopped);
                    if !plain.stopped {
                        plain.messages.push_back(MESSAGE + next);
                    }
                    continue;
                }
                Step::Stop => {
                    handle.stop();
                    // It drops the rest in its next round.
                    plain.stopped = true;
                    owner.run_once(Duration::ZERO);
                    prop_assert!(!owner.run_once(Duration::ZERO));
                    continue;
                }
                Step::Round => {
                    let ran = surviving(|| _ = owner.run_once(Duration::ZERO));
                    prop_assert_eq!(ran, plain.round());
                    prop_assert_eq!(&owner.state().log, &plain.log);
                    if plain.stopped {
                        // A panic may have come before the end of the round.
                        owner.run_once(Duration::ZERO);
                    }
                    continue;
                }
            }
            if !plain.stopped {
                plain.outside.push_back(work);
            }
        }
        drop((owner, handle));
        ledger.assert_settled();
    }
}
