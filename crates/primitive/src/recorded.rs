//! Tests on evidence recorded from other runtimes, and on nonsense.

use proptest::prelude::*;

use super::evidence::{BYTES, BYTES_BEFORE};
use super::*;
use crate::futex::FutexWait;

const PRIVATE: u64 = 128;
const BITSET: u64 = 9;
const REALTIME: u64 = 256;

/// A wait, with the bytes around the word.
struct Recorded {
    tid: u32,
    address: u64,
    operation: u64,
    value: u64,
    timed: bool,
    words: [u32; BYTES / 4],
}

fn wait_of(recorded: &Recorded) -> FutexWait {
    let &Recorded { address, operation, value, timed, .. } = recorded;
    let arguments = [address, operation, value, u64::from(timed), 0, !0];
    FutexWait::of(libc::SYS_futex as u32, arguments).unwrap()
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn saw(evidence: &mut Evidence, recorded: &Recorded) {
    evidence.saw_wait(recorded.tid, Wait::Futex(wait_of(recorded)));
    let address = recorded.address - BYTES_BEFORE;
    evidence.saw_window(&Window { address, bytes: &bytes_of(&recorded.words) });
}

fn evidence(recorded: &[Recorded]) -> Evidence {
    let mut evidence = Evidence::new(recorded[0].address);
    for recorded in recorded {
        saw(&mut evidence, recorded);
    }
    evidence
}

fn caller(function: &str, module: &str) -> Caller {
    let function = (!function.is_empty()).then(|| function.to_owned());
    Caller { function, module: module.to_owned() }
}

fn context(go: bool, jvm: bool) -> Context<'static> {
    Context { is_thread: &|tid| tid == 4711, go, jvm }
}

fn seen(evidence: &Evidence) -> (&'static str, bool) {
    let identity = identify(evidence, &context(false, false));
    (identity.name(), identity.certain)
}

/// Words that are zero except for `fields`, given by their distance from the futex word.
fn words(fields: &[(i64, u32)]) -> [u32; BYTES / 4] {
    let mut words = [0; BYTES / 4];
    for &(offset, value) in fields {
        words[((offset + BYTES_BEFORE as i64) / 4) as usize] = value;
    }
    words
}

/// CPython 3.11.7 on glibc 2.36, with three threads that compute.
#[test]
fn the_global_interpreter_lock() {
    #[rustfmt::skip]
    let first = Recorded {
        tid: 1, address: 0x7f8e_5374_e6f0, operation: BITSET | PRIVATE, value: 0, timed: true,
        words: [
            0x0, 0x0, 0x1388, 0x0, 0x4790f9a0, 0x55ec, 0x1, 0x0, 0x237, 0x0, 0xe24, 0x0, 0xe16,
            0x0, 0x4, 0x0, 0xfffffffe, 0x0, 0xc, 0x12, 0x0, 0x0, 0x0, 0x0, 0x0, 0x2, 0x0, 0x0, 0x0,
            0x0, 0x0, 0x0, 0x3c, 0x0, 0x3a, 0x0,
        ],
    };
    #[rustfmt::skip]
    let second = Recorded {
        tid: 2, address: 0x7f8e_5374_e6f4, operation: BITSET | PRIVATE, value: 0, timed: true,
        words: [
            0x0, 0x1388, 0x0, 0x4790ef30, 0x55ec, 0x1, 0x0, 0x238, 0x0, 0xe29, 0x0, 0xe1d, 0x0, 0x0,
            0x4, 0x0, 0x0, 0x10, 0x12, 0x0, 0x0, 0x0, 0x0, 0x0, 0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0,
            0x3c, 0x0, 0x3a, 0x0, 0x0,
        ],
    };
    for recorded in [first, second] {
        let identity = identify(&evidence(&[recorded]), &context(false, false));
        assert_eq!(identity.name(), "CPython global interpreter lock");
        assert_eq!((identity.address, identity.role()), (0x7f8e_5374_e6a8, Role::Lock));
        let mut state = words(&[]);
        state[..6].copy_from_slice(&[0x1388, 0, 0x4790_ef30, 0x55ec, 1, 0]);
        let mut bytes = bytes_of(&state);
        let hold = |bytes: &[u8]| identity.hold(&Window { address: identity.address, bytes });
        assert_eq!(hold(&bytes), Hold::Held { owner: None });
        let record =
            |bytes: &[u8]| identity.holder_record(&Window { address: identity.address, bytes });
        assert_eq!(record(&bytes), Some(0x55ec_4790_ef30));
        bytes[16] = 0;
        assert_eq!((hold(&bytes), record(&bytes)), (Hold::Free, None));
        assert_eq!(identity.interpreter_lock(), Some("CPython's GIL"));
        let part = |offset| identity.part_at(identity.address + offset);
        assert_eq!(part(80).as_deref(), Some("mutex of CPython's GIL"));
        assert_eq!((part(0), part(208)), (None, None));
    }
}

