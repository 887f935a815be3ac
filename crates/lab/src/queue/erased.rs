//! Type-erased ends of queues, with which a scenario's loops are compiled once and not once per
//! queue. The indirect calls make no difference if a message takes a hundred nanoseconds or more.

use std::marker::PhantomData;

use crate::error::Unavailable;

use super::message::number;
use super::stream::NUMBER_BITS;
use super::{Channel, Message, Sink, Source};

pub(super) type Ends = (Vec<Box<dyn Source>>, Box<dyn Sink>);

/// Opens a queue, given the number of senders and the capacity.
pub(super) type Open<C> = fn(&C, usize, usize) -> Result<Ends, Unavailable>;

impl<M: Message, S: Source<M> + ?Sized> Source<M> for Box<S> {
    fn enter(&mut self) {
        (**self).enter();
    }

    fn send(&mut self, message: M) {
        (**self).send(message);
    }

    fn try_send(&mut self, message: M) -> bool {
        (**self).try_send(message)
    }

    fn force_send(&mut self, message: M) -> bool {
        (**self).force_send(message)
    }

    fn send_batch(&mut self, messages: &[M]) {
        (**self).send_batch(messages);
    }

    fn send_in_place(&mut self, number: u64) {
        (**self).send_in_place(number);
    }
}

impl<M: Message, S: Sink<M> + ?Sized> Sink<M> for Box<S> {
    fn enter(&mut self) {
        (**self).enter();
    }

    fn receive(&mut self) -> M {
        (**self).receive()
    }

    fn receive_in_place(&mut self, number: u64) -> u64 {
        (**self).receive_in_place(number)
    }
}

/// Sends words through a queue of larger messages (type `M`). Each word becomes the number of a
/// message, and all words of that message are written and read.
#[derive(Clone)]
struct Carrying<M, E>(E, PhantomData<M>);

/// Number of low bits, in the number of a larger message, that hold the sender's message count. The
/// bits above hold the sender's index.
const CARRIED_BITS: u32 = 36;

/// Packs a word into the number of a larger message. Such a number has fewer bits than a word.
fn carried(word: u64) -> u64 {
    debug_assert!(word & (u64::MAX >> (64 - NUMBER_BITS)) < 1 << CARRIED_BITS);
    (word >> NUMBER_BITS << CARRIED_BITS) | (word & ((1 << CARRIED_BITS) - 1))
}

fn word(carried: u64) -> u64 {
    (carried >> CARRIED_BITS << NUMBER_BITS) | (carried & ((1 << CARRIED_BITS) - 1))
}

impl<M: Message, S: Source<M>> Source for Carrying<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    fn send(&mut self, message: u64) {
        self.0.send(M::numbered(carried(message)));
    }

    fn try_send(&mut self, message: u64) -> bool {
        self.0.try_send(M::numbered(carried(message)))
    }

    fn force_send(&mut self, message: u64) -> bool {
        self.0.force_send(M::numbered(carried(message)))
    }
}

impl<M: Message, S: Sink<M>> Sink for Carrying<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    fn receive(&mut self) -> u64 {
        let message = self.0.receive();
        let number = number(message.first());
        // No sender sends `u64::MAX`.
        if message.difference(number) == 0 { word(number) } else { u64::MAX }
    }
}

pub(super) fn open<C: Channel>(
    channel: &C,
    _: usize,
    capacity: usize,
) -> Result<Ends, Unavailable> {
    let (source, sink) = channel.open(capacity)?;
    Ok((vec![Box::new(source)], Box::new(sink)))
}

pub(super) fn open_carrying<M: Message, C: Channel<M>>(
    channel: &C,
    _: usize,
    capacity: usize,
) -> Result<Ends, Unavailable> {
    let (source, sink) = channel.open(capacity)?;
    let source = Carrying(source, PhantomData::<M>);
    Ok((vec![Box::new(source)], Box::new(Carrying(sink, PhantomData::<M>))))
}

/// `senders` must be at least 1.
pub(super) fn open_for<C: Channel<Source: Clone>>(
    channel: &C,
    senders: usize,
    capacity: usize,
) -> Result<Ends, Unavailable> {
    let (source, sink) = channel.open(capacity)?;
    Ok((cloned(source, senders), Box::new(sink)))
}

pub(super) fn open_for_carrying<M: Message, C: Channel<M, Source: Clone>>(
    channel: &C,
    senders: usize,
    capacity: usize,
) -> Result<Ends, Unavailable> {
    let (source, sink) = channel.open(capacity)?;
    let sources = cloned(Carrying(source, PhantomData::<M>), senders);
    Ok((sources, Box::new(Carrying(sink, PhantomData::<M>))))
}

fn cloned<S: Source + Clone>(source: S, senders: usize) -> Vec<Box<dyn Source>> {
    let sources = vec![source; senders].into_iter();
    sources.map(|source| -> Box<dyn Source> { Box::new(source) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Words;
    use crate::queue::stream::first;

    struct Gives<M>(Vec<M>);

    impl<M: Message> Sink<M> for Gives<M> {
        fn receive(&mut self) -> M {
            self.0.remove(0)
        }
    }

    struct Batches(Vec<usize>);

    impl Source for Batches {
        fn send(&mut self, _: u64) {
            self.0.push(1);
        }

        fn send_batch(&mut self, messages: &[u64]) {
            self.0.push(messages.len());
        }
    }

    #[test]
    fn a_boxed_end_sends_batches_as_such() {
        let mut boxed = Box::new(Batches(Vec::new()));
        Source::<u64>::send_batch(&mut boxed, &[4, 5]);
        assert_eq!(boxed.0, [2]);
    }

    #[test]
    fn a_word_is_carried_as_a_larger_message_and_a_torn_one_is_detected() {
        let words = [0, first(0), first(0) + 49_999, first(255) + 7];
        let whole = words.map(|word| Words::<64>::numbered(carried(word)));
        let mut sink = Carrying(Gives(whole.to_vec()), PhantomData);
        assert_eq!(words.map(|_| Sink::<u64>::receive(&mut sink)), words);
        let other = Words::<8>::numbered(carried(first(1)));
        let mut torn = Words::<8>::numbered(carried(first(0)));
        torn.overwrite_half_of(&other);
        let mut sink = Carrying(Gives(vec![torn]), PhantomData);
        assert_eq!(Sink::<u64>::receive(&mut sink), u64::MAX);
    }
}
