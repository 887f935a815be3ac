//! Owners: threads that post and ask, served ends, panics and stops.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use threadtoll::error::{AskError, AskTimeoutError, CallError, TrySendError};
use threadtoll::owned::{self, Context, Handle, Options, Owner};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};
use threadtoll::{call, funnel, oneshot, pipe};

use crate::element::{Bomb, Counted, Element, Ledger, surviving};
use crate::misfortune::bind_to_one_cpu;

const NOW: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

/// Without a report of the panic hook.
fn fail() -> ! {
    resume_unwind(Box::new("a closure that panics"))
}

fn push(handle: &Handle<Vec<u64>>, number: u64) {
    handle.post(move |log, _| log.push(number)).expect("the owner lives");
}

/// What threads post is run once each, in the order of each thread; and asks see it.
fn many_threads(wait: Wait, capacity: Option<usize>, each: u64) {
    const THREADS: u64 = 3;
    let options = Options::new().wait(wait);
    let options = capacity.map_or(options, |capacity| options.capacity(capacity));
    let (handle, running) = options.spawn("owner", || vec![0; THREADS as usize]);
    thread::scope(|scope| {
        for index in 0..THREADS as usize {
            let handle = handle.clone();
            scope.spawn(move || {
                for number in 0..each {
                    let post = handle.post(move |next: &mut Vec<u64>, _| {
                        assert_eq!(std::mem::replace(&mut next[index], number + 1), number);
                    });
                    assert!(post.is_ok());
                    if number % 16 == 0 {
                        // It may borrow.
                        let wanted = &index;
                        assert_eq!(handle.ask(|next, _| next[*wanted]), Ok(number + 1));
                    }
                }
            });
        }
    });
    assert_eq!(handle.ask(|next, _| next.clone()), Ok(vec![each; THREADS as usize]));
    drop(handle);
    running.join().expect("it does not panic");
}

#[test]
fn many_threads_post_and_ask() {
    for wait in [Adaptive, Park, SpinYield] {
        many_threads(wait, None, 3_000);
        many_threads(wait, Some(1), 300);
        many_threads(wait, Some(70), 1_000);
    }
    many_threads(Spin, None, 100);
}

#[test]
fn one_cpu_is_enough() {
    thread::spawn(|| {
        if bind_to_one_cpu() {
            for wait in [Adaptive, Park, SpinYield] {
                many_threads(wait, Some(4), 500);
            }
        } else {
            println!("skipped: threads cannot be bound to a CPU here");
        }
    })
    .join()
    .expect("it does not panic");
}

#[test]
fn closures_run_one_after_the_other_on_the_owner() {
    let (handle, running) = owned::spawn("state owner", || ());
    let names: Vec<_> =
        (0..3).map(|_| handle.ask(|(), _| thread::current().name().map(str::to_owned))).collect();
    assert_eq!(names, vec![Ok(Some("state owner".to_owned())); 3]);
    drop(handle);
    running.join().expect("it does not panic");
}

#[test]
fn a_panic_unwinds_out_of_run_and_the_rest_runs_later() {
    let (mut owner, handle) = owned::new(Vec::new());
    let asked = {
        let handle = handle.clone();
        thread::spawn(move || {
            while handle.queue_len() < 1 {
                thread::yield_now();
            }
            handle.ask(|_, _| -> u64 { fail() })
        })
    };
    push(&handle, 1);
    while handle.queue_len() < 2 {
        thread::yield_now();
    }
    push(&handle, 2);
    handle
        .post(|log, context| {
            log.push(3);
            context.post(|log, _| log.push(5));
            fail();
        })
        .expect("the owner lives");
    push(&handle, 4);
    drop(handle);
    assert!(!surviving(|| _ = owner.run()));
    assert_eq!(owner.state(), &[1]);
    assert!(!surviving(|| _ = owner.run()));
    assert_eq!(owner.state(), &[1, 2, 3]);
    assert_eq!(owner.run().len(), 5);
    owner.state_mut().sort_unstable();
    assert_eq!(owner.into_state(), [1, 2, 3, 4, 5]);
    assert_eq!(asked.join().expect("it does not panic"), Err(AskError::Unanswered));
}

