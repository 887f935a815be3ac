//! Timers of owners: their order, cancelled ones, and panics.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::owned;

use crate::element::{Counted, Element, Ledger, surviving};

const NOW: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_millis(2);

#[test]
fn timers_run_in_their_order() {
    let ms = Duration::from_millis;
    let (mut owner, handle) = owned::new(Vec::new());
    handle.after(ms(300), move |log, context| {
        log.push(3);
        context.after(ms(1), |log, context| {
            log.push(4);
            context.stop();
        });
    });
    handle.after(ms(2), |log, _| log.push(1));
    handle.after(ms(2), |log, _| log.push(2));
    let cancelled = handle.after(ms(1), |log, _| log.push(9));
    cancelled.cancel();
    assert!(cancelled.is_cancelled());
    let began = Instant::now();
    assert_eq!(owner.run(), &[1, 2, 3, 4]);
    assert!(began.elapsed() >= ms(200), "{:?}", began.elapsed());
}

/// By a post of the same round, and by another timer.
#[test]
fn a_timer_that_is_due_can_be_cancelled() {
    let (mut owner, handle) = owned::new(0);
    let timer = handle.after(NOW, |count, _| *count += 1);
    thread::sleep(SOON);
    handle.post(move |_, _| timer.cancel()).expect("the owner lives");
    owner.run_once(NOW);
    assert_eq!(owner.state(), &0);
    handle
        .post(|_, context| {
            // The first of them is not there yet when it is named by the second.
            let timers = Arc::new(Mutex::new(Vec::new()));
            let others = Arc::clone(&timers);
            let first = context.after(NOW, move |_, _| {
                others
                    .lock()
                    .expect("nobody panics here")
                    .drain(..)
                    .for_each(|timer: owned::Timer| timer.cancel());
            });
            let second = context.after(NOW, |count, _| *count += 1);
            timers.lock().expect("nobody panics here").extend([first, second]);
        })
        .expect("the owner lives");
    owner.run_once(NOW);
    owner.run_once(SOON);
    assert_eq!(owner.state(), &0);
}

#[test]
fn a_timer_that_never_comes_is_allowed() {
    let (mut owner, handle) = owned::new(0);
    handle.after(Duration::MAX, |count, _| *count += 1);
    handle.every(Duration::MAX, |count, _| *count += 1);
    assert!(owner.run_once(SOON));
    assert!(owner.run_once(SOON));
    assert_eq!(owner.into_state(), 0);
    assert!(!surviving(|| _ = handle.every(NOW, |_, _| ())));
}

#[test]
fn a_periodic_timer_goes_on_after_a_panic_until_it_is_cancelled() {
    let (mut owner, handle) = owned::new(0);
    let timer = handle.every(Duration::from_micros(500), |count, _| {
        *count += 1;
        if *count == 2 {
            resume_unwind(Box::new("a closure that panics"));
        }
    });
    let mut panics = 0;
    while *owner.state() < 4 {
        let ran = catch_unwind(AssertUnwindSafe(|| owner.run_once(SOON)));
        panics += u64::from(ran.is_err());
    }
    assert_eq!(panics, 1);
    timer.cancel();
    assert!(owner.run_once(SOON));
    let count = *owner.state();
    assert!(owner.run_once(SOON));
    assert_eq!(owner.into_state(), count);
}

#[test]
fn timers_are_cancelled_from_any_thread() {
    let ledger = Arc::new(Ledger::default());
    let (handle, running) = owned::spawn("owner", || 0u64);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (handle, ledger) = (handle.clone(), Arc::clone(&ledger));
            scope.spawn(move || {
                for id in 0..2_000 {
                    let captured = Counted::make(id, &ledger);
                    let timer =
                        handle.every(Duration::from_micros(1 + id % 50), move |count, _| {
                            *count += u64::from(captured.is(id));
                        });
                    timer.cancel();
                }
            });
        }
    });
    // None runs after that.
    let count = handle.ask(|count, _| *count);
    thread::sleep(SOON);
    assert_eq!(handle.ask(|count, _| *count), count);
    handle.stop();
    running.join().expect("it does not panic");
    ledger.assert_settled();
}
