//! The program of `chain.c` in Rust. Compiled by the test, not part of it.

use std::cell::RefCell;
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Duration;

static LOCK: Mutex<u64> = Mutex::new(0);
static WAITED: Mutex<u64> = Mutex::new(0);
static NEVER: Condvar = Condvar::new();
static READERS: RwLock<u64> = RwLock::new(0);
static WORD: AtomicU32 = AtomicU32::new(0);

struct Chain {
    random: u64,
    depth: usize,
    names: Vec<&'static str>,
}

impl Chain {
    fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % below
    }

    #[inline(never)]
    fn leave(&self) {
        let tid = thread_id();
        let names: Vec<_> = self.names.iter().rev().copied().collect();
        let line = format!("{tid} {}\n", names.join(" "));
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

fn thread_id() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

#[inline(never)]
fn step_sleep(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_sleep");
    c.leave();
    thread::sleep(Duration::from_secs(1 << 30));
    black_box(x)
}

#[inline(never)]
fn step_lock(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_lock");
    c.leave();
    let held = LOCK.lock().unwrap();
    black_box(x + *held)
}

#[inline(never)]
fn step_read_lock(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_read_lock");
    c.leave();
    let held = READERS.read().unwrap();
    black_box(x + *held)
}

#[inline(never)]
fn step_condition(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_condition");
    c.leave();
    let mut held = WAITED.lock().unwrap();
    while *held == 0 {
        held = NEVER.wait(held).unwrap();
    }
    black_box(x + *held)
}

#[inline(never)]
fn step_park(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_park");
    c.leave();
    while WORD.load(Ordering::Relaxed) == 0 {
        thread::park();
    }
    black_box(x)
}

#[inline(never)]
fn step_receive(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_receive");
    let (_sender, receiver) = mpsc::channel::<u64>();
    c.leave();
    let got = receiver.recv().unwrap_or(3);
    black_box(x + got)
}

#[inline(never)]
fn step_read(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_read");
    let (mut end, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    c.leave();
    let mut bytes = [0; 40];
    let got = end.read(&mut bytes).unwrap();
    black_box(x + got as u64 + u64::from(bytes[0]))
}

#[inline(never)]
fn step_join(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_join");
    let other = thread::spawn(|| thread::sleep(Duration::from_secs(1 << 30)));
    c.leave();
    other.join().unwrap();
    black_box(x)
}

/// Leaves return addresses below, where later frames will lie.
#[inline(never)]
fn dig(x: u64) -> u64 {
    let hole = black_box([x; 50]);
    if x > 6 { hole[3] } else { black_box(dig(x + 1)) + hole[5] }
}

#[inline(never)]
fn step_plain(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_plain");
    let x = step_next(c, x + 1);
    black_box(x) + 1
}

#[inline(never)]
fn step_array(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_array");
    dig(1);
    let mut room = [0u8; 900];
    room[(x & 63) as usize] = 5;
    let room = black_box(room);
    let x = step_next(c, x);
    black_box(x) + u64::from(room[7])
}

#[inline(never)]
fn step_page(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_page");
    let room = black_box([x; 1200]);
    let x = step_next(c, x);
    black_box(x) + room[9]
}

trait Shape {
    fn turn(&self, c: &mut Chain, x: u64) -> u64;
}

struct Round(u64);

struct Square(u64, u64);

impl Shape for Round {
    #[inline(never)]
    fn turn(&self, c: &mut Chain, x: u64) -> u64 {
        c.names.push("turn");
        let x = step_next(c, x);
        black_box(x) + self.0
    }
}

impl Shape for Square {
    #[inline(never)]
    fn turn(&self, c: &mut Chain, x: u64) -> u64 {
        c.names.push("turn");
        let x = step_plain(c, x);
        black_box(x) + self.0 * self.1
    }
}

#[inline(never)]
fn step_object(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_object");
    let shape: Box<dyn Shape> =
        if c.draw(2) == 0 { Box::new(Round(3)) } else { Box::new(Square(x, 2)) };
    let x = black_box(shape).turn(c, x);
    black_box(x)
}

#[inline(never)]
fn step_generic<T: Into<u64> + Copy>(c: &mut Chain, x: T) -> u64 {
    c.names.push("step_generic");
    let y = step_next(c, x.into());
    black_box(y) + x.into()
}

#[inline(never)]
fn step_narrow(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_narrow");
    let x = step_generic(c, x as u8);
    black_box(x)
}

/// Called back by the standard library.
#[inline(never)]
fn step_sort(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_sort");
    let c = RefCell::new(c);
    let mut two = [x, x + 1];
    two.sort_by(|a, b| {
        step_next(&mut c.borrow_mut(), *a);
        black_box(a).cmp(b)
    });
    black_box(two[0])
}

#[inline(never)]
fn step_caught(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_caught");
    let c = std::panic::AssertUnwindSafe(RefCell::new(c));
    let x = std::panic::catch_unwind(|| black_box(step_next(&mut c.borrow_mut(), x)));
    black_box(x.unwrap_or(0))
}

type Step = fn(&mut Chain, u64) -> u64;

static ENDS: [Step; 8] = [
    step_sleep,
    step_lock,
    step_read_lock,
    step_condition,
    step_park,
    step_receive,
    step_read,
    step_join,
];

static STEPS: [Step; 8] = [
    step_plain,
    step_array,
    step_page,
    step_object,
    step_generic::<u64>,
    step_narrow,
    step_sort,
    step_caught,
];

#[inline(never)]
fn step_next(c: &mut Chain, x: u64) -> u64 {
    c.names.push("step_next");
    let x = if c.names.len() >= c.depth {
        ENDS[c.draw(8) as usize](c, x)
    } else {
        match c.draw(10) {
            0 => step_plain(c, x),
            1 => step_array(c, x),
            2 => step_object(c, x),
            _ => STEPS[c.draw(8) as usize](c, x),
        }
    };
    black_box(x) + 1
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let threads = arguments.next().unwrap_or(1);
    let seed = arguments.next().unwrap_or(1);
    let held = LOCK.lock().unwrap();
    let written = READERS.write().unwrap();
    let start = move |index: u64| {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index * 7919);
        let mut chain = Chain { random, depth: 0, names: Vec::new() };
        chain.draw(2);
        chain.depth = 2 + chain.draw(24) as usize;
        let x = step_next(&mut chain, 0);
        black_box(x);
    };
    let start = Arc::new(start);
    for index in 0..threads {
        let start = start.clone();
        thread::spawn(move || start(index));
    }
    start(threads);
    drop((held, written));
}
