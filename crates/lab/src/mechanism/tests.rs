//! Every mechanism delivers every message intact and in order, and the loops detect a mechanism
//! that does not.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{Layout, Pause};

use crate::exchange::{DRAIN_ROUNDS, Ends, Exchange, LoopResult, LoopSpec, Stamps, StopAt};

use super::lanes::Lane;
use super::{Class, Mechanism, Mechanisms, Settings, Unavailable};

/// Longer than any pass in these tests, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings(payload_bytes: usize) -> Settings {
    Settings { payload_bytes, layout: Layout::Own, pause: Pause::Off }
}

/// Returns both ends' results of consecutive passes, or `None` if a pass takes longer than
/// `patience`.
fn exchange(
    mechanism: &Mechanism,
    settings: &Settings,
    patience: Duration,
) -> Option<Vec<(LoopResult, Option<LoopResult>)>> {
    const PASSES: [(u64, u64); 3] = [(4, 1), (1, 1), (30, 9)];
    let last = Arc::new(StopAt::default());
    let (done, answers) = channel();
    let spec = |first, (stretches, per_stretch)| LoopSpec {
        first,
        stretches,
        per_stretch,
        until: u64::MAX,
    };
    let (mut lead, follow) = match mechanism.make(settings) {
        Ok(Ends { lead, follow }) => (lead, follow),
        Err(unavailable) => {
            println!("skipped: {} cannot be had here: {unavailable}", mechanism.name);
            return Some(Vec::new());
        }
    };
    let entered = Arc::new(Barrier::new(1 + usize::from(follow.is_some())));
    let alone = follow.is_none();
    if let Some(mut follow) = follow {
        let (done, last, entered) = (done.clone(), Arc::clone(&last), Arc::clone(&entered));
        thread::spawn(move || {
            follow.enter();
            entered.wait();
            let mut first = 1;
            for _ in PASSES {
                let led = follow.follow(first, &last, Stamps::None);
                first = led.next;
                let _ = done.send((false, led));
            }
        });
    }
    thread::spawn(move || {
        lead.enter();
        entered.wait();
        let mut first = 1;
        for size in PASSES {
            let led = lead.lead(spec(first, size), &last, Stamps::None);
            first = led.next;
            let _ = done.send((true, led));
        }
    });
    let (mut leading, mut following) = (Vec::new(), Vec::new());
    while leading.len() < PASSES.len() || (!alone && following.len() < PASSES.len()) {
        match answers.recv_timeout(patience) {
            Ok((true, led)) => leading.push(led),
            Ok((false, led)) => following.push(led),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
    let following = following.into_iter().map(Some).chain(std::iter::repeat(None));
    Some(leading.into_iter().zip(following).collect())
}

#[track_caller]
fn delivers(mechanism: &Mechanism, settings: &Settings) {
    let name = &mechanism.name;
    let Some(found) = exchange(mechanism, settings, PATIENCE) else {
        panic!("{name}, {settings:?}: a message was lost");
    };
    // The first number is 1. Passes have 4, 1 and 30 × 9 round trips, and two more at the end of
    // each.
    for ((led, followed), next) in found.iter().zip([7, 10, 282]) {
        assert_eq!(*led, LoopResult { next, wrong: 0 }, "{name}, {settings:?}: the leading end");
        assert_eq!(followed.is_none(), mechanism.class == Class::OneThread, "{name}");
        assert!(
            followed.is_none_or(|followed| followed == *led),
            "{name}, {settings:?}: {followed:?}"
        );
    }
}

/// Two ends that spin on one CPU alternate only at the scheduler's tick, so hundreds of messages
/// would take minutes.
fn possible(mechanism: &&Mechanism) -> bool {
    let possible = mechanism.class != Class::Spin || allowed_cpus().len() > 1;
    if !possible {
        println!("skipped: {} spins, and there is only one CPU", mechanism.name);
    }
    possible
}

#[test]
fn every_mechanism_delivers_every_message_whole_and_in_order() {
    let _alone = machine_lock().unwrap();
    for mechanism in Mechanisms::default().all().filter(possible) {
        for payload_bytes in [8, 4096] {
            delivers(mechanism, &settings(payload_bytes));
        }
    }
}

#[test]
fn lines_deliver_however_they_lie_and_wait() {
    let _alone = machine_lock().unwrap();
    let chosen = |mechanism: &&Mechanism| mechanism.has_layout || mechanism.has_pause;
    for mechanism in Mechanisms::default().all().filter(chosen).filter(possible) {
        for (layout, pause, payload_bytes) in [
            (Layout::Own, Pause::Off, 8),
            (Layout::Own, Pause::On, 1024),
            (Layout::Shared, Pause::Off, 1024),
            (Layout::Shared, Pause::On, 8),
        ] {
            delivers(mechanism, &Settings { payload_bytes, layout, pause });
        }
    }
}

#[test]
fn messages_larger_than_any_buffer_of_the_kernel_arrive() {
    let _alone = machine_lock().unwrap();
    let mechanisms = Mechanisms::default();
    for name in ["os-pipe", "socketpair", "tcp-loopback"] {
        // More than a pipe or a socket holds by default.
        delivers(mechanisms.find(name).unwrap(), &settings(1 << 18));
    }
}

#[test]
fn names_are_distinct_and_found_and_sentences_short() {
    let mechanisms = Mechanisms::default();
    assert_eq!(mechanisms.find("smoke-signal"), None);
    let mut names: Vec<&str> = mechanisms.all().map(|one| one.name.as_str()).collect();
    assert!(names.iter().all(|name| mechanisms.find(name).is_some()));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), mechanisms.all().count());
    for mechanism in mechanisms.all() {
        assert!(
            mechanism.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            mechanism.name
        );
        assert!(
            !mechanism.sentence.is_empty() && mechanism.sentence.len() < 100,
            "{}",
            mechanism.name
        );
        assert_eq!(mechanism.has_layout, mechanism.class == Class::Spin, "{}", mechanism.name);
    }
}