#[test]
fn a_panic_ends_a_thread_of_its_own() {
    let (handle, running) = owned::spawn("owner", || 0);
    assert_eq!(handle.ask(|_, _| -> u64 { fail() }), Err(AskError::Unanswered));
    assert!(running.join().is_err());
    assert_eq!(handle.ask(|count, _| *count), Err(AskError::Disconnected));
    assert!(handle.is_disconnected());

    let (handle, running) = owned::spawn("owner", || -> u64 { fail() });
    let answer = handle.ask(|count, _| *count);
    assert!(matches!(answer, Err(AskError::Disconnected | AskError::Unanswered)), "{answer:?}");
    assert!(running.join().is_err());
}

#[test]
fn an_owner_cannot_ask_itself() {
    let (handle, running) = owned::spawn("owner", || 1);
    let inner = handle.clone();
    let asked = handle.ask(move |_, _| {
        (inner.ask(|count, _| *count), inner.ask_timeout(LONG, |count, _| *count))
    });
    assert_eq!(asked, Ok((Err(AskError::OwnThread), Err(AskTimeoutError::OwnThread))));
    drop(handle);
    running.join().expect("it does not panic");
    // Between two rounds, too.
    let (mut owner, handle) = owned::new(1);
    owner.run_once(NOW);
    assert_eq!(handle.ask(|count, _| *count), Err(AskError::OwnThread));
    // Once another thread runs it, this one may ask; and once it is gone, it learns that.
    let stopped = Arc::new(AtomicBool::new(false));
    let running = {
        let stopped = Arc::clone(&stopped);
        thread::spawn(move || {
            while !stopped.load(Relaxed) {
                owner.run_once(SOON);
            }
        })
    };
    while handle.ask(|count, _| *count) != Ok(1) {
        thread::yield_now();
    }
    stopped.store(true, Relaxed);
    running.join().expect("it does not panic");
    assert_eq!(handle.ask(|count, _| *count), Err(AskError::Disconnected));
    let (mut owner, handle) = owned::new(1);
    owner.run_once(NOW);
    drop(owner);
    assert_eq!(handle.ask(|count, _| *count), Err(AskError::Disconnected));
    assert_eq!(handle.ask_timeout(LONG, |count, _| *count), Err(AskTimeoutError::Disconnected));
}

#[test]
fn a_full_owner_waits_for_nobody_inside() {
    let (mut owner, handle) = owned::bounded(1, Vec::new());
    assert_eq!(handle.capacity(), Some(1));
    let inner = handle.clone();
    handle
        .post(move |log: &mut Vec<u64>, context| {
            assert!(inner.post(|log, _| log.push(2)).is_ok());
            let refused = inner.post(|log, _| log.push(9));
            let Err(TrySendError::Full(closure)) = refused else { panic!("it is full") };
            closure(log, context);
            // Timers need no room.
            inner.after(NOW, |log, _| log.push(3));
            context.post(|log, _| log.push(1));
            context.after(LONG, |_, _| ());
        })
        .expect("the owner lives");
    assert!(handle.try_post(|_, _| ()).is_err_and(|error| error.is_full()));
    drop(handle);
    while owner.state().len() < 4 {
        owner.run_once(SOON);
    }
    assert_eq!(owner.run(), &[9, 2, 3, 1]);
}

#[test]
fn errors_return_the_closure() {
    let ledger = Arc::new(Ledger::default());
    let (owner, handle) = owned::new(0);
    drop(owner);
    let (small, large) = (Counted::make(1, &ledger), (Counted::make(2, &ledger), [0u64; 9]));
    let post = handle.post(move |count: &mut u64, _: &mut Context<u64>| {
        *count += u64::from(small.is(1));
    });
    let Err(TrySendError::Disconnected(small)) = post else { panic!("the owner is gone") };
    let post = handle.try_post(move |count: &mut u64, _: &mut Context<u64>| {
        *count += u64::from(large.0.is(2));
    });
    let Err(TrySendError::Disconnected(large)) = post else { panic!("the owner is gone") };
    let (mut owner, handle) = owned::new(0);
    assert!(handle.post(small).is_ok() && handle.post(large).is_ok());
    drop(handle);
    assert_eq!(owner.run(), &2);
    ledger.assert_settled();
}

