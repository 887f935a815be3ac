//! Waiting at several receiving ends: every kind of source and wait, fairness, ends that leave,
//! what other waits leave behind, and many wake-ups.

use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::call::{self, Callee, Caller};
use threadtoll::error::{CallError, RecvError, TryRecvError};
use threadtoll::select::{Select, Source, Sources};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};
use threadtoll::{funnel, oneshot, pipe};

use crate::element::{Random, surviving};
use crate::waker::{Deed, Record, block_on};

const SOON: Duration = Duration::from_millis(1);
/// Time in which a thread falls asleep.
const LATE: Duration = Duration::from_millis(5);
/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

const WAITS: [Wait; 4] = [Adaptive, Park, Spin, SpinYield];

/// Waits in one of the ways that wait.
fn wait(select: &mut Select, way: usize, sources: impl Sources) -> usize {
    match way {
        0 => Some(select.ready(sources)),
        1 => select.ready_timeout(sources, NEVER),
        2 => select.ready_timeout(sources, Duration::MAX),
        _ => select.ready_deadline(sources, Instant::now() + NEVER),
    }
    .expect("it waits")
}

/// One source of each kind, which have nothing.
struct Mix {
    pipe: (pipe::Sender<u64>, pipe::Receiver<u64>),
    funnel: (funnel::Sender<String>, funnel::Receiver<String>),
    line: (Caller<u8, ()>, Callee<u8, ()>),
    oneshot: (oneshot::Sender<Vec<u8>>, oneshot::Receiver<Vec<u8>>),
}

impl Mix {
    fn new() -> Self {
        Mix {
            pipe: pipe::unbounded(),
            funnel: funnel::unbounded(),
            line: call::line(),
            oneshot: oneshot::channel(),
        }
    }
}

