//! Adapts peers to the lab's queues. A peer provides its constructor and its calls; the polling
//! loops are the same for all peers.

use std::marker::PhantomData;

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Message, Sink, Source, Way, Words};
use threadtoll_record::Wait;

/// The value that is received in place of a message when all senders are gone.
pub(crate) fn nobody<M: Message>() -> M {
    M::all(u64::MAX)
}

/// Number of pause hints after a failed attempt, for polling without a pause.
const TIGHT: u32 = 0;
/// Number of pause hints after a failed attempt: they take a few microseconds, in which the other
/// end fills or empties many cache lines undisturbed.
const BACKOFF: u32 = 100;
const BLOCK: u32 = u32::MAX;

/// A peer's calls, implemented by [`peer!`]. An end leaves only after a run has ended or failed.
/// From then on, the other end's messages are lost, and it receives [`nobody`].
pub(crate) trait Peer<M: Message = u64>: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    /// True if the peer has `send` and `receive`.
    const BLOCKS: bool = false;
    /// True if the peer has a batch call that does not block.
    const POLLS_BATCHES: bool = false;
    /// True if the peer has a batch call that blocks.
    const AWAITS_BATCHES: bool = false;

    fn open(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Returns `false` if the queue is full.
    fn try_send(sender: &mut Self::Sender, message: M) -> bool;

    fn try_receive(receiver: &mut Self::Receiver) -> Option<M>;

    /// Returns `true` if `try_send` would fail, as far as this end knows without calling
    /// `try_send`.
    #[inline(always)]
    fn is_full(_: &mut Self::Sender) -> bool {
        false
    }

    /// True if messages can be written and read in slots: the peer then has `try_send_in_place` and
    /// `try_receive_in_place`, and does not block.
    const IN_PLACE: bool = false;

    /// Writes the message with this number in a slot and sends it, unless the queue is full.
    fn try_send_in_place(_: &mut Self::Sender, _number: u64) -> bool {
        unreachable!("this peer has no slots to write in")
    }

    /// Reads the next message in its slot, if there is one. Returns the bits in which the message
    /// differs from the one with this number.
    fn try_receive_in_place(_: &mut Self::Receiver, _number: u64) -> Option<u64> {
        unreachable!("this peer has no slots to read")
    }

    fn send(_: &mut Self::Sender, _: M) {
        unreachable!("this peer does not block")
    }

    fn receive(_: &mut Self::Receiver) -> M {
        unreachable!("this peer does not block")
    }

    /// True if the peer has `force_send`.
    const OVERWRITES: bool = false;

    /// Sends the message. If the queue is full, first drops the oldest message and returns `true`.
    fn force_send(_: &mut Self::Sender, _: M) -> bool {
        unreachable!("this peer drops no message")
    }

    /// Sends as many of `messages` as fit; `messages` is not empty. Returns the number of messages
    /// sent.
    #[inline(always)]
    fn try_send_batch(sender: &mut Self::Sender, messages: &[M]) -> usize {
        usize::from(Self::try_send(sender, messages[0]))
    }

    /// Passes at most `limit` received messages to `take`. Returns their number.
    #[inline(always)]
    fn try_receive_batch(
        receiver: &mut Self::Receiver,
        _limit: usize,
        take: &mut impl FnMut(&[M]),
    ) -> usize {
        Self::try_receive(receiver).map_or(0, |message| {
            take(&[message]);
            1
        })
    }

    /// Like [`try_receive_batch`](Self::try_receive_batch), but waits for the first message.
    #[inline(always)]
    fn receive_batch(
        receiver: &mut Self::Receiver,
        _limit: usize,
        take: &mut impl FnMut(&[M]),
    ) -> usize {
        take(&[Self::receive(receiver)]);
        1
    }
}

/// A peer that carries messages of all sizes.
pub(crate) trait AnySize:
    Peer + Peer<Words<8>> + Peer<Words<64>> + Peer<Words<512>> + Peer<Words<8192>>
{
}

impl<P> AnySize for P where
    P: Peer + Peer<Words<8>> + Peer<Words<64>> + Peer<Words<512>> + Peer<Words<8192>>
{
}

/// A peer that carries messages of all sizes from several senders.
pub(crate) trait ManySenders:
    AnySize
    + Peer<Sender: Clone>
    + Peer<Words<8>, Sender: Clone>
    + Peer<Words<64>, Sender: Clone>
    + Peer<Words<512>, Sender: Clone>
    + Peer<Words<8192>, Sender: Clone>
{
}

