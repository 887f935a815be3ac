//! Tests on live wait targets of this process: threads block, and are examined as a profiler does.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use threadtoll_stacks::process::Activity;

use super::*;
use crate::futex::FutexWait;

const PATIENCE: Duration = Duration::from_secs(60);

struct Watch {
    memory: File,
    evidence: HashMap<u64, Evidence>,
}

impl Watch {
    fn new() -> Watch {
        let memory = File::open("/proc/self/mem").unwrap();
        Watch { memory, evidence: HashMap::new() }
    }

    fn read(&self, (address, length): (u64, usize)) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let count = self.memory.read_at(&mut bytes, address).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    fn evidence(&mut self, address: u64) -> &mut Evidence {
        self.evidence.entry(address).or_insert_with(|| Evidence::new(address))
    }

    fn saw(&mut self, tid: u32, address: u64, wait: Wait) -> Identity {
        let (mut start, length) = self.evidence(address).window();
        let mut bytes = self.read((start, length));
        if bytes.is_empty() {
            // The page before the word is not mapped.
            let before = (address - start) as usize;
            start = address;
            bytes = self.read((address, length - before));
        }
        let evidence = self.evidence(address);
        evidence.saw_wait(tid, wait);
        evidence.saw_window(&Window { address: start, bytes: &bytes });
        let is_thread = |tid| fs::exists(format!("/proc/self/task/{tid}")).unwrap();
        identify(evidence, &Context { is_thread: &is_thread, go: false, jvm: false })
    }

    fn sample(&mut self, tid: u32) -> Option<(FutexWait, Identity)> {
        let line = fs::read(format!("/proc/self/task/{tid}/syscall")).ok()?;
        let Some(Activity::Asleep(call)) = Activity::parse(&line) else { return None };
        let wait = FutexWait::of(call.number, call.arguments)?;
        Some((wait, self.saw(tid, wait.address, Wait::Futex(wait))))
    }

    /// Samples a thread until it stays asleep in a futex.
    fn asleep(&mut self, tid: u32) -> (FutexWait, Identity) {
        let begin = Instant::now();
        let mut before = None;
        let mut samples = 0;
        while begin.elapsed() < PATIENCE {
            let seen = self.sample(tid);
            samples = if seen.is_some() && seen == before { samples + 1 } else { 0 };
            if samples == 20 {
                return seen.unwrap();
            }
            before = seen;
            thread::sleep(Duration::from_millis(1));
        }
        panic!("thread {tid} does not sleep in a futex");
    }

    fn hold(&self, identity: &Identity) -> Hold {
        let (address, length) = identity.window();
        let bytes = self.read((address, length));
        let window = Window { address, bytes: &bytes };
        assert!(!identity.contradicted(&window), "{identity:?}");
        identity.hold(&window)
    }

    fn parked_on(&self, identity: &Identity) -> Option<Parked> {
        let (address, length) = identity.window();
        identity.parked_on(&Window { address, bytes: &self.read((address, length)) })
    }
}

fn gettid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Starts a thread and returns its TID, too.
fn start(work: impl FnOnce() + Send + 'static) -> (u32, JoinHandle<()>) {
    let tid = Arc::new(AtomicU32::new(0));
    let told = Arc::clone(&tid);
    let thread = thread::spawn(move || {
        told.store(gettid(), Ordering::Relaxed);
        work();
    });
    while tid.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    (tid.load(Ordering::Relaxed), thread)
}

fn address_of<T>(target: &T) -> u64 {
    ptr::from_ref(target).addr() as u64
}

fn mine() -> Hold {
    Hold::Held { owner: Some(gettid()) }
}

/// An object of the C library.
struct C<T>(UnsafeCell<T>);

// SAFETY: the C library's objects are made to be shared.
unsafe impl<T> Sync for C<T> {}
// SAFETY: the C library's objects are not bound to a thread.
unsafe impl<T> Send for C<T> {}

