//! System V semaphores: semop(2), semctl(2), sysvipc(7).
//!
//! A set of semaphores has an ID, which the call names. The semaphores of the set are in the
//! operations, which are in the memory of the waiting thread.

use std::io;

use rustix::fs::{AtFlags, CWD, stat, statat};

use super::facts::ThreadFacts;
use super::files::{self, ShortPath};
use super::memory::Memory;
use super::{Activity, Process, SystemCall};

/// Maximum number of operations of a call that are decoded. Calls mostly have one or two.
const MAX_OPERATIONS: usize = 8;

/// Size of a `sembuf`: number of the semaphore, operation and flags, of 16 bits each.
const OPERATION: usize = 6;

const MAX_LIST: usize = 256 << 10;

/// A semaphore of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreId {
    /// ID of the set in its IPC namespace.
    pub set: i32,
    /// Number of the semaphore in the set.
    pub number: u16,
}

/// Value of a semaphore for which a thread waits, and its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SemaphoreGoal {
    /// The thread subtracts 1 when the value is not zero.
    TakeOne,
    /// The thread adds 1 when the value is zero, as in the example of semop(2). The semaphore is a
    /// lock that is held while its value is 1.
    AddOneAtZero,
    /// The thread goes on when the value is zero.
    Zero,
    /// Any other goal.
    Other,
}

/// A thread's wait for a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreWait {
    /// The semaphore.
    pub semaphore: SemaphoreId,
    /// Value for which the thread waits.
    pub goal: SemaphoreGoal,
    /// True if the kernel will undo the change when the process ends (`SEM_UNDO`).
    pub undo: bool,
}

/// State of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreState {
    /// Value of the semaphore.
    pub value: u32,
    /// PID of the process that was the last to change the value; `None` if there was none, or if
    /// the process is not visible in this PID namespace.
    pub changed_by: Option<u32>,
    /// Number of threads that wait for a greater value.
    pub waiting: u32,
    /// Number of threads that wait for the value to be zero.
    pub waiting_for_zero: u32,
}

impl SystemCall {
    /// ID of the set of semaphores on which the call operates; `None` for other calls.
    pub fn semaphore_set(&self) -> Option<i32> {
        let operates = [libc::SYS_semop, libc::SYS_semtimedop].contains(&self.number.into());
        operates.then_some(self.arguments[0] as i32)
    }
}

impl SemaphoreWait {
    /// The semaphore for which a thread of any process waits. `None` if the thread waits for none,
    /// if it may wait for any of several, or if permission is missing.
    pub fn of(tid: u32) -> Option<SemaphoreWait> {
        let Activity::Asleep(call) = ThreadFacts::activity_of(tid)? else { return None };
        SemaphoreWait::of_call(tid, &call)
    }

    /// Like [`of`](SemaphoreWait::of), for a thread that was seen in this call. `None` if the
    /// thread has left the call.
    pub fn of_call(tid: u32, call: &SystemCall) -> Option<SemaphoreWait> {
        let set = call.semaphore_set()?;
        let [_, address, count, ..] = call.arguments;
        let length = usize::try_from(count).ok()?.checked_mul(OPERATION)?;
        let mut bytes = [0; MAX_OPERATIONS * OPERATION];
        let bytes = bytes.get_mut(..length)?;
        let read = Memory::of(tid).read(address, bytes);
        // The memory may be used for something else as soon as the thread has left the call.
        let is_still_in_call = match ThreadFacts::activity_of(tid)? {
            Activity::Asleep(now) => {
                let of = |call: &SystemCall| {
                    let [set, address, count, ..] = call.arguments;
                    (call.number, set, address, count, call.stack_pointer, call.program_counter)
                };
                of(&now) == of(call)
            }
            _ => false,
        };
        (read == length && is_still_in_call).then(|| awaited(set, bytes)).flatten()
    }
}

