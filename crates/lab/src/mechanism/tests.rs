//! Every mechanism is run with real threads, and the loops must notice every kind of wrong message.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use threadtoll_record::{Layout, Pause};

use crate::exchange::{Course, Ends, Exchange, Last, Led, Marks};

use super::{ALL, Class, Settings};

fn settings(payload_bytes: usize, layout: Layout, pause: Pause) -> Settings {
    Settings { payload_bytes, layout, pause }
}

/// Runs two courses of `round_trips` with both ends and returns what the leading and the following end found in the last.
fn play(ends: Ends, round_trips: u64) -> (Led, Option<Led>) {
    let last = Arc::new(Last::default());
    let course = |first, stretches, per_stretch| Course { first, stretches, per_stretch, until: u64::MAX };
    match ends {
        Ends::One(mut lead) => {
            lead.enter();
            let first = lead.lead(course(1, 1, round_trips), &last, Marks::None);
            (lead.lead(course(first.next, round_trips, 1), &last, Marks::None), None)
        }
        Ends::Two(mut lead, mut follow) => {
            let others = Arc::clone(&last);
            let (entered, wait) = channel();
            let other = std::thread::spawn(move || {
                follow.enter();
                entered.send(()).unwrap();
                let first = follow.follow(1, &others, Marks::None);
                let second = follow.follow(first.next, &others, Marks::None);
                Led { next: second.next, wrong: first.wrong | second.wrong }
            });
            lead.enter();
            wait.recv().unwrap();
            let first = lead.lead(course(1, 1, round_trips), &last, Marks::None);
            let second = lead.lead(course(first.next, round_trips, 1), &last, Marks::None);
            (Led { next: second.next, wrong: first.wrong | second.wrong }, Some(other.join().unwrap()))
        }
    }
}

#[test]
fn every_mechanism_delivers_every_message() {
    let _alone = threadtoll_machine::lock::machine_lock();
    let two_cpus = threadtoll_machine::place::allowed_cpus().len() > 1;
    for mechanism in ALL {
        if mechanism.class == Class::Spin && !two_cpus {
            eprintln!("{mechanism:?} skipped: it spins, and there is only one CPU");
            continue;
        }
        // Sleeping polls take a tenth of a millisecond each.
        let round_trips = if mechanism.class == Class::Poll { 50 } else { 300 };
        for payload in [8, 4096] {
            for (layout, pause) in [(Layout::Own, Pause::Off), (Layout::Shared, Pause::On)] {
                let ends = mechanism.make(&settings(payload, layout, pause)).unwrap();
                let (lead, follow) = play(ends, round_trips);
                // Two courses, each with one message that closes it.
                let next = 1 + 2 * (round_trips + 1);
                assert_eq!(lead, Led { next, wrong: 0 }, "{mechanism:?} {payload} {layout:?}");
                if let Some(follow) = follow {
                    assert_eq!(follow, Led { next, wrong: 0 }, "{mechanism:?} {payload} {layout:?}");
                }
            }
        }
    }
}

/// A message larger than what a pipe or a socket holds must not block both ends.
#[test]
fn the_largest_message_passes_through_the_kernel() {
    for name in ["os-pipe", "socketpair", "tcp-loopback", "std-mpsc"] {
        let mechanism = super::find(name).unwrap();
        let ends = mechanism.make(&settings(1 << 20, Layout::Own, Pause::Off)).unwrap();
        let (lead, follow) = play(ends, 3);
        assert_eq!((lead.wrong, follow.map(|follow| follow.wrong)), (0, Some(0)), "{name}");
    }
}

#[test]
fn names_are_unique_and_found() {
    for mechanism in ALL {
        assert_eq!(super::find(mechanism.name), Some(mechanism));
        assert_eq!(ALL.iter().filter(|other| other.name == mechanism.name).count(), 1);
        assert!(!mechanism.sentence.is_empty());
    }
    assert_eq!(super::find("smoke-signal"), None);
}

/// A channel whose ends change what they send, as a broken mechanism would.
struct Faulty {
    to: Sender<u64>,
    from: Receiver<u64>,
    /// From the sequence number that is due to the one that is sent.
    fault: fn(u64) -> u64,
}

impl Exchange for Faulty {
    fn send(&mut self, seq: u64) {
        self.to.send((self.fault)(seq)).unwrap();
    }

    fn receive(&mut self) -> u64 {
        self.from.recv().unwrap()
    }
}

fn with_faults(lead: fn(u64) -> u64, follow: fn(u64) -> u64) -> (Led, Option<Led>) {
    let (there_in, there_out) = channel();
    let (back_in, back_out) = channel();
    let lead = Faulty { to: there_in, from: back_out, fault: lead };
    let follow = Faulty { to: back_in, from: there_out, fault: follow };
    play(Ends::two(lead, follow), 20)
}

#[test]
fn a_wrong_message_is_noticed_by_its_receiver_whichever_way_it_went() {
    let right = |seq| seq;
    let (lead, follow) = with_faults(right, right);
    assert_eq!((lead.wrong, follow.unwrap().wrong), (0, 0));
    let faults: [(&str, fn(u64) -> u64); 3] = [
        ("an old message is replayed once", |seq| if seq == 7 { 6 } else { seq }),
        ("a message is skipped", |seq| if seq > 9 { seq + 1 } else { seq }),
        ("the last message is damaged", |seq| if seq == 42 { !seq } else { seq }),
    ];
    for (what, fault) in faults {
        let (_, follow) = with_faults(fault, right);
        assert_ne!(follow.unwrap().wrong, 0, "{what}, on the way there");
        let (lead, _) = with_faults(right, fault);
        assert_ne!(lead.wrong, 0, "{what}, on the way back");
    }
}

#[test]
fn a_course_ends_by_the_clock_and_both_ends_agree_where() {
    let clock = threadtoll_machine::clock::Clock::gate().unwrap().0;
    let ends = super::find("std-mpsc").unwrap().make(&settings(8, Layout::Own, Pause::Off)).unwrap();
    let Ends::Two(mut lead, mut follow) = ends else { panic!("two ends") };
    let last = Arc::new(Last::default());
    let others = Arc::clone(&last);
    let other = std::thread::spawn(move || {
        let mut times = Vec::new();
        let followed = follow.follow(1, &others, Marks::Times(&clock, &mut times));
        (followed, times)
    });
    let mut times = Vec::new();
    let until = clock.stamp() + clock.ticks(2e6);
    let course = Course { first: 1, stretches: u64::MAX, per_stretch: 2, until };
    let led = lead.lead(course, &last, Marks::Times(&clock, &mut times));
    let (followed, arrivals) = other.join().unwrap();
    assert_eq!(led, followed);
    assert_eq!(led.wrong, 0);
    let stretches = times.len() as u64 - 1;
    assert_eq!(led.next, 1 + 2 * stretches + 1, "the marks tell how many round trips there were");
    assert_eq!(arrivals.len() as u64, 2 * stretches + 1, "every message was marked, the closing one too");
    assert!(times[times.len() - 1] >= until && times[times.len() - 2] < until, "at the first mark after the time");
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
}