impl<T> C<T> {
    fn leak(target: T) -> &'static C<T> {
        Box::leak(Box::new(C(UnsafeCell::new(target))))
    }
}

/// Only samples of running threads show that one spins, so the test says which threads do.
#[cfg(target_env = "gnu")]
#[test]
fn the_spinlock() {
    let lock = C::leak(0);
    // SAFETY: nobody uses the lock yet.
    assert_eq!(unsafe { libc::pthread_spin_init(lock.0.get(), 0) }, 0);
    let take = || {
        // SAFETY: the lock is initialised and lives for ever.
        assert_eq!(unsafe { libc::pthread_spin_lock(lock.0.get()) }, 0);
    };
    let release = || {
        // SAFETY: this thread holds the lock.
        assert_eq!(unsafe { libc::pthread_spin_unlock(lock.0.get()) }, 0);
    };
    take();
    let waiters = [(); 2].map(|()| {
        thread::spawn(move || {
            take();
            release();
        })
    });
    let (mut watch, address, begin) = (Watch::new(), lock.0.get() as u64, Instant::now());
    let counts = cfg!(target_arch = "x86_64");
    let identity = loop {
        let identity = watch.saw(2, address, Wait::Spinning);
        let bytes = watch.read((address, 4));
        let waiting = identity.waiting(&Window { address, bytes: &bytes });
        if waiting == counts.then_some(2) {
            break identity;
        }
        assert!(begin.elapsed() < PATIENCE, "{identity:?} {bytes:?}");
        thread::yield_now();
    };
    assert_eq!((identity.name(), identity.address), ("glibc spinlock", address));
    assert_eq!(watch.hold(&identity), Hold::Held { owner: None });
    release();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(watch.hold(&identity), Hold::Free);
}

fn mutex_of(
    kind: i32,
    set: impl FnOnce(*mut libc::pthread_mutexattr_t),
) -> &'static C<libc::pthread_mutex_t> {
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: this initialises the attributes before their first use.
    unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) };
    // SAFETY: the attributes are initialised.
    unsafe { libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), kind) };
    set(attributes.as_mut_ptr());
    let mutex = C::leak(libc::PTHREAD_MUTEX_INITIALIZER);
    // SAFETY: nobody uses the mutex yet.
    assert_eq!(unsafe { libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr()) }, 0);
    mutex
}

fn check_mutex(mutex: &'static C<libc::pthread_mutex_t>, description: &str) {
    let mut watch = Watch::new();
    let lock = || {
        // SAFETY: the mutex is initialised and lives for ever.
        assert_eq!(unsafe { libc::pthread_mutex_lock(mutex.0.get()) }, 0);
    };
    let unlock = || {
        // SAFETY: this thread holds the mutex.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(mutex.0.get()) }, 0);
    };
    lock();
    let (tid, thread) = start(move || {
        lock();
        unlock();
    });
    let (_, identity) = watch.asleep(tid);
    assert_eq!(identity.name(), "glibc mutex", "{description}");
    assert_eq!(identity.address, address_of(mutex), "{description}");
    assert!(identity.certain, "{description}");
    assert_eq!(watch.hold(&identity), mine(), "{description}");
    unlock();
    thread.join().unwrap();
    assert_eq!(watch.hold(&identity), Hold::Free, "{description}");
}

#[test]
fn mutexes_of_every_type() {
    let types = [
        libc::PTHREAD_MUTEX_NORMAL,
        libc::PTHREAD_MUTEX_RECURSIVE,
        libc::PTHREAD_MUTEX_ERRORCHECK,
        3, // PTHREAD_MUTEX_ADAPTIVE_NP
    ];
    for kind in types {
        check_mutex(mutex_of(kind, |_| ()), &format!("type {kind}"));
    }
    let shared = mutex_of(0, |attributes| {
        // SAFETY: the attributes are initialised.
        unsafe { libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED) };
    });
    check_mutex(shared, "process-shared");
    let robust = mutex_of(0, |attributes| {
        // SAFETY: the attributes are initialised.
        unsafe { libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST) };
    });
    check_mutex(robust, "robust");
    let inheriting = mutex_of(0, |attributes| {
        // SAFETY: the attributes are initialised.
        unsafe { libc::pthread_mutexattr_setprotocol(attributes, libc::PTHREAD_PRIO_INHERIT) };
    });
    check_mutex(inheriting, "priority-inheriting");
}

