//! `dispatch` sends to a full channel while it holds `ROUTES`; the channel's only receiver waits
//! for `ROUTES`. Nothing could end it. Two more threads wait for the mutex.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

static ROUTES: Mutex<u64> = Mutex::new(0);

#[inline(never)]
fn dispatch(to: &SyncSender<u64>) {
    let mut routes = ROUTES.lock().unwrap();
    loop {
        *routes += 1;
        to.send(*routes).unwrap();
    }
}

#[inline(never)]
fn deliver(from: &Receiver<u64>) {
    for message in from {
        thread::sleep(Duration::from_millis(100));
        println!("not reached {message} {}", ROUTES.lock().unwrap());
    }
}

fn spawn(name: &str, code: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.into()).spawn(code).unwrap();
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(7.0);
    let (to, from) = sync_channel(2);
    spawn("dispatcher", move || dispatch(&to));
    thread::sleep(Duration::from_millis(20));
    spawn("deliverer", move || deliver(&from));
    for _ in 0..2 {
        spawn("monitor", || println!("not reached {}", ROUTES.lock().unwrap()));
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    println!("truth: dispatcher sends under ROUTES; deliverer waits for ROUTES");
    std::process::exit(0);
}