#[test]
fn an_answer_that_comes_late_is_dropped() {
    let ledger = Arc::new(Ledger::default());
    let (mut owner, handle) = owned::bounded(1, 0);
    let late = Arc::clone(&ledger);
    let asked = handle.ask_timeout(SOON, move |_, _| Counted::make(1, &late));
    assert!(asked.is_err_and(|error| error.is_timeout()));
    // There is no room for another.
    let asked = handle.ask_timeout(SOON, |count, _| *count += 1);
    assert!(asked.is_err_and(|error| error.is_timeout()));
    drop(handle);
    assert_eq!(owner.run(), &0);
    ledger.assert_settled();

    let (handle, running) = owned::spawn("owner", || 5);
    assert_eq!(handle.ask_timeout(LONG, |count, _| *count), Ok(5));
    assert_eq!(handle.ask_timeout(Duration::MAX, |count, _| *count), Ok(5));
    assert_eq!(
        handle.ask_timeout(LONG, |_, _| -> u64 { fail() }),
        Err(AskTimeoutError::Unanswered)
    );
    assert!(running.join().is_err());
    assert_eq!(handle.ask_timeout(LONG, |count, _| *count), Err(AskTimeoutError::Disconnected));
}

#[test]
fn tasks_ask() {
    let mut context = TaskContext::from_waker(Waker::noop());
    let (mut owner, handle) = owned::bounded(1, 5);
    let mut answer = Box::pin(handle.ask_async(|count, _| *count));
    let mut refused = Box::pin(handle.ask_async(|count, _| *count));
    assert_eq!(refused.as_mut().poll(&mut context), Poll::Ready(Err(AskError::Full)));
    assert_eq!(answer.as_mut().poll(&mut context), Poll::Pending);
    owner.run_once(NOW);
    assert_eq!(answer.as_mut().poll(&mut context), Poll::Ready(Ok(5)));
    let mut abandoned = Box::pin(handle.ask_async(|count, _| *count += 1));
    assert_eq!(abandoned.as_mut().poll(&mut context), Poll::Pending);
    drop(abandoned);
    owner.run_once(NOW);
    assert_eq!(owner.state(), &6);
    let mut unanswered = Box::pin(handle.ask_async(|count, _| *count));
    drop(owner);
    let ready = unanswered.as_mut().poll(&mut context);
    assert_eq!(ready, Poll::Ready(Err(AskError::Unanswered)));
    let mut gone = Box::pin(handle.ask_async(|count, _| *count));
    assert_eq!(gone.as_mut().poll(&mut context), Poll::Ready(Err(AskError::Disconnected)));
}

/// Notes on which thread it was dropped.
struct Dropped(Arc<Mutex<Vec<ThreadId>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.lock().expect("nobody panics here").push(thread::current().id());
    }
}