/// Maps two pages, of which only the second is accessible.
fn page_after_a_gap() -> *mut libc::c_void {
    let size = rustix::param::page_size();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping touches no other memory.
    let gap = unsafe { libc::mmap(ptr::null_mut(), 2 * size, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(gap, libc::MAP_FAILED);
    let page = gap.wrapping_byte_add(size);
    // SAFETY: the page belongs to the new mapping.
    let done = unsafe { libc::mprotect(page, size, libc::PROT_READ | libc::PROT_WRITE) };
    assert_eq!(done, 0);
    page
}

#[test]
fn a_mutex_at_the_beginning_of_a_mapping() {
    let page = page_after_a_gap().cast::<C<libc::pthread_mutex_t>>();
    // SAFETY: the page is aligned, writable and never unmapped, and zeros are an initialised mutex.
    let mutex: &'static C<libc::pthread_mutex_t> = unsafe { &*page };
    check_mutex(mutex, "at the beginning of a mapping");
}

#[test]
fn a_timed_wait_for_a_mutex() {
    let mutex = C::leak(libc::PTHREAD_MUTEX_INITIALIZER);
    // SAFETY: the mutex is initialised and lives for ever.
    unsafe { libc::pthread_mutex_lock(mutex.0.get()) };
    let (tid, thread) = start(|| {
        let late = libc::timespec { tv_sec: libc::time_t::from(i32::MAX), tv_nsec: 0 };
        // SAFETY: the mutex is initialised and lives for ever.
        assert_eq!(unsafe { libc::pthread_mutex_timedlock(mutex.0.get(), &late) }, 0);
    });
    let mut watch = Watch::new();
    let (wait, identity) = watch.asleep(tid);
    assert!(wait.timed);
    assert_eq!((identity.name(), identity.certain), ("glibc mutex", true));
    assert_eq!(watch.hold(&identity), mine());
    // SAFETY: this thread holds the mutex.
    unsafe { libc::pthread_mutex_unlock(mutex.0.get()) };
    thread.join().unwrap();
}

#[test]
fn rwlocks_of_the_c_library() {
    let lock = C::leak(libc::PTHREAD_RWLOCK_INITIALIZER);
    let read = || {
        // SAFETY: the lock is initialised and lives for ever.
        assert_eq!(unsafe { libc::pthread_rwlock_rdlock(lock.0.get()) }, 0);
    };
    let write = || {
        // SAFETY: the lock is initialised and lives for ever.
        assert_eq!(unsafe { libc::pthread_rwlock_wrlock(lock.0.get()) }, 0);
    };
    let unlock = || {
        // SAFETY: this thread holds the lock.
        assert_eq!(unsafe { libc::pthread_rwlock_unlock(lock.0.get()) }, 0);
    };
    let reader = move || {
        read();
        unlock();
    };
    let writer = move || {
        write();
        unlock();
    };
    let mut watch = Watch::new();
    let mut check = |tid, access, hold| {
        let (wait, identity) = watch.asleep(tid);
        assert_eq!((identity.name(), identity.certain), ("glibc rwlock", true), "{wait:?}");
        assert_eq!(identity.address, address_of(lock), "{wait:?}");
        assert_eq!(identity.access(&Wait::Futex(wait)), access, "{wait:?}");
        assert_eq!(watch.hold(&identity), hold, "{wait:?}");
        identity
    };
    write();
    let waiting = [start(reader), start(writer), start(writer)];
    let accesses = [Access::Shared, Access::Exclusive, Access::Exclusive];
    for ((tid, _), access) in waiting.iter().zip(accesses) {
        check(*tid, access, mine());
    }
    unlock();
    for (_, thread) in waiting {
        thread.join().unwrap();
    }

    read();
    read();
    let waiting = [start(writer), start(writer)];
    for (tid, _) in &waiting {
        check(*tid, Access::Exclusive, Hold::Readers(2));
    }
    unlock();
    let identity = check(waiting[0].0, Access::Exclusive, Hold::Readers(1));
    unlock();
    for (_, thread) in waiting {
        thread.join().unwrap();
    }
    assert_eq!(watch.hold(&identity), Hold::Free);
}

#[test]
fn readers_that_let_writers_pass() {
    // PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, in the field that the initialiser also sets.
    let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
    // SAFETY: the flags are an `int` at this offset of the lock, on every 64-bit architecture.
    unsafe { ptr::from_mut(&mut lock).cast::<u32>().wrapping_add(12).write(2) };
    let lock = C::leak(lock);
    let mut watch = Watch::new();
    let unlock = || {
        // SAFETY: this thread holds the lock.
        unsafe { libc::pthread_rwlock_unlock(lock.0.get()) };
    };
    // SAFETY: the lock is initialised and lives for ever.
    unsafe { libc::pthread_rwlock_rdlock(lock.0.get()) };
    let (writer, writing) = start(move || {
        // SAFETY: the lock is initialised and lives for ever.
        unsafe { libc::pthread_rwlock_wrlock(lock.0.get()) };
        unlock();
    });
    assert_eq!(watch.asleep(writer).1.address, address_of(lock));
    let (reader, reading) = start(move || {
        // SAFETY: the lock is initialised and lives for ever.
        unsafe { libc::pthread_rwlock_rdlock(lock.0.get()) };
        unlock();
    });
    let (wait, identity) = watch.asleep(reader);
    assert_eq!((identity.name(), identity.certain), ("glibc rwlock", true));
    assert_eq!(identity.access(&Wait::Futex(wait)), Access::Shared);
    assert_eq!(watch.hold(&identity), Hold::Readers(1));
    unlock();
    writing.join().unwrap();
    reading.join().unwrap();
}

#[test]
fn idle_waits_of_the_c_library() {
    let mutex = C::leak(libc::PTHREAD_MUTEX_INITIALIZER);
    let condvar = C::leak(libc::PTHREAD_COND_INITIALIZER);
    let mut watch = Watch::new();
    for round in 0..5 {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let (tid, thread) = start(move || {
            // SAFETY: the mutex is initialised and lives for ever.
            unsafe { libc::pthread_mutex_lock(mutex.0.get()) };
            while !seen.load(Ordering::Relaxed) {
                // SAFETY: this thread holds the mutex.
                unsafe { libc::pthread_cond_wait(condvar.0.get(), mutex.0.get()) };
            }
            // SAFETY: this thread holds the mutex.
            unsafe { libc::pthread_mutex_unlock(mutex.0.get()) };
        });
        let (_, identity) = watch.asleep(tid);
        assert_eq!(identity.name(), "glibc condition variable", "round {round}");
        assert_eq!((identity.address, identity.certain), (address_of(condvar), true));
        assert_eq!(identity.role(), Role::Idle);
        done.store(true, Ordering::Relaxed);
        // SAFETY: the condition variable is initialised.
        unsafe { libc::pthread_cond_signal(condvar.0.get()) };
        thread.join().unwrap();
    }

    // SAFETY: all zeros are a valid semaphore, which is initialised next.
    let semaphore = C::leak(unsafe { std::mem::zeroed::<libc::sem_t>() });
    // SAFETY: nobody uses the semaphore yet.
    assert_eq!(unsafe { libc::sem_init(semaphore.0.get(), 0, 0) }, 0);
    let (tid, thread) = start(|| {
        // SAFETY: the semaphore is initialised and lives for ever.
        unsafe { libc::sem_wait(semaphore.0.get()) };
    });
    let (_, identity) = watch.asleep(tid);
    assert_eq!((identity.name(), identity.certain), ("glibc semaphore", true));
    assert_eq!((identity.address, identity.role()), (address_of(semaphore), Role::Idle));
    // SAFETY: the semaphore is initialised and lives for ever.
    unsafe { libc::sem_post(semaphore.0.get()) };
    thread.join().unwrap();

    // SAFETY: all zeros are a valid barrier, which is initialised next.
    let barrier = C::leak(unsafe { std::mem::zeroed::<libc::pthread_barrier_t>() });
    // SAFETY: nobody uses the barrier yet.
    assert_eq!(unsafe { libc::pthread_barrier_init(barrier.0.get(), ptr::null(), 2) }, 0);
    let wait = || {
        // SAFETY: the barrier is initialised and lives for ever.
        unsafe { libc::pthread_barrier_wait(barrier.0.get()) };
    };
    for round in 0..3 {
        let (tid, thread) = start(wait);
        let (_, identity) = watch.asleep(tid);
        assert_eq!((identity.name(), identity.certain), ("glibc barrier", true), "round {round}");
        assert_eq!((identity.address, identity.role()), (address_of(barrier), Role::Idle));
        wait();
        thread.join().unwrap();
    }

    let stop = Arc::new(Mutex::new(()));
    let guard = stop.lock().unwrap();
    let stopped = Arc::clone(&stop);
    let (joined, thread) = start(move || drop(stopped.lock()));
    let (tid, joining) = start(move || thread.join().unwrap());
    let (wait, identity) = watch.asleep(tid);
    assert_eq!((identity.name(), identity.certain), ("pthread_join", true));
    assert_eq!((wait.value, identity.role()), (joined, Role::Idle));
    drop(guard);
    joining.join().unwrap();
}

#[test]
fn a_rust_mutex_is_known_once_it_was_free() {
    let mutex = Arc::new(Mutex::new(0));
    let mut watch = Watch::new();
    let guard = mutex.lock().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (mutex, stop) = (Arc::clone(&mutex), Arc::clone(&stop));
            start(move || {
                while !stop.load(Ordering::Relaxed) {
                    let guard = mutex.lock().unwrap();
                    thread::sleep(Duration::from_millis(1));
                    drop(guard);
                }
            })
        })
        .collect();
    // While it is always held, the mutex might as well be a counter that stays at 2.
    let (wait, identity) = watch.asleep(threads[0].0);
    assert_eq!((identity.role(), identity.certain), (Role::Unknown, false));
    drop(guard);
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < PATIENCE);
        let (start, length) = watch.evidence(wait.address).window();
        let bytes = watch.read((start, length));
        watch.evidence(wait.address).saw_window(&Window { address: start, bytes: &bytes });
        let found = threads.iter().find_map(|(tid, _)| watch.sample(*tid));
        if let Some((wait, identity)) = found
            && identity.certain
        {
            assert_eq!((identity.name(), identity.address), ("Rust mutex", wait.address));
            assert_eq!(wait.address, address_of(&*mutex));
            assert_eq!(identity.role(), Role::Lock);
            stop.store(true, Ordering::Relaxed);
            for (_, thread) in threads {
                thread.join().unwrap();
            }
            assert_eq!(watch.hold(&identity), Hold::Free);
            let held = mutex.lock().unwrap();
            assert_eq!(watch.hold(&identity), Hold::Held { owner: None });
            drop(held);
            break;
        }
    }
}

