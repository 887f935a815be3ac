//! The queue lock of J. M. Mellor-Crummey and M. L. Scott (*Algorithms for scalable synchronization
//! on shared-memory multiprocessors*, ACM TOCS 9, 1991): waiting threads form a list, and each
//! spins on its own node, so a release touches only one other CPU's cache.
//!
//! | `tail` | the lock is |
//! |---|---|
//! | null | free |
//! | a node | held or being handed over; that node is the last in the queue |

use std::hint::spin_loop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "mcs",
        GrantPolicy::InOrderSpinning,
        "the queue lock of Mellor-Crummey and Scott: each thread spins on its own cache line",
        each(Mcs::default),
    )]
}

#[derive(Default)]
struct Mcs {
    tail: AtomicPtr<Node>,
}

/// On cache lines of its own, because a waiting thread spins on its node.
#[repr(align(128))]
struct Node {
    next: AtomicPtr<Node>,
    waits: AtomicBool,
}

/// Owner of a node. The node is in a queue only during [`RawLock::hold`], which borrows this owner.
struct OwnNode(NonNull<Node>);

// SAFETY: the node belongs to this value alone while its thread is outside `hold`, which is the
// only time the value can move to another thread.
unsafe impl Send for OwnNode {}

impl Default for OwnNode {
    fn default() -> Self {
        let node = Node { next: AtomicPtr::new(ptr::null_mut()), waits: AtomicBool::new(false) };
        OwnNode(NonNull::from(Box::leak(Box::new(node))))
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        // SAFETY: the node was created by `Box::leak` above, and no queue refers to it outside
        // `hold`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl RawLock for Mcs {
    type ThreadState = OwnNode;

    #[inline(always)]
    fn hold<R>(&self, node: &mut OwnNode, section: impl FnOnce() -> R) -> R {
        let own = node.0.as_ptr();
        // SAFETY: the caller owns the node, which outlives this call.
        let node = unsafe { &*own };
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.waits.store(true, Ordering::Relaxed);
        // Acquire: if the lock is free, this section sees the writes of the previous one. Release:
        // the next thread sees the node initialised.
        let before = self.tail.swap(own, Ordering::AcqRel);
        if !before.is_null() {
            // SAFETY: the thread of `before` cannot leave `hold` before it sees the pointer written
            // here.
            let before = unsafe { &*before };
            before.next.store(own, Ordering::Release);
            // Acquire: pairs with the predecessor's store on hand-over.
            while node.waits.load(Ordering::Acquire) {
                spin_loop();
            }
        }
        let done = section();
        let mut next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            // Release: pairs with the swap of the next thread, which takes the free lock.
            let alone = self.tail.compare_exchange(
                own,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if alone.is_ok() {
                return done;
            }
            // Another thread is queued and about to link its node.
            loop {
                next = node.next.load(Ordering::Acquire);
                if !next.is_null() {
                    break;
                }
                spin_loop();
            }
        }
        // SAFETY: the thread of `next` stays in `hold` until this store.
        let next = unsafe { &*next };
        next.waits.store(false, Ordering::Release);
        done
    }
}