/// musl 1.2.3: a normal mutex, and a recursive one.
#[test]
fn a_mutex_of_musl() {
    let recorded = |kind: u32, futex: u32| Recorded {
        tid: 1,
        address: 0x4c_6ff4,
        operation: PRIVATE,
        value: u64::from(futex),
        timed: false,
        words: words(&[(-4, kind), (0, futex), (4, 3)]),
    };
    let normal = recorded(0, 0x8000_0010);
    let owned = recorded(1, 0x8000_0000 | 4711);
    for (seen, owner) in [(normal, None), (owned, Some(4711))] {
        let bytes = bytes_of(&seen.words);
        let identity = identify(&evidence(&[seen]), &context(false, false));
        assert_eq!((identity.name(), identity.certain), ("musl mutex", true));
        assert_eq!(identity.address, 0x4c_6ff0);
        let window = Window { address: 0x4c_6ff4 - BYTES_BEFORE, bytes: &bytes };
        assert_eq!(identity.hold(&window), Hold::Held { owner });
    }
    // The TID of no thread, and more waiters than there are threads.
    assert_eq!(seen(&evidence(&[recorded(1, 0x8000_0000 | 99)])).0, "unknown");
    let mut crowd = recorded(0, 0x8000_0010);
    crowd.words = words(&[(0, 0x8000_0010), (4, u32::MAX)]);
    assert_eq!(seen(&evidence(&[crowd])).0, "unknown");
}

/// Memory as a list of words by address. Any other memory is unmapped.
fn read_from(words: &[(u64, u64)]) -> impl FnMut(u64, &mut [u8]) -> usize {
    move |address, bytes| {
        let mut length = 0;
        for chunk in bytes.chunks_mut(8) {
            let at = address + length as u64;
            let Some(&(_, word)) = words.iter().find(|&&(place, _)| place == at) else { break };
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
            length += chunk.len();
        }
        length
    }
}

/// The thread state contains the TID in CPython 3.11, but only glibc's descriptor in 3.9.
#[test]
fn the_holder_of_the_global_interpreter_lock() {
    const STATE: u64 = 0x5555_0000_1000;
    const DESCRIPTOR: u64 = 0x7f00_0000_2000;
    let declared = Identity { primitive: cpython::FAMILY.primitives[0], address: 0, certain: true };
    let thread_of = |memory: &[(u64, u64)]| {
        declared.thread_of(STATE, &mut read_from(memory), &|tid| tid == 4711)
    };
    let state = |last: u64| {
        let words = [0, STATE + 0x800, 4711, 3, DESCRIPTOR, last];
        words.into_iter().enumerate().map(|(nth, word)| (STATE + 8 * nth as u64, word))
    };
    let since_3_11: Vec<_> = state(4711).collect();
    assert_eq!(thread_of(&since_3_11), Some(4711));
    let before = [(STATE, 1), (STATE + 8, STATE), (STATE + 16, DESCRIPTOR)];
    let descriptor = |own: u64| {
        let word = move |nth: u64| match nth {
            2 => own,
            90 => 4711,
            _ => 0,
        };
        (0..91).map(move |nth| (DESCRIPTOR + 8 * nth, word(nth)))
    };
    let memory: Vec<_> = before.into_iter().chain(descriptor(DESCRIPTOR)).collect();
    let found = if cfg!(target_arch = "x86_64") { Some(4711) } else { None };
    assert_eq!(thread_of(&memory), found);
    let no_descriptor: Vec<_> = before.into_iter().chain(descriptor(0)).collect();
    assert_eq!(thread_of(&no_descriptor), None);
    assert_eq!(thread_of(&[]), None);
}

