//! No lock but an owner: a thread of its own runs the sections of all others, who wait for it.

use std::thread::{Builder, JoinHandle};

use threadtoll::owned::{Handle, Options};
use threadtoll::wait::Wait;

use super::{GrantPolicy, Lock, RawLock, Wrap};
use crate::error::Unavailable;

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "owned-ask",
        GrantPolicy::InOrder,
        "no lock: threadtoll::owned, a thread that runs others' sections; all sleep to wait",
        |count| (0..count).map(|_| Asked::new()).collect(),
    )
    .that_counts_its_waiters()]
}

struct Asked {
    handle: Handle<()>,
    thread: Option<JoinHandle<()>>,
}

impl Asked {
    fn new() -> Result<Self, Unavailable> {
        // All sleep while they wait: callers take the CPUs, and gaps between them are long. So a
        // section alone costs what it costs among others, and can be predicted from that.
        let (mut owner, handle) = Options::new().wait(Wait::Park).build(());
        let thread = Builder::new().name("threadtoll-owner".into()).spawn(move || _ = owner.run());
        let thread = thread.map_err(|error| Unavailable::new("a thread", error))?;
        Ok(Asked { handle, thread: Some(thread) })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.handle.stop();
        // It fails if a section has panicked, which its caller reports.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// A value that goes to the owner's thread and comes back while its own thread waits.
struct Lent<T>(T);

// SAFETY: the thread to which it belongs waits until the owner's thread is done with it, and a
// section uses nothing that is bound to the thread that runs it.
unsafe impl<T> Send for Lent<T> {}

impl<T> Lent<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

impl RawLock for Asked {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let section = Lent(section);
        match self.handle.ask(move |(), _| Lent(section.into_inner()())) {
            Ok(result) => result.into_inner(),
            Err(error) => panic!("a section was not run: {error}"),
        }
    }

    /// The section that is running is not counted.
    #[inline(always)]
    fn queue_len(&self) -> Option<u64> {
        Some(self.handle.queue_len() as u64)
    }
}
