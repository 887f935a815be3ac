//! A writer of `RATES` (std's readers-writer lock) sleeps 6 ms in `refresh`, then 1 ms without it;
//! six readers compute 10 us and sleep 100 us in between: held 86%, about five of six readers wait.

use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

static RATES: RwLock<u64> = RwLock::new(0);
static WRITER_HELD: AtomicU64 = AtomicU64::new(0);
static READERS_WAITED: AtomicU64 = AtomicU64::new(0);

fn nap(us: u64) {
    thread::sleep(Duration::from_micros(us));
    std::hint::black_box(us);
}

#[inline(never)]
fn refresh() {
    let mut rates = RATES.write().unwrap();
    let got = Instant::now();
    nap(6000);
    *rates += 1;
    WRITER_HELD.fetch_add(got.elapsed().as_nanos() as u64, Relaxed);
}

#[inline(never)]
fn convert() -> u64 {
    let asked = Instant::now();
    let rates = RATES.read().unwrap();
    let got = Instant::now();
    READERS_WAITED.fetch_add((got - asked).as_nanos() as u64, Relaxed);
    while got.elapsed() < Duration::from_micros(10) {}
    *rates
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    let begun = Instant::now();
    let spawn = |name: &str, code: fn()| {
        thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                loop {
                    code()
                }
            })
            .unwrap();
    };
    spawn("refresher", || {
        refresh();
        nap(1000);
    });
    for _ in 0..6 {
        spawn("converter", || {
            std::hint::black_box(convert());
            nap(100);
        });
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    let [held, waited] = [&WRITER_HELD, &READERS_WAITED]
        .map(|sum| sum.load(Relaxed) as f64 / begun.elapsed().as_nanos() as f64);
    println!("truth: RATES held {:.1}% by its writer, queue {waited:.2}", held * 100.0);
    std::process::exit(0);
}
