//! Two pools of four threads, a mutex each: threads of one never take the other's. Both are held
//! 96% and more, asleep (INVOICES 2 ms in print_invoice, THUMBNAILS 1 ms in scale), queues nearly
//! 3. Without the sleep under one of them, its pool would do four times as much.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

struct Account {
    waited: AtomicU64,
    held: AtomicU64,
}

static INVOICES: Mutex<u64> = Mutex::new(0);
static THUMBNAILS: Mutex<u64> = Mutex::new(0);
static OF_INVOICES: Account = Account { waited: AtomicU64::new(0), held: AtomicU64::new(0) };
static OF_THUMBNAILS: Account = Account { waited: AtomicU64::new(0), held: AtomicU64::new(0) };

fn nap(us: u64) {
    thread::sleep(Duration::from_micros(us));
    std::hint::black_box(us);
}

fn hold(lock: &Mutex<u64>, account: &Account, us: u64) {
    let asked = Instant::now();
    let mut guard = lock.lock().unwrap();
    let got = Instant::now();
    nap(us);
    *guard += 1;
    account.waited.fetch_add((got - asked).as_nanos() as u64, Relaxed);
    account.held.fetch_add(got.elapsed().as_nanos() as u64, Relaxed);
}

#[inline(never)]
fn print_invoice() {
    hold(&INVOICES, &OF_INVOICES, 2000);
    nap(30);
}

#[inline(never)]
fn scale() {
    hold(&THUMBNAILS, &OF_THUMBNAILS, 1000);
    nap(30);
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    let begun = Instant::now();
    for _ in 0..4 {
        thread::Builder::new()
            .name("invoices".into())
            .spawn(|| {
                loop {
                    print_invoice()
                }
            })
            .unwrap();
        thread::Builder::new()
            .name("thumbnails".into())
            .spawn(|| {
                loop {
                    scale()
                }
            })
            .unwrap();
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    let all = begun.elapsed().as_nanos() as f64;
    for (name, account) in [("INVOICES", &OF_INVOICES), ("THUMBNAILS", &OF_THUMBNAILS)] {
        let share = |sum: &AtomicU64| sum.load(Relaxed) as f64 / all;
        let (held, waited) = (share(&account.held), share(&account.waited));
        println!("truth: {name} held {:.1}%, queue {waited:.2}", held * 100.0);
    }
    std::process::exit(0);
}