impl<P> ManySenders for P where
    P: AnySize
        + Peer<Sender: Clone>
        + Peer<Words<8>, Sender: Clone>
        + Peer<Words<64>, Sender: Clone>
        + Peer<Words<512>, Sender: Clone>
        + Peer<Words<8192>, Sender: Clone>
{
}

/// Declares a peer's bounded queue or its unbounded one, or both if their ends have the same calls.
/// For examples, see the modules `rtrb` (a ring), `crossbeam_channel` (blocking calls) and `flume`
/// (batches). `M` is the type of messages.
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

            impl<M: threadtoll_lab::queue::Message> $crate::peer::Peer<M> for Calls {
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
                built: None,
                ways: $crate::peer::$senders::<Calls>(),
            }
        }
    )+};
}

/// Turns the calls given to [`peer!`] into functions, which are inlined into the loops.
macro_rules! calls {
    (
        try_send: |$to:pat_param, $message:ident| $try_send:expr,
        try_receive: |$from:pat_param| $try_receive:expr,
        $(is_full: |$asked:pat_param| $is_full:expr,)?
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
        $(
            try_send_in_place: |$placed_to:pat_param, $placed:ident| $try_send_in_place:expr,
            try_receive_in_place: |$placed_from:pat_param, $due:ident|
                $try_receive_in_place:expr,
        )?
    ) => {
        #[inline(always)]
        fn try_send($to: &mut Self::Sender, $message: M) -> bool {
            $try_send
        }

        #[inline(always)]
        fn try_receive($from: &mut Self::Receiver) -> Option<M> {
            $try_receive
        }

        $(
            #[inline(always)]
            fn is_full($asked: &mut Self::Sender) -> bool {
                $is_full
            }
        )?

        $(
            const IN_PLACE: bool = true;

            #[inline(always)]
            fn try_send_in_place($placed_to: &mut Self::Sender, $placed: u64) -> bool {
                $try_send_in_place
            }

            #[inline(always)]
            fn try_receive_in_place($placed_from: &mut Self::Receiver, $due: u64) -> Option<u64> {
                $try_receive_in_place
            }
        )?

        $(
            const BLOCKS: bool = true;

            #[inline(always)]
            fn send($blocking_to: &mut Self::Sender, $sent: M) {
                let _ = $send;
            }

            #[inline(always)]
            fn receive($blocking_from: &mut Self::Receiver) -> M {
                $receive.unwrap_or_else($crate::peer::nobody)
            }
        )?

        $(
            const OVERWRITES: bool = true;

            #[inline(always)]
            fn force_send($forced_to: &mut Self::Sender, $forced: M) -> bool {
                $force_send
            }
        )?

        $(
            #[inline(always)]
            fn try_send_batch($batch_to: &mut Self::Sender, $messages: &[M]) -> usize {
                $try_send_batch
            }
        )?

        $(
            const POLLS_BATCHES: bool = true;

            #[inline(always)]
            fn try_receive_batch(
                $batch_from: &mut Self::Receiver,
                $limit: usize,
                $take: &mut impl FnMut(&[M]),
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
                $hand_on: &mut impl FnMut(&[M]),
            ) -> usize {
                $receive_batch
            }
        )?
    };
}

pub(crate) use {calls, peer};

