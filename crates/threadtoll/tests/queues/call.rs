//! Calls: time-outs, late answers, and ends that leave while the other lives.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::call::{self, Callee, Caller, Options};
use threadtoll::error::{CallError, CallTimeoutError, RecvTimeoutError, TryRecvError};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};

use crate::element::{Bomb, Counted, Element, Ledger, Random};

const SOON: Duration = Duration::from_millis(1);
/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

type Ends<T> = (Caller<T, T>, Callee<T, T>);

/// A line whose first request, numbered 0, has timed out and was not received.
fn late<T: Element>(ledger: &Arc<Ledger>) -> Ends<T> {
    let (mut caller, callee) = call::line();
    let late = caller.call_timeout(T::make(0, ledger), SOON);
    assert!(matches!(late, Err(CallTimeoutError::Timeout(None))));
    (caller, callee)
}

fn times_out(wait: Wait) {
    let (mut caller, mut callee) = Options::new().wait(wait).line::<u64, u64>();
    assert!(!caller.is_disconnected() && !callee.is_disconnected());
    assert_eq!(callee.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert_eq!(callee.recv_deadline(Instant::now()), Err(RecvTimeoutError::Timeout));
    assert_eq!(callee.try_recv(), Err(TryRecvError::Empty));

    assert_eq!(caller.call_timeout(0, SOON), Err(CallTimeoutError::Timeout(None)));
    let deadline = Instant::now() + SOON;
    assert_eq!(caller.call_deadline(1, deadline), Err(CallTimeoutError::Timeout(Some(1))));
    assert_eq!(callee.try_recv(), Ok(0));
    // The callee hangs.
    assert_eq!(caller.call_timeout(2, SOON), Err(CallTimeoutError::Timeout(Some(2))));
    thread::scope(|scope| {
        scope.spawn(move || {
            callee.answer(10);
            assert_eq!(callee.recv_timeout(NEVER), Ok(3));
            callee.answer(13);
            assert_eq!(callee.recv_timeout(NEVER), Ok(4));
            // Leaving declines the request.
        });
        assert_eq!(caller.call_timeout(3, NEVER), Ok(13));
        assert_eq!(caller.call(4), Err(CallError::Unanswered));
        let deadline = Instant::now() + NEVER;
        assert_eq!(caller.call_deadline(5, deadline), Err(CallTimeoutError::Disconnected(5)));
        assert_eq!(caller.call_timeout(6, Duration::ZERO), Err(CallTimeoutError::Disconnected(6)));
    });
}

#[test]
fn both_ends_time_out() {
    times_out(Adaptive);
    times_out(Park);
    times_out(Spin);
    times_out(SpinYield);
}

#[test]
fn without_time_nothing_is_asked() {
    let (mut caller, mut callee) = call::line::<u64, u64>();
    let past = Instant::now();
    assert_eq!(caller.call_deadline(1, past), Err(CallTimeoutError::Timeout(Some(1))));
    assert_eq!(caller.call_timeout(2, Duration::ZERO), Err(CallTimeoutError::Timeout(Some(2))));
    assert_eq!(callee.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_late_request_is_dropped_when_the_callee_leaves() {
    let ledger = Arc::default();
    let (mut caller, callee) = late::<Counted>(&ledger);
    drop(callee);
    ledger.assert_settled();
    assert!(caller.is_disconnected());
    let again = caller.call(Counted::make(1, &ledger));
    assert!(matches!(again, Err(CallError::Disconnected(request)) if request.is(1)));
}

#[test]
fn a_late_answer_is_dropped_when_its_caller_leaves() {
    let ledger = Arc::default();
    let (caller, mut callee) = late::<Counted>(&ledger);
    drop(callee.recv());
    callee.answer(Counted::make(1, &ledger));
    drop(caller);
    ledger.assert_settled();
    assert!(callee.is_disconnected());
}

#[test]
fn a_request_outlives_its_caller_and_its_answer_does_not() {
    let ledger = Arc::default();
    let (caller, mut callee) = late::<Counted>(&ledger);
    drop(caller);
    assert!(callee.is_disconnected());
    assert!(callee.try_recv().is_ok_and(|request| request.is(0)));
    callee.answer(Counted::make(1, &ledger));
    ledger.assert_settled();
    assert!(matches!(callee.try_recv(), Err(TryRecvError::Disconnected)));
    assert!(callee.recv().is_err());
}

#[test]
fn a_late_answer_is_dropped_by_the_next_call() {
    let ledger = Arc::default();
    let (mut caller, mut callee) = late::<Counted>(&ledger);
    drop(callee.recv());
    callee.answer(Counted::make(1, &ledger));
    let next = caller.call_timeout(Counted::make(2, &ledger), SOON);
    assert!(matches!(next, Err(CallTimeoutError::Timeout(None))));
    assert!(callee.recv().is_ok_and(|request| request.is(2)));
    // Two requests and the late answer.
    ledger.assert_settled();
}

#[test]
fn a_late_answer_that_panics_when_dropped_harms_nothing() {
    let ledger = Arc::default();
    let (mut caller, mut callee) = late::<Bomb>(&ledger);
    // The request's destructor panics too.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(callee.recv()))).is_err());
    callee.answer(Bomb::make(3, &ledger));
    let request = Bomb::make(1, &ledger);
    assert!(catch_unwind(AssertUnwindSafe(|| caller.call(request))).is_err());
    ledger.assert_settled();
    thread::scope(|scope| {
        scope.spawn(|| callee.serve(|request| request));
        assert!(caller.call(Bomb::make(2, &ledger)).is_ok_and(|answer| answer.is(2)));
        drop(caller);
    });
    ledger.assert_settled();
}

#[test]
fn a_declined_request_that_was_late_makes_room_for_the_next() {
    let (mut caller, mut callee) = late::<u64>(&Arc::default());
    assert!(callee.recv().is_ok_and(|late| late.is(0)));
    assert_eq!(callee.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(caller.call_timeout(1, SOON), Err(CallTimeoutError::Timeout(None)));
    assert_eq!(callee.recv(), Ok(1));
}

/// Otherwise the caller would wait, since the callee lives on.
#[test]
fn a_body_that_panics_declines() {
    let (mut caller, mut callee) = call::line::<u64, u64>();
    thread::scope(|scope| {
        let serving = || callee.serve(|_| resume_unwind(Box::new("a body that panics")));
        let serving = scope.spawn(move || catch_unwind(AssertUnwindSafe(serving)).is_err());
        assert_eq!(caller.call(1), Err(CallError::Unanswered));
        assert!(serving.join().expect("the panic was caught"));
    });
    assert_eq!(callee.try_recv(), Err(TryRecvError::Empty));
}

/// Runs two functions at once, many times, the second in a thread of its own. Each first waits for
/// a time that differs from round to round.
pub(crate) fn races<A, B: Send>(
    make: impl Fn() -> (A, B),
    first: impl Fn(A) -> A + Sync,
    second: impl Fn(B) + Sync,
    check: impl Fn(A),
) {
    let mut random = Random::new(11);
    for _ in 0..if cfg!(miri) { 20 } else { 1_500 } {
        let (one, other) = make();
        let pauses = [random.below(300), random.below(300)];
        let start = AtomicU32::new(0);
        let begin = |pauses| {
            start.fetch_add(1, Relaxed);
            while start.load(Relaxed) < 2 {
                thread::yield_now();
            }
            (0..pauses).for_each(|_| std::hint::spin_loop());
        };
        let one = thread::scope(|scope| {
            scope.spawn(|| {
                begin(pauses[1]);
                second(other);
            });
            begin(pauses[0]);
            first(one)
        });
        check(one);
    }
}

/// A timeout that is over at once.
const INSTANT: Duration = Duration::from_nanos(1);

#[test]
fn a_caller_leaves_while_its_late_answer_comes() {
    races(
        || {
            let ledger = Arc::default();
            let (mut caller, mut callee) = call::line();
            let late = caller.call_timeout(Counted::make(0, &ledger), INSTANT);
            assert!(late.is_err_and(|error| error.is_timeout()));
            drop(callee.recv());
            ((callee, ledger), caller)
        },
        |(mut callee, ledger)| {
            callee.answer(Counted::make(1, &ledger));
            (callee, ledger)
        },
        drop,
        |(_callee, ledger)| ledger.assert_settled(),
    );
}

#[test]
fn a_callee_leaves_while_a_call_times_out() {
    races(
        || {
            let ledger = Arc::default();
            let (caller, callee) = call::line::<Counted, u64>();
            ((caller, ledger), callee)
        },
        |(mut caller, ledger)| {
            let result = caller.call_timeout(Counted::make(0, &ledger), INSTANT);
            assert!(result.is_err_and(|error| !error.is_unanswered()));
            (caller, ledger)
        },
        drop,
        |(_caller, ledger)| ledger.assert_settled(),
    );
}

#[test]
fn a_callee_leaves_while_the_call_after_a_late_one_begins() {
    races(
        || {
            let ledger = Arc::default();
            let (mut caller, mut callee) = call::line();
            let late = caller.call_timeout(Counted::make(0, &ledger), INSTANT);
            assert!(late.is_err_and(|error| error.is_timeout()));
            drop(callee.recv());
            callee.answer(Counted::make(1, &ledger));
            ((caller, ledger), callee)
        },
        |(mut caller, ledger)| {
            let result = caller.call(Counted::make(2, &ledger));
            assert!(result.is_err_and(|error| error.is_disconnected()));
            (caller, ledger)
        },
        drop,
        |(_caller, ledger)| ledger.assert_settled(),
    );
}

/// Every request that times out is dropped once, every answer is returned or dropped, and no call
/// gets the answer of another.
#[test]
fn calls_that_sometimes_time_out() {
    let ledger: Arc<Ledger> = Arc::default();
    let (mut caller, mut callee) = call::line::<Counted, (u64, Counted)>();
    let (mut returned, mut late) = (0, 0);
    thread::scope(|scope| {
        let answers = &ledger;
        scope.spawn(move || {
            let mut random = Random::new(12);
            let mut number = 0;
            while let Ok(request) = callee.recv() {
                while !request.is(number) {
                    number += 1;
                }
                (0..random.below(400)).for_each(|_| std::hint::spin_loop());
                callee.answer((number, Counted::make(0, answers)));
            }
        });
        for number in 0..20_000 {
            let request = Counted::make(number, &ledger);
            match caller.call_timeout(request, Duration::from_micros(number % 16)) {
                Ok((answer, _)) => {
                    assert_eq!(answer, number);
                    returned += 1;
                }
                Err(CallTimeoutError::Timeout(None)) => late += 1,
                Err(CallTimeoutError::Timeout(Some(request))) => assert!(request.is(number)),
                Err(error) => panic!("{error}"),
            }
        }
        drop(caller);
    });
    println!("{returned} calls were answered in time, {late} too late");
    assert!(late > 0);
    ledger.assert_settled();
}

/// Both ends sleep in turn, and no wake-up is lost.
#[test]
fn ends_that_fence_sleep_and_wake() {
    let (mut caller, mut callee) = Options::new().wait(Park).fence().line::<u64, u64>();
    thread::scope(|scope| {
        scope.spawn(move || callee.serve(|number| number + 1));
        (0..2_000).for_each(|number| assert_eq!(caller.call(number), Ok(number + 1)));
        drop(caller);
    });
}

#[test]
fn ends_may_be_used_after_a_panic() {
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<Caller<Box<dyn Fn() + Send>, u64>>();
    is_unwind_safe::<Callee<u64, Box<dyn Fn() + Send>>>();
}
