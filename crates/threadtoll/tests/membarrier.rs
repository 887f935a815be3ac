//! The parking protocol, state by state.
//!
//! A pipe's sender does not fence between storing its message and checking for a sleeper; the
//! sleeper makes it do so with `membarrier(2)`. This call is outside Rust's memory model, so
//! checkers that run the code itself can only prove the fallback, with a fence on both sides. Here
//! the protocol of `src/wait/park.rs` is written down once more, instruction by instruction, for a
//! [machine] that reorders like x86 or more, and all states that two threads can reach are visited:
//!
//! - **Nobody sleeps for ever**: the end can be reached from each of those states, without a
//!   spurious wake-up.
//! - **Nothing is read before it was written, or overwritten before it was read.**
//!
//! An end that leaves follows the same pattern: it sets its bit and looks for messages. No accepted
//! message may stay in the queue for as long as the other end lives ([leaving], [late_answer]). So
//! does a funnel's receiver that sleeps behind a send in progress ([behind]).
//!
//! Threads that need a barrier at the same time share one ([shared_calls]). Readers of a ring share
//! a bit ([ring]).
//!
//! Each line of the protocol is then removed or moved, to show that the checker notices.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

#[path = "membarrier/behind.rs"]
mod behind;
#[path = "membarrier/for_now.rs"]
mod for_now;
#[path = "membarrier/late_answer.rs"]
mod late_answer;
#[path = "membarrier/leaving.rs"]
mod leaving;
#[path = "membarrier/machine.rs"]
mod machine;
#[path = "membarrier/ring.rs"]
mod ring;
#[path = "membarrier/shared_calls.rs"]
mod shared_calls;
#[path = "membarrier/spared.rs"]
mod spared;

use machine::Instruction::{self, *};
use machine::{Hardware, Label, Machine, Order, Place, Verdict};

const STATE: Place = 0;
/// Number of messages that the sender has published.
const HEADER: Place = 1;
/// Number of messages that the receiver has taken.
const TAKEN: Place = 2;
/// The slots of the messages.
const MESSAGES: Place = 3;

const RECEIVER_SLEEPS: u8 = 1;
const SENDER_SLEEPS: u8 = 2;
/// Nothing was ever sent.
const NEVER_SENT: u8 = 4;
/// An end that publishes fences, as long as the receiver asks for it.
const FENCE_FOR_NOW: u8 = 16;

/// The side that executes the barrier between a publication and the look that follows.
#[derive(Clone, Copy, PartialEq)]
enum Barrier {
    /// The sleeper, with membarrier, as shipped.
    Membarrier,
    /// Each side for itself, as shipped for kernels without membarrier.
    Fences,
    /// The kernel refuses the call later on: the sleeper only fences itself, and limits its sleep.
    Naps,
    /// As `Naps`, but without a limit.
    SleepersFence,
    /// Only the side that publishes.
    PublishersFence,
}

/// A fault in the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutation {
    None,
    BarrierBeforeBit,
    NoSecondLook,
    /// Looks at the word first, then publishes.
    LooksBeforePublishing,
    /// Wakes, but does not clear the bit.
    DoesNotClear,
    /// Wakes, then clears the bit.
    WakesBeforeClearing,
    /// Clears the bit, but does not wake.
    DoesNotWake,
    /// Sleeps on the current word and not on the word as it was when the bit was set.
    SleepsOnLaterWord,
    /// Publishes without release.
    RelaxedPublication,
    /// Looks without acquire.
    RelaxedLook,
    /// Does not clear its bit after waking up by itself, which only costs a needless wake-up later.
    KeepsBit,
}

/// Capacity of a pipe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pipe {
    /// As much as is sent.
    Unbounded,
    /// One message.
    One,
}

impl Pipe {
    fn place(self, message: u8) -> Place {
        if self == Pipe::One { MESSAGES } else { MESSAGES + message - 1 }
    }
}

