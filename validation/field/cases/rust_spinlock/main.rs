//! A spin lock of the program's own with `spin_loop`, inlined: three threads compute 30 us under
//! it.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static BUSY: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn tally() {
    while BUSY.swap(true, Ordering::Acquire) {
        while BUSY.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
    let from = Instant::now();
    while from.elapsed() < Duration::from_micros(30) {}
    BUSY.store(false, Ordering::Release);
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    for _ in 0..3 {
        std::thread::spawn(|| {
            loop {
                tally();
            }
        });
    }
    std::thread::sleep(Duration::from_secs_f64(seconds));
    println!("truth: spinning");
    std::process::exit(0);
}
