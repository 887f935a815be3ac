//! Two tasks wake each other on tokio's current-thread runtime: the cost of a waker and one turn of
//! the executor.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::exchange::{Ends, Lead, LoopResult, LoopSpec, Stamps, StopAt, lead_loop, marking};

use super::message::{read_message, write_message};
use super::{Class, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "async-wake",
        Class::OneThread,
        "a task that wakes another on a single-threaded async runtime (tokio)",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let runtime = Builder::new_current_thread()
        .build()
        .map_err(|error| Unavailable::new("cannot start the async runtime", error))?;
    Ok(Ends::of_one_thread(AsyncWake { runtime, words: settings.payload_bytes / 8 }))
}

struct AsyncWake {
    runtime: Runtime,
    words: usize,
}

struct Shared {
    message: RefCell<Vec<u64>>,
    there: Notify,
    back: Notify,
}

impl Lead for AsyncWake {
    fn enter(&mut self) {}

    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        let shared = Rc::new(Shared {
            message: RefCell::new(vec![0; self.words]),
            there: Notify::new(),
            back: Notify::new(),
        });
        let tasks = LocalSet::new();
        let other = Rc::clone(&shared);
        tasks.spawn_local(async move {
            loop {
                other.there.notified().await;
                {
                    let mut message = other.message.borrow_mut();
                    let seq = read_message(&message);
                    write_message(&mut message, seq);
                }
                other.back.notify_one();
            }
        });
        let leading = tasks.run_until(async {
            marking!(marks, mark => lead_loop!(spec, last, mark, seq => {
                write_message(&mut shared.message.borrow_mut(), seq);
                shared.there.notify_one();
                shared.back.notified().await;
                read_message(&shared.message.borrow())
            }))
        });
        self.runtime.block_on(leading)
    }
}