/// Declares functions that return the wait strategies of a peer, one function per kind of ends.
macro_rules! strategies {
    ($($(#[$doc:meta])+ $ends:ident: [$($bound:tt)+];)+) => {$(
        $(#[$doc])+
        pub(crate) fn $ends<P: $($bound)+>() -> Vec<Way> {
            let polls = [
                Way::$ends::<Row<P, TIGHT>>(Wait::Poll),
                Way::$ends::<Row<P, BACKOFF>>(Wait::PollBackoff),
            ];
            // Not `bool::then`: its closure, with the loops, would be compiled for peers without
            // blocking calls, too.
            let blocks = if <P as Peer>::BLOCKS {
                Some(Way::$ends::<Row<P, BLOCK>>(Wait::Block))
            } else {
                None
            };
            ways::<P>(polls, blocks)
        }
    )+};
}

strategies! {
    /// A peer with one sender.
    one_sender: [AnySize];
    /// A peer whose sender can be cloned.
    many_senders: [ManySenders];
    /// A peer whose ends can both be cloned.
    many_receivers: [ManySenders + Peer<Sender: Clone, Receiver: Clone>];
}

fn ways<P: AnySize>(polls: [Way; 2], blocks: Option<Way>) -> Vec<Way> {
    let batched = |way: Way, batches| if batches { way.in_batches() } else { way };
    let polls = polls.map(|way| batched(way, <P as Peer>::POLLS_BATCHES));
    polls.into_iter().chain(blocks.map(|way| batched(way, <P as Peer>::AWAITS_BATCHES))).collect()
}

/// A peer's channel with one wait strategy.
struct Row<P, const WAIT: u32>(PhantomData<fn() -> P>);

impl<P, const WAIT: u32> Clone for Row<P, WAIT> {
    fn clone(&self) -> Self {
        Row(PhantomData)
    }
}

impl<P, const WAIT: u32> Default for Row<P, WAIT> {
    fn default() -> Self {
        Row(PhantomData)
    }
}

impl<M: Message, P: Peer<M>, const WAIT: u32> Channel<M> for Row<P, WAIT> {
    type Source = To<M, P, WAIT>;
    type Sink = From<M, P, WAIT>;

    const OVERWRITES: bool = P::OVERWRITES;
    const IN_PLACE: bool = P::IN_PLACE;

    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = P::open(capacity);
        Ok((To(to), From(from)))
    }
}

// The wait strategy is a compile-time constant: choosing it at run time made some peers three times
// as slow with messages of 512 bytes.

#[inline(always)]
fn pause<const WAIT: u32>() {
    for _ in 0..WAIT {
        std::hint::spin_loop();
    }
}

#[inline(always)]
fn poll<T, const WAIT: u32>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(success) = attempt() {
            return success;
        }
        pause::<WAIT>();
    }
}

struct To<M: Message, P: Peer<M>, const WAIT: u32>(P::Sender);

impl<M: Message, P: Peer<M, Sender: Clone>, const WAIT: u32> Clone for To<M, P, WAIT> {
    fn clone(&self) -> Self {
        To(self.0.clone())
    }
}

impl<M: Message, P: Peer<M>, const WAIT: u32> Source<M> for To<M, P, WAIT> {
    #[inline(always)]
    fn send(&mut self, message: M) {
        if P::BLOCKS && WAIT == BLOCK {
            P::send(&mut self.0, message);
            return;
        }
        // A failed attempt would copy the message there and back, which takes longer than asking if
        // the queue is full.
        while size_of::<M>() > size_of::<u64>() && P::is_full(&mut self.0) {
            pause::<WAIT>();
        }
        while !P::try_send(&mut self.0, message) {
            pause::<WAIT>();
        }
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        P::try_send(&mut self.0, message)
    }

    #[inline(always)]
    fn force_send(&mut self, message: M) -> bool {
        P::force_send(&mut self.0, message)
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[M]) {
        if P::BLOCKS && WAIT == BLOCK {
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

    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        while !P::try_send_in_place(&mut self.0, number) {
            pause::<WAIT>();
        }
    }
}

struct From<M: Message, P: Peer<M>, const WAIT: u32>(P::Receiver);

impl<M: Message, P: Peer<M, Receiver: Clone>, const WAIT: u32> Clone for From<M, P, WAIT> {
    fn clone(&self) -> Self {
        From(self.0.clone())
    }
}

impl<M: Message, P: Peer<M>, const WAIT: u32> Sink<M> for From<M, P, WAIT> {
    #[inline(always)]
    fn receive(&mut self) -> M {
        if P::BLOCKS && WAIT == BLOCK {
            P::receive(&mut self.0)
        } else {
            poll::<_, WAIT>(|| P::try_receive(&mut self.0))
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        if P::BLOCKS && WAIT == BLOCK {
            return P::receive_batch(&mut self.0, limit, &mut take);
        }
        poll::<_, WAIT>(|| {
            let received = P::try_receive_batch(&mut self.0, limit, &mut take);
            (received > 0).then_some(received)
        })
    }

    #[inline(always)]
    fn receive_in_place(&mut self, number: u64) -> u64 {
        poll::<_, WAIT>(|| P::try_receive_in_place(&mut self.0, number))
    }
}
