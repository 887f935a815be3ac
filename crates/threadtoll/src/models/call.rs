//! The call.

use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::call::{Callee, Caller, Options};
use crate::error::{CallError, CallTimeoutError, RecvTimeoutError};
use crate::sync::{self, Ordering};
use crate::wait::Wait::{self, Park, SpinYield};

/// A timeout that passes only in `time_passes`.
const HOUR: Duration = Duration::from_secs(3600);

fn line<Q: Send, R: Send>(wait: Wait) -> (Caller<Q, R>, Callee<Q, R>) {
    Options::new().wait(wait).line()
}

/// Lets more than an hour pass, then yields `looks` times: a caller gives up after four looks.
fn time_passes(looks: usize) {
    sync::futex_wait(&sync::AtomicU32::new(0), 0, Some(2 * HOUR));
    (0..looks).for_each(|_| thread::yield_now());
}

/// A number from 0 to 5. loom tries each, since a load may return any value that another thread
/// stored.
fn some_looks() -> usize {
    let looks = sync::Arc::new(sync::AtomicUsize::new(0));
    let stored = sync::Arc::clone(&looks);
    let storing = thread::spawn(move || (1..6).for_each(|n| stored.store(n, Ordering::Relaxed)));
    thread::yield_now();
    let looks = looks.load(Ordering::Relaxed);
    storing.join().unwrap();
    looks
}

model! {
    /// Two round trips.
    round_trips(Refuses)
    orders [pass, see_turn]
    {
        tally(4);
        let (mut caller, mut callee) = line(SpinYield);
        let serving = thread::spawn(move || {
            for number in 0..2 {
                let request: Message = callee.recv().unwrap();
                assert_eq!(request.0, number);
                callee.answer(Message(number + 2));
            }
        });
        for number in 0..2 {
            assert_eq!(caller.call(Message(number)).unwrap().0, number + 2);
        }
        serving.join().unwrap();
        drop(caller);
        settled();
    }
}

model! {
    /// Both ends sleep in turn.
    sleeping(Orders, Lacks, Busy)
    orders [barrier_in_pass, fence_in_attend, fence_in_sleep, announce]
    steps [look_before_sleep]
    {
        let (mut caller, mut callee) = line(Park);
        let serving = thread::spawn(move || {
            for number in 0..2 {
                assert_eq!(callee.recv(), Ok(number));
                callee.answer(number + 2);
            }
            callee
        });
        assert_eq!(caller.call(0), Ok(2));
        assert_eq!(caller.call(1), Ok(3));
        serving.join().unwrap();
    }
}

model! {
    /// The callee leaves while it is called.
    callee_leaves(Orders, Refuses)
    steps [wake_in_call_leave]
    {
        tally(1);
        let (mut caller, callee) = line::<Message, ()>(Park);
        let serving = thread::spawn(move || {
            // As many times as the caller yields before it sleeps.
            (0..3).for_each(|_| thread::yield_now());
            drop(callee);
        });
        match caller.call(Message(0)) {
            Err(CallError::Disconnected(request)) => assert_eq!(request.0, 0),
            other => panic!("{other:?}"),
        }
        serving.join().unwrap();
        settled();
    }
}

model! {
    /// The callee takes the request and leaves without an answer.
    no_answer(Orders)
    orders [barrier_in_pass]
    {
        tally(1);
        let (mut caller, mut callee) = line::<Message, ()>(Park);
        let serving = thread::spawn(move || {
            drop(callee.recv());
            callee
        });
        let calling = thread::spawn(move || {
            assert!(caller.call(Message(0)).is_err_and(|error| error.is_unanswered()));
            caller
        });
        drop(serving.join().unwrap());
        calling.join().unwrap();
        settled();
    }
}

model! {
    /// The caller leaves while the callee sleeps, or is about to.
    caller_leaves(Orders, Refuses)
    steps [wake_in_call_leave]
    {
        let (caller, mut callee) = line::<u32, u32>(Park);
        let serving = thread::spawn(move || assert!(callee.recv().is_err()));
        // As many times as the callee yields before it sleeps.
        (0..3).for_each(|_| thread::yield_now());
        drop(caller);
        serving.join().unwrap();
    }
}

/// A call times out while the callee leaves.
fn late_and_callee_leaves(wait: Wait) {
    tally(1);
    let (mut caller, callee) = line::<Message, ()>(wait);
    let looks = some_looks();
    let leaving = thread::spawn(move || {
        time_passes(looks);
        drop(callee);
    });
    match caller.call_timeout(Message(0), HOUR) {
        Err(CallTimeoutError::Timeout(_) | CallTimeoutError::Disconnected(_)) => {}
        other => panic!("{other:?}"),
    }
    leaving.join().unwrap();
    // A request that did not come back was dropped, although its caller lives.
    settled();
    drop(caller);
}

