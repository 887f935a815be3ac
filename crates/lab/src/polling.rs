pub(crate) fn poll_until(mut holds: impl FnMut() -> bool) {
    let mut polls = 0u32;
    while !holds() {
        polls += 1;
        // The other thread may need this CPU to make progress.
        if polls.is_multiple_of(256) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}
