//! Peers whose ends block.

use std::sync::mpsc;

use super::{Kind, send_and_receive};

/// `crossbeam-channel`; unbounded if `CAPACITY` is 0.
pub(crate) struct Crossbeam<const CAPACITY: usize>;

impl<const CAPACITY: usize> Kind for Crossbeam<CAPACITY> {
    type Sender<T: Send + 'static> = crossbeam_channel::Sender<T>;
    type Receiver<T: Send + 'static> = crossbeam_channel::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        match CAPACITY {
            0 => crossbeam_channel::unbounded(),
            _ => crossbeam_channel::bounded(CAPACITY),
        }
    }

    send_and_receive!();
}

/// `kanal`; unbounded if `CAPACITY` is 0.
pub(crate) struct Kanal<const CAPACITY: usize>;

impl<const CAPACITY: usize> Kind for Kanal<CAPACITY> {
    type Sender<T: Send + 'static> = kanal::Sender<T>;
    type Receiver<T: Send + 'static> = kanal::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        if CAPACITY == 0 { kanal::unbounded() } else { kanal::bounded(CAPACITY) }
    }

    send_and_receive!();
}

/// `flume`; unbounded if `CAPACITY` is 0.
pub(crate) struct Flume<const CAPACITY: usize>;

impl<const CAPACITY: usize> Kind for Flume<CAPACITY> {
    type Sender<T: Send + 'static> = flume::Sender<T>;
    type Receiver<T: Send + 'static> = flume::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        if CAPACITY == 0 { flume::unbounded() } else { flume::bounded(CAPACITY) }
    }

    send_and_receive!();
}

/// `std::sync::mpsc::channel`.
pub(crate) struct Std;

impl Kind for Std {
    type Sender<T: Send + 'static> = mpsc::Sender<T>;
    type Receiver<T: Send + 'static> = mpsc::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::channel()
    }

    send_and_receive!();
}

/// `std::sync::mpsc::sync_channel`.
pub(crate) struct StdSync<const CAPACITY: usize>;

impl<const CAPACITY: usize> Kind for StdSync<CAPACITY> {
    type Sender<T: Send + 'static> = mpsc::SyncSender<T>;
    type Receiver<T: Send + 'static> = mpsc::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::sync_channel(CAPACITY)
    }

    send_and_receive!();
}

/// `oneshot`: for one message, which takes the sender along.
pub(crate) struct Oneshot;

impl Kind for Oneshot {
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
