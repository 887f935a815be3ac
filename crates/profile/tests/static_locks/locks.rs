//! Static locks, one of them held. Compiled by the test, not part of it.

use std::sync::{Mutex, RwLock};

static LOCK: Mutex<u64> = Mutex::new(0);
static READERS: RwLock<u64> = RwLock::new(0);

fn main() {
    let _held = LOCK.lock().unwrap();
    drop(READERS.read());
    println!("ready");
    loop {
        std::thread::park();
    }
}