/// The only semaphore for which a call with these operations may wait.
fn awaited(set: i32, operations: &[u8]) -> Option<SemaphoreWait> {
    const UNDO: u16 = libc::SEM_UNDO as u16;
    let operation = |bytes: &[u8]| match *bytes {
        [a, b, c, d, e, f] => Some((
            u16::from_ne_bytes([a, b]),
            i16::from_ne_bytes([c, d]),
            u16::from_ne_bytes([e, f]),
        )),
        _ => None,
    };
    let all: Vec<(u16, i16, u16)> =
        operations.chunks_exact(OPERATION).filter_map(operation).collect();
    // An operation that adds to the value never waits.
    let mut waits = all.iter().filter(|&&(_, change, _)| change <= 0);
    let &(number, ..) = waits.next()?;
    if waits.any(|&(other, ..)| other != number) {
        return None;
    }
    let changes: Vec<i16> = all.iter().map(|&(_, change, _)| change).collect();
    let is_alone = all.iter().all(|&(other, ..)| other == number);
    let goal = match changes[..] {
        [-1] => SemaphoreGoal::TakeOne,
        [0] => SemaphoreGoal::Zero,
        [0, 1] if is_alone => SemaphoreGoal::AddOneAtZero,
        _ => SemaphoreGoal::Other,
    };
    let undo = all.iter().any(|&(_, change, flags)| change != 0 && flags & UNDO != 0);
    Some(SemaphoreWait { semaphore: SemaphoreId { set, number }, goal, undo })
}

impl SemaphoreId {
    /// State of the semaphore in this process's IPC namespace.
    ///
    /// # Errors
    ///
    /// If there is no such semaphore, or permission to read it is missing.
    pub fn state(self) -> io::Result<SemaphoreState> {
        let changed_by = self.control(libc::GETPID)?;
        Ok(SemaphoreState {
            value: self.control(libc::GETVAL)?,
            changed_by: Some(changed_by).filter(|&pid| pid > 0),
            waiting: self.control(libc::GETNCNT)?,
            waiting_for_zero: self.control(libc::GETZCNT)?,
        })
    }

    fn control(self, command: libc::c_int) -> io::Result<u32> {
        // SAFETY: the commands that `state` gives take no further argument, access no memory of
        // this process and change nothing.
        let result = unsafe { libc::semctl(self.set, self.number.into(), command) };
        u32::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Key by which programs find the set; `None` for a set without a key (`IPC_PRIVATE`).
    pub fn key(self) -> Option<u32> {
        let path = ShortPath::new(format_args!("/proc/sysvipc/sem"));
        let list = files::read(CWD, &path, MAX_LIST).ok()?;
        key_of(self.set, &String::from_utf8_lossy(&list))
    }
}

/// Parses lines that begin with the key and the ID of a set.
fn key_of(set: i32, list: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<i32>);
        let (key, id) = (fields.next()?.ok()?, fields.next()?.ok()?);
        (id == set).then_some(key)
    };
    list.lines().find_map(of_line).filter(|&key| key != 0).map(i32::cast_unsigned)
}