/// Fault of an end in message [`SPOILT`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    Nothing,
    /// The right number, with the contents of the previous message.
    OldRest,
    /// The right number, with the contents of a different message.
    OtherWord,
    /// The previous message again.
    Replayed,
    /// The next message instead.
    Skipped,
    Lost,
}

const SPOILT: u64 = 100;

struct Faulty {
    to: Lane,
    from: Lane,
    tell: Sender<()>,
    told: Receiver<()>,
    fault: Fault,
}

fn faulty(
    settings: &Settings,
    lead_fault: Fault,
    follow_fault: Fault,
) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    let (there, here) = (channel(), channel());
    Ok(Ends::two(
        Faulty { to: lead.0, from: lead.1, tell: there.0, told: here.1, fault: lead_fault },
        Faulty { to: follow.0, from: follow.1, tell: here.0, told: there.1, fault: follow_fault },
    ))
}

impl Exchange for Faulty {
    fn send(&mut self, seq: u64) {
        let fault = if seq == SPOILT { self.fault } else { Fault::Nothing };
        let seq = if fault == Fault::Skipped { seq + 1 } else { seq };
        match fault {
            Fault::OldRest | Fault::Replayed => {}
            // SAFETY: the ends take turns, and the message is announced below.
            _ => unsafe { self.to.write(seq) },
        }
        if fault == Fault::OtherWord {
            // SAFETY: the ends take turns, and the message is announced below.
            unsafe { self.to.write(seq + 7) };
        }
        if fault != Fault::Replayed {
            self.to.store(seq, Ordering::Release);
        }
        if fault != Fault::Lost {
            let _ = self.tell.send(());
        }
    }

    fn receive(&mut self) -> u64 {
        if self.told.recv().is_err() {
            return 0;
        }
        let seq = self.from.load(Ordering::Acquire);
        // SAFETY: the message was written before it was announced, and this end has not replied
        // yet.
        unsafe { self.from.read(seq) }
    }
}

pub(crate) fn broken(name: &str, lead: Fault, follow: Fault) -> Mechanism {
    let sentence = "a mechanism that does not keep its promise";
    Mechanism::new(name, Class::Sleep, sentence, move |settings| faulty(settings, lead, follow))
}

#[test]
fn wrong_messages_are_noticed_whichever_way_they_went() {
    delivers(&broken("sound", Fault::Nothing, Fault::Nothing), &settings(64));
    let faults = [Fault::OldRest, Fault::OtherWord, Fault::Replayed, Fault::Skipped];
    for (lead, follow) in
        faults.iter().flat_map(|fault| [(*fault, Fault::Nothing), (Fault::Nothing, *fault)])
    {
        let mechanism = broken("spoiling", lead, follow);
        let found = exchange(&mechanism, &settings(64), PATIENCE).unwrap();
        let wrong = |pass: usize| {
            let (led, followed) = found[pass];
            led.wrong | followed.unwrap().wrong
        };
        // Message 100 is in the third pass only.
        assert_eq!((wrong(0), wrong(1)), (0, 0), "{lead:?} {follow:?}");
        assert_ne!(wrong(2), 0, "{lead:?} {follow:?}: not detected");
    }
}

#[test]
fn a_lost_message_is_waited_for_no_longer_than_patience_lasts() {
    let losing = broken("losing", Fault::Lost, Fault::Nothing);
    assert!(exchange(&losing, &settings(64), Duration::from_millis(200)).is_none());
}

#[test]
fn a_pass_ends_by_the_clock_and_both_ends_agree_where() {
    let clock = Clock::gate().unwrap().0;
    let ends = Mechanisms::default().find("std-mpsc").unwrap().make(&settings(8)).unwrap();
    let Ends { mut lead, follow: Some(mut follow) } = ends else { panic!("two ends") };
    let last = Arc::new(StopAt::default());
    let others = Arc::clone(&last);
    let other = thread::spawn(move || {
        let mut times = Vec::new();
        let followed = follow.follow(1, &others, Stamps::Times(&clock, &mut times));
        (followed, times)
    });
    let mut times = Vec::new();
    let until = clock.stamp() + clock.ticks(2e6);
    let spec = LoopSpec { first: 1, stretches: u64::MAX, per_stretch: 2, until };
    let led = lead.lead(spec, &last, Stamps::Times(&clock, &mut times));
    let (followed, arrivals) = other.join().unwrap();
    assert_eq!(led, followed);
    assert_eq!(led.wrong, 0);
    let stretches = times.len() as u64 - 1;
    assert_eq!(
        led.next,
        1 + 2 * stretches + DRAIN_ROUNDS,
        "the marks tell how many round trips there were"
    );
    assert_eq!(
        arrivals.len() as u64,
        2 * stretches + DRAIN_ROUNDS,
        "every message was marked, the closing ones too"
    );
    // If there are only two marks, the first may already be later than `until`.
    assert!(
        times[times.len() - 1] >= until && (times.len() == 2 || times[times.len() - 2] < until),
        "at the first mark after the time"
    );
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
}
