// Four OnceLocks, one after the other: one of 6 threads initialises it, asleep in fetch_region for
// nearly a quarter of the program's time, and the five others wait for it in region. They do not
// wait for work.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

static ALPS: OnceLock<u32> = OnceLock::new();
static JURA: OnceLock<u32> = OnceLock::new();
static VOSGES: OnceLock<u32> = OnceLock::new();
static TATRA: OnceLock<u32> = OnceLock::new();
static WAITED: AtomicU64 = AtomicU64::new(0);
static FETCHED: AtomicU64 = AtomicU64::new(0);

fn seconds() -> f64 {
    std::env::args().nth(1).map_or(7.0, |text| text.parse().unwrap())
}

#[inline(never)]
fn fetch_region(height: u32) -> u32 {
    let begun = Instant::now();
    thread::sleep(Duration::from_secs_f64((seconds() - 0.2) / 4.0));
    FETCHED.fetch_add(begun.elapsed().as_nanos() as u64, Relaxed);
    height
}

#[inline(never)]
fn region(number: usize) -> u32 {
    match number % 4 {
        0 => *ALPS.get_or_init(|| fetch_region(4800)),
        1 => *JURA.get_or_init(|| fetch_region(1700)),
        2 => *VOSGES.get_or_init(|| fetch_region(1400)),
        _ => *TATRA.get_or_init(|| fetch_region(2600)),
    }
}

fn plan_route() {
    for number in 0.. {
        let asked = Instant::now();
        region(number);
        WAITED.fetch_add(asked.elapsed().as_nanos() as u64, Relaxed);
        if number >= 4 {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn main() {
    for _ in 0..6 {
        thread::Builder::new().name("planner".into()).spawn(plan_route).unwrap();
    }
    thread::sleep(Duration::from_secs_f64(seconds()));
    let threads = |sum: u64| sum as f64 / 1e9 / seconds();
    let fetched = FETCHED.load(Relaxed);
    let waiting = threads(WAITED.load(Relaxed) - fetched);
    println!("truth: {:.2} initialise, {waiting:.2} wait for them", threads(fetched));
}
