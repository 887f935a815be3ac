//! Two threads read `PLAN` and then want to write it before they let go of their reading: neither
//! ever gets it, nor do three more that only read. std's readers-writer lock does not say who
//! reads.

use std::sync::RwLock;
use std::thread;
use std::time::Duration;

static PLAN: RwLock<Vec<u32>> = RwLock::new(Vec::new());

#[inline(never)]
fn amend(with: u32) {
    let seen = PLAN.read().unwrap();
    thread::sleep(Duration::from_millis(100));
    if !seen.contains(&with) {
        PLAN.write().unwrap().push(with);
    }
    println!("not reached {}", seen.len());
}

#[inline(never)]
fn show() {
    thread::sleep(Duration::from_millis(300));
    println!("not reached {}", PLAN.read().unwrap().len());
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    for with in 0..2 {
        thread::Builder::new().name("amender".into()).spawn(move || amend(with)).unwrap();
    }
    for _ in 0..3 {
        thread::Builder::new().name("viewer".into()).spawn(show).unwrap();
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    println!("truth: two readers wait to write, for ever");
    std::process::exit(0);
}
