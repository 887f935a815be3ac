//! Messages of all shapes, each with a number, and a ledger of their drops.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use threadtoll::error::SendError;

use crate::verbs::SenderVerbs;

/// Number of drops of each message.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    drops: Mutex<Vec<Arc<AtomicU8>>>,
}

impl Ledger {
    fn open(&self) -> Arc<AtomicU8> {
        let drops = Arc::new(AtomicU8::new(0));
        self.drops.lock().expect("nobody panics here").push(Arc::clone(&drops));
        drops
    }

    /// Asserts that every message was dropped exactly once.
    pub(crate) fn assert_settled(&self) {
        for (index, drops) in self.drops.lock().expect("nobody panics here").iter().enumerate() {
            let drops = drops.load(Relaxed);
            assert_eq!(drops, 1, "the {index}th message that was made was dropped {drops} times");
        }
    }
}

/// A message.
pub(crate) trait Element: Send + Sized + 'static {
    fn make(id: u64, ledger: &Arc<Ledger>) -> Self;

    /// Returns `true` if this is message `id`, in every byte.
    fn is(&self, id: u64) -> bool;

    /// Sends messages as a slice, if they can be copied.
    fn send_slice(
        _: &mut impl SenderVerbs<Self>,
        _: Range<u64>,
        _: &Arc<Ledger>,
    ) -> Option<Result<(), SendError<usize>>> {
        None
    }
}

macro_rules! copied {
    ($($type:ty: |$id:ident| $value:expr;)+) => {$(
        impl Element for $type {
            fn make($id: u64, _: &Arc<Ledger>) -> Self {
                $value
            }

            fn is(&self, $id: u64) -> bool {
                *self == $value
            }

            fn send_slice(
                sender: &mut impl SenderVerbs<Self>,
                ids: Range<u64>,
                ledger: &Arc<Ledger>,
            ) -> Option<Result<(), SendError<usize>>> {
                let messages: Vec<Self> = ids.map(|id| Self::make(id, ledger)).collect();
                Some(sender.send_slice(&messages))
            }
        }
    )+};
}

/// Aligned to two cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(128))]
pub(crate) struct Aligned(u64);

copied! {
    u8: |id| id as u8;
    // As a header of a pipe, it counts more messages than were ever sent.
    u64: |id| (id + 1) << 20;
    (): |_id| ();
    [u8; 60]: |id| [id as u8; 60];
    [u64; 8]: |id| [id; 8];
    [u64; 9]: |id| [id; 9];
    [u64; 64]: |id| [id; 64];
    [u8; 300]: |id| [id as u8; 300];
    Aligned: |id| Aligned(id);
}

impl Element for Box<u64> {
    fn make(id: u64, _: &Arc<Ledger>) -> Self {
        Box::new(id)
    }

    fn is(&self, id: u64) -> bool {
        **self == id
    }
}

/// Counts its drops.
#[derive(Debug)]
pub(crate) struct Counted {
    id: u64,
    drops: Arc<AtomicU8>,
}

impl Element for Counted {
    fn make(id: u64, ledger: &Arc<Ledger>) -> Self {
        Counted { id, drops: ledger.open() }
    }

    fn is(&self, id: u64) -> bool {
        self.id == id
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Relaxed);
    }
}

/// Counts its drops, and every third panics in them.
#[derive(Debug)]
pub(crate) struct Bomb(Counted);

impl Element for Bomb {
    fn make(id: u64, ledger: &Arc<Ledger>) -> Self {
        Bomb(Counted::make(id, ledger))
    }

    fn is(&self, id: u64) -> bool {
        self.0.is(id)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.id.is_multiple_of(3) && !std::thread::panicking() {
            // Unlike `panic!`, without a report.
            resume_unwind(Box::new("a destructor that panics"));
        }
    }
}

/// Runs `body`, in which destructors may panic. Returns `false` if one did.
pub(crate) fn surviving(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_ok()
}

/// Number of cases of a property: `PROPTEST_CASES`, or else `few`.
pub(crate) fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

/// A pseudorandom number generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}