/// A message to each kind of source in turn, before the wait or while it is under way.
fn each_kind(wait_by: Wait, after: Duration) {
    for way in 0..4 {
        let Mix { pipe, funnel, line, oneshot } = Mix::new();
        let (mut numbers, mut receiver) = pipe;
        let (words, mut inbox) = funnel;
        let (mut caller, mut callee) = line;
        let (answer, mut reply) = oneshot;
        let mut select = Select::with_wait(wait_by);
        macro_rules! sources {
            () => {
                (&mut receiver, &mut inbox, &mut callee, &mut reply)
            };
        }
        // Each message is sent once the one before it was received.
        let (mut go, turns) = pipe::unbounded::<()>();
        thread::scope(|scope| {
            let mut turns = turns.into_iter();
            let mut next = move || {
                turns.next();
                thread::sleep(after);
            };
            scope.spawn(move || {
                next();
                numbers.send(1).expect("it is there");
                next();
                words.send("two".into()).expect("it is there");
                next();
                assert_eq!(caller.call(3), Ok(()));
                next();
                answer.send(vec![4]).expect("it is there");
                next();
                drop((numbers, words, caller));
            });
            for round in 0..4 {
                assert_eq!(select.try_ready(sources!()), None);
                assert_eq!(select.ready_timeout(sources!(), Duration::ZERO), None);
                go.send(()).expect("the other thread lives");
                assert_eq!(wait(&mut select, way, sources!()), round);
                match round {
                    0 => assert_eq!(receiver.try_recv(), Ok(1)),
                    1 => assert_eq!(inbox.try_recv().as_deref(), Ok("two")),
                    2 => {
                        assert_eq!(callee.try_recv(), Ok(3));
                        callee.answer(());
                    }
                    _ => assert_eq!(reply.try_recv(), Ok(vec![4])),
                }
            }
            // There is no more to come from the one-shot.
            assert_eq!(wait(&mut select, way, sources!()), 3);
            go.send(()).expect("the other thread lives");
            assert_eq!(wait(&mut select, way, (&mut receiver,)), 0);
            assert_eq!(wait(&mut select, way, (&mut inbox,)), 0);
            assert_eq!(wait(&mut select, way, (&mut callee,)), 0);
        });
        for _ in 0..2 {
            let ready = [0; 4].map(|_| select.try_ready(sources!()).expect("all are closed"));
            let mut sorted = ready;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3], "{ready:?}");
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(inbox.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(callee.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(reply.try_recv(), Err(TryRecvError::Disconnected));
    }
}

#[test]
fn each_kind_of_source_ends_a_wait_that_sleeps() {
    for wait in WAITS {
        each_kind(wait, LATE);
    }
}

#[test]
fn each_kind_of_source_ends_a_wait_at_once() {
    for wait in WAITS {
        each_kind(wait, Duration::ZERO);
    }
}

#[test]
fn a_wait_times_out() {
    for wait in WAITS {
        let (sender, mut receiver) = pipe::unbounded::<u64>();
        let (other, mut inbox) = funnel::unbounded::<u64>();
        let mut select = Select::with_wait(wait);
        for _ in 0..3 {
            let began = Instant::now();
            assert_eq!(select.ready_timeout((&mut receiver, &mut inbox), SOON), None);
            assert!(began.elapsed() >= SOON);
            let passed = Instant::now();
            assert_eq!(select.ready_deadline((&mut receiver, &mut inbox), passed), None);
        }
        drop(sender);
        assert_eq!(select.ready_timeout((&mut receiver, &mut inbox), NEVER), Some(0));
        assert_eq!(select.ready_timeout((&mut inbox,), SOON), None);
        drop(other);
        let passed = Instant::now();
        assert_eq!(select.ready_deadline((&mut inbox,), passed), Some(0));
    }
}

#[test]
fn sources_that_are_ready_take_turns() {
    let (mut senders, mut lanes): (Vec<_>, Vec<_>) = (0..5).map(|_| pipe::unbounded()).unzip();
    for sender in &mut senders {
        sender.send_slice(&[0; 100]).expect("it is there");
    }
    let mut select = Select::new();
    let mut turns = |lanes: &mut [pipe::Receiver<u64>], calls: usize| -> Vec<usize> {
        (0..calls).map(|_| select.ready(&mut lanes[..])).collect()
    };
    assert_eq!(turns(&mut lanes, 7), [0, 1, 2, 3, 4, 0, 1]);
    // Nothing is lost by waiting, and a source that is ready is found beyond others that are not.
    while lanes[3].try_recv().is_ok() {}
    assert_eq!(turns(&mut lanes, 5), [2, 4, 0, 1, 2]);
    // Fewer sources than the index at which to begin.
    assert_eq!(turns(&mut lanes[..2], 3), [0, 1, 0]);
    assert_eq!(turns(&mut lanes, 2), [1, 2]);
    assert!(lanes[0].drain(usize::MAX, |_| ()) == 100);
}

#[test]
fn no_sources_are_never_ready() {
    let mut select = Select::new();
    let none: &mut [pipe::Receiver<u64>] = &mut [];
    assert_eq!(select.try_ready(&mut *none), None);
    assert_eq!(select.ready_timeout(&mut *none, SOON), None);
    assert!(!surviving(|| _ = select.ready_timeout(&mut *none, Duration::MAX)));
    assert!(!surviving(|| _ = select.ready(none)));
    let mut gone: Option<pipe::Receiver<u64>> = None;
    assert_eq!(select.ready_timeout((&mut gone,), SOON), None);
}

#[test]
fn a_source_can_be_left_out() {
    let (mut sender, receiver) = pipe::unbounded();
    let (other, inbox) = funnel::unbounded();
    let (mut receiver, mut inbox) = (Some(receiver), Some(inbox));
    let sending = thread::spawn(move || {
        (0..10).for_each(|number| sender.send(number).expect("it is there"));
        drop(sender);
        thread::sleep(LATE);
        (10..20).for_each(|number| other.send(number).expect("it is there"));
    });
    let (mut select, mut sum) = (Select::with_wait(Park), 0);
    while receiver.is_some() || inbox.is_some() {
        match select.ready((&mut receiver, &mut inbox)) {
            0 => match receiver.as_mut().map(pipe::Receiver::try_recv) {
                Some(Ok(number)) => sum += number,
                _ => receiver = None,
            },
            _ => match inbox.as_mut().map(funnel::Receiver::try_recv) {
                Some(Ok(number)) => sum += number,
                _ => inbox = None,
            },
        }
    }
    sending.join().expect("it does not panic");
    assert_eq!(sum, 190);
}

#[test]
fn a_request_can_be_kept() {
    let (mut caller, mut callee) = call::line::<u64, u64>();
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let mut select = Select::with_wait(Park);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(caller.call(1), Ok(3));
            assert_eq!(caller.call(4), Err(CallError::Unanswered));
        });
        assert_eq!(select.ready((&mut callee, &mut receiver)), 0);
        let request = callee.try_recv().expect("it is ready");
        assert_eq!(select.ready_timeout((&mut callee, &mut receiver), LATE), None);
        scope.spawn(|| {
            thread::sleep(LATE);
            sender.send(2).expect("it is there");
        });
        assert_eq!(select.ready((&mut callee, &mut receiver)), 1);
        callee.answer(request + receiver.try_recv().expect("it is ready"));
        assert_eq!(select.ready((&mut callee, &mut receiver)), 0);
        assert_eq!(callee.try_recv(), Ok(4));
        // As it returns nothing, the request is declined.
        assert_eq!(callee.try_recv(), Err(TryRecvError::Empty));
    });
    drop(caller);
    assert_eq!(select.ready((&mut callee, &mut receiver)), 0);
}

