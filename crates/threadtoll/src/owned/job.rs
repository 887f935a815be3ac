//! A closure without its type, which one thread sends to another: [`Job`].

use std::mem::{ManuallyDrop, MaybeUninit};

/// Words of a closure's captured values that need no allocation. With them, the function and the
/// stamp of its slot, a job fills one cache line of a funnel.
const INLINE_WORDS: usize = 6;

type Payload = [MaybeUninit<u64>; INLINE_WORDS];

/// Takes the closure out of the payload, and calls or drops it.
type Act<T, C> = unsafe fn(*mut Payload, Option<(&mut T, &mut C)>);

/// A closure that is run once, or dropped. It is given a `T` and a `C`. Its captured
/// values are inline if they have up to 48 bytes, aligned to 8; otherwise in a box.
pub(super) struct Job<T, C> {
    act: Act<T, C>,
    payload: Payload,
}

/// # Safety
///
/// The payload must contain an `F`, which the caller gives away.
unsafe fn act_inline<T, C, F>(payload: *mut Payload, run: Option<(&mut T, &mut C)>)
where
    F: FnOnce(&mut T, &mut C),
{
    // SAFETY: the caller's promise; `is_inline` compared size and alignment.
    let body = unsafe { payload.cast::<F>().read() };
    if let Some((state, context)) = run {
        body(state, context);
    }
}

/// # Safety
///
/// The payload must contain a `Box<F>`, which the caller gives away.
unsafe fn act_boxed<T, C, F>(payload: *mut Payload, run: Option<(&mut T, &mut C)>)
where
    F: FnOnce(&mut T, &mut C),
{
    // SAFETY: the caller's promise.
    let body = unsafe { payload.cast::<Box<F>>().read() };
    if let Some((state, context)) = run {
        body(state, context);
    }
}

impl<T, C> Job<T, C> {
    /// Returns `true` if what is captured by a closure of this size and alignment is inline.
    pub(super) const fn is_inline<F>() -> bool {
        size_of::<F>() <= size_of::<Payload>() && align_of::<F>() <= align_of::<Payload>()
    }

    #[inline]
    pub(super) fn new<F>(body: F) -> Self
    where
        F: FnOnce(&mut T, &mut C) + Send + 'static,
    {
        // SAFETY: what it captures lives for ever.
        unsafe { Job::borrowing(body) }
    }

    /// A job that may borrow. It can be sent to other threads because the closure can, and because
    /// it contains neither `T` nor `C`.
    ///
    /// # Safety
    ///
    /// What the closure captures must stay alive until the job was run or dropped.
    #[inline]
    pub(super) unsafe fn borrowing<F>(body: F) -> Self
    where
        F: FnOnce(&mut T, &mut C) + Send,
    {
        let mut payload: Payload = [MaybeUninit::uninit(); INLINE_WORDS];
        let place = payload.as_mut_ptr();
        if Self::is_inline::<F>() {
            // SAFETY: it fits.
            unsafe { place.cast::<F>().write(body) };
            Job { act: act_inline::<T, C, F>, payload }
        } else {
            // SAFETY: a pointer fits.
            unsafe { place.cast::<Box<F>>().write(Box::new(body)) };
            Job { act: act_boxed::<T, C, F>, payload }
        }
    }

    /// Runs the closure.
    #[inline]
    pub(super) fn run(self, state: &mut T, context: &mut C) {
        let mut job = ManuallyDrop::new(self);
        let act = job.act;
        // SAFETY: the closure was put there with this function, and is taken once: the job is not
        // dropped.
        unsafe { act(&mut job.payload, Some((state, context))) };
    }

    /// Returns the closure.
    ///
    /// # Safety
    ///
    /// The job must have been made of an `F`.
    #[cold]
    pub(super) unsafe fn into_closure<F>(self) -> F {
        let mut job = ManuallyDrop::new(self);
        let place = job.payload.as_mut_ptr();
        if Self::is_inline::<F>() {
            // SAFETY: the caller's promise, and as in `run`.
            unsafe { place.cast::<F>().read() }
        } else {
            // SAFETY: the caller's promise, and as in `run`.
            *unsafe { place.cast::<Box<F>>().read() }
        }
    }
}

impl<T, C> Drop for Job<T, C> {
    fn drop(&mut self) {
        let act = self.act;
        // SAFETY: the closure was put there with this function, and neither `run` nor
        // `into_closure` has taken it, because they do not drop the job.
        unsafe { act(&mut self.payload, None) };
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_job_and_its_stamp_fill_one_cache_line() {
        assert_eq!(size_of::<Job<String, ()>>() + size_of::<u64>(), 64);
    }

    /// Captures of all shapes come back as they were put in.
    #[test]
    fn closures_come_back() {
        fn assert_comes_back<C: Copy + PartialEq + Send + 'static>(captured: C, inline: bool) {
            fn check<F>(body: F, inline: bool) -> F
            where
                F: FnOnce(&mut u64, &mut ()) + Send + 'static,
            {
                assert_eq!(Job::<u64, ()>::is_inline::<F>(), inline);
                let job = Job::<u64, ()>::new(body);
                // SAFETY: the job was just made of an `F`.
                unsafe { job.into_closure() }
            }
            let body = check(move |count, _| *count = u64::from(captured == captured), inline);
            let mut count = 0;
            Job::new(body).run(&mut count, &mut ());
            assert_eq!(count, 1);
        }
        #[derive(Clone, Copy, PartialEq)]
        #[repr(align(16))]
        struct Aligned(u8);

        assert_comes_back((), true);
        assert_comes_back([7u64; 6], true);
        assert_comes_back([7u8; 41], true);
        assert_comes_back([7u64; 7], false);
        assert_comes_back(Aligned(7), false);
    }
}
