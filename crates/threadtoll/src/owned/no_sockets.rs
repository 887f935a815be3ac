//! An owner without sockets: takes the place of `sockets.rs` without the feature `mio`, on systems
//! other than Linux, and in models.

use std::marker::PhantomData;

use crate::first_panic::FirstPanic;
use crate::select::Sources;
use crate::sync::Instant;

/// There are none.
pub(super) enum Event {}

pub(super) type Body<T, C> = Box<dyn FnMut(&mut T, &mut C, &Event) + Send>;

pub(super) struct Sockets<T, C>(PhantomData<Body<T, C>>);

impl<T, C> Sockets<T, C> {
    pub(super) fn new() -> Self {
        Sockets(PhantomData)
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        false
    }

    #[inline]
    pub(super) fn look(&mut self) {}

    pub(super) fn wait(&mut self, _: impl Sources, _: Option<Instant>) {}

    #[inline]
    pub(super) fn next(&mut self) -> Option<(Event, Body<T, C>)> {
        None
    }

    pub(super) fn give_back(&mut self, _: &Event, _: Body<T, C>) {}

    pub(super) fn close(&mut self, _: &mut FirstPanic) {}
}
