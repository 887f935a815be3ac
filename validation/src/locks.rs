//! Locks of std and parking_lot under one set of names.

use crate::account::{EXCLUSIVE, Entry, Gaps, SHARED};
use crate::options::fail;

/// A lock that keeps an account.
#[derive(Debug)]
pub struct Lock {
    /// Identity in the account.
    pub id: u32,
    name: &'static str,
    raw: Raw,
}

#[derive(Debug)]
enum Raw {
    Std(&'static std::sync::Mutex<Gaps>),
    StdRwLock(&'static std::sync::RwLock<Gaps>),
    ParkingLot(&'static parking_lot::Mutex<Gaps>),
    ParkingLotRwLock(&'static parking_lot::RwLock<Gaps>),
    /// Prefers readers, and so can starve a writer.
    ParkingLotRecursive(&'static parking_lot::RecursiveRwLock<Gaps>),
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

// The first lock of a program has a name of its own.
static FIRST_STD_MUTEX: std::sync::Mutex<Gaps> = std::sync::Mutex::new(Gaps::new());
static FIRST_PARKING_LOT_MUTEX: parking_lot::Mutex<Gaps> = parking_lot::Mutex::new(Gaps::new());

macro_rules! hold {
    ($id:expr, $guard:expr, $work:expr) => {{
        let entry = Entry::ask($id, EXCLUSIVE);
        let mut guard = $guard;
        guard.close(entry.got());
        $work();
        guard.open(entry.leave());
    }};
}

macro_rules! hold_shared {
    ($id:expr, $guard:expr, $work:expr) => {{
        let entry = Entry::ask($id, SHARED);
        let guard = $guard;
        entry.got();
        $work();
        entry.leave();
        drop(guard);
    }};
}

impl Lock {
    /// Makes a lock of a kind.
    pub fn new(id: u32, kind: &str) -> Lock {
        let first = id == 0;
        let (name, raw) = match kind {
            "std-mutex" if first => ("FIRST_STD_MUTEX", Raw::Std(&FIRST_STD_MUTEX)),
            "std-mutex" => ("-", Raw::Std(leak(Default::default()))),
            "std-rwlock" => ("-", Raw::StdRwLock(leak(Default::default()))),
            "parking-lot" if first => {
                ("FIRST_PARKING_LOT_MUTEX", Raw::ParkingLot(&FIRST_PARKING_LOT_MUTEX))
            }
            "parking-lot" => ("-", Raw::ParkingLot(leak(Default::default()))),
            "parking-lot-rwlock" => ("-", Raw::ParkingLotRwLock(leak(Default::default()))),
            "parking-lot-recursive" => ("-", Raw::ParkingLotRecursive(leak(Default::default()))),
            _ => fail(&format!("no such lock: {kind}")),
        };
        Lock { id, name, raw }
    }

    /// True if it tells readers from writers.
    pub fn has_readers(&self) -> bool {
        !matches!(self.raw, Raw::Std(_) | Raw::ParkingLot(_))
    }

    /// Holds it alone while `work` runs.
    pub fn hold(&self, work: impl FnOnce()) {
        match self.raw {
            Raw::Std(lock) => hold!(self.id, lock.lock().expect("nobody panics"), work),
            Raw::StdRwLock(lock) => hold!(self.id, lock.write().expect("nobody panics"), work),
            Raw::ParkingLot(lock) => hold!(self.id, lock.lock(), work),
            Raw::ParkingLotRwLock(lock) => hold!(self.id, lock.write(), work),
            Raw::ParkingLotRecursive(lock) => hold!(self.id, lock.write(), work),
        }
    }

    /// Holds it with other readers while `work` runs.
    pub fn hold_shared(&self, work: impl FnOnce()) {
        match self.raw {
            Raw::StdRwLock(lock) => {
                hold_shared!(self.id, lock.read().expect("nobody panics"), work)
            }
            Raw::ParkingLotRwLock(lock) => hold_shared!(self.id, lock.read(), work),
            Raw::ParkingLotRecursive(lock) => hold_shared!(self.id, lock.read(), work),
            _ => self.hold(work),
        }
    }

    /// Prints the line `lock`.
    pub fn print(&self) {
        let id = self.id;
        let (kind, address, size) = match self.raw {
            Raw::Std(lock) => place("std-mutex", lock),
            Raw::StdRwLock(lock) => place("std-rwlock", lock),
            Raw::ParkingLot(lock) => place("parking-lot", lock),
            Raw::ParkingLotRwLock(lock) => place("parking-lot-rwlock", lock),
            Raw::ParkingLotRecursive(lock) => place("parking-lot-recursive", lock),
        };
        println!("lock {id} {kind} {address:#x} {size} {}", self.name);
    }

    /// Prints the line `free`, for a lock that always excludes.
    pub fn print_gaps(&self) {
        match self.raw {
            Raw::Std(lock) => lock.lock().expect("nobody panics").print(self.id),
            Raw::ParkingLot(lock) => lock.lock().print(self.id),
            _ => {}
        }
    }
}

fn place<T>(kind: &'static str, lock: &'static T) -> (&'static str, usize, usize) {
    (kind, std::ptr::from_ref(lock) as usize, size_of::<T>())
}
