//! The end that answers.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::shared::{ALIVE, ANSWERED, ASKED, CALLEE, CALLER_GONE, Shared, UNANSWERED};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, Instant, Ordering};
use crate::wait::{Adaptive, Wait, WaitOutcome};

/// The end that answers.
///
/// A request that it has received and not answered is declined when it asks for the next one, when
/// it is dropped, and when the body of [`serve`](Self::serve) panics: the caller gets
/// [`Unanswered`](crate::error::CallError::Unanswered). Until then the caller waits.
///
/// A caller whose request timed out may be gone when the callee receives it. The callee gets it all
/// the same, and its answer is dropped; [`is_disconnected`](Self::is_disconnected) tells.
pub struct Callee<Q, R, W: Wait = Adaptive> {
    pub(super) shared: Arc<Shared<Q, R>>,
    /// A request was received and not answered.
    owes: bool,
    _wait: PhantomData<W>,
}

impl<Q, R, W: Wait> UnwindSafe for Callee<Q, R, W> {}
impl<Q, R, W: Wait> RefUnwindSafe for Callee<Q, R, W> {}

impl<Q, R, W: Wait> Callee<Q, R, W> {
    pub(super) fn new(shared: Arc<Shared<Q, R>>) -> Self {
        Callee { shared, owes: false, _wait: PhantomData }
    }

    /// Returns true if the caller is gone, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        self.shared.has_left(CALLER_GONE)
    }

    #[inline(always)]
    fn decline(&mut self) {
        if self.owes {
            self.owes = false;
            self.shared.pass(UNANSWERED, CALLEE);
        }
    }
}

impl<Q: Send, R: Send, W: Wait> Callee<Q, R, W> {
    /// Waits for the next request, after declining one that was received and not answered.
    ///
    /// # Errors
    ///
    /// If the caller is gone and everything that it asked was received; in a forked child.
    #[inline]
    pub fn recv(&mut self) -> Result<Q, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// Receives a request if there is one, after declining one that was received and not answered.
    ///
    /// # Errors
    ///
    /// If there is none; if the caller is gone and everything that it asked was received; in a
    /// forked child.
    pub fn try_recv(&mut self) -> Result<Q, TryRecvError> {
        self.decline();
        // Acquire, and before the turn: what the caller asked before it left is seen.
        let state = self.shared.state.load(Ordering::Acquire);
        if state & ALIVE == 0 {
            Err(TryRecvError::Disconnected)
        } else if self.shared.turn() == ASKED {
            Ok(self.take())
        } else if state & CALLER_GONE != 0 {
            Err(TryRecvError::Disconnected)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Waits for the next request for at most `timeout`, after declining one that was received and
    /// not answered.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use threadtoll::call;
    /// use threadtoll::error::RecvTimeoutError;
    ///
    /// let (caller, mut callee) = call::line::<u64, u64>();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(callee.recv_timeout(soon), Err(RecvTimeoutError::Timeout));
    /// drop(caller);
    /// assert_eq!(callee.recv_timeout(soon), Err(RecvTimeoutError::Disconnected));
    /// ```
    ///
    /// # Errors
    ///
    /// If none came in time; if the caller is gone and everything that it asked was received; in a
    /// forked child.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Q, RecvTimeoutError> {
        // A deadline that the clock cannot represent is none.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Waits for the next request until `deadline`, after declining one that was received and not
    /// answered.
    ///
    /// # Errors
    ///
    /// As [`Callee::recv_timeout`].
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<Q, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    #[inline(always)]
    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<Q, RecvTimeoutError> {
        self.decline();
        // Before the turn, which a forked child has a copy of.
        if self.shared.state.load(Ordering::Relaxed) & ALIVE == 0 {
            return Err(RecvTimeoutError::Disconnected);
        }
        match self.shared.wait_for_turn::<W, CALLEE>(deadline) {
            WaitOutcome::Found(Some(_)) => Ok(self.take()),
            WaitOutcome::TimedOut => Err(RecvTimeoutError::Timeout),
            WaitOutcome::Found(None) | WaitOutcome::Forked => Err(RecvTimeoutError::Disconnected),
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Q {
        self.owes = true;
        // SAFETY: the turn said that there is a request, and its caller takes it back only if this
        // end has left.
        unsafe { self.shared.take_request() }
    }

    /// Answers the request that was received last. The answer is dropped if the caller does not
    /// wait for it any more: in its next call, or at once if it is gone.
    ///
    /// # Panics
    ///
    /// If no request waits for an answer.
    #[inline]
    pub fn answer(&mut self, answer: R) {
        assert!(self.owes, "no request waits for an answer");
        self.owes = false;
        // SAFETY: the turn is the callee's until it passes it on.
        unsafe { self.shared.put_answer(answer) };
        self.shared.pass(ANSWERED, CALLEE);
    }

    /// Answers requests with `body` until the caller is gone.
    pub fn serve(&mut self, mut body: impl FnMut(Q) -> R) {
        while let Ok(request) = self.recv() {
            let serving = Serving(self);
            let answer = body(request);
            serving.0.answer(answer);
        }
    }
}

/// Declines if the body panics: the callee may live on, and its caller would wait.
struct Serving<'a, Q, R, W: Wait>(&'a mut Callee<Q, R, W>);

impl<Q, R, W: Wait> Drop for Serving<'_, Q, R, W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.decline();
    }
}

impl<Q, R, W: Wait> Drop for Callee<Q, R, W> {
    fn drop(&mut self) {
        self.decline();
        self.shared.callee_leaves();
    }
}

impl<Q, R, W: Wait> fmt::Debug for Callee<Q, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callee").finish_non_exhaustive()
    }
}
