//! Models for random schedules: about a hundred messages, up to four threads.

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::RecvError;
use crate::wait::Wait::{self, Adaptive, Park, SpinYield};
use crate::{call, funnel, oneshot, pipe};

fn stream(wait: Wait, capacity: Option<usize>) {
    let options = pipe::Options::new().wait(wait);
    let (mut sender, mut receiver) = match capacity {
        Some(capacity) => options.bounded(capacity),
        None => options.unbounded(),
    };
    let sending = thread::spawn(move || (0..100).for_each(|number| sender.send(number).unwrap()));
    (0..100).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
    assert_eq!(receiver.recv(), Err(RecvError));
    sending.join().unwrap();
}

model! {
    /// Through ring and chunks, to a receiver that sleeps.
    pipe_unbounded(Orders)
    steps [look_before_sleep, expected_word, back_to_ring, wake_in_close]
    {
        stream(Park, None);
    }
}

model! {
    /// Slices around a ring: as runs, and in frames.
    pipe_slices(Orders)
    steps [clear_behind]
    {
        let (mut sender, mut receiver) = pipe::Options::new().wait(Park).bounded(16);
        let numbers: Vec<usize> = (0..100).collect();
        let all = numbers.clone();
        let sending = thread::spawn(move || {
            let mut rest = &numbers[..];
            for length in (1..=6).cycle() {
                let (slice, behind) = rest.split_at(length.min(rest.len()));
                sender.send_slice(slice).unwrap();
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
        });
        all.iter().for_each(|number| assert_eq!(receiver.recv(), Ok(*number)));
        sending.join().unwrap();
    }
}

model! {
    /// Around a small ring; both ends sleep.
    pipe_bounded(Orders)
    steps [look_before_sleep, expected_word]
    {
        stream(Park, Some(3));
        stream(Adaptive, Some(1));
    }
}

model! {
    /// The receiver leaves somewhere in the stream.
    pipe_left(Orders)
    steps [not_taken]
    {
        tally(100);
        let (mut sender, mut receiver) = pipe::Options::new().wait(Park).unbounded();
        let sending = thread::spawn(move || (0..100).for_each(|number| drop(sender.send(Message(number)))));
        for _ in 0..20 {
            let _ = receiver.try_recv();
        }
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

fn many(wait: Wait, capacity: Option<usize>) {
    const SENDERS: usize = 3;
    const EACH: usize = 40;
    let options = funnel::Options::new().wait(wait);
    let (sender, mut receiver) = match capacity {
        Some(capacity) => options.bounded::<(usize, usize)>(capacity),
        None => options.retain(0).unbounded(),
    };
    let senders: Vec<_> = (0..SENDERS)
        .map(|name| {
            let sender = sender.clone();
            thread::spawn(move || (0..EACH).for_each(|number| sender.send((name, number)).unwrap()))
        })
        .collect();
    drop(sender);
    let mut next = [0; SENDERS];
    while let Ok((name, number)) = receiver.recv() {
        assert_eq!(number, next[name]);
        next[name] += 1;
    }
    assert_eq!(next, [EACH; SENDERS]);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}

model! {
    /// Three senders and a receiver that sleeps. Chunks that were read are freed.
    funnel_unbounded(Orders)
    steps [wait_for_cutoff, wake_by_last_sender]
    {
        many(Park, None);
    }
}

model! {
    /// Three senders that sleep for want of room.
    funnel_bounded(Orders)
    {
        many(Park, Some(2));
    }
}

model! {
    /// The receiver leaves somewhere in the stream.
    funnel_left(Orders)
    {
        tally(60);
        let (sender, mut receiver) = funnel::Options::new().wait(SpinYield).unbounded();
        let senders: Vec<_> = (0..3)
            .map(|name| {
                let sender = sender.clone();
                thread::spawn(move || (0..20).for_each(|number| drop(sender.send(Message(name * 20 + number)))))
            })
            .collect();
        drop(sender);
        for _ in 0..20 {
            let _ = receiver.try_recv();
        }
        drop(receiver);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        settled();
    }
}

model! {
    /// Many round trips between ends that sleep; then the caller leaves.
    calls(Orders)
    steps [look_before_sleep]
    {
        let (mut caller, mut callee) = call::Options::new().wait(Park).line();
        let serving = thread::spawn(move || callee.serve(|number: usize| number + 1));
        (0..50).for_each(|number| assert_eq!(caller.call(number), Ok(number + 1)));
        drop(caller);
        serving.join().unwrap();
    }
}

model! {
    /// Requests from two threads, each with a one-shot for its answer. One in five askers does not
    /// wait for the answer.
    replies(Orders)
    steps [wake_shot, free_if_left, take_shot, hand_back_shot]
    {
        const EACH: usize = 20;
        tally(2 * EACH);
        let (requests, mut inbox) = funnel::Options::new().wait(Park).unbounded();
        let askers = [0, EACH].map(|first| {
            let requests = requests.clone();
            thread::spawn(move || {
                for number in first..first + EACH {
                    let (reply, mut answer) = oneshot::channel::<Message>();
                    requests.send((number, reply)).unwrap();
                    if number % 5 != 0 {
                        assert_eq!(answer.recv().unwrap().0, number);
                    }
                }
            })
        });
        drop(requests);
        while let Ok((number, reply)) = inbox.recv() {
            drop(reply.send(Message(number)));
        }
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        settled();
    }
}
