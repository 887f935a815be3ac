//! A `VecDeque` behind a `Mutex`, polled: the queue that people write first.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::sync::{Arc, Mutex, PoisonError};

use threadtoll_record::{Origin, Wait};

use super::{Capacity, Channel, Queue, Sink, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 1] {
    [Queue {
        name: "mutex-deque".into(),
        origin: Origin::Ours,
        version: threadtoll::VERSION.into(),
        sentence: "a VecDeque behind a Mutex, polled".into(),
        capacity: Capacity::Unbounded,
        ways: vec![Way::many_senders::<Deque>(Wait::Spin)],
    }]
}

struct Deque;

#[derive(Clone)]
struct End(Arc<Mutex<VecDeque<u64>>>);

impl Channel for Deque {
    type Source = End;
    type Sink = End;

    fn open(capacity: usize) -> Result<(End, End), Unavailable> {
        let end = End(Arc::new(Mutex::new(VecDeque::with_capacity(capacity))));
        Ok((end.clone(), end))
    }
}

impl Source for End {
    fn send(&mut self, message: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
    }
}

impl Sink for End {
    fn receive(&mut self) -> u64 {
        loop {
            let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            if let Some(message) = next {
                return message;
            }
            spin_loop();
        }
    }
}
