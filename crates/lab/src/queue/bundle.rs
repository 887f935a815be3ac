//! A bundle of `threadtoll`'s bounded pipes, one for each pair of threads: what a ring replaces.
//!
//! The sender sends each message to several receivers. In a diamond, each of them passes it on to
//! the last receiver, which takes it from all of them.

use std::io;

use threadtoll::wait::Wait;
use threadtoll_record::Graph;

use super::pipe::{self, From, Pipe, To};
use super::stream::BATCH;
use super::way::ways;
use super::words::difference;
use super::{Broadcast, Channel, MAX_CAPACITY, Queue, Sink, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 1] {
    let sentence =
        "threadtoll's bounded pipes: one for each receiver, which together get all messages";
    let rows = ways(|waiting, wait| Way::broadcast_only(Bundle { wait: waiting }, wait));
    [Queue::ours("bundle", sentence, pipe::bounded().capacity, rows)]
}

#[derive(Clone)]
struct Bundle {
    wait: Wait,
}

impl Bundle {
    fn pipes(&self, number: usize, capacity: usize) -> Result<Pipes, Unavailable> {
        if number.saturating_mul(capacity) as u64 > MAX_CAPACITY {
            let why = format!("{number} pipes of {capacity} messages take too much memory");
            return Err(Unavailable::new("a bundle", io::Error::other(why)));
        }
        let pipe = Pipe::bounded(self.wait);
        let pipes = (0..number).map(|_| Channel::<u64>::open(&pipe, capacity));
        Ok(pipes.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
    }
}

/// The ends of pipes, in the same order.
type Pipes = (Vec<To<u64>>, Vec<From<u64>>);

impl Broadcast for Bundle {
    type Source = Sources;
    type Sink = Node;

    fn open(
        &self,
        graph: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(Sources, Vec<Node>), Unavailable> {
        let first = if graph == Graph::Diamond { receivers - 1 } else { receivers };
        let (sources, sinks) = self.pipes(first, capacity)?;
        let nodes = match graph {
            Graph::FanOut => sinks.into_iter().map(Node::Leaf).collect(),
            Graph::Diamond => {
                let (onward, last) = self.pipes(first, capacity)?;
                let relay = |(sink, onward)| Node::Relay { sink, onward };
                let relays = sinks.into_iter().zip(onward).map(relay);
                let read = Vec::with_capacity(BATCH as usize);
                relays.chain([Node::Join { sinks: last, read }]).collect()
            }
        };
        Ok((Sources { sources, most: capacity }, nodes))
    }
}

struct Sources {
    sources: Vec<To<u64>>,
    /// Maximum number of messages that are sent to one pipe before the next one gets them: the
    /// capacity. With more, a diamond could wait for itself: its last receiver for a message from
    /// the second pipe, the sender for room in the first.
    most: usize,
}

impl Source for Sources {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        self.sources.iter_mut().for_each(|source| source.send(message));
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        for messages in messages.chunks(self.most) {
            self.sources.iter_mut().for_each(|source| source.send_batch(messages));
        }
    }
}

/// A receiver.
enum Node {
    /// Takes messages from the sender.
    Leaf(From<u64>),
    /// Passes on each batch that it has taken from the sender.
    Relay { sink: From<u64>, onward: To<u64> },
    /// Takes each message from all others. `read` has room for those of the first of them.
    Join { sinks: Vec<From<u64>>, read: Vec<u64> },
}

impl Sink for Node {
    fn receive(&mut self) -> u64 {
        let mut message = 0;
        self.receive_batch(1, |messages| message = messages[0]);
        message
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        match self {
            Node::Leaf(sink) => sink.receive_batch(limit, take),
            Node::Relay { sink, onward } => sink.receive_batch(
                limit,
                #[inline(always)]
                |messages| {
                    take(messages);
                    onward.send_batch(messages);
                },
            ),
            Node::Join { sinks, read } => join(sinks, read, limit, take),
        }
    }
}

/// Takes messages from the first pipe, then as many from each other pipe, which must be the same.
#[inline(always)]
fn join<S: Sink>(
    sinks: &mut [S],
    read: &mut Vec<u64>,
    limit: usize,
    mut take: impl FnMut(&[u64]),
) -> usize {
    let Some((first, others)) = sinks.split_first_mut() else { return 0 };
    read.clear();
    let taken = first.receive_batch(limit, |messages| read.extend_from_slice(messages));
    for sink in others {
        let (mut due, mut wrong, mut left) = (read.first().copied().unwrap_or(0), 0, taken);
        while left > 0 {
            left -= sink.receive_batch(
                left,
                #[inline(always)]
                |messages| {
                    wrong |= difference(messages, due);
                    due += messages.len() as u64;
                },
            );
        }
        if wrong != 0 {
            // No message has this number.
            read.push(0);
        }
    }
    take(read);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::check;

    struct Gives(Vec<u64>);

    impl Sink for Gives {
        fn receive(&mut self) -> u64 {
            self.0.remove(0)
        }
    }

    const BUNDLE: Bundle = Bundle { wait: Wait::Park };

    #[test]
    fn the_last_receiver_comes_after_the_others() {
        assert_eq!(check::diamond(&BUNDLE), Ok(()));
    }

    #[test]
    fn pipes_that_would_take_much_memory_are_refused() {
        let refused = BUNDLE.open(Graph::Diamond, 64, MAX_CAPACITY as usize).err().unwrap();
        let why = "63 pipes of 16777216 messages take too much memory";
        assert!(refused.to_string().contains(why), "{refused}");
    }

    #[test]
    fn a_message_that_one_pipe_lacks_is_noticed() {
        let joined = |second: &[u64]| {
            let mut sinks = [Gives(vec![4, 5]), Gives(second.to_vec()), Gives(vec![4, 5])];
            let mut all = Vec::new();
            for _ in 0..2 {
                let take = |messages: &[u64]| all.extend_from_slice(messages);
                assert_eq!(join(&mut sinks, &mut Vec::new(), 9, take), 1);
            }
            all
        };
        assert_eq!(joined(&[4, 5]), [4, 5]);
        assert_eq!(joined(&[4, 6]), [4, 5, 0]);
    }
}
