//! Adapts peers to the lab's queues. A peer gives its constructor and its calls; the loops that
//! poll it are common to all.

use std::marker::PhantomData;

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Sink, Source, Way};
use threadtoll_record::Wait;

/// Received if all senders are gone.
pub(crate) const NOBODY: u64 = u64::MAX;

/// Polls without a pause.
const TIGHT: u32 = 0;
/// Polls with this number of pause hints after a failed attempt: a few microseconds in which the
/// other end fills or empties many lines undisturbed.
const BACKOFF: u32 = 100;
const BLOCK: u32 = u32::MAX;

/// A peer's calls; [`peer!`] implements it. An end is alone only after a run is over or has failed:
/// its sends are lost, and it receives [`NOBODY`].
pub(crate) trait Peer: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    /// True if it has `send` and `receive`.
    const BLOCKS: bool = false;
    /// True if it has a batch call that returns at once.
    const POLLS_BATCHES: bool = false;
    /// True if it has a batch call that blocks.
    const AWAITS_BATCHES: bool = false;

    fn open(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Returns `false` if the queue is full.
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool;

    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64>;

    fn send(_: &mut Self::Sender, _: u64) {
        unreachable!("this peer does not block")
    }

    fn receive(_: &mut Self::Receiver) -> u64 {
        unreachable!("this peer does not block")
    }

    /// True if it has `force_send`.
    const OVERWRITES: bool = false;

    /// Drops the oldest message if the queue is full, and returns `true` then.
    fn force_send(_: &mut Self::Sender, _: u64) -> bool {
        unreachable!("this peer drops no message")
    }

    /// Sends as many of `messages` as fit, at least one given; returns how many.
    #[inline(always)]
    fn try_send_batch(sender: &mut Self::Sender, messages: &[u64]) -> usize {
        usize::from(Self::try_send(sender, messages[0]))
    }

    /// Hands at most `limit` messages to `take`; returns how many.
    #[inline(always)]
    fn try_receive_batch(
        receiver: &mut Self::Receiver,
        _limit: usize,
        take: &mut impl FnMut(&[u64]),
    ) -> usize {
        Self::try_receive(receiver).map_or(0, |message| {
            take(&[message]);
            1
        })
    }

    /// As [`try_receive_batch`](Self::try_receive_batch), but waits for the first message.
    #[inline(always)]
    fn receive_batch(
        receiver: &mut Self::Receiver,
        _limit: usize,
        take: &mut impl FnMut(&[u64]),
    ) -> usize {
        take(&[Self::receive(receiver)]);
        1
    }
}

/// Declares the rows of a peer whose ends have equal calls. See the modules of `rtrb` for a ring,
/// of `crossbeam-channel` for blocking calls, of `flume` for batches.
macro_rules! peer {
    (
        package: $package:literal;
        $($row:ident: {
            name: $name:literal,
            sentence: $sentence:literal,
            capacity: $capacity:expr,
            open: $open:expr,
        }),+;
        $senders:ident: ($sender:ty, $receiver:ty);
        calls: $calls:tt
    ) => {$(
        pub(crate) fn $row() -> threadtoll_lab::queue::Queue {
            enum Calls {}

            impl $crate::peer::Peer for Calls {
                type Sender = $sender;
                type Receiver = $receiver;

                fn open(capacity: usize) -> ($sender, $receiver) {
                    ($open)(capacity)
                }

                $crate::peer::calls! $calls
            }

            threadtoll_lab::queue::Queue {
                name: $name.into(),
                origin: threadtoll_record::Origin::Rust,
                version: env!(concat!("VERSION_", $package)).into(),
                sentence: $sentence.into(),
                capacity: $capacity,
                ways: $crate::peer::$senders::<Calls>(),
            }
        }
    )+};
}

/// The calls of [`peer!`] as functions, inlined into the loops.
macro_rules! calls {
    (
        try_send: |$to:pat_param, $message:ident| $try_send:expr,
        try_receive: |$from:pat_param| $try_receive:expr,
        $(
            send: |$blocking_to:pat_param, $sent:ident| $send:expr,
            receive: |$blocking_from:pat_param| $receive:expr,
        )?
        $(force_send: |$forced_to:pat_param, $forced:ident| $force_send:expr,)?
        $(try_send_batch: |$batch_to:pat_param, $messages:ident| $try_send_batch:expr,)?
        $(
            try_receive_batch: |$batch_from:pat_param, $limit:ident, $take:ident|
                $try_receive_batch:expr,
        )?
        $(
            receive_batch: |$awaited_from:pat_param, $most:ident, $hand_on:ident|
                $receive_batch:expr,
        )?
    ) => {
        #[inline(always)]
        fn try_send($to: &mut Self::Sender, $message: u64) -> bool {
            $try_send
        }

        #[inline(always)]
        fn try_receive($from: &mut Self::Receiver) -> Option<u64> {
            $try_receive
        }

        $(
            const BLOCKS: bool = true;

            #[inline(always)]
            fn send($blocking_to: &mut Self::Sender, $sent: u64) {
                let _ = $send;
            }

            #[inline(always)]
            fn receive($blocking_from: &mut Self::Receiver) -> u64 {
                $receive.unwrap_or($crate::peer::NOBODY)
            }
        )?

        $(
            const OVERWRITES: bool = true;

            #[inline(always)]
            fn force_send($forced_to: &mut Self::Sender, $forced: u64) -> bool {
                $force_send
            }
        )?

        $(
            #[inline(always)]
            fn try_send_batch($batch_to: &mut Self::Sender, $messages: &[u64]) -> usize {
                $try_send_batch
            }
        )?

        $(
            const POLLS_BATCHES: bool = true;

            #[inline(always)]
            fn try_receive_batch(
                $batch_from: &mut Self::Receiver,
                $limit: usize,
                $take: &mut impl FnMut(&[u64]),
            ) -> usize {
                $try_receive_batch
            }
        )?

        $(
            const AWAITS_BATCHES: bool = true;

            #[inline(always)]
            fn receive_batch(
                $awaited_from: &mut Self::Receiver,
                $most: usize,
                $hand_on: &mut impl FnMut(&[u64]),
            ) -> usize {
                $receive_batch
            }
        )?
    };
}