#[test]
fn rust_rwlocks() {
    let lock = Arc::new(RwLock::new(0));
    let mut watch = Watch::new();
    let reader = |lock: &Arc<RwLock<i32>>| {
        let lock = Arc::clone(lock);
        start(move || drop(lock.read().unwrap()))
    };
    let writer = |lock: &Arc<RwLock<i32>>| {
        let lock = Arc::clone(lock);
        start(move || drop(lock.write().unwrap()))
    };
    let mut check = |tid, access, hold| {
        let (wait, identity) = watch.asleep(tid);
        assert_eq!((identity.name(), identity.certain), ("Rust rwlock", true), "{wait:?}");
        assert_eq!(identity.address, address_of(&*lock), "{wait:?}");
        assert_eq!(identity.access(&Wait::Futex(wait)), access);
        assert_eq!(watch.hold(&identity), hold);
    };
    let guard = lock.write().unwrap();
    let waiting = reader(&lock);
    check(waiting.0, Access::Shared, Hold::Held { owner: None });
    drop(guard);
    waiting.1.join().unwrap();

    let guard = lock.read().unwrap();
    let first = writer(&lock);
    check(first.0, Access::Exclusive, Hold::Readers(1));
    let second = reader(&lock);
    check(second.0, Access::Shared, Hold::Readers(1));
    drop(guard);
    first.1.join().unwrap();
    second.1.join().unwrap();

    let guard = lock.write().unwrap();
    let waiting = writer(&lock);
    check(waiting.0, Access::Exclusive, Hold::Held { owner: None });
    drop(guard);
    waiting.1.join().unwrap();
}

