//! A question whose answer lies in the frame of the thread that asks.
//!
//! The closure travels to the owner in its slot of the queue. `state` says who may access the
//! [`Question`], to which the answer comes:
//!
//! | state | the asker | answer | the asker's thread |
//! |---|---|---|---|
//! | `ASKED` | polls | owner | asker |
//! | `SLEEPS` | sleeps, until `DONE` | owner | owner |
//! | `DONE` | goes on, and ends the question | asker | asker |
//!
//! The asker never gives up, so a thread that it has left there stays until the owner takes it.
//! The owner takes it before it sets `DONE`: afterwards, the question may be gone.
//!
//! The owner writes to the question only once it has the answer. While the asker polls, it has the
//! line of `state`, so each access of the owner before that would move the line once more.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use super::context::{Context, Work};
use crate::sync::{
    AtomicU32, Thread, UnsafeCell, current_thread, mutate, park_thread, unpark_thread, yield_now,
};
use crate::wait::{Wait, calibrate_pause, pause, spin_before_sleep};

const ASKED: u32 = 0;
const SLEEPS: u32 = 1;
const DONE: u32 = 2;

/// On a cache line of its own, with answers of up to 48 bytes.
#[repr(C, align(64))]
struct Question<R> {
    state: AtomicU32,
    /// `None` if the closure was dropped, or has panicked.
    answer: UnsafeCell<Option<R>>,
    asker: UnsafeCell<Option<Thread>>,
}

/// The owner's access to a question. Dropping it ends the question. Not a reference, because the
/// compiler may assume that one that was passed to a function stays valid until it returns.
struct Asked<R>(NonNull<Question<R>>);

// SAFETY: by the table above, the answer moves to the asker's thread. An `Asked` is the only access
// of the owner's thread.
unsafe impl<R: Send> Send for Asked<R> {}

impl<R> Asked<R> {
    fn question(&self) -> &Question<R> {
        // SAFETY: the asker keeps it until `DONE`.
        unsafe { self.0.as_ref() }
    }

    fn put(&self, answer: R) {
        // SAFETY: the answer is the owner's until `DONE`, and there was none.
        self.question().answer.with_mut(|place| unsafe { place.write(Some(answer)) });
    }
}

/// Tells the asker that the owner is done.
impl<R> Drop for Asked<R> {
    #[inline]
    fn drop(&mut self) {
        let Question { state, asker, .. } = self.question();
        // Release: the asker sees the answer. Acquire: its thread is visible.
        let release = mutate!(publish_answer, Release);
        let acquire = mutate!(see_asker, Acquire);
        if state.compare_exchange(ASKED, DONE, release, acquire).is_ok() {
            return;
        }
        // SAFETY: the state is `SLEEPS`.
        let thread = asker.with_mut(|thread| unsafe { &mut *thread }.take());
        // Release: as above. From here on, the question may be gone.
        state.store(DONE, mutate!(publish_late_answer, Release));
        if let Some(thread) = thread {
            mutate!(wake_asker, unpark_thread(thread) => ());
        }
    }
}

/// A closure and the question that it answers. The closure is dropped first, because what it
/// borrows may be gone once the asker is told.
struct Request<F, R> {
    body: F,
    asked: Asked<R>,
}

/// A request that is run or dropped once. Hidden from the compiler, for the reason that is given at
/// [`Asked`]: the closure and the answer may contain references, and no function that is told of
/// them may still run when the asker goes on.
struct Hidden<F, R>(MaybeUninit<Request<F, R>>);

impl<F, R> Hidden<F, R> {
    #[inline]
    fn run<T>(self, state: &mut T, context: &mut Context<T>)
    where
        F: FnOnce(&mut T, &mut Context<T>) -> R,
    {
        let hidden = ManuallyDrop::new(self);
        // SAFETY: it was there, and is taken once, because it is not dropped.
        let Request { body, asked } = unsafe { hidden.0.assume_init_read() };
        // `asked` is dropped last, also if the closure panics.
        asked.put(body(state, context));
    }
}

impl<F, R> Drop for Hidden<F, R> {
    fn drop(&mut self) {
        // SAFETY: it was not run, because then it is not dropped.
        unsafe { self.0.assume_init_drop() };
    }
}

