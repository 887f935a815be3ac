//! Peers whose ends block.

use std::sync::mpsc;

use super::{QueueKind, channel};

channel! {
    /// `crossbeam-channel`; unbounded if `CAPACITY` is 0.
    Crossbeam[CAPACITY] = crossbeam_channel::Sender, crossbeam_channel::Receiver;
    match CAPACITY {
        0 => crossbeam_channel::unbounded(),
        _ => crossbeam_channel::bounded(CAPACITY),
    }
}

channel! {
    /// `kanal`; unbounded if `CAPACITY` is 0.
    Kanal[CAPACITY] = kanal::Sender, kanal::Receiver;
    match CAPACITY {
        0 => kanal::unbounded(),
        _ => kanal::bounded(CAPACITY),
    }
}

channel! {
    /// `flume`; unbounded if `CAPACITY` is 0.
    Flume[CAPACITY] = flume::Sender, flume::Receiver;
    match CAPACITY {
        0 => flume::unbounded(),
        _ => flume::bounded(CAPACITY),
    }
}

channel! {
    /// `std::sync::mpsc::channel`.
    Std[] = mpsc::Sender, mpsc::Receiver;
    mpsc::channel()
}

channel! {
    /// `std::sync::mpsc::sync_channel`.
    StdSync[CAPACITY] = mpsc::SyncSender, mpsc::Receiver;
    mpsc::sync_channel(CAPACITY)
}

/// `oneshot`: for one message, which takes the sender along.
pub(crate) struct Oneshot;

impl QueueKind for Oneshot {
    type Sender<T: Send + 'static> = Option<oneshot::Sender<T>>;
    type Receiver<T: Send + 'static> = oneshot::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Some(sender), receiver)
    }

    #[inline(always)]
    fn send<T: Send + 'static>(sender: &mut Self::Sender<T>, message: T) -> bool {
        sender.take().is_some_and(|sender| sender.send(message).is_ok())
    }

    #[inline(always)]
    fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv_ref().ok()
    }
}