#[test]
fn a_rust_condvar_is_never_a_lock() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let mut watch = Watch::new();
    let waited = Arc::clone(&pair);
    let (tid, thread) = start(move || {
        let mut count = waited.0.lock().unwrap();
        while *count < 12 {
            count = waited.1.wait(count).unwrap();
        }
    });
    let mut last = None;
    for round in 1..=12 {
        let (_, identity) = watch.asleep(tid);
        assert_ne!(identity.role(), Role::Lock, "round {round}: {identity:?}");
        last = Some(identity);
        *pair.0.lock().unwrap() = round;
        pair.1.notify_one();
    }
    thread.join().unwrap();
    assert_eq!(last.unwrap().kind(), Kind::Condvar);
}

#[test]
fn other_waits_of_rust() {
    let mut watch = Watch::new();
    let (tid, parked) = start(thread::park);
    let (_, identity) = watch.asleep(tid);
    assert_eq!((identity.name(), identity.role()), ("Rust thread::park", Role::Parked));
    parked.thread().unpark();
    parked.join().unwrap();

    // Starts afresh, because reused memory is not tested here.
    let mut watch = Watch::new();
    let (sender, receiver) = mpsc::channel::<()>();
    let (tid, receiving) = start(move || assert!(receiver.recv().is_err()));
    assert_eq!(watch.asleep(tid).1.name(), "Rust thread::park");
    drop(sender);
    receiving.join().unwrap();

    let mut watch = Watch::new();
    let barrier = Arc::new(Barrier::new(2));
    let waited = Arc::clone(&barrier);
    let (tid, waiting) = start(move || {
        waited.wait();
    });
    assert_eq!(watch.asleep(tid).1.kind(), Kind::Condvar);
    barrier.wait();
    waiting.join().unwrap();

    let once = Arc::new((Once::new(), Mutex::new(())));
    let guard = once.1.lock().unwrap();
    let first = Arc::clone(&once);
    let (runner, running) = start(move || first.0.call_once(|| drop(first.1.lock())));
    // Otherwise, the second thread may call first.
    watch.asleep(runner);
    let second = Arc::clone(&once);
    let (tid, waiting) = start(move || second.0.call_once(|| ()));
    let (wait, identity) = watch.asleep(tid);
    assert_eq!(identity.role(), Role::Unknown);
    let function = "std::sys::sync::once::futex::Once::call".to_owned();
    let caller = Caller { function: Some(function), module: "program".to_owned() };
    for _ in 0..2 {
        watch.evidence(wait.address).saw_callers(vec![caller.clone()]);
    }
    let (_, identity) = watch.asleep(tid);
    assert_eq!((identity.kind(), identity.certain), (Kind::Once, true));
    drop(guard);
    running.join().unwrap();
    waiting.join().unwrap();
}

