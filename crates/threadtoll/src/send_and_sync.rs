//! Which public types may be sent to another thread or shared between threads, as doctests. The
//! messages are `Cell`s, which may be sent but not shared: no end but those of a ring needs more
//! than that.
//!
//! ```
//! use std::cell::Cell;
//!
//! use threadtoll::{call, error, funnel, oneshot, owned, pipe, ring, select, wait};
//!
//! type Message = Cell<u64>;
//!
//! fn send<T: Send>() {}
//! fn send_and_sync<T: Send + Sync>() {}
//!
//! send::<pipe::Sender<Message>>();
//! send::<pipe::Receiver<Message>>();
//! send::<pipe::Claim<'_, Message>>();
//! send::<pipe::Batch<'_, Message>>();
//! send::<pipe::Iter<'_, Message>>();
//! send::<pipe::TryIter<'_, Message>>();
//! send::<pipe::IntoIter<Message>>();
//! send::<pipe::RecvFuture<'_, Message>>();
//! send::<pipe::SendFuture<'_, Message>>();
//! send_and_sync::<pipe::Options>();
//! send_and_sync::<pipe::MemoryUse>();
//!
//! send_and_sync::<funnel::Sender<Message>>();
//! send_and_sync::<funnel::WeakSender<Message>>();
//! send::<funnel::Receiver<Message>>();
//! send::<funnel::Iter<'_, Message>>();
//! send::<funnel::TryIter<'_, Message>>();
//! send::<funnel::IntoIter<Message>>();
//! send::<funnel::RecvFuture<'_, Message>>();
//! send_and_sync::<funnel::Options>();
//! send_and_sync::<funnel::MemoryUse>();
//!
//! send_and_sync::<call::Caller<Message, Message>>();
//! send_and_sync::<call::Callee<Message, Message>>();
//! send_and_sync::<call::Options>();
//!
//! send_and_sync::<oneshot::Sender<Message>>();
//! send_and_sync::<oneshot::Receiver<Message>>();
//!
//! // The state of an owner goes where its owner does. Its handles go anywhere.
//! send::<owned::Owner<Message>>();
//! send_and_sync::<owned::Handle<std::rc::Rc<u64>>>();
//! send_and_sync::<owned::AskFuture<Message>>();
//! send_and_sync::<owned::Timer>();
//! send_and_sync::<owned::Options>();
//!
//! // Events of a ring are shared.
//! send::<ring::Builder<u64>>();
//! send::<ring::Writer<u64>>();
//! send::<ring::Reader<u64>>();
//! send::<ring::Batch<'_, u64>>();
//! send_and_sync::<ring::Iter<'_, u64>>();
//! send_and_sync::<ring::Options>();
//!
//! send_and_sync::<select::Select>();
//! #[cfg(target_os = "linux")]
//! send_and_sync::<select::Descriptor>();
//!
//! send_and_sync::<wait::Wait>();
//!
//! // Errors with a message are like the message.
//! send::<error::SendError<Message>>();
//! send::<error::TrySendError<Message>>();
//! send::<error::SendTimeoutError<Message>>();
//! send::<error::CallError<Message>>();
//! send::<error::CallTimeoutError<Message>>();
//! send_and_sync::<error::SendError<u64>>();
//! send_and_sync::<error::RecvError>();
//! send_and_sync::<error::TryRecvError>();
//! send_and_sync::<error::RecvTimeoutError>();
//! ```

/// A doctest for each type, which fails if the type has the trait.
macro_rules! never {
    ($(#[$doc:meta])* $module:ident: $trait:ident { $($type:literal)+ }) => {
        $(#[$doc])*
        $(#[doc = concat!(
            "```compile_fail,E0277\n",
            "fn is<T: ", stringify!($trait), ">() {}\n",
            "is::<threadtoll::", $type, ">();\n",
            "```\n",
        )])+
        mod $module {}
    };
}