/// Writes a thread's program.
struct Writer {
    barrier: Barrier,
    mutation: Mutation,
    /// A sleeper that finds one of these bits skips the barrier.
    spared_by: u8,
    /// Use of `FENCE_FOR_NOW`, if the protocol has that.
    for_now: Option<for_now::Role>,
    program: Vec<Instruction>,
    labels: Label,
}

impl Writer {
    fn new(barrier: Barrier, mutation: Mutation) -> Self {
        Writer { barrier, mutation, spared_by: 0, for_now: None, program: Vec::new(), labels: 0 }
    }

    fn write(&mut self, instructions: impl IntoIterator<Item = Instruction>) {
        self.program.extend(instructions);
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        self.labels
    }

    /// Sending or receiving: publish, look, wake.
    fn publish(&mut self, place: Place, value: u8, bit: u8) {
        let (attend, wake, out) = (self.label(), self.label(), self.label());
        let order = if self.mutation == Mutation::RelaxedPublication {
            Order::Relaxed
        } else {
            Order::Release
        };
        let mut publication = vec![Store(place, value, order)];
        if matches!(self.barrier, Barrier::Fences | Barrier::PublishersFence) {
            // `MUST_FENCE` sends every publication through the slow path.
            publication.extend([
                Fence,
                Load(0, STATE, Order::Acquire),
                IfAny(0, bit, wake),
                Goto(out),
            ]);
        } else {
            publication.extend([
                Load(0, STATE, Order::Relaxed),
                IfAny(0, !0, attend),
                Goto(out),
                At(attend),
            ]);
            publication.extend(self.fence_for_now());
            publication.extend([Load(0, STATE, Order::Acquire), IfAny(0, bit, wake), Goto(out)]);
        }
        if self.mutation == Mutation::LooksBeforePublishing {
            let look = publication.iter().position(|i| matches!(i, Load(..))).expect("it looks");
            publication[..=look].rotate_right(1);
        }
        self.write(publication);
        let clear = Update(0, STATE, !bit, 0, Order::AcqRel);
        self.write([At(wake)]);
        match self.mutation {
            Mutation::DoesNotClear => self.write([FutexWake(STATE)]),
            Mutation::WakesBeforeClearing => self.write([FutexWake(STATE), clear]),
            Mutation::DoesNotWake => self.write([clear]),
            _ => {
                let found = self.label();
                self.write([clear, IfAny(0, bit, found), Goto(out), At(found), FutexWake(STATE)]);
            }
        }
        self.write([At(out)]);
    }

    /// `wait` and `sleep`, until the place has at least this value.
    fn wait(&mut self, place: Place, least: u8, bit: u8) {
        let (top, clear, kept, again, found) =
            (self.label(), self.label(), self.label(), self.label(), self.label());
        let order =
            if self.mutation == Mutation::RelaxedLook { Order::Relaxed } else { Order::Acquire };
        let look = Load(1, place, order);
        let mut barrier = match self.barrier {
            Barrier::Membarrier => vec![Fence, Membarrier, Fence],
            Barrier::Fences | Barrier::Naps | Barrier::SleepersFence => vec![Fence],
            Barrier::PublishersFence => vec![],
        };
        if self.spared_by != 0 {
            let spared = self.label();
            let look = [Load(2, STATE, Order::Acquire), IfAny(2, self.spared_by, spared)];
            barrier.splice(0..0, look);
            barrier.push(At(spared));
        }
        self.spare_barrier(&mut barrier);
        let bits = bit | self.lasting();
        let set = Update(0, STATE, !0, bits, Order::AcqRel);
        self.write([look, IfAtLeast(1, least, found), At(top)]);
        if self.mutation == Mutation::BarrierBeforeBit {
            barrier.push(set);
        } else {
            barrier.insert(0, set);
        }
        self.look_too_early(&mut barrier);
        self.write(barrier);
        if self.mutation != Mutation::NoSecondLook {
            self.write([look, IfAtLeast(1, least, clear)]);
        }
        if self.mutation == Mutation::SleepsOnLaterWord {
            self.write([Load(0, STATE, Order::Acquire), FutexWait(STATE, 0, 0)]);
        } else {
            self.write([FutexWait(STATE, 0, bits)]);
        }
        self.write([Load(2, STATE, Order::Acquire), IfAny(2, bit, kept), Goto(again), At(kept)]);
        if self.mutation != Mutation::KeepsBit {
            self.write([Update(2, STATE, !bit, 0, Order::Relaxed)]);
        }
        self.write([At(again), look, IfAtLeast(1, least, found), Goto(top)]);
        self.write([At(clear), Update(2, STATE, !bit, 0, Order::Relaxed), At(found)]);
    }
}

