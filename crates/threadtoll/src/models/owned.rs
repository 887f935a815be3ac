//! The owner and those who ask it.

use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::AskError;
use crate::owned::{Handle, Options, Owner};
use crate::wait::Wait::Park;

/// Time does not pass, except that a sleep with a limit may end at any moment.
const HOUR: Duration = Duration::from_secs(3600);

fn owner() -> (Owner<usize>, Handle<usize>) {
    Options::new().wait(Park).build(0)
}

/// Runs the owner on another thread.
fn run(mut owner: Owner<usize>) -> thread::JoinHandle<usize> {
    thread::spawn(move || *owner.run())
}

model! {
    /// The asker may fall asleep, and the owner, too.
    asking(Orders, Lacks)
    orders [publish_answer, publish_late_answer, see_answer, publish_asker, see_asker]
    steps [wake_asker]
    {
        let (owner, handle) = owner();
        let running = run(owner);
        let (asked, mut answered) = (1, 0);
        assert_eq!(handle.ask(|state, _| { *state += asked; answered += 1; *state }), Ok(1));
        assert_eq!(answered, 1);
        drop(handle);
        assert_eq!(running.join().unwrap(), 1);
    }
}

model! {
    /// The owner is dropped while it is asked, and with it what the closure has captured. The asker
    /// learns it.
    owner_leaves(Orders, Lacks)
    steps [wake_asker]
    {
        tally(1);
        let (owner, handle) = owner();
        let leaving = thread::spawn(move || drop(owner));
        let message = Message(0);
        let asked = handle.ask(move |_, _| drop(message));
        assert!(matches!(asked, Err(AskError::Disconnected | AskError::Unanswered)));
        settled();
        leaving.join().unwrap();
    }
}

/// Stops an owner while it sleeps, or is about to. The closure that was posted is run or dropped.
fn stop_with(options: Options) {
    tally(1);
    let (owner, handle) = options.wait(Park).build(0);
    let running = run(owner);
    let message = Message(0);
    handle
        .post(move |state, _| {
            *state += 1;
            drop(message)
        })
        .unwrap();
    handle.stop();
    assert!(running.join().unwrap() <= 1);
    settled();
}

model! {
    /// An owner is stopped.
    stopping(Orders, Lacks)
    steps [tell_stop]
    {
        stop_with(Options::new());
    }
}

model! {
    /// An owner is stopped that has room for one closure.
    stopping_a_full_one(Orders, Lacks)
    steps [tell_stop]
    {
        stop_with(Options::new().capacity(1));
    }
}

model! {
    /// Only a timer can end the owner's sleep; a closure may come before.
    timer(Orders, Lacks)
    steps [wake_for_timer]
    {
        let (owner, handle) = owner();
        let running = run(owner);
        handle.after(HOUR, |state, context| {
            *state += 1;
            context.stop();
        });
        let _ = handle.post(|state, _| *state += 2);
        assert!([1, 3].contains(&running.join().unwrap()));
        drop(handle);
    }
}