pub(crate) use {calls, peer};

/// The ways of waiting of a peer with one sender.
pub(crate) fn one_sender<P: Peer>() -> Vec<Way> {
    let polls = [
        Way::one_sender::<Row<P, TIGHT>>(Wait::Poll),
        Way::one_sender::<Row<P, BACKOFF>>(Wait::PollBackoff),
    ];
    // Not a closure: without blocking calls, no loop is compiled for them.
    let blocks = if P::BLOCKS { Some(Way::one_sender::<Row<P, BLOCK>>(Wait::Block)) } else { None };
    ways::<P>(polls, blocks)
}

/// The ways of waiting of a peer whose sender is cloned.
pub(crate) fn many_senders<P: Peer<Sender: Clone>>() -> Vec<Way> {
    let polls = [
        Way::many_senders::<Row<P, TIGHT>>(Wait::Poll),
        Way::many_senders::<Row<P, BACKOFF>>(Wait::PollBackoff),
    ];
    let blocks =
        if P::BLOCKS { Some(Way::many_senders::<Row<P, BLOCK>>(Wait::Block)) } else { None };
    ways::<P>(polls, blocks)
}

/// The ways of waiting of a peer whose ends are both cloned.
pub(crate) fn many_receivers<P: Peer<Sender: Clone, Receiver: Clone>>() -> Vec<Way> {
    let polls = [
        Way::many_receivers::<Row<P, TIGHT>>(Wait::Poll),
        Way::many_receivers::<Row<P, BACKOFF>>(Wait::PollBackoff),
    ];
    let blocks =
        if P::BLOCKS { Some(Way::many_receivers::<Row<P, BLOCK>>(Wait::Block)) } else { None };
    ways::<P>(polls, blocks)
}

fn ways<P: Peer>(polls: [Way; 2], blocks: Option<Way>) -> Vec<Way> {
    let batched = |way: Way, batches| if batches { way.in_batches() } else { way };
    let polls = polls.map(|way| batched(way, P::POLLS_BATCHES));
    polls.into_iter().chain(blocks.map(|way| batched(way, P::AWAITS_BATCHES))).collect()
}

/// A peer's channel with one way of waiting.
struct Row<P, const WAIT: u32>(PhantomData<P>);

impl<P: Peer, const WAIT: u32> Channel for Row<P, WAIT> {
    type Source = To<P, WAIT>;
    type Sink = From<P, WAIT>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = P::open(capacity);
        Ok((To(to), From(from)))
    }
}

struct To<P: Peer, const WAIT: u32>(P::Sender);

impl<P: Peer<Sender: Clone>, const WAIT: u32> Clone for To<P, WAIT> {
    fn clone(&self) -> Self {
        To(self.0.clone())
    }
}

impl<P: Peer, const WAIT: u32> Source for To<P, WAIT> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if WAIT == BLOCK {
            P::send(&mut self.0, message);
        } else {
            while !P::try_send(&mut self.0, message) {
                pause::<WAIT>();
            }
        }
    }

    const OVERWRITES: bool = P::OVERWRITES;

    #[inline(always)]
    fn try_send(&mut self, message: u64) -> bool {
        P::try_send(&mut self.0, message)
    }

    #[inline(always)]
    fn force_send(&mut self, message: u64) -> bool {
        P::force_send(&mut self.0, message)
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        if WAIT == BLOCK {
            messages.iter().for_each(|message| self.send(*message));
            return;
        }
        while !messages.is_empty() {
            let sent = P::try_send_batch(&mut self.0, messages);
            if sent == 0 {
                pause::<WAIT>();
            }
            messages = &messages[sent..];
        }
    }
}

struct From<P: Peer, const WAIT: u32>(P::Receiver);

impl<P: Peer<Receiver: Clone>, const WAIT: u32> Clone for From<P, WAIT> {
    fn clone(&self) -> Self {
        From(self.0.clone())
    }
}

impl<P: Peer, const WAIT: u32> Sink for From<P, WAIT> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if WAIT == BLOCK {
            P::receive(&mut self.0)
        } else {
            poll::<WAIT, _>(|| P::try_receive(&mut self.0))
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        if WAIT == BLOCK {
            return P::receive_batch(&mut self.0, limit, &mut take);
        }
        poll::<WAIT, _>(|| {
            let received = P::try_receive_batch(&mut self.0, limit, &mut take);
            (received > 0).then_some(received)
        })
    }
}

/// Attempts until one succeeds, with this number of pause hints after each failure.
#[inline(always)]
fn poll<const PAUSES: u32, T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(success) = attempt() {
            return success;
        }
        pause::<PAUSES>();
    }
}

#[inline(always)]
fn pause<const PAUSES: u32>() {
    for _ in 0..PAUSES {
        std::hint::spin_loop();
    }
}
