//! Six workers share one receiver behind a mutex, as in the Rust book: five wait for JOBS' mutex
//! while one waits for a job under it. A job comes every 20 ms. An idle pool.
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[inline(never)]
fn next_job(jobs: &Mutex<Receiver<u64>>) -> u64 {
    jobs.lock().unwrap().recv().unwrap()
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    let (to, from) = channel();
    let jobs = Arc::new(Mutex::new(from));
    for _ in 0..6 {
        let jobs = Arc::clone(&jobs);
        std::thread::spawn(move || {
            loop {
                std::hint::black_box(next_job(&jobs));
            }
        });
    }
    for job in 0..(seconds * 50.0) as u64 {
        to.send(job).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("truth: an idle pool");
    std::process::exit(0);
}