#[test]
fn a_sleeping_select_learns_that_an_end_has_left() {
    for gone in 0..4 {
        let Mix { pipe, funnel, line, oneshot } = Mix::new();
        let (mut receiver, mut inbox) = (pipe.1, funnel.1);
        let (mut callee, mut reply) = (line.1, oneshot.1);
        let mut senders = (Some(pipe.0), Some(funnel.0), Some(line.0), Some(oneshot.0));
        let leaving = thread::spawn(move || {
            thread::sleep(LATE);
            match gone {
                0 => senders.0 = None,
                1 => senders.1 = None,
                2 => senders.2 = None,
                _ => senders.3 = None,
            }
            senders
        });
        let sources = (&mut receiver, &mut inbox, &mut callee, &mut reply);
        assert_eq!(Select::with_wait(Park).ready(sources), gone);
        drop(leaving.join());
    }
}

#[test]
fn ends_and_selects_may_be_dropped_at_any_time() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (reply, mut answer) = oneshot::channel::<u64>();
    for _ in 0..3 {
        let mut select = Select::with_wait(Park);
        let sources = (&mut receiver, &mut inbox, &mut answer);
        assert_eq!(select.ready_timeout(sources, SOON), None);
        drop(select);
        sender.send(1).expect("it is there");
        other.send(2).expect("it is there");
        assert_eq!((receiver.recv(), inbox.recv()), (Ok(1), Ok(2)));
    }
    let mut select = Select::with_wait(Park);
    assert_eq!(select.ready_timeout((&mut receiver, &mut inbox), SOON), None);
    drop(receiver);
    assert!(sender.send(1).is_err());
    assert_eq!(select.ready_timeout((&mut answer, &mut inbox), SOON), None);
    drop((answer, inbox));
    assert!(other.send(2).is_err());
    assert!(reply.send(3).is_err());
}

/// Threads, tasks and `Select`s take turns at the same ends.
#[test]
fn a_task_and_a_select_take_turns() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let record = Record::new();
    let mut select = Select::with_wait(Park);
    for round in 0..3 {
        assert!(receiver.poll_recv(&mut Context::from_waker(&record.waker())).is_pending());
        assert!(inbox.poll_recv(&mut Context::from_waker(&record.waker())).is_pending());
        assert_eq!(record.alive(), 2);
        // A wait that sleeps drops the wakers. The time may be up before that.
        let mut limit = SOON;
        while record.alive() > 0 {
            assert_eq!(select.ready_timeout((&mut receiver, &mut inbox), limit), None);
            limit *= 2;
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(LATE);
                sender.send(round).expect("it is there");
                other.send(round).expect("it is there");
            });
            assert_eq!(select.ready((&mut receiver, &mut inbox)), 0);
            assert_eq!(block_on(inbox.recv_async()), Ok(round));
            assert_eq!(receiver.recv(), Ok(round));
        });
        assert_eq!(record.wakes(), 0);
        select = Select::with_wait(Park);
    }
}