/// Finds the lock for which a thread of parking_lot sleeps.
fn parked(watch: &mut Watch, tid: u32) -> (Identity, Wait) {
    let (_, parker) = watch.asleep(tid);
    assert_eq!(parker.name(), "parking_lot parker");
    let parked = watch.parked_on(&parker).unwrap();
    let wait = Wait::Parked { token: parked.token };
    (watch.saw(tid, parked.lock, wait), wait)
}

#[test]
fn locks_of_parking_lot() {
    let mut watch = Watch::new();
    let mutex = Arc::new(parking_lot::Mutex::new(0_u64));
    let guard = mutex.lock();
    let locked = Arc::clone(&mutex);
    let (tid, thread) = start(move || drop(locked.lock()));
    let (identity, _) = parked(&mut watch, tid);
    assert_eq!((identity.name(), identity.certain), ("parking_lot mutex", true));
    assert_eq!(identity.address, address_of(&*mutex));
    assert_eq!(watch.hold(&identity), Hold::Held { owner: None });
    drop(guard);
    thread.join().unwrap();
    assert_eq!(watch.hold(&identity), Hold::Free);

    let lock = Arc::new(parking_lot::RwLock::new(0_u64));
    let guards = (lock.read(), lock.read());
    let written = Arc::clone(&lock);
    let (writer, writing) = start(move || drop(written.write()));
    let (identity, wait) = parked(&mut watch, writer);
    assert_eq!((identity.name(), identity.certain), ("parking_lot rwlock", true));
    assert_eq!(identity.address, address_of(&*lock));
    assert_eq!(identity.access(&wait), Access::Exclusive);
    assert_eq!(watch.hold(&identity), Hold::Readers(2));
    let read = Arc::clone(&lock);
    let (reader, reading) = start(move || drop(read.read()));
    let (identity, wait) = parked(&mut watch, reader);
    assert_eq!(identity.address, address_of(&*lock));
    assert_eq!(identity.access(&wait), Access::Shared);
    drop(guards);
    writing.join().unwrap();
    reading.join().unwrap();
    let guard = lock.write();
    assert_eq!(watch.hold(&identity), Hold::Held { owner: None });
    drop(guard);

    let pair = Arc::new((parking_lot::Mutex::new(false), parking_lot::Condvar::new()));
    let waited = Arc::clone(&pair);
    let (tid, thread) = start(move || {
        let mut done = waited.0.lock();
        while !*done {
            waited.1.wait(&mut done);
        }
    });
    let (identity, _) = parked(&mut watch, tid);
    assert_eq!((identity.kind(), identity.role()), (Kind::Condvar, Role::Idle));
    assert_eq!(identity.address, address_of(&pair.1));
    *pair.0.lock() = true;
    pair.1.notify_one();
    thread.join().unwrap();
}