#[test]
fn a_stop_drops_everything_on_the_owners_thread() {
    let drops = Arc::new(Mutex::new(Vec::new()));
    let dropped = || Dropped(Arc::clone(&drops));
    let (handle, running) = owned::spawn("owner", || ());
    let (go, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (mut sender, receiver) = pipe::unbounded::<Dropped>();
    sender.send(dropped()).expect("the receiver lives");
    {
        let (go, began) = (Arc::clone(&go), Arc::clone(&began));
        let [posted, served, timed] = [dropped(), dropped(), dropped()];
        handle
            .post(move |(), context| {
                context.serve(receiver, move |(), _, _| _ = &served);
                context.after(LONG, move |(), _| drop(timed));
                context.post(move |(), _| drop(posted));
                began.store(true, Relaxed);
                while !go.load(Relaxed) {
                    thread::yield_now();
                }
            })
            .expect("the owner lives");
    }
    while !began.load(Relaxed) {
        thread::yield_now();
    }
    let behind = dropped();
    handle.post(move |(), _| drop(behind)).expect("the owner lives");
    let asking: Vec<_> = [0, 100]
        .map(|bytes| {
            let (handle, asked, captured) = (handle.clone(), dropped(), vec![0u8; bytes]);
            // A large closure stays in the asker's frame.
            thread::spawn(move || match <[u8; 100]>::try_from(captured) {
                Ok(captured) => handle.ask(move |(), _| drop((asked, captured))),
                Err(_) => handle.ask(move |(), _| drop(asked)),
            })
        })
        .into();
    while handle.queue_len() < 3 {
        thread::yield_now();
    }
    handle.stop();
    go.store(true, Relaxed);
    let id = running.thread().id();
    running.join().expect("it does not panic");
    let asked = asking.into_iter().map(|asking| asking.join().expect("it does not panic"));
    // An asker may have been stopped in the middle of its post, which is then refused.
    let refused = asked.filter(|asked| *asked == Err(AskError::Disconnected)).count();
    let drops = drops.lock().expect("nobody panics here");
    let elsewhere = drops.iter().filter(|thread| **thread != id).count();
    assert!(drops.len() == 7 && elsewhere <= refused, "{drops:?}, {refused} refused");
    assert!(handle.post(|(), _| ()).is_err_and(|error| error.is_disconnected()));
    assert!(sender.is_disconnected());
}

#[test]
fn a_stop_wakes_an_owner_that_sleeps() {
    for wait in [Adaptive, Park, SpinYield] {
        for served in [false, true] {
            let (handle, running) = Options::new().wait(wait).spawn("owner", || ());
            let (_sender, receiver) = pipe::unbounded::<u64>();
            if served {
                handle
                    .post(|(), context| context.serve(receiver, |(), _, _| ()))
                    .expect("the owner lives");
            }
            thread::sleep(SOON);
            handle.stop();
            handle.stop();
            running.join().expect("it does not panic");
        }
    }
}

/// What is dropped at a stop may use its own handle.
#[test]
fn a_destructor_that_posts_is_refused() {
    struct Posts(Handle<u64>, Arc<AtomicU64>);

    impl Drop for Posts {
        fn drop(&mut self) {
            let refused = self.0.post(|count, _| *count += 1).is_err();
            let unanswered = self.0.ask(|count, _| *count).is_err();
            self.1.fetch_add(u64::from(refused && unanswered), Relaxed);
        }
    }

    let refused = Arc::new(AtomicU64::new(0));
    let posts = |handle: &Handle<u64>| Posts(handle.clone(), Arc::clone(&refused));
    let (mut owner, handle) = owned::new(0);
    let [behind, inside, timed] = [posts(&handle), posts(&handle), posts(&handle)];
    handle
        .post(move |_, context| {
            context.post(move |_, _| drop(inside));
            context.after(LONG, move |_, _| drop(timed));
            context.stop();
        })
        .expect("the owner lives");
    handle.post(move |_, _| drop(behind)).expect("the owner lives");
    assert_eq!(owner.run(), &0);
    assert_eq!(refused.load(Relaxed), 3);
    let (owner, handle) = owned::new(0);
    let behind = posts(&handle);
    handle.post(move |_, _| drop(behind)).expect("the owner lives");
    drop(owner);
    assert_eq!(refused.load(Relaxed), 4);
}

#[test]
fn destructors_that_panic_leave_nothing_behind() {
    let ledger = Arc::new(Ledger::default());
    let (mut owner, handle) = owned::new(());
    for id in 0..9 {
        let (bomb, timed) = (Bomb::make(id, &ledger), Bomb::make(id, &ledger));
        handle.post(move |(), _| _ = bomb.is(id)).expect("the owner lives");
        handle.after(LONG, move |(), _| _ = timed.is(id));
    }
    assert!(!surviving(|| while owner.run_once(NOW) {}));
    let bomb = Bomb::make(0, &ledger);
    handle
        .post(move |(), context| {
            context.post(move |(), _| _ = bomb.is(0));
            context.stop();
        })
        .expect("the owner lives");
    while !surviving(|| _ = owner.run()) {}
    ledger.assert_settled();

    // An owner that is dropped, and one that stops, drop everything in spite of several panics.
    for stops in [false, true] {
        let (mut owner, handle) = owned::new(());
        for _ in 0..2 {
            let bomb = || Bomb::make(0, &ledger);
            let [inside, timed, again] = [bomb(), bomb(), bomb()];
            handle
                .post(move |(), context| {
                    context.post(move |(), _| _ = inside.is(0));
                    context.after(LONG, move |(), _| _ = timed.is(0));
                    context.every(LONG, move |(), _| _ = again.is(0));
                })
                .expect("the owner lives");
        }
        owner.run_once(NOW);
        for _ in 0..2 {
            let behind = Bomb::make(0, &ledger);
            handle.post(move |(), _| _ = behind.is(0)).expect("the owner lives");
        }
        if stops {
            handle.stop();
            assert!(!surviving(|| _ = owner.run()));
            owner.run();
        } else {
            assert!(!surviving(|| drop(owner)));
        }
        ledger.assert_settled();
    }

    // Of a question that nobody is there to answer, too.
    let (owner, handle) = owned::new(());
    drop(owner);
    let (small, large) = (Bomb::make(0, &ledger), (Bomb::make(0, &ledger), [0u64; 9]));
    assert!(!surviving(|| _ = handle.ask(move |(), _| drop(small))));
    assert!(!surviving(|| _ = handle.ask(move |(), _| drop(large))));
    ledger.assert_settled();

    // The asker is told even if what its closure has captured panics when it is dropped.
    let (handle, running) = owned::spawn("owner", || ());
    let bomb = Bomb::make(3, &ledger);
    let asked = handle.ask(move |(), _| {
        let _bomb = bomb;
        7
    });
    assert_eq!(asked, Err(AskError::Unanswered));
    assert!(running.join().is_err());
    ledger.assert_settled();
}

#[test]
fn an_owner_ends_when_nothing_can_come() {
    let (mut owner, handle) = owned::new(0);
    let (mut sender, receiver) = pipe::unbounded::<u64>();
    handle
        .post(|_, context| {
            context.serve(receiver, |sum, context, number| {
                *sum += number;
                context.post(move |sum, _| *sum += 100 * number);
            });
            // A timer alone does not keep it running.
            context.every(LONG, |_, _| ());
        })
        .expect("the owner lives");
    drop(handle);
    let sending = thread::spawn(move || {
        thread::sleep(SOON);
        (1..=3).for_each(|number| sender.send(number).expect("the receiver lives"));
    });
    assert_eq!(owner.run(), &606);
    assert!(!owner.run_once(LONG));
    sending.join().expect("it does not panic");
}

#[test]
fn all_kinds_of_ends_are_served() {
    for wait in [Adaptive, Park, SpinYield] {
        let (handle, running) = Options::new().wait(wait).spawn("owner", || 0);
        let (mut pipe, from_pipe) = pipe::unbounded::<u64>();
        let (funnel, from_funnel) = funnel::bounded::<u64>(1);
        let (reply, from_reply) = oneshot::channel::<u64>();
        let (mut caller, callee) = call::line::<u64, u64>();
        handle
            .post(|_: &mut u64, context| {
                context.serve(from_pipe, |sum, _, number| *sum += number);
                context.serve(from_funnel, |sum, _, number| *sum += 10 * number);
                context.serve(from_reply, |sum, _, number| *sum += 100 * number);
                context.serve(callee, |sum, _, number| *sum + number);
            })
            .expect("the owner lives");
        let sending = thread::spawn(move || {
            for number in 1..=3 {
                pipe.send(number).expect("the receiver lives");
                funnel.send(number).expect("the receiver lives");
            }
            reply.send(5).expect("the receiver lives");
        });
        sending.join().expect("it does not panic");
        while caller.call(1) != Ok(567) {}
        drop((caller, handle));
        running.join().expect("it does not panic");
    }
}

#[test]
fn an_end_stays_after_a_panic_of_its_closure() {
    let (mut owner, handle) = owned::new(Vec::new());
    let (mut sender, receiver) = pipe::unbounded::<u64>();
    handle
        .post(|_, context| {
            context.serve(receiver, |log: &mut Vec<u64>, _, number| {
                if number == 1 {
                    fail();
                }
                log.push(number);
            });
        })
        .expect("the owner lives");
    drop(handle);
    (0..3).for_each(|number| sender.send(number).expect("the receiver lives"));
    drop(sender);
    assert!(!surviving(|| _ = owner.run()));
    assert_eq!(owner.run(), &[0, 2]);
}

/// The caller is told, and may call again.
#[test]
fn a_callee_stays_after_a_panic_of_its_closure() {
    let (mut owner, handle) = owned::new(0);
    let (mut caller, callee) = call::line::<u64, u64>();
    handle
        .post(|_, context| {
            context.serve(callee, |calls: &mut u64, _, number| {
                *calls += 1;
                if number == 1 { fail() } else { number }
            });
        })
        .expect("the owner lives");
    drop(handle);
    let calling = thread::spawn(move || [0, 1, 2].map(|number| caller.call(number)));
    assert!(!surviving(|| _ = owner.run()));
    assert_eq!(owner.run(), &3);
    let answers = calling.join().expect("it does not panic");
    assert_eq!(answers, [Ok(0), Err(CallError::Unanswered), Ok(2)]);
}

/// Nothing else wakes it.
#[test]
fn an_owner_that_was_stopped_by_a_closure_that_panics_ends() {
    for served in [false, true] {
        let (mut owner, handle) = owned::new(());
        let (_sender, receiver) = pipe::unbounded::<u64>();
        handle
            .post(move |(), context| {
                if served {
                    context.serve(receiver, |(), _, _| ());
                }
                context.stop();
                fail();
            })
            .expect("the owner lives");
        assert!(!surviving(|| _ = owner.run()));
        owner.run();
        assert!(handle.is_disconnected());
    }
}

#[test]
fn a_stop_wakes_an_owner_that_is_full() {
    for _ in 0..2_000 {
        let (handle, running) = Options::new().wait(Park).capacity(1).spawn("owner", || 0);
        let posting = {
            let handle = handle.clone();
            thread::spawn(move || while handle.try_post(|count, _| *count += 1).is_ok() {})
        };
        handle.stop();
        running.join().expect("it does not panic");
        posting.join().expect("it does not panic");
    }
}

/// A post that posts itself again, an end that is always ready, a timer that is always due, and
/// posts from outside: each of them gets its turn.
#[test]
fn nobody_keeps_the_others_waiting() {
    #[derive(Default)]
    struct Turns {
        inside: u64,
        served: u64,
        timed: u64,
    }

    fn again(turns: &mut Turns, context: &mut Context<Turns>) {
        turns.inside += 1;
        context.post(again);
    }

    let (mut owner, handle): (Owner<Turns>, _) = owned::new(Turns::default());
    let (mut sender, receiver) = pipe::unbounded::<u64>();
    handle
        .post(|_, context| {
            for _ in 0..200 {
                context.post(again);
            }
            context.serve(receiver, |turns: &mut Turns, _, _| turns.served += 1);
            context.every(Duration::from_nanos(1), |turns: &mut Turns, _| turns.timed += 1);
        })
        .expect("the owner lives");
    owner.run_once(NOW);
    (0..100_000).for_each(|number| sender.send(number).expect("the receiver lives"));
    let outside = Arc::new(AtomicU64::new(0));
    for _ in 0..1_000 {
        let outside = Arc::clone(&outside);
        handle.post(move |_, _| _ = outside.fetch_add(1, Relaxed)).expect("the owner lives");
    }
    for round in 1..=20 {
        let before = owner.state().served;
        assert!(owner.run_once(NOW));
        let Turns { inside, served, timed } = *owner.state();
        assert!(served - before <= 16, "round {round}: {served}");
        assert!(served >= 8 * round && timed >= round, "round {round}: {served}, {timed}");
        assert!(inside >= 32 * round, "round {round}: {inside}");
        assert_eq!(outside.load(Relaxed), 32 * round);
    }
}