/// A large closure, which stays in the asker's frame. It is run or dropped by the owner all the
/// same.
struct InFrame<'a, F>(&'a mut Option<F>);

impl<F> Drop for InFrame<'_, F> {
    fn drop(&mut self) {
        *self.0 = None;
    }
}

/// The owner has stopped or was dropped.
pub(super) struct Gone;

/// Has an owner run this closure, and waits until it was run or dropped. `send` sends the job, or
/// drops it. Returns `None` if the closure was dropped, or has panicked.
#[inline]
pub(super) fn ask<T, F, R>(
    wait: Wait,
    body: F,
    send: impl FnOnce(Work<T>) -> Result<(), Gone>,
) -> Result<Option<R>, Gone>
where
    F: FnOnce(&mut T, &mut Context<T>) -> R + Send,
    R: Send,
{
    if Work::<T>::is_inline::<Hidden<F, R>>() {
        return ask_inline(wait, body, send);
    }
    let mut body = Some(body);
    let body = InFrame(&mut body);
    let by_reference = move |state: &mut T, context: &mut Context<T>| {
        let body = body;
        let Some(body) = body.0.take() else { unreachable!("it is called once") };
        body(state, context)
    };
    ask_inline(wait, by_reference, send)
}

#[inline]
fn ask_inline<T, F, R>(
    wait: Wait,
    body: F,
    send: impl FnOnce(Work<T>) -> Result<(), Gone>,
) -> Result<Option<R>, Gone>
where
    F: FnOnce(&mut T, &mut Context<T>) -> R + Send,
    R: Send,
{
    let question = Question {
        state: AtomicU32::new(ASKED),
        answer: UnsafeCell::new(None),
        asker: UnsafeCell::new(None),
    };
    let asked = Asked(NonNull::from(&question));
    let hidden = Hidden(MaybeUninit::new(Request { body, asked }));
    // SAFETY: the job borrows the question and what the closure borrows. `stays` keeps this frame
    // until `DONE`, also if sending panics. `Asked` sets that when it is dropped; a job that was
    // run or dropped has dropped the closure before, and then its `Asked`, and does not touch the
    // question afterwards.
    let job = unsafe { Work::borrowing(move |state, context| hidden.run(state, context)) };
    let stays = UntilDone { wait, question: &question };
    let sent = send(job);
    drop(stays);
    // SAFETY: the answer is the asker's since `DONE`.
    let answer = question.answer.with_mut(|answer| unsafe { &mut *answer }.take());
    sent.map(|()| answer)
}

/// Waits for the answer when it is dropped.
struct UntilDone<'a, R> {
    wait: Wait,
    question: &'a Question<R>,
}

impl<R> Drop for UntilDone<'_, R> {
    #[inline]
    fn drop(&mut self) {
        wait_until_done(self.wait, self.question);
    }
}

#[inline]
fn wait_until_done<R>(wait: Wait, question: &Question<R>) {
    // Acquire: the answer is visible.
    let is_done = || question.state.load(mutate!(see_answer, Acquire)) == DONE;
    let poll = || is_done().then_some(());
    match wait {
        Wait::Spin => {
            calibrate_pause();
            while !is_done() {
                pause();
            }
        }
        Wait::SpinYield => {
            while !is_done() {
                yield_now();
            }
        }
        Wait::Adaptive if spin_before_sleep(None, poll).is_some() => {}
        Wait::Adaptive | Wait::Park if is_done() => {}
        Wait::Adaptive | Wait::Park => sleep_until_done(question, is_done),
    }
}

#[cold]
#[inline(never)]
fn sleep_until_done<R>(question: &Question<R>, is_done: impl Fn() -> bool) {
    let thread = current_thread();
    // SAFETY: the place is the asker's until `SLEEPS`.
    question.asker.with_mut(|asker| unsafe { *asker = Some(thread.clone()) });
    // Release: the owner sees the thread. Acquire: the answer is visible.
    let release = mutate!(publish_asker, Release);
    let acquire = mutate!(see_answer, Acquire);
    if question.state.compare_exchange(ASKED, SLEEPS, release, acquire).is_err() {
        return;
    }
    while !is_done() {
        park_thread(&thread);
    }
}