/// A pipe with this much room, through which this many messages go.
fn check(
    hardware: Hardware,
    barrier: Barrier,
    mutation: Mutation,
    capacity: u8,
    messages: u8,
) -> Verdict {
    let place = |message| MESSAGES + (message - 1) % capacity;
    let bounded = messages > capacity;
    let mut sender = Writer::new(barrier, mutation);
    let mut receiver = Writer::new(barrier, mutation);
    for message in 1..=messages {
        if message > capacity {
            sender.wait(TAKEN, message - capacity, SENDER_SLEEPS);
        }
        sender.write([Store(place(message), message, Order::Relaxed)]);
        sender.publish(HEADER, message, RECEIVER_SLEEPS);

        receiver.wait(HEADER, message, RECEIVER_SLEEPS);
        receiver.write([Load(3, place(message), Order::Relaxed), Assert(3, message)]);
        if bounded {
            receiver.publish(TAKEN, message, SENDER_SLEEPS);
        }
    }
    Machine::new(hardware, vec![sender.program, receiver.program], barrier == Barrier::Naps).run()
}

const BOTH: [Hardware; 2] = [Hardware::Tso, Hardware::Weak];

/// With room for both messages only the receiver sleeps; with room for one, both do.
const SHAPES: [(&str, u8, u8); 2] = [("the receiver sleeps", 2, 2), ("both sleep", 1, 2)];

#[test]
fn the_shipped_protocol_loses_no_wake_up() {
    for hardware in BOTH {
        for (name, barrier) in [
            ("membarrier", Barrier::Membarrier),
            ("fences on both sides", Barrier::Fences),
            ("naps", Barrier::Naps),
        ] {
            for (who, capacity, messages) in SHAPES {
                let verdict = check(hardware, barrier, Mutation::None, capacity, messages);
                println!("{hardware:?}, {name}, {who}: {verdict}");
                assert!(
                    matches!(verdict, Verdict::Sound { .. }),
                    "{hardware:?}, {name}, {who}: {verdict}"
                );
            }
        }
    }
}

#[test]
fn without_the_barrier_a_wake_up_is_lost() {
    for hardware in BOTH {
        for (who, capacity, messages) in SHAPES {
            let verdict =
                check(hardware, Barrier::SleepersFence, Mutation::None, capacity, messages);
            println!("{hardware:?}, no membarrier, {who}: {verdict}");
            assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}, {who}: {verdict}");
        }
    }
    // On x86 setting the bit is a barrier; on other hardware it is not.
    let verdict = check(Hardware::Weak, Barrier::PublishersFence, Mutation::None, 2, 2);
    assert!(matches!(verdict, Verdict::Lost { .. }), "{verdict}");
}

/// The verdicts with both amounts of room.
fn verdicts(hardware: Hardware, barrier: Barrier, mutation: Mutation) -> [Verdict; 2] {
    SHAPES.map(|(who, capacity, messages)| {
        let verdict = check(hardware, barrier, mutation, capacity, messages);
        println!(
            "{hardware:?}, {mutation:?}, {who}: {}",
            verdict.to_string().lines().next().unwrap_or("")
        );
        verdict
    })
}

