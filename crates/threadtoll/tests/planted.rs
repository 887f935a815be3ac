//! Bugs that the sanitizers must find, as proof that they would find others. Run by
//! `ci/long/sanitizers.sh` only.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::thread;

#[test]
#[ignore = "a bug on purpose, for AddressSanitizer to find"]
fn use_after_free() {
    let place = Box::into_raw(Box::new(1u64));
    // SAFETY: came from a box.
    drop(unsafe { Box::from_raw(black_box(place)) });
    // SAFETY: none; this is the bug.
    black_box(unsafe { place.read_volatile() });
}

#[test]
#[ignore = "a bug on purpose, for LeakSanitizer to find"]
fn leak() {
    black_box(Box::into_raw(Box::new([1u64; 100])));
}

/// A message without a header's release and acquire.
struct Raced(UnsafeCell<u64>);

// SAFETY: none: this is the bug.
unsafe impl Sync for Raced {}

#[test]
#[ignore = "a bug on purpose, for ThreadSanitizer to find"]
fn race() {
    let raced = Raced(UnsafeCell::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let raced = &raced;
                for _ in 0..1000 {
                    // SAFETY: none: this is the bug.
                    unsafe { *raced.0.get() += 1 };
                    thread::yield_now();
                }
            });
        }
    });
    black_box(raced.0.into_inner());
}
