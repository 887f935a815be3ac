//! The state that both ends share, and the rules by which one of them frees it.
//!
//! `state` is changed only by read-modify-writes, so both ends agree on the order of its changes.
//! The last two columns say who may access the hook and the message.
//!
//! | state | the sender | the receiver | hook | message |
//! |---|---|---|---|---|
//! | `EMPTY` | has not sent | does not wait | receiver | sender |
//! | `HOOKED` | has not sent | waits, or did | whoever clears or claims it | sender |
//! | `SENT` | is gone | is there | receiver | receiver |
//! | `CLOSED` | left without sending | is there | receiver | – |
//! | `SENT` or `CLOSED`, `HOOKED` | wakes the receiver | is there | sender | receiver |
//! | the same and `LEFT` | wakes the receiver | is gone | sender | – |
//! | `LEFT` | has not sent | is gone | – | sender |
//! | `SENT` or `CLOSED`, `LEFT` | one of them is gone, the other frees | | – | the latter |
//!
//! The sender *claims* a hook by setting `SENT` or `CLOSED` while `HOOKED` is set. The receiver
//! *withdraws* its hook by changing `HOOKED` to `EMPTY`: before it replaces the hook, and before it
//! leaves. So `LEFT` is never set while there is a hook that nobody has claimed.
//!
//! | order in `state` | frees the channel |
//! |---|---|
//! | `LEFT`, then `SENT` or `CLOSED` | sender |
//! | `SENT` or `CLOSED` without `HOOKED`, then the receiver leaves | receiver |
//! | both bits, then `HOOKED` cleared, then the receiver leaves | receiver |
//! | both bits, then `LEFT`, then `HOOKED` cleared | sender |
//!
//! # Orderings
//!
//! Each of them hands something over: the message (released when `SENT` is set, acquired by
//! [`Channel::look`]); the hook (released when `HOOKED` is set, acquired when the sender sets its
//! bit); and the whole channel, to the end that frees it (released by every change after which an
//! end no longer touches the channel, acquired by the change or load after which the other frees
//! it).

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::task::Waker;

use crate::error::{RecvError, RecvTimeoutError};
use crate::sync::{self, AtomicU32, Instant, Ordering, UnsafeCell, futex_wait, futex_wake, mutate};
use crate::wait::spin_before_sleep;

const EMPTY: u32 = 0;
/// The receiver has stored a hook, which the sender takes when it sends or leaves.
const HOOKED: u32 = 1;
/// The message has been sent.
pub(super) const SENT: u32 = 1 << 1;
/// The sender has left without sending.
pub(super) const CLOSED: u32 = 1 << 2;
/// The receiver has left.
const LEFT: u32 = 1 << 3;

/// Returns `true` if the table above allows this state.
fn is_legal(state: u32) -> bool {
    state & (SENT | CLOSED) != SENT | CLOSED && state != HOOKED | LEFT
}

/// Returns `true` if the sender has sent or left.
pub(super) fn is_over(state: u32) -> bool {
    state & (SENT | CLOSED) != 0
}

/// How the sender wakes the receiver.
enum Hook {
    /// A thread that sleeps on `state`.
    Thread,
    Task(Waker),
}

struct Words {
    state: AtomicU32,
    /// The [`sync::generation`] of the process that created the channel.
    generation: u32,
}

/// A message of up to 8 bytes shares 16 bytes, and so a cache line, with the state.
#[repr(C)]
pub(super) struct Shared<T> {
    words: Words,
    message: UnsafeCell<MaybeUninit<T>>,
    hook: UnsafeCell<MaybeUninit<Hook>>,
}

impl<T> Shared<T> {
    /// Allocates the shared state in place, because the stack may be too small for a message.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn allocate() -> Channel<T> {
        let place = NonNull::from(Box::leak(Box::<Self>::new_uninit())).cast::<Self>();
        // SAFETY: `words` comes first in memory, and the place was just allocated. The other fields
        // may be uninitialised.
        unsafe { place.cast::<Words>().write(Words::new()) };
        Channel(place)
    }

    /// For models, which count allocations.
    #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
    pub(super) fn allocate() -> Channel<T> {
        let message = UnsafeCell::new(MaybeUninit::uninit());
        let hook = UnsafeCell::new(MaybeUninit::uninit());
        let place = sync::boxed(Shared { words: Words::new(), message, hook });
        let Some(place) = NonNull::new(place) else { unreachable!("a box is not null") };
        Channel(place)
    }
}

impl Words {
    fn new() -> Self {
        Words { state: AtomicU32::new(EMPTY), generation: sync::generation() }
    }
}

/// A pointer to the shared state. Each end has one, and uses it only as long as the rules above
/// keep the state alive.
pub(super) struct Channel<T>(NonNull<Shared<T>>);

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Channel<T> {}