#[test]
fn every_mutation_loses_a_wake_up() {
    let lost = |verdict: &Verdict| matches!(verdict, Verdict::Lost { .. });
    for mutation in [
        Mutation::BarrierBeforeBit,
        Mutation::NoSecondLook,
        Mutation::LooksBeforePublishing,
        Mutation::DoesNotClear,
        Mutation::WakesBeforeClearing,
        Mutation::DoesNotWake,
        Mutation::SleepsOnLaterWord,
    ] {
        assert!(
            verdicts(Hardware::Tso, Barrier::Membarrier, mutation).iter().all(lost),
            "{mutation:?}"
        );
    }
    // The fallback, on the weaker machine only: on x86 the place of the barrier is irrelevant,
    // since setting the bit is one.
    for mutation in
        [Mutation::BarrierBeforeBit, Mutation::NoSecondLook, Mutation::LooksBeforePublishing]
    {
        assert!(
            verdicts(Hardware::Weak, Barrier::Fences, mutation).iter().all(lost),
            "{mutation:?}"
        );
    }
}

#[test]
fn messages_need_release_and_acquire() {
    for mutation in [Mutation::RelaxedPublication, Mutation::RelaxedLook] {
        for verdict in verdicts(Hardware::Weak, Barrier::Membarrier, mutation) {
            assert!(matches!(verdict, Verdict::Wrong { .. }), "{mutation:?}: {verdict}");
        }
        // x86 orders them anyway, so a test on x86 alone would not notice.
        for verdict in verdicts(Hardware::Tso, Barrier::Membarrier, mutation) {
            assert!(matches!(verdict, Verdict::Sound { .. }), "{mutation:?}: {verdict}");
        }
    }
}

#[test]
fn a_bit_that_is_left_does_no_harm() {
    for hardware in BOTH {
        for verdict in verdicts(hardware, Barrier::Membarrier, Mutation::KeepsBit) {
            assert!(matches!(verdict, Verdict::Sound { .. }), "{hardware:?}: {verdict}");
        }
    }
}

#[test]
#[ignore = "takes minutes; ci/long/stress.sh runs it"]
fn three_messages() {
    for hardware in BOTH {
        for barrier in [Barrier::Membarrier, Barrier::Fences, Barrier::Naps] {
            for capacity in 1..=3 {
                let verdict = check(hardware, barrier, Mutation::None, capacity, 3);
                println!("{hardware:?}, {capacity} of 3: {verdict}");
                assert!(
                    matches!(verdict, Verdict::Sound { .. }),
                    "{hardware:?}, {capacity}: {verdict}"
                );
            }
        }
    }
}

/// Returns `true` if two threads can end with these values in register 0 of the first and in
/// registers 0 and 1 of the second.
fn allows(
    hardware: Hardware,
    first: &[Instruction],
    second: &[Instruction],
    values: (u8, u8, u8),
) -> bool {
    let machine = Machine::new(hardware, vec![first.to_vec(), second.to_vec()], false);
    machine.outcomes().iter().any(|registers| (registers[0], registers[4], registers[5]) == values)
}

