//! Twelve threads compute 60 us under `TOTALS` and sleep 200 us outside it. A holder never sleeps:
//! moving sleep out of the lock is no advice here. Held about 90%, queue 4 to 7.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

static TOTALS: Mutex<u64> = Mutex::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn add_up() {
    let asked = Instant::now();
    let mut totals = TOTALS.lock().unwrap();
    let got = Instant::now();
    while got.elapsed() < Duration::from_micros(60) {}
    *totals += 1;
    WAITED.fetch_add((got - asked).as_nanos() as u64, Relaxed);
    HELD.fetch_add(got.elapsed().as_nanos() as u64, Relaxed);
}

#[inline(never)]
fn rest() {
    thread::sleep(Duration::from_micros(200));
    std::hint::black_box(0);
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    let begun = Instant::now();
    for _ in 0..12 {
        thread::Builder::new()
            .name("adder".into())
            .spawn(|| {
                loop {
                    add_up();
                    rest();
                }
            })
            .unwrap();
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    let all = begun.elapsed().as_nanos() as f64;
    let [held, waited] = [&HELD, &WAITED].map(|sum| sum.load(Relaxed) as f64 / all);
    println!("truth: TOTALS held {:.1}%, queue {waited:.2}", held * 100.0);
    std::process::exit(0);
}