#[test]
fn a_waker_that_panics_does_no_harm() {
    let record = Record::new();
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (_other, mut inbox) = funnel::unbounded::<u64>();
    sender.send(1).expect("it is there");
    assert_eq!(receiver.recv(), Ok(1));
    let mut select = Select::with_wait(Park);
    assert!(inbox.poll_recv(&mut Context::from_waker(&record.waker())).is_pending());
    record.panic_at(Some(Deed::Drop));
    // As above.
    let mut limit = SOON;
    while surviving(|| _ = select.ready_timeout((&mut receiver, &mut inbox), limit)) {
        limit *= 2;
    }
    record.panic_at(None);
    assert_eq!(record.alive(), 0);
    assert_eq!(select.ready_timeout((&mut receiver, &mut inbox), SOON), None);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(LATE);
            sender.send(2).expect("it is there");
        });
        assert_eq!(select.ready((&mut receiver, &mut inbox)), 0);
    });
    assert_eq!(
        receiver.poll_recv(&mut Context::from_waker(Waker::noop())).map(Result::ok),
        std::task::Poll::Ready(Some(2))
    );
}

#[test]
fn sources_of_different_kinds_may_be_a_slice() {
    let (mut sender, mut numbers) = pipe::unbounded::<u64>();
    let (other, mut words) = funnel::unbounded::<&str>();
    let mut lanes: Vec<_> = (0..20).map(|_| pipe::unbounded::<u8>()).collect();
    let mut sources: Vec<&mut dyn Source> = vec![&mut numbers, &mut words];
    sources.extend(lanes.iter_mut().map(|(_, lane)| lane as &mut dyn Source));
    let mut select = Select::new();
    assert_eq!(select.try_ready(&mut sources[..]), None);
    other.send("a").expect("it is there");
    sender.send(1).expect("it is there");
    assert_eq!(select.ready(&mut sources[..]), 0);
    assert_eq!(select.ready(&mut sources[..]), 1);
}