/// The machine agrees with the manuals about the well-known litmus tests.
#[test]
fn the_machine_itself() {
    use Hardware::{Tso, Weak};
    use Order::{AcqRel, Acquire, Relaxed, Release};
    let store = |place, order| Store(place, 1, order);
    let set = |place, order| Update(3, place, !0, 1, order);
    let load = |register, place, order| Load(register, place, order);

    // Store buffering: each load overtakes the store before it.
    let plain = |own, other| vec![store(own, Release), load(0, other, Acquire)];
    for hardware in BOTH {
        assert!(allows(hardware, &plain(0, 1), &plain(1, 0), (0, 0, 0)));
        // A fence on one side is not enough; a fence on both sides, or membarrier on one, is.
        let fenced = |own, other| vec![store(own, Relaxed), Fence, load(0, other, Relaxed)];
        assert!(allows(hardware, &plain(0, 1), &fenced(1, 0), (0, 0, 0)));
        assert!(!allows(hardware, &fenced(0, 1), &fenced(1, 0), (0, 0, 0)));
        let heavy = vec![store(1, Relaxed), Fence, Membarrier, Fence, load(0, 0, Relaxed)];
        assert!(!allows(hardware, &plain(0, 1), &heavy, (0, 0, 0)));
        assert!(allows(hardware, &plain(0, 1), &heavy, (1, 0, 0)));
        assert!(allows(hardware, &plain(0, 1), &heavy, (0, 1, 0)));
        // A nap is enough too, since stores do not stay in a store buffer.
        let nap = vec![store(1, Relaxed), Fence, Nap, load(0, 0, Relaxed)];
        assert!(!allows(hardware, &plain(0, 1), &nap, (0, 0, 0)));
        assert!(allows(hardware, &plain(0, 1), &nap, (1, 0, 0)));
        assert!(allows(hardware, &plain(0, 1), &nap, (0, 1, 0)));
        // It does not help against a load that the compiler has moved up.
        assert!(allows(hardware, &[load(0, 1, Relaxed), store(0, Relaxed)], &heavy, (0, 0, 0)));
    }
    // A read-modify-write is a barrier on x86 only.
    let updated = |own, other| vec![set(own, AcqRel), load(0, other, Acquire)];
    assert!(!allows(Tso, &updated(0, 1), &updated(1, 0), (0, 0, 0)));
    assert!(allows(Weak, &updated(0, 1), &updated(1, 0), (0, 0, 0)));

    // Message passing: the flag is seen, the message is not.
    let relaxed = vec![store(0, Relaxed), store(1, Relaxed)];
    let released = vec![store(0, Relaxed), store(1, Release)];
    let reader = |order| vec![load(0, 1, order), load(1, 0, Relaxed)];
    assert!(!allows(Tso, &relaxed, &reader(Relaxed), (0, 1, 0)));
    assert!(allows(Weak, &relaxed, &reader(Acquire), (0, 1, 0)));
    assert!(allows(Weak, &released, &reader(Relaxed), (0, 1, 0)));
    assert!(!allows(Weak, &released, &reader(Acquire), (0, 1, 0)));
    // A branch does not order a later load.
    let branching = vec![load(0, 1, Relaxed), IfAny(0, 1, 1), At(1), load(1, 0, Relaxed)];
    assert!(allows(Weak, &released, &branching, (0, 1, 0)));

    // Load buffering: each reads what the other writes later. A branch does order a later store.
    let buffering = |from, to| vec![load(0, from, Relaxed), store(to, Relaxed)];
    let depending =
        |from, to| vec![load(0, from, Relaxed), IfAny(0, 1, 1), At(1), store(to, Relaxed)];
    assert!(!allows(Tso, &buffering(0, 1), &buffering(1, 0), (1, 1, 0)));
    assert!(allows(Weak, &buffering(0, 1), &buffering(1, 0), (1, 1, 0)));
    assert!(!allows(Weak, &depending(0, 1), &depending(1, 0), (1, 1, 0)));

    // One place has one history, and a thread sees its own stores.
    for hardware in BOTH {
        let twice = vec![load(0, 0, Relaxed), load(1, 0, Relaxed)];
        assert!(!allows(hardware, &[store(0, Relaxed)], &twice, (0, 1, 0)));
        assert!(!allows(hardware, &[], &[store(0, Relaxed), load(0, 0, Relaxed)], (0, 0, 0)));
        // Of two compare-and-swaps of one place, one succeeds.
        let swap = [Swap(0, 0, 1, !0, 1, AcqRel)];
        let both = [(0, 1), (1, 0), (0, 0), (1, 1)];
        let both = both.map(|(one, other)| allows(hardware, &swap, &swap, (one, other, 0)));
        assert_eq!(both, [true, true, false, false]);
    }
}