model! {
    /// A call times out while the callee leaves.
    late_asleep_and_callee_leaves(Orders, Lacks, Refuses)
    orders [see_late]
    steps [callee_drops_request, late_and_callee_gone]
    {
        late_and_callee_leaves(Park);
    }
}

model! {
    /// As `late_asleep_and_callee_leaves`, but the caller spins.
    late_awake_and_callee_leaves(Orders, Lacks, Refuses)
    orders [say_late, see_late]
    steps [callee_drops_request, late_and_callee_gone]
    {
        late_and_callee_leaves(SpinYield);
    }
}

/// A call times out and its caller leaves while the callee, which lives on, answers.
fn late_and_caller_leaves() -> Callee<Message, Message> {
    tally(2);
    let (mut caller, mut callee) = line::<Message, Message>(Park);
    let looks = some_looks();
    let calling = thread::spawn(move || match caller.call_timeout(Message(0), HOUR) {
        Ok(answer) => assert_eq!(answer.0, 1),
        Err(CallTimeoutError::Timeout(None)) => {}
        other => panic!("{other:?}"),
    });
    let request = loop {
        match callee.try_recv() {
            Ok(request) => break request,
            Err(_) => thread::yield_now(),
        }
    };
    time_passes(looks);
    drop(request);
    callee.answer(Message(1));
    calling.join().unwrap();
    callee
}

model! {
    /// The late answer is dropped although the callee lives.
    late_and_caller_leaves_first(Orders, Lacks)
    orders [barrier_in_pass, barrier_in_call_leave, claim_answer, fence_in_attend, fence_in_sleep]
    steps [caller_drops_answer, callee_drops_answer, claim_answer_once]
    {
        let callee = late_and_caller_leaves();
        settled();
        drop(callee);
    }
}

model! {
    /// Without a barrier the late answer may stay until the callee leaves, because a checker does
    /// not know that a store becomes visible during a nap.
    late_and_caller_leaves_unordered(Refuses)
    orders [callee_drops_answer_last]
    steps [claim_answer_once]
    {
        drop(late_and_caller_leaves());
        settled();
    }
}

model! {
    /// A call after one that timed out, which the callee answers or declines before it leaves.
    after_a_late_one(Orders, Refuses)
    orders [pass, see_turn]
    steps [settle]
    {
        tally(4);
        let (mut caller, mut callee) = line::<Message, Message>(Park);
        let serving = thread::spawn(move || {
            time_passes(2);
            for _ in 0..2 {
                let Ok(request) = callee.recv() else { return };
                callee.answer(Message(request.0 + 2));
            }
        });
        match caller.call_timeout(Message(0), HOUR) {
            Ok(answer) => assert_eq!(answer.0, 2),
            Err(CallTimeoutError::Timeout(None)) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(caller.call(Message(1)).unwrap().0, 3);
        serving.join().unwrap();
        drop(caller);
        settled();
    }
}

model! {
    /// The callee has answered late and leaves while its caller calls again: the second request
    /// comes back, and is not mistaken for the late one.
    late_answer_and_callee_leaves(Orders, Lacks)
    steps [settled_too_late]
    {
        tally(3);
        let (mut caller, mut callee) = line(Park);
        let late = caller.call_timeout(Message(0), HOUR);
        assert!(late.is_err_and(|error| error.is_timeout()));
        drop(callee.recv());
        callee.answer(Message(2));
        let calling = thread::spawn(move || {
            match caller.call(Message(1)) {
                Err(CallError::Disconnected(request)) => assert_eq!(request.0, 1),
                other => panic!("{other:?}"),
            }
            caller
        });
        // Lets the caller run first without costing the checker a preemption.
        thread::yield_now();
        drop(callee);
        let caller = calling.join().unwrap();
        settled();
        drop(caller);
    }
}

model! {
    /// The callee answers late, and both ends leave.
    both_leave(Orders, Lacks, Refuses)
    orders [claim_answer]
    steps [claim_answer_once]
    {
        tally(2);
        let (mut caller, mut callee) = line(SpinYield);
        let passing = thread::spawn(|| time_passes(0));
        let late = caller.call_timeout(Message(0), HOUR);
        assert!(late.is_err_and(|error| error.is_timeout()));
        passing.join().unwrap();
        drop(callee.recv());
        let leaving = thread::spawn(move || drop(caller));
        callee.answer(Message(1));
        drop(callee);
        leaving.join().unwrap();
        settled();
    }
}

model! {
    /// The callee waits with a timeout.
    callee_times_out(Orders)
    orders [pass, see_turn]
    {
        tally(2);
        let (mut caller, mut callee) = line::<Message, Message>(Park);
        let serving = thread::spawn(move || {
            loop {
                match callee.recv_timeout(HOUR) {
                    Ok(request) => return callee.answer(Message(request.0 + 1)),
                    Err(RecvTimeoutError::Timeout) => {}
                    other => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(caller.call(Message(0)).unwrap().0, 1);
        serving.join().unwrap();
        drop(caller);
        settled();
    }
}