/// Every kind of source at once, each from threads of its own, and random ways of waiting.
fn storm(wait: Wait, seed: u64) {
    const MESSAGES: u64 = if cfg!(miri) { 30 } else { 5_000 };
    let (mut sender, receiver) = pipe::unbounded::<u64>();
    let (mut full, narrow) = pipe::bounded::<u64>(2);
    let (words, inbox) = funnel::bounded::<(u64, u64)>(3);
    let (mut caller, callee) = call::line::<u64, u64>();
    let (mut promises, promised) = pipe::unbounded::<oneshot::Receiver<u64>>();
    let (mut receiver, mut narrow) = (Some(receiver), Some(narrow));
    let (mut inbox, mut callee, mut promised) = (Some(inbox), Some(callee), Some(promised));
    let mut answer: Option<oneshot::Receiver<u64>> = None;
    thread::scope(|scope| {
        let rest = |random: &mut Random| match random.below(50) {
            0 => thread::sleep(Duration::from_micros(random.below(100))),
            1..20 => (0..random.below(200)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        };
        scope.spawn(move || {
            let mut random = Random::new(seed + 1);
            for number in 0..MESSAGES {
                sender.send(number).expect("it is there");
                rest(&mut random);
            }
        });
        scope.spawn(move || {
            (0..MESSAGES).for_each(|number| full.send(number).expect("it is there"));
        });
        for place in 0..2 {
            let words = words.clone();
            scope.spawn(move || {
                let mut random = Random::new(seed + 2 + place);
                for number in 0..MESSAGES {
                    words.send((place, number)).expect("it is there");
                    rest(&mut random);
                }
            });
        }
        drop(words);
        scope.spawn(move || {
            for number in 0..MESSAGES / 10 {
                assert_eq!(caller.call(number), Ok(number + 1));
            }
        });
        scope.spawn(move || {
            let mut random = Random::new(seed + 4);
            for number in 0..MESSAGES / 10 {
                let (reply, answer) = oneshot::channel();
                promises.send(answer).expect("it is there");
                rest(&mut random);
                reply.send(number).expect("it is there");
            }
        });
        let mut random = Random::new(seed);
        let mut select = Select::with_wait(wait);
        let (mut next, mut asked, mut answered) = ([0; 4], 0, 0);
        let count = |place: &mut u64, number: u64| {
            assert_eq!(number, *place);
            *place += 1;
        };
        while receiver.is_some() || narrow.is_some() || inbox.is_some() || callee.is_some() {
            let sources =
                (&mut receiver, &mut narrow, &mut inbox, &mut callee, &mut answer, &mut promised);
            let limit = Duration::from_micros(random.below(100));
            let ready = match random.below(4) {
                0 => select.ready_timeout(sources, limit),
                1 => select.ready_deadline(sources, Instant::now() + limit),
                2 => select.try_ready(sources),
                _ => Some(select.ready(sources)),
            };
            match ready {
                None => {}
                Some(0) => match receiver.as_mut().expect("it is there").try_recv() {
                    Ok(number) => count(&mut next[0], number),
                    Err(error) => {
                        assert!(error.is_disconnected());
                        receiver = None;
                    }
                },
                Some(1) => match narrow.as_mut().expect("it is there").try_recv() {
                    Ok(number) => count(&mut next[1], number),
                    Err(error) => {
                        assert!(error.is_disconnected());
                        narrow = None;
                    }
                },
                Some(2) => match inbox.as_mut().expect("it is there").try_recv() {
                    Ok((place, number)) => count(&mut next[2 + place as usize], number),
                    Err(error) => {
                        assert!(error.is_disconnected());
                        inbox = None;
                    }
                },
                Some(3) => {
                    let end = callee.as_mut().expect("it is there");
                    match end.try_recv() {
                        Ok(number) => {
                            count(&mut asked, number);
                            end.answer(number + 1);
                        }
                        Err(error) => {
                            assert!(error.is_disconnected());
                            callee = None;
                        }
                    }
                }
                Some(4) => {
                    let number = answer.take().expect("it is there").try_recv();
                    count(&mut answered, number.expect("it is ready"));
                }
                Some(_) => match promised.as_mut().expect("it is there").try_recv() {
                    Ok(next) => {
                        if let Some(mut last) = answer.replace(next) {
                            // It may have been sent in the meantime, or not yet.
                            count(&mut answered, last.recv().expect("it is sent"));
                        }
                    }
                    Err(error) => {
                        assert!(error.is_disconnected());
                        promised = None;
                    }
                },
            }
            if random.below(20) == 0
                && let Some(Ok(number)) = receiver.as_mut().map(|end| end.recv_timeout(limit))
            {
                count(&mut next[0], number);
            }
        }
        assert_eq!(next, [MESSAGES; 4]);
        assert_eq!(asked, MESSAGES / 10);
        if let Some(mut last) = answer {
            count(&mut answered, last.recv().expect("it is sent"));
        }
        for mut last in promised.into_iter().flatten() {
            count(&mut answered, last.recv().expect("it is sent"));
        }
        assert_eq!(answered, MESSAGES / 10);
    });
}

#[test]
fn a_storm_for_a_select_that_adapts() {
    storm(Adaptive, 1);
}

#[test]
fn a_storm_for_a_select_that_sleeps() {
    storm(Park, 2);
}

#[test]
fn a_storm_for_a_select_that_yields() {
    storm(SpinYield, 3);
}

/// One wake-up for each message, among many sources.
#[test]
fn each_message_to_many_sources_wakes_it() {
    const SOURCES: usize = 64;
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 2_000 };
    for wait in [Adaptive, Park] {
        let (mut senders, mut lanes): (Vec<_>, Vec<_>) =
            (0..SOURCES).map(|_| pipe::unbounded::<u64>()).unzip();
        let (mut replies, mut replied) = pipe::unbounded::<u64>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(9);
                for round in 0..ROUNDS {
                    let lane = random.below(SOURCES as u64) as usize;
                    senders[lane].send(round).expect("it is there");
                    assert_eq!(replied.recv(), Ok(round));
                }
            });
            let mut select = Select::with_wait(wait);
            for round in 0..ROUNDS {
                let lane = select.ready(&mut lanes[..]);
                assert_eq!(lanes[lane].try_recv(), Ok(round));
                replies.send(round).expect("it is there");
            }
            select.ready(&mut lanes[..]);
            assert!(lanes.iter_mut().all(|lane| lane.recv() == Err(RecvError)));
        });
    }
}
