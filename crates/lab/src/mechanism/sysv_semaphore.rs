//! System V semaphores: a kernel lock in the sense of *Locks aren't slow* (J. Preshing, 2011), with
//! a system call for every operation, contended or not.
//!
//! Semaphore sets outlive a killed process. Their keys therefore identify the owner, and each new
//! set first removes those left behind by dead processes of the same user.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

/// The upper seven bits of a key. The lower 22 are the process id, which Linux limits to 2²²; the
/// bits between number the sets of a process.
const KEY: i32 = 0x5A << 25;
const SETS: i32 = 8;
const PID_BITS: u32 = 22;
const PID: i32 = (1 << PID_BITS) - 1;
/// Bits common to all of our keys.
const OURS: i32 = !((SETS - 1) << PID_BITS | PID);

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "sysv-semaphore",
        Class::Sleep,
        "System V semaphores: every operation is a system call",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    remove_leftovers(IDLE_S);
    let (lead, follow) = Lane::pair(settings);
    let set = Arc::new(Set::new(2)?);
    Ok(Ends::two(
        SysV { to: lead.0, from: lead.1, set: Arc::clone(&set), posts: 0 },
        SysV { to: follow.0, from: follow.1, set, posts: 1 },
    ))
}

/// A set of semaphores, removed on drop.
struct Set(libc::c_int);

impl Set {
    /// A number of semaphores, each zero.
    fn new(semaphores: u16) -> Result<Self, Unavailable> {
        let mode = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        // There are at least as many numbers as cells in a group; one in use belongs to another
        // cell.
        for number in 0..SETS {
            let key = KEY | number << PID_BITS | (std::process::id() as i32 & PID);
            // SAFETY: passes plain numbers.
            let id = unsafe { libc::semget(key, libc::c_int::from(semaphores), mode) };
            if id >= 0 {
                return Ok(Set(id));
            }
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EEXIST) {
                break;
            }
        }
        Err(Unavailable::last("semget"))
    }

    /// Returns `true` on success. Retried if a signal handler interrupts it.
    #[inline(always)]
    fn operate(&self, semaphore: u16, by: i16) -> bool {
        let mut operation = libc::sembuf { sem_num: semaphore, sem_op: by, sem_flg: 0 };
        loop {
            // SAFETY: one operation, valid for the call.
            if unsafe { libc::semop(self.0, &mut operation, 1) } == 0 {
                return true;
            }
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return false;
            }
        }
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // SAFETY: passes plain numbers; the set is ours and no longer in use.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// A set used more recently than this, in seconds, may belong to a live process that we cannot see,
/// in another container that shares the semaphores.
const IDLE_S: i64 = 60;

/// Removes sets of this user's dead processes that were unused for `idle_s` seconds.
fn remove_leftovers(idle_s: i64) {
    let Ok(table) = std::fs::read_to_string("/proc/sysvipc/sem") else { return };
    // SAFETY: only reads a number of this process.
    let user = unsafe { libc::geteuid() };
    let now = (threadtoll_machine::unix_ns() / 1_000_000_000) as i64;
    for row in table.lines().skip(1) {
        let mut fields = row.split_ascii_whitespace().map(|field| field.parse::<i64>());
        let (Some(Ok(key)), Some(Ok(id)), _, _, Some(Ok(owner))) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // The groups and creators are followed by the times of the last operation and the last
        // change.
        let used = fields.skip(3).flatten().max().unwrap_or(i64::MAX);
        let key = key as i32;
        let pid = key & PID;
        if key & OURS != KEY
            || owner != i64::from(user)
            || std::path::Path::new(&format!("/proc/{pid}")).exists()
            || used > now - idle_s
        {
            continue;
        }
        // SAFETY: passes plain numbers; the kernel lets us remove only our own sets.
        unsafe { libc::semctl(id as libc::c_int, 0, libc::IPC_RMID) };
    }
}

struct SysV {
    to: Lane,
    from: Lane,
    set: Arc<Set>,
    /// Semaphore that this end posts; it waits on the other.
    posts: u16,
}

impl Exchange for SysV {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: called in turn; the operation below orders it before the other end's operation.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Release);
        self.set.operate(self.posts, 1);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if !self.set.operate(1 - self.posts, -1) {
            // The set was removed from outside; no message has number 0.
            return 0;
        }
        let seq = self.from.load(Ordering::Acquire);
        // SAFETY: the wait returned because of the post after the write; the reply comes later.
        unsafe { self.from.read(seq) }
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_machine::lock::machine_lock;
    use threadtoll_record::{Layout, Pause};

    use super::*;

    /// Key and id of every existing set.
    fn sets() -> Vec<(i32, i32)> {
        let table = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
        let number = |field: Option<&str>| field.and_then(|field| field.parse().ok());
        let row = |row: &str| {
            let mut fields = row.split_ascii_whitespace();
            Some((number(fields.next())?, number(fields.next())?))
        };
        table.lines().skip(1).filter_map(row).collect()
    }

    fn own() -> usize {
        let pid = std::process::id() as i32;
        sets().iter().filter(|(key, _)| key & OURS == KEY && key & PID == pid).count()
    }

    fn set_of(pid: i32, number: i32) -> Option<i32> {
        let key = KEY | number << PID_BITS | (pid & PID);
        // SAFETY: passes plain numbers.
        let id = unsafe { libc::semget(key, 1, libc::IPC_CREAT | 0o600) };
        (id >= 0).then_some(id)
    }

    fn make_one() -> Result<Ends, Unavailable> {
        make(&Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off })
    }

    #[test]
    fn nothing_is_left_when_both_ends_are_gone() {
        let _alone = machine_lock().unwrap();
        let made: Vec<_> = (0..SETS).map_while(|_| make_one().ok()).collect();
        if made.is_empty() {
            println!("skipped: no System V semaphores here");
            return;
        }
        assert_eq!(made.len(), SETS as usize, "as many as a group can have cells");
        assert_eq!(own(), SETS as usize);
        assert!(make_one().is_err(), "and no more");
        drop(made);
        assert_eq!(own(), 0);
    }

    #[test]
    fn sets_of_dead_processes_are_removed_and_those_of_living_ones_are_not() {
        let _alone = machine_lock().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = child.id() as i32;
        let (Some(leftover), Some(another), Some(living)) =
            (set_of(dead, 0), set_of(dead, 3), set_of(1, 0))
        else {
            println!("skipped: no System V semaphores here");
            return;
        };
        // SAFETY: passes plain numbers.
        let foreign = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        drop(make_one().unwrap());
        let left = || -> Vec<i32> { sets().into_iter().map(|(_, id)| id).collect() };
        assert!(
            left().contains(&leftover),
            "it was used a moment ago, maybe by somebody whom we cannot see"
        );
        remove_leftovers(-10);
        let left = left();
        assert!(
            !left.contains(&leftover) && !left.contains(&another),
            "what a dead process left is removed"
        );
        assert!(left.contains(&living), "a living process may still use its own");
        assert!(left.contains(&foreign), "other programs' are none of our business");
        for id in [living, foreign] {
            // SAFETY: passes plain numbers; both were created here.
            unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
        }
    }
}