/// `threading.Lock`, which is a semaphore.
#[test]
fn a_lock_of_python() {
    let recorded = Recorded {
        tid: 1,
        address: 0x55ec_478b_2fc0,
        operation: BITSET | PRIVATE | REALTIME,
        value: 0,
        timed: false,
        words: words(&[(-16, 0x5369_5a20), (-12, 0x7f8e), (-8, 0x31), (4, 2), (16, 0x5369_7440)]),
    };
    assert_eq!(seen(&evidence(&[recorded])), ("glibc semaphore", true));
}

/// OpenJDK 17: a thread that waits for a monitor.
#[test]
fn threads_of_java_park() {
    let recorded = Recorded {
        tid: 1,
        address: 0x7fe1_1411_8c78,
        operation: BITSET | PRIVATE | REALTIME,
        value: 0,
        timed: false,
        words: words(&[(-68, 1), (-64, 0x200), (-40, 2), (-24, 2), (-4, 0xa)]),
    };
    let mut evidence = evidence(&[recorded]);
    assert_eq!(seen(&evidence), ("glibc condition variable", true));
    let identity = identify(&evidence, &context(false, true));
    assert_eq!((identity.name(), identity.certain), ("JVM parking", false));
    tell(
        &mut evidence,
        vec![
            caller("", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            caller("pthread_cond_wait", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            caller("", "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"),
        ],
    );
    let identity = identify(&evidence, &context(false, true));
    assert_eq!((identity.name(), identity.role()), ("JVM parking", Role::Parked));
    assert_eq!((identity.address, identity.certain), (0x7fe1_1411_8c50, true));
    let parked_for = |functions: &[&str]| {
        let callers: Vec<Caller> =
            functions.iter().map(|function| caller(function, "libjvm.so")).collect();
        identity.parked_for(&callers)
    };
    assert_eq!(parked_for(&[]), ParkedFor::Untold);
    let park = "os::PlatformEvent::park()";
    let monitor = ["ObjectMonitor::EnterI(JavaThread*)", "ObjectMonitor::enter(JavaThread*)"];
    assert_eq!(parked_for(&[park, monitor[0], monitor[1]]), ParkedFor::Lock);
    assert_eq!(parked_for(&["Parker::park(bool, long)", "Unsafe_Park"]), ParkedFor::Untold);
    let wait = "ObjectMonitor::wait(long, bool, JavaThread*)";
    assert_eq!(parked_for(&[park, wait]), ParkedFor::Idle);
    assert_eq!(parked_for(&[park, "JavaThread::sleep(long)", "JVM_Sleep"]), ParkedFor::Sleep);
    assert_eq!(parked_for(&[park, monitor[0], wait]), ParkedFor::Lock);
}

/// Go 1.26: a thread without work.
#[test]
fn threads_of_go_park() {
    let recorded = Recorded {
        tid: 1,
        address: 0x22b0_93ff_a960,
        operation: PRIVATE,
        value: 0,
        timed: false,
        words: words(&[(8, 0x93ff_a008), (12, 0x22b0), (40, 0x9402_0f00), (44, 0x22b0)]),
    };
    let evidence = evidence(&[recorded]);
    let identity = identify(&evidence, &context(true, false));
    assert_eq!((identity.name(), identity.parked_for(&[])), ("Go parking", ParkedFor::Untold));
    assert_eq!(seen(&evidence), ("unknown", false));
}

/// libstdc++ 12.
#[test]
fn waits_of_cpp() {
    let wait = |value: u32, fields: &[(i64, u32)]| Recorded {
        tid: 1,
        address: 0x55c2_22c2_e540,
        operation: 0,
        value: u64::from(value),
        timed: false,
        words: words(fields),
    };
    let future = wait(0x8000_0000, &[(0, 0x8000_0000), (4, 1), (24, 0x21)]);
    assert_eq!(seen(&evidence(&[future])).0, "C++ future");
    let guard = wait(0x1_0100, &[(0, 0x1_0100), (8, 0x100)]);
    assert_eq!(seen(&evidence(&[guard])).0, "C++ static guard");
    let mut semaphore = evidence(&[wait(0, &[(-36, 5)])]);
    assert_eq!(seen(&semaphore).0, "unknown");
    tell(
        &mut semaphore,
        vec![
            caller("syscall", "/lib/x86_64-linux-gnu/libc.so.6"),
            caller("std::counting_semaphore<10l>::acquire()", "/srv/server"),
        ],
    );
    assert_eq!(seen(&semaphore), ("C++ semaphore", true));
    // A latch for which two threads have yet to arrive.
    let mut latch = evidence(&[wait(2, &[(0, 2)])]);
    latch.saw_value(1);
    latch.saw_value(0);
    assert_eq!(seen(&latch).0, "unknown");
}

/// Made up from the header of the new layout, because no machine with it was at hand.
#[test]
fn a_condition_variable_of_a_later_glibc() {
    let target = 0x5555_0000_1000;
    for group in [0, 1] {
        let address = target + 32 + 4 * group;
        let at = |offset: i64, value| (offset - 32 - 4 * group as i64, value);
        let recorded = Recorded {
            tid: 1,
            address,
            operation: BITSET | PRIVATE | REALTIME,
            value: 6,
            timed: false,
            words: words(&[
                at(0, 0x46_0003),
                at(8, 0x23_0000),
                at(28, 0x10),
                at(32 + 4 * group as i64, 6),
            ]),
        };
        let identity = identify(&evidence(&[recorded]), &context(false, false));
        assert_eq!((identity.kind(), identity.address), (Kind::Condvar, target), "group {group}");
    }
}

/// glibc 2.36: a signalling thread waits until the threads of the previous group have left.
#[test]
fn a_signal_that_waits() {
    let recorded = Recorded {
        tid: 1,
        address: 0x5617_cd93_2210,
        operation: PRIVATE,
        value: 3,
        timed: false,
        words: words(&[(-16, 0x1c40), (-8, 0x1c3d), (0, 3), (16, 4), (20, 0x10)]),
    };
    let identity = identify(&evidence(&[recorded]), &context(false, false));
    assert_eq!((identity.kind(), identity.address), (Kind::Condvar, 0x5617_cd93_2200));
}

/// A mutex after counters that look like the fields of a condition variable.
#[test]
fn what_threads_wait_with_tells_a_mutex_from_a_condition_variable() {
    let recorded = |value| Recorded {
        tid: 1,
        address: 0x55e9_326e_bfe0,
        operation: BITSET | PRIVATE,
        value,
        timed: false,
        words: words(&[(-40, 0x1c40), (-32, 0x1c3d), (-4, 0x10), (0, value as u32)]),
    };
    assert!(!seen(&evidence(&[recorded(2)])).1);
    assert_eq!(seen(&evidence(&[recorded(0)])), ("glibc condition variable", true));
}

#[test]
fn threads_are_joined_one_after_the_other() {
    let recorded = |value| Recorded {
        tid: 1,
        address: 0x7f51_5ddc_6990,
        operation: BITSET | REALTIME,
        value: u64::from(value),
        timed: false,
        words: words(&[(0, value)]),
    };
    let mut joins = evidence(&[recorded(4000), recorded(4100)]);
    assert_eq!(seen(&joins).0, "unknown");
    saw(&mut joins, &recorded(4711));
    assert_eq!(seen(&joins), ("pthread_join", true));
}

/// In a `FILE` of glibc 2.36, the address of the owner's descriptor stands where a mutex has a TID.
#[test]
fn a_lock_of_the_c_library_itself() {
    let recorded = |tid, value| Recorded {
        tid,
        address: 0x7fcc_0350_3a00,
        operation: PRIVATE,
        value: 2,
        timed: false,
        words: words(&[(0, value), (4, 1), (8, 0x0332_b740), (12, 0x7fcc)]),
    };
    let mut evidence = evidence(&[recorded(1, 2)]);
    assert_eq!(seen(&evidence), ("unknown", false));
    evidence.saw_value(0);
    evidence.saw_value(2);
    // So far, this may be the word on which a thread waits for work.
    assert_eq!(seen(&evidence), ("unknown", false));
    saw(&mut evidence, &recorded(2, 2));
    saw(&mut evidence, &recorded(1, 2));
    assert_eq!(seen(&evidence), ("futex lock", false));
    // If all threads wait at the same time, they wait for an event.
    let mut event = evidence.clone();
    event.saw_all_wait();
    assert_eq!(seen(&event), ("unknown", false));
    let again = || Wait::Futex(wait_of(&recorded(1, 2)));
    assert!(event.saw_wait(1, again()) && !event.saw_wait(1, again()));
    tell(&mut evidence, vec![caller("__lll_lock_wait_private", "/lib/libc.so.6")]);
    assert_eq!(seen(&evidence), ("futex lock", true));
}

#[test]
fn a_mutex_has_an_owner() {
    let recorded = |owner, kind| Recorded {
        tid: 1,
        address: 0x5555_0000_1000,
        operation: PRIVATE,
        value: 2,
        timed: false,
        words: words(&[(0, 2), (8, owner), (12, 1), (16, kind)]),
    };
    assert_eq!(seen(&evidence(&[recorded(4711, 0)])), ("glibc mutex", true));
    assert_eq!(seen(&evidence(&[recorded(4712, 0)])), ("glibc mutex", false));
    assert_eq!(seen(&evidence(&[recorded(0x0332_b740, 0)])), ("unknown", false));
    assert_eq!(seen(&evidence(&[recorded(4711, 0x5555)])), ("unknown", false));
    // Read just before the owner was written.
    let mut caught = evidence(&[recorded(0, 0)]);
    assert_eq!(seen(&caught), ("unknown", false));
    saw(&mut caught, &recorded(4711, 0));
    assert_eq!(seen(&caught), ("glibc mutex", true));
}

/// glibc 2.36: the lock word also contains a priority ceiling of 5.
#[test]
fn a_mutex_with_a_ceiling() {
    let recorded = Recorded {
        tid: 1,
        address: 0x557d_8406_f0a0,
        operation: PRIVATE,
        value: 0x28_0002,
        timed: false,
        words: words(&[(0, 0x28_0002), (4, 1), (8, 4711), (12, 1), (16, 0x40)]),
    };
    let identity = identify(&evidence(&[recorded]), &context(false, false));
    assert_eq!((identity.name(), identity.certain), ("glibc mutex", true));
    let hold = |lock| {
        let bytes = bytes_of(&[lock, 1, 4711, 1, 0x40]);
        identity.hold(&Window { address: identity.address, bytes: &bytes })
    };
    assert_eq!(hold(0x28_0001), Hold::Held { owner: Some(4711) });
    assert_eq!(hold(0x28_0000), Hold::Free);
}

/// Rust 1.95: a lock with waiting readers and writers looks like the word of a parked thread, until
/// it is held without waiters.
#[test]
fn a_rwlock_is_not_taken_for_a_parked_thread_for_good() {
    let sleeper = |tid, value: u32| Recorded {
        tid,
        address: 0x55af_160f_bae0,
        operation: BITSET | PRIVATE,
        value: value.into(),
        timed: false,
        words: words(&[(0, value)]),
    };
    let mut evidence = evidence(&[sleeper(7, u32::MAX)]);
    for value in [0, 1, 0, u32::MAX, 0] {
        evidence.saw_value(value);
    }
    assert!(!seen(&evidence).1, "{:?}", seen(&evidence));
    let mut parked = evidence.clone();
    evidence.saw_value((1 << 30) - 1);
    saw(&mut evidence, &sleeper(8, u32::MAX >> 1));
    assert_eq!(seen(&evidence), ("Rust rwlock", true));
    for _ in 0..100 {
        parked.saw_value(0);
    }
    assert_eq!(seen(&parked), ("Rust thread::park", true));
}

/// A Rust thread begins in `FnOnce::call_once`, which is no initialisation.
#[test]
fn threads_of_parking_lot_park() {
    let parked = |lock: u32, value| Recorded {
        tid: 7,
        address: 0x7f5d_3f49_6670,
        operation: 128,
        value: 1,
        timed: false,
        words: words(&[(-32, lock), (-28, 0x5602), (-24, 0), (-20, 0), (0, value)]),
    };
    let mut evidence = evidence(&[parked(0xe25d_2e60, 1)]);
    let thread = |slow| {
        [slow, "causes::Table::rebuild", "core::ops::function::FnOnce::call_once"]
            .map(|function| caller(function, "causes"))
            .to_vec()
    };
    tell(&mut evidence, thread("<parking_lot::raw_mutex::RawMutex>::lock_slow"));
    assert_eq!(seen(&evidence), ("parking_lot parker", true));
    tell(&mut evidence, thread("causes::Table::lock"));
    assert_eq!(seen(&evidence), ("parking_lot parker", false));
}

#[test]
fn a_rust_mutex_is_waited_for_by_turns() {
    let wait = |tid, value| Recorded {
        tid,
        address: 0x5555_0000_1000,
        operation: BITSET | PRIVATE,
        value: 2,
        timed: false,
        words: words(&[(0, value)]),
    };
    let mut evidence = evidence(&[wait(1, 2), wait(1, 0), wait(1, 2)]);
    assert_eq!(seen(&evidence), ("Rust mutex", false));
    saw(&mut evidence, &wait(2, 2));
    assert_eq!(seen(&evidence), ("Rust mutex", false));
    saw(&mut evidence, &wait(1, 2));
    assert_eq!(seen(&evidence), ("Rust mutex", true));
}

/// Adds the stack twice, because a single stack proves nothing.
fn tell(evidence: &mut Evidence, callers: Vec<Caller>) {
    evidence.saw_callers(callers.clone());
    evidence.saw_callers(callers);
}

#[test]
fn a_lock_that_sleeps_through_the_function_syscall_is_not_the_c_librarys() {
    let wait = |tid| Recorded {
        tid,
        address: 0x5555_0000_1000,
        operation: PRIVATE,
        value: 2,
        timed: false,
        words: words(&[(0, 2), (4, 0), (8, 4711), (12, 1), (16, 0)]),
    };
    let mut evidence = evidence(&[wait(1), wait(2), wait(1)]);
    assert_eq!(seen(&evidence).0, "glibc mutex");
    tell(&mut evidence, vec![caller("syscall", "libc.so.6"), caller("take_seat", "server")]);
    assert_eq!(seen(&evidence).0, "unknown");
}

/// A thread asleep on a futex of Rust's standard library.
fn asleep_in_std() -> Evidence {
    evidence(&[Recorded {
        tid: 1,
        address: 0x5555_0000_1000,
        operation: BITSET | PRIVATE,
        value: 2,
        timed: false,
        words: words(&[(0, 2)]),
    }])
}

#[test]
fn one_stack_proves_nothing() {
    let mut evidence = asleep_in_std();
    let mutex = || vec![caller("std::sys::sync::mutex::futex::Mutex::lock_contended", "server")];
    let condvar = || vec![caller("std::sys::sync::condvar::futex::Condvar::wait", "server")];
    // This stack was read after the thread had begun another wait.
    evidence.saw_callers(condvar());
    assert_eq!(seen(&evidence), ("Rust condition variable", false));
    evidence.saw_callers(mutex());
    assert_eq!(seen(&evidence), ("Rust mutex", false));
    evidence.saw_callers(mutex());
    assert_eq!(seen(&evidence), ("Rust mutex", true));
}

#[test]
fn the_innermost_function_names_the_primitive() {
    let mut evidence = asleep_in_std();
    let mutex = caller("std::sys::sync::mutex::futex::Mutex::lock_contended", "/srv/server");
    let condvar = caller("std::sys::sync::condvar::futex::Condvar::wait", "/srv/server");
    tell(&mut evidence, vec![mutex, condvar.clone()]);
    assert_eq!(seen(&evidence), ("Rust mutex", true));
    tell(&mut evidence, vec![condvar]);
    assert_eq!(seen(&evidence), ("Rust condition variable", true));
}

/// libstdc++ 12: threads that wait for a `std::atomic<bool>`.
#[test]
fn a_word_that_atomics_share_names_none_of_them() {
    let wait = |tid, address, count, value| Recorded {
        tid,
        address,
        operation: 0,
        value,
        timed: false,
        words: words(&[(-64, count), (0, value as u32)]),
    };
    let pool = 0x55ec_478b_2fc0;
    let waits = [wait(1, pool, 1, 2), wait(2, pool, 2, 2), wait(1, pool, 2, 3)];
    let identity = identify(&evidence(&waits), &context(false, false));
    assert!(identity.is_shared_word(), "{identity:?}");
    assert_eq!(identity.role(), Role::Unknown);
    let not_of_a_pool = [wait(1, pool, 0, 2), wait(2, pool + 4, 1, 2)];
    for wait in not_of_a_pool {
        let identity = identify(&evidence(&[wait]), &context(false, false));
        assert!(!identity.is_shared_word(), "{identity:?}");
    }
}

/// Rust 1.95: `park` is inlined into `lock_slow`, and `call_once` began the thread.
#[test]
fn the_begin_of_a_rust_thread_is_no_initialisation() {
    let mut words = [0xeeee_eeee; BYTES / 4];
    words[BYTES_BEFORE as usize / 4] = 1;
    let recorded = Recorded {
        tid: 1,
        address: 0x7f8e_5374_e6f0,
        operation: PRIVATE,
        value: 1,
        timed: false,
        words,
    };
    let mut evidence = evidence(&[recorded]);
    let begin = caller("core::ops::function::FnOnce::call_once{{vtable.shim}}", "shares");
    tell(&mut evidence, vec![caller("syscall", "libc.so.6"), begin.clone()]);
    assert_eq!(seen(&evidence).0, "unknown");
    let lock = caller("parking_lot::raw_mutex::RawMutex::lock_slow", "shares");
    tell(&mut evidence, vec![caller("syscall", "libc.so.6"), lock, begin]);
    assert_eq!(seen(&evidence).0, "parking_lot parker");
}

fn word() -> impl Strategy<Value = u32> {
    prop_oneof![0..8_u32, any::<u32>(), Just(4711), Just(u32::MAX)]
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..256_u64, u64::MAX - 256..=u64::MAX]
}

proptest! {
    #[test]
    fn nonsense_is_survived(
        address in address(),
        waits in prop::collection::vec((0..3_u32, 0..14_u64, word(), any::<bool>()), 1..20),
        words in prop::collection::vec(word(), BYTES / 4),
        cut in 0..=BYTES,
        token in prop_oneof![0..32_u64, any::<u64>()],
        flags in 0..4_u64,
        parked in any::<bool>(),
    ) {
        let bytes = bytes_of(&words);
        let mut evidence = Evidence::new(address);
        for &(tid, operation, value, timed) in &waits {
            let operation = operation | flags << 7;
            let arguments = [address, operation, u64::from(value), u64::from(timed), 0, 0];
            if parked {
                evidence.saw_wait(tid, Wait::Parked { token });
            } else if let Some(wait) = FutexWait::of(libc::SYS_futex as u32, arguments) {
                evidence.saw_wait(tid, Wait::Futex(wait));
            }
            evidence.saw_value(value);
            let (start, length) = evidence.window();
            for (start, length) in [(start, length), (start, cut), (address, cut)] {
                evidence.saw_window(&Window { address: start, bytes: &bytes[..length] });
            }
        }
        let identity = identify(&evidence, &context(flags & 1 == 0, false));
        let of = |primitive| Identity { primitive, address, certain: true };
        for identity in primitives().map(of).chain([identity]) {
            let (start, length) = identity.window();
            prop_assert!(length <= BYTES);
            let bytes = &bytes[..length.min(cut)];
            for address in [start, address] {
                let window = Window { address, bytes };
                identity.hold(&window);
                identity.contradicted(&window);
                identity.parked_on(&window);
            }
            if let Some(wait) = evidence.futex_waits().and_then(|waits| waits.first().copied()) {
                identity.access(&Wait::Futex(wait));
            }
        }
    }
}

#[test]
fn openmp_s_locks_and_barriers_are_told_apart_by_their_values() {
    let library = || vec![caller("", "/usr/lib/libgomp.so.1"), caller("main._omp_fn.0", "prog")];
    let asleep = |value: u32| {
        evidence(&[Recorded {
            tid: 1,
            address: 0x5555_0000_1000,
            operation: PRIVATE,
            value: u64::from(value),
            timed: false,
            words: words(&[(0, value)]),
        }])
    };
    let in_library = |value| {
        let mut evidence = asleep(value);
        tell(&mut evidence, library());
        seen(&evidence)
    };
    assert_eq!(in_library(u32::MAX), ("libgomp mutex", true));
    assert_eq!(in_library(8 * 7 + 1), ("libgomp barrier", true));
    // A semaphore.
    assert_eq!(in_library(1 << 31), ("unknown", false));
    let mut elsewhere = asleep(u32::MAX);
    tell(&mut elsewhere, vec![caller("syscall", "libc.so.6"), caller("work", "prog")]);
    assert_eq!(seen(&elsewhere), ("unknown", false));
}

#[test]
fn a_wait_for_a_condition_of_abseil_s_mutex_is_none_for_the_mutex() {
    let parked = |function: &str| {
        let mut evidence = asleep_in_std();
        tell(&mut evidence, vec![caller("AbslInternalPerThreadSemWait_lts", "prog")]);
        let identity = identify(&evidence, &context(false, false));
        let wait = caller("AbslInternalPerThreadSemWait_lts", "prog");
        identity.parked_for(&[wait, caller(function, "prog")])
    };
    assert_eq!(parked("absl::lts::Mutex::LockSlow(absl::lts::MuHow)"), ParkedFor::Lock);
    assert_eq!(parked("absl::lts::Mutex::AwaitCommon(absl::lts::Condition)"), ParkedFor::Idle);
    assert_eq!(parked("absl::lts::Notification::WaitForNotification()"), ParkedFor::Idle);
}
