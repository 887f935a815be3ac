//! Receiving ends that an owner serves.

use crate::error::TryRecvError;
use crate::funnel::Receiver as Inbox;
use crate::select::{Source, Sources};
use crate::wait::Watch;
use crate::{call, funnel, oneshot, pipe, ring};

use super::job::Job;

/// A receiving end that an owner can [serve](super::Context::serve). This trait is sealed. Readers
/// of a ring have a [method of their own](super::Context::serve_ring).
///
/// | end | message | answer |
/// |---|---|---|
/// | [`pipe::Receiver<M>`] | `M` | none |
/// | [`funnel::Receiver<M>`] | `M` | none |
/// | [`oneshot::Receiver<M>`] | `M`, once | none |
/// | [`call::Callee<Q, R>`] | `Q` | `R` |
pub trait Serve: Source + Send + 'static {
    /// What the end receives.
    type Message;
    /// What the closure returns, for the end to send back: `()` for all but callees.
    type Answer;

    /// Receives a message if one is ready.
    #[doc(hidden)]
    fn receive(&mut self) -> Result<Self::Message, TryRecvError>;

    /// Sends the answer to the last message.
    #[doc(hidden)]
    fn answer(&mut self, answer: Self::Answer);

    /// Declines to answer the last message, if that is open.
    #[doc(hidden)]
    fn decline(&mut self) {}
}

macro_rules! receivers {
    ($($end:ty;)+) => {$(
        impl<M: Send + 'static> Serve for $end {
            type Message = M;
            type Answer = ();

            #[inline]
            fn receive(&mut self) -> Result<M, TryRecvError> {
                self.try_recv()
            }

            #[inline]
            fn answer(&mut self, (): ()) {}
        }
    )+};
}

receivers! {
    pipe::Receiver<M>;
    funnel::Receiver<M>;
    oneshot::Receiver<M>;
}

impl<Q: Send + 'static, R: Send + 'static> Serve for call::Callee<Q, R> {
    type Message = Q;
    type Answer = R;

    #[inline]
    fn receive(&mut self) -> Result<Q, TryRecvError> {
        self.try_recv()
    }

    #[inline]
    fn answer(&mut self, answer: R) {
        call::Callee::answer(self, answer);
    }

    #[inline]
    fn decline(&mut self) {
        self.end_pending();
    }
}

/// An end with its closure.
pub(super) trait Served<T, C>: Send {
    fn end(&mut self) -> &mut dyn Watch;

    /// Receives a message and handles it. Fails if there is none.
    fn serve(&mut self, state: &mut T, context: &mut C) -> Result<(), TryRecvError>;
}

pub(super) struct WithBody<S, F> {
    pub(super) end: S,
    pub(super) body: F,
}

impl<T, C, S, F> Served<T, C> for WithBody<S, F>
where
    S: Serve,
    F: FnMut(&mut T, &mut C, S::Message) -> S::Answer + Send,
{
    fn end(&mut self) -> &mut dyn Watch {
        &mut self.end
    }

    fn serve(&mut self, state: &mut T, context: &mut C) -> Result<(), TryRecvError> {
        let message = self.end.receive()?;
        let open = Open(&mut self.end);
        let answer = (self.body)(state, context, message);
        open.0.answer(answer);
        Ok(())
    }
}

/// A ring's reader with its closure.
pub(super) struct WithEvents<E, F> {
    pub(super) reader: ring::Reader<E>,
    pub(super) body: F,
}

impl<T, C, E, F> Served<T, C> for WithEvents<E, F>
where
    E: Send + Sync,
    F: FnMut(&mut T, &mut C, &E) + Send,
{
    fn end(&mut self) -> &mut dyn Watch {
        &mut self.reader
    }

    fn serve(&mut self, state: &mut T, context: &mut C) -> Result<(), TryRecvError> {
        let mut batch = self.reader.try_recv_batch()?;
        batch.truncate(1);
        // If this panics, the event does not count as read.
        batch.iter().for_each(|event| (self.body)(state, context, event));
        Ok(())
    }
}

/// Declines the message if its closure panics: otherwise the end would never be ready again.
struct Open<'a, S: Serve>(&'a mut S);

impl<S: Serve> Drop for Open<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.0.decline();
    }
}

/// The ends for which an owner waits: its inbox, if there is one, and then those that it serves.
pub(super) struct Ends<'a, T, C> {
    pub(super) inbox: Option<&'a mut Inbox<Job<T, C>>>,
    pub(super) served: &'a mut [Box<dyn Served<T, C>>],
}

impl<T, C> Sources for Ends<'_, T, C> {
    fn count(&self) -> usize {
        usize::from(self.inbox.is_some()) + self.served.len()
    }

    fn source(&mut self, index: usize) -> &mut dyn Watch {
        let Some(inbox) = &mut self.inbox else { return self.served[index].end() };
        if index == 0 { *inbox } else { self.served[index - 1].end() }
    }
}