impl<T> Channel<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: an end uses its channel only while that is alive.
        unsafe { self.0.as_ref() }
    }

    fn state(&self) -> &AtomicU32 {
        &self.shared().words.state
    }

    /// The state. If it says that the message was sent, the message is visible.
    #[inline]
    pub(super) fn look(self) -> u32 {
        self.state().load(mutate!(see_shot, Acquire))
    }

    /// Returns `true` if the receiver has left.
    pub(super) fn has_left(self) -> bool {
        self.state().load(Ordering::Acquire) & LEFT != 0
    }

    /// # Safety
    ///
    /// The caller must be the sender, which has not sent.
    #[inline]
    pub(super) unsafe fn put_message(self, message: T) {
        // SAFETY: the message is the sender's until it is sent.
        self.shared().message.with_mut(|place| unsafe { place.cast::<T>().write(message) });
    }

    /// # Safety
    ///
    /// There must be a message, which is the caller's by the table above and was not taken before.
    #[inline]
    pub(super) unsafe fn take_message(self) -> T {
        // SAFETY: the caller's promise.
        self.shared().message.with_mut(|place| unsafe { place.cast::<T>().read() })
    }

    /// # Safety
    ///
    /// There must be a hook, which is the caller's by the table above and was not taken before.
    unsafe fn take_hook(self) -> Hook {
        // SAFETY: the caller's promise.
        self.shared().hook.with_mut(|place| unsafe { place.cast::<Hook>().read() })
    }

    /// Sets `SENT` or `CLOSED`, and wakes the receiver if it waits. Returns `false` if the receiver
    /// has left: the channel then belongs to the sender, which must free it. Otherwise the sender
    /// must not use the channel again.
    ///
    /// # Panics
    ///
    /// If the receiver's waker does. The channel is then no longer the sender's.
    #[inline]
    pub(super) fn finish(self, what: u32) -> bool {
        // Acquire: the hook is visible; or, if the receiver has left, all that it did precedes the
        // free.
        let acquire = mutate!(see_hook, Ordering::AcqRel => Ordering::Release);
        // Release: whoever sees the bit sees the message.
        let both = mutate!(publish_shot, acquire => Ordering::Acquire);
        let before = self.state().fetch_or(what, both);
        debug_assert!(is_legal(before | what));
        if before & HOOKED != 0 {
            mutate!(wake_shot, self.wake_receiver() => ());
        }
        mutate!(hand_back_shot, before & LEFT == 0 => true)
    }

    #[cold]
    fn wake_receiver(self) {
        // SAFETY: the sender has set its bit and found the hook's, so the hook is the sender's.
        match unsafe { self.take_hook() } {
            Hook::Task(waker) => {
                // The waker may run any code, and may panic.
                self.woken();
                waker.wake();
            }
            Hook::Thread => {
                // Before the channel can be freed. A late call could wake another thread, which
                // sleeps on a word at the same address.
                futex_wake(self.state(), 1);
                self.woken();
            }
        }
    }

    /// The sender is done with the channel.
    fn woken(self) {
        // Release and acquire: the end that leaves last frees what both have used.
        let before = self.state().fetch_and(!HOOKED, mutate!(woken, AcqRel));
        if mutate!(free_if_left, before & LEFT => 0) != 0 {
            self.free();
        }
    }

    /// Stores a hook. Returns the state, which is `HOOKED` unless the sender was faster.
    ///
    /// The receiver calls this after it has seen that the state is `EMPTY`.
    fn register(self, hook: Hook) -> u32 {
        // SAFETY: only the receiver sets `HOOKED`, so the sender has found no hook.
        self.shared().hook.with_mut(|place| unsafe { place.cast::<Hook>().write(hook) });
        // Release: the sender that finds the bit sees the hook. Acquire: as in `look`.
        let (release, acquire) = (mutate!(publish_hook, Release), mutate!(see_shot, Acquire));
        let hooked = mutate!(
            register_unless_sent,
            self.state().compare_exchange(EMPTY, HOOKED, release, acquire)
                => Ok(self.state().swap(HOOKED, Ordering::AcqRel))
        );
        match hooked {
            Ok(_) => HOOKED,
            Err(state) => {
                // SAFETY: stored above, and the sender did not find it.
                drop(unsafe { self.take_hook() });
                state
            }
        }
    }

    /// Takes the hook back unless the sender has claimed it. Returns the state.
    ///
    /// The receiver calls this after it has seen or set `HOOKED`.
    fn withdraw(self) -> (u32, Option<Hook>) {
        // Relaxed: the receiver stored the hook itself. Acquire: as in `look`.
        let (relaxed, acquire) = (Ordering::Relaxed, mutate!(see_shot, Acquire));
        let withdrawn = mutate!(
            withdraw_unless_sent,
            self.state().compare_exchange(HOOKED, EMPTY, relaxed, acquire)
                => Ok(self.state().fetch_and(!HOOKED, Ordering::AcqRel))
        );
        match withdrawn {
            // SAFETY: the hook was there, and the sender will not find it.
            Ok(_) => (EMPTY, Some(unsafe { self.take_hook() })),
            Err(state) => (state, None),
        }
    }

    /// Like [`Channel::withdraw`], if there is a hook.
    fn look_and_withdraw(self) -> (u32, Option<Hook>) {
        match self.look() {
            HOOKED => self.withdraw(),
            state => (state, None),
        }
    }

    /// Waits for the sender. Returns the state, in which the sender has sent or left.
    ///
    /// # Errors
    ///
    /// `Timeout` if the deadline passes; `Disconnected` in a forked child, in which the sender has
    /// no thread.
    #[cold]
    pub(super) fn wait(self, deadline: Option<Instant>) -> Result<u32, RecvTimeoutError> {
        let find = || Some(self.look()).filter(|state| is_over(*state));
        if let Some(state) = spin_before_sleep(deadline, find) {
            return Ok(state);
        }
        if self.is_inherited() {
            return Err(RecvTimeoutError::Disconnected);
        }
        let (mut state, waker) = self.look_and_withdraw();
        // An earlier poll has left it.
        drop(waker);
        if state == EMPTY {
            state = self.register(Hook::Thread);
        }
        while !is_over(state) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                let (state, _hook) = self.withdraw();
                return if is_over(state) { Ok(state) } else { Err(RecvTimeoutError::Timeout) };
            }
            let expected = mutate!(hooked_word, HOOKED => self.state().load(Ordering::Relaxed));
            futex_wait(self.state(), expected, left);
            state = self.look();
        }
        Ok(state)
    }

    /// Makes the sender wake this task. Returns the state, in which the sender may have sent or
    /// left already.
    ///
    /// # Errors
    ///
    /// In a forked child, in which the sender has no thread.
    pub(super) fn watch(self, waker: &Waker) -> Result<u32, RecvError> {
        if self.is_inherited() {
            return Err(RecvError);
        }
        let (state, hook) = self.look_and_withdraw();
        if state != EMPTY {
            return Ok(state);
        }
        let hook = match hook {
            Some(Hook::Task(same)) if mutate!(same_waker, same.will_wake(waker) => true) => {
                Hook::Task(same)
            }
            // Another waker is dropped only when the new one is registered, because its destructor
            // may panic.
            _ => Hook::Task(waker.clone()),
        };
        Ok(self.register(hook))
    }

    /// Takes the hook back, if there is one. Its destructor may panic.
    pub(super) fn unwatch(self) -> Option<impl Sized> {
        self.look_and_withdraw().1
    }

    /// Returns `true` in a forked child, if the channel was created before the fork.
    pub(super) fn is_inherited(self) -> bool {
        self.shared().words.generation != sync::generation()
    }

    /// The receiver leaves, without having received. Returns the message if it was sent, for the
    /// caller to drop.
    pub(super) fn leave(self) -> Option<T> {
        let (mut state, _hook) = self.look_and_withdraw();
        if state == EMPTY {
            // Release and acquire: as in `woken`; and the message is visible.
            state = self.state().fetch_or(LEFT, mutate!(leave_shot, AcqRel));
            debug_assert!(is_legal(state | LEFT));
            if state == EMPTY {
                // The sender frees the channel.
                return None;
            }
        }
        self.leave_behind_sender(state)
    }

    /// The receiver leaves after the sender has sent or left. Returns the message if it was sent.
    #[inline]
    pub(super) fn leave_behind_sender(self, state: u32) -> Option<T> {
        // SAFETY: the sender has sent, and the receiver takes the message once, because it leaves.
        let message =
            mutate!(take_shot, state & SENT != 0 => false).then(|| unsafe { self.take_message() });
        if mutate!(keep_while_waking, state & HOOKED => 0) == 0 || self.is_woken() {
            self.free();
        }
        message
    }

    /// The receiver leaves while the sender may still wake it. Returns `true` if the sender is done
    /// with that, so that the receiver frees the channel.
    #[cold]
    fn is_woken(self) -> bool {
        // Release and acquire: as in `woken`.
        self.state().fetch_or(LEFT, mutate!(leave_waking, AcqRel)) & HOOKED == 0
    }

    /// Frees the channel, which no other end uses any more. A message in it is not dropped.
    pub(super) fn free(self) {
        sync::retire(self.state());
        // SAFETY: it came from a box, and the caller is the last to use it.
        unsafe { sync::free_boxed(self.0.as_ptr()) };
    }
}