never! {
    /// Ends of one thread: at most one thread at a time may use a pipe's end or a funnel's
    /// receiver.
    ///
    not_shared: Sync {
        "pipe::Sender<u64>"
        "pipe::Receiver<u64>"
        "pipe::Claim<'_, u64>"
        "pipe::Batch<'_, u64>"
        "pipe::Iter<'_, u64>"
        "pipe::TryIter<'_, u64>"
        "pipe::IntoIter<u64>"
        "funnel::Receiver<u64>"
        "funnel::Iter<'_, u64>"
        "funnel::TryIter<'_, u64>"
        "funnel::IntoIter<u64>"
        "owned::Owner<u64>"
        "owned::Context<u64>"
        "ring::Builder<u64>"
        "ring::Writer<u64>"
        "ring::Reader<u64>"
        "ring::Batch<'_, u64>"
        "ring::Iter<'_, std::cell::Cell<u64>>"
        "error::SendError<std::cell::Cell<u64>>"
        "error::CallError<std::cell::Cell<u64>>"
    }
}

never! {
    /// No end takes a message to another thread that must stay on its own.
    ///
    not_sent: Send {
        "pipe::Sender<std::rc::Rc<u64>>"
        "pipe::Receiver<std::rc::Rc<u64>>"
        "pipe::Claim<'_, std::rc::Rc<u64>>"
        "pipe::Batch<'_, std::rc::Rc<u64>>"
        "pipe::Iter<'_, std::rc::Rc<u64>>"
        "pipe::TryIter<'_, std::rc::Rc<u64>>"
        "pipe::IntoIter<std::rc::Rc<u64>>"
        "funnel::Sender<std::rc::Rc<u64>>"
        "funnel::WeakSender<std::rc::Rc<u64>>"
        "funnel::Receiver<std::rc::Rc<u64>>"
        "funnel::Iter<'_, std::rc::Rc<u64>>"
        "funnel::TryIter<'_, std::rc::Rc<u64>>"
        "funnel::IntoIter<std::rc::Rc<u64>>"
        "call::Caller<std::rc::Rc<u64>, u64>"
        "call::Caller<u64, std::rc::Rc<u64>>"
        "call::Callee<std::rc::Rc<u64>, u64>"
        "call::Callee<u64, std::rc::Rc<u64>>"
        "oneshot::Sender<std::rc::Rc<u64>>"
        "oneshot::Receiver<std::rc::Rc<u64>>"
        "owned::Owner<std::rc::Rc<u64>>"
        "owned::AskFuture<std::rc::Rc<u64>>"
        "ring::Builder<std::rc::Rc<u64>>"
        "ring::Writer<std::rc::Rc<u64>>"
        "ring::Reader<std::rc::Rc<u64>>"
        "ring::Batch<'_, std::rc::Rc<u64>>"
        "ring::Iter<'_, std::rc::Rc<u64>>"
        "error::SendError<std::rc::Rc<u64>>"
        "error::CallError<std::rc::Rc<u64>>"
    }
}

never! {
    /// No end of a ring takes an event to another thread that must not be shared.
    ///
    not_sent_either: Send {
        "ring::Builder<std::cell::Cell<u64>>"
        "ring::Writer<std::cell::Cell<u64>>"
        "ring::Reader<std::cell::Cell<u64>>"
        "ring::Batch<'_, std::cell::Cell<u64>>"
        "ring::Iter<'_, std::cell::Cell<u64>>"
    }
}

never! {
    /// Nor do references give access to such a message.
    ///
    not_shared_either: Sync {
        "funnel::Sender<std::rc::Rc<u64>>"
        "funnel::WeakSender<std::rc::Rc<u64>>"
        "call::Caller<std::rc::Rc<u64>, u64>"
        "call::Caller<u64, std::rc::Rc<u64>>"
        "call::Callee<std::rc::Rc<u64>, u64>"
        "call::Callee<u64, std::rc::Rc<u64>>"
        "oneshot::Sender<std::rc::Rc<u64>>"
        "oneshot::Receiver<std::rc::Rc<u64>>"
    }
}