#[test]
fn locks_are_watched_before_anybody_waits() {
    let watch = Watch::new();
    let mutex = C::leak(libc::PTHREAD_MUTEX_INITIALIZER);
    let identity = declared("pthread_mutex_t", address_of(mutex)).unwrap();
    assert!(identity.certain);
    assert_eq!(watch.hold(&identity), Hold::Free);
    // SAFETY: the mutex is initialised and lives for ever.
    unsafe { libc::pthread_mutex_lock(mutex.0.get()) };
    assert_eq!(watch.hold(&identity), mine());

    let lock = Mutex::new("text");
    let identity = declared("std::sys::sync::mutex::futex::Mutex", address_of(&lock)).unwrap();
    let guard = lock.lock().unwrap();
    assert_eq!(watch.hold(&identity), Hold::Held { owner: None });
    drop(guard);
    assert_eq!(watch.hold(&identity), Hold::Free);

    let lock = parking_lot::RwLock::new(0_u8);
    let identity = declared("parking_lot::raw_rwlock::RawRwLock", address_of(&lock)).unwrap();
    let guard = lock.read();
    assert_eq!(watch.hold(&identity), Hold::Readers(1));
    drop(guard);

    assert_eq!(declared("std::vec::Vec<pthread_mutex_t>", 0x1000), None);
}
