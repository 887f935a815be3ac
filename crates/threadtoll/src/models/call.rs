//! The call.

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::call::line_waiting;
use crate::error::CallError;
use crate::wait::{Park, SpinYield};

model! {
    /// Two round trips.
    round_trips(Refuses)
    orders [pass, see_turn]
    {
        tally(4);
        let (mut caller, mut callee) = line_waiting(SpinYield);
        let serving = thread::spawn(move || {
            for number in 0..2 {
                let request: Message = callee.recv().unwrap();
                assert_eq!(request.0, number);
                callee.answer(Message(number + 2));
            }
        });
        for number in 0..2 {
            let answer = caller.call(Message(number)).unwrap().unwrap();
            assert_eq!(answer.0, number + 2);
        }
        serving.join().unwrap();
        drop(caller);
        settled();
    }
}

model! {
    /// Both sleep by turns.
    sleeping(Orders, Lacks)
    orders [barrier_in_pass, call_fence_without_membarrier, announce]
    steps [look_before_sleep]
    {
        let (mut caller, mut callee) = line_waiting(Park);
        let serving = thread::spawn(move || {
            for number in 0..2 {
                assert_eq!(callee.recv(), Ok(number));
                callee.answer(number + 2);
            }
            callee
        });
        assert_eq!(caller.call(0), Ok(Some(2)));
        assert_eq!(caller.call(1), Ok(Some(3)));
        serving.join().unwrap();
    }
}

model! {
    /// The callee leaves while it is called.
    callee_leaves(Orders, Refuses)
    steps [wake_in_call_leave]
    {
        tally(1);
        let (mut caller, callee) = line_waiting::<Message, (), _>(Park);
        let serving = thread::spawn(move || {
            // As often as the caller yields before it sleeps.
            (0..3).for_each(|_| thread::yield_now());
            drop(callee);
        });
        match caller.call(Message(0)) {
            Ok(answer) => assert_eq!(answer, None),
            Err(CallError::Disconnected(request)) => assert_eq!(request.0, 0),
            Err(CallError::Forked(_)) => unreachable!(),
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
        let (mut caller, mut callee) = line_waiting::<Message, (), _>(Park);
        let serving = thread::spawn(move || {
            drop(callee.recv());
            callee
        });
        let calling = thread::spawn(move || {
            assert!(matches!(caller.call(Message(0)), Ok(None)));
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
        let (caller, mut callee) = line_waiting::<u32, u32, _>(Park);
        let serving = thread::spawn(move || assert!(callee.recv().is_err()));
        // As often as the callee yields before it sleeps.
        (0..3).for_each(|_| thread::yield_now());
        drop(caller);
        serving.join().unwrap();
    }
}