impl Process {
    /// Returns `true` if the process is in this process's IPC namespace, in which
    /// [`SemaphoreId::state`] finds its semaphores.
    pub fn shares_semaphores(&self) -> bool {
        let own = stat("/proc/self/ns/ipc");
        let other = statat(&self.directory, "ns/ipc", AtFlags::empty());
        own.is_ok_and(|own| {
            other.is_ok_and(|other| (own.st_dev, own.st_ino) == (other.st_dev, other.st_ino))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn operations(all: &[(u16, i16, i32)]) -> Vec<u8> {
        let bytes = |&(number, change, flags): &(u16, i16, i32)| {
            [number.to_ne_bytes(), change.to_ne_bytes(), (flags as u16).to_ne_bytes()].concat()
        };
        all.iter().flat_map(bytes).collect()
    }

    #[test]
    fn the_operations_show_the_semaphore_and_the_goal() {
        let of = |all: &[(u16, i16, i32)]| {
            let wait = awaited(7, &operations(all))?;
            assert_eq!(wait.semaphore.set, 7);
            Some((wait.semaphore.number, wait.goal, wait.undo))
        };
        let undo = libc::SEM_UNDO;
        assert_eq!(of(&[(3, -1, undo)]), Some((3, SemaphoreGoal::TakeOne, true)));
        assert_eq!(of(&[(3, -1, 0)]), Some((3, SemaphoreGoal::TakeOne, false)));
        assert_eq!(of(&[(3, 0, 0)]), Some((3, SemaphoreGoal::Zero, false)));
        let lock = [(0, 0, 0), (0, 1, undo)];
        assert_eq!(of(&lock), Some((0, SemaphoreGoal::AddOneAtZero, true)));
        for other in [&[(3, -2, 0)][..], &[(3, 0, 0), (4, 1, 0)], &[(3, 2, 0), (3, -1, 0)]] {
            assert_eq!(of(other), Some((3, SemaphoreGoal::Other, false)), "{other:?}");
        }
        // The thread may wait for either of two, or for none.
        assert_eq!(of(&[(3, -1, 0), (4, -1, 0)]), None);
        assert_eq!(of(&[(3, 1, 0)]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn keys_are_listed_by_set() {
        let list = "       key      semid perms      nsems   uid   gid  cuid  cgid  otime  ctime\n\
                             0          5   600          1     0     0     0     0      0      0\n\
                    1234567890          6   600         17     0     0     0     0      0      0\n\
                            -2          7   600          1     0     0     0     0      0      0\n";
        assert_eq!(key_of(5, list), None);
        assert_eq!(key_of(6, list), Some(1_234_567_890));
        assert_eq!(key_of(7, list), Some(0xffff_fffe));
        assert_eq!(key_of(8, list), None);
    }

    proptest! {
        #[test]
        fn any_operations_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..=MAX_OPERATIONS * OPERATION),
            list: String,
        ) {
            let _ = awaited(1, &bytes);
            let _ = key_of(1, &list);
        }
    }

    /// A set of one semaphore of this process, which is removed at the end.
    struct Set(SemaphoreId);

    impl Set {
        fn new() -> Set {
            // SAFETY: creates a set, and accesses no memory of this process.
            let set = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
            assert!(set >= 0, "{}", io::Error::last_os_error());
            Set(SemaphoreId { set, number: 0 })
        }

        fn add(&self, change: i16) {
            let mut operation = libc::sembuf { sem_num: 0, sem_op: change, sem_flg: 0 };
            // SAFETY: the one operation is a live `sembuf`.
            let result = unsafe { libc::semop(self.0.set, &raw mut operation, 1) };
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
        }
    }

    impl Drop for Set {
        fn drop(&mut self) {
            // SAFETY: removes the set of this test; the command takes no further argument.
            unsafe { libc::semctl(self.0.set, 0, libc::IPC_RMID) };
        }
    }

    #[test]
    fn the_state_of_a_semaphore_is_read() {
        let set = Set::new();
        assert_eq!(
            set.0.state().unwrap(),
            SemaphoreState { value: 0, changed_by: None, waiting: 0, waiting_for_zero: 0 }
        );
        set.add(2);
        let own = Some(std::process::id());
        let state = set.0.state().unwrap();
        assert_eq!((state.value, state.changed_by, set.0.key()), (2, own, None));
        set.add(-2);
        assert!(SemaphoreId { number: 1, ..set.0 }.state().is_err());

        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            let set = &set;
            scope.spawn(move || {
                let own = std::fs::read_link("/proc/thread-self").unwrap();
                let tid: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
                send.send(tid).unwrap();
                set.add(-1);
            });
            let tid = receive.recv().unwrap();
            let begun = Instant::now();
            while set.0.state().unwrap().waiting == 0 {
                assert!(begun.elapsed().as_secs() < 20);
                std::thread::sleep(Duration::from_millis(1));
            }
            let waits = SemaphoreWait::of(tid);
            set.add(1);
            let goal = SemaphoreGoal::TakeOne;
            assert_eq!(waits, Some(SemaphoreWait { semaphore: set.0, goal, undo: false }));
        });
    }

    #[test]
    fn a_child_shares_the_semaphores() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let shares = Process::open(child.id()).unwrap().shares_semaphores();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(shares);
    }
}
