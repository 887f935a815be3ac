//! Owners that serve sockets, too.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as Blocking;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use mio::event::Event;
use mio::net::UnixStream;
use mio::{Interest, Token};
use threadtoll::owned::{self, Context, Options};
use threadtoll::pipe;
use threadtoll::wait::Wait::{Adaptive, Park, Spin};

use crate::element::{Counted, Element, Ledger, surviving};
use crate::threads::sleeps;

const NOW: Duration = Duration::ZERO;
const READABLE: Interest = Interest::READABLE;

struct State {
    socket: UnixStream,
    /// Bytes that were read, and what else was run.
    log: Vec<u8>,
}

/// A state with a socket, and the other end.
fn state() -> (State, Blocking) {
    let (here, there) = Blocking::pair().expect("few files are open");
    here.set_nonblocking(true).expect("it is a socket");
    (State { socket: UnixStream::from_std(here), log: Vec::new() }, there)
}

fn register(state: &mut State, context: &mut Context<State>) -> Token {
    context.register(&mut state.socket, READABLE, read).expect("few files are open")
}

/// Reads what is there. Ends the registration at the end of the stream.
fn read(state: &mut State, context: &mut Context<State>, event: &Event) {
    match state.socket.read_to_end(&mut state.log) {
        Ok(_) => context.deregister(&mut state.socket, event.token()).expect("it is registered"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
}

#[test]
fn an_owner_that_sleeps_is_woken_by_all_that_it_serves() {
    for wait in [Adaptive, Park, Spin] {
        let (state, mut there) = state();
        let (mut owner, handle) = Options::new().wait(wait).build(state);
        let (mut sender, receiver) = pipe::unbounded::<u8>();
        handle
            .post(|state, context| {
                register(state, context);
                context.serve(receiver, |state, _, byte| state.log.push(byte));
            })
            .expect("the owner lives");
        let others = thread::spawn(move || {
            let pause = || thread::sleep(Duration::from_millis(3));
            let len = |handle: &owned::Handle<State>| handle.ask(|state, _| state.log.len());
            pause();
            assert_eq!(len(&handle), Ok(0));
            pause();
            there.write_all(b"socket").expect("the owner lives");
            while len(&handle) != Ok(6) {}
            pause();
            sender.send(b'p').expect("the owner lives");
            while len(&handle) != Ok(7) {}
            handle.after(Duration::from_millis(1), |state, _| state.log.push(b't'));
            while len(&handle) != Ok(8) {}
            pause();
            drop(handle);
            pause();
            drop(sender);
            there.write_all(b"end").expect("the owner lives");
        });
        let State { log, .. } = owner.run();
        assert_eq!(log, b"socketptend");
        others.join().expect("it does not panic");
    }
}

/// With a socket that is quiet, and without one.
#[test]
fn an_owner_with_nothing_to_do_does_not_wake() {
    for (wait, serves) in [(Park, false), (Park, true), (Adaptive, false), (Adaptive, true)] {
        let (state, _there) = state();
        let (mut owner, handle) = Options::new().wait(wait).build(state);
        if serves {
            handle.post(|state, context| _ = register(state, context)).expect("the owner lives");
        }
        let running = thread::spawn(move || _ = owner.run());
        let slept = || handle.ask(|_, _| sleeps()).expect("the owner lives");
        let before = slept();
        thread::sleep(Duration::from_millis(100));
        // One until the second question, and some for page faults.
        assert!(slept() - before <= 5, "{wait:?}, {serves}");
        handle.stop();
        running.join().expect("it does not panic");
    }
}

/// A timer wakes an owner that nothing else wakes.
#[test]
fn timers_run_while_it_sleeps_for_sockets() {
    let (state, _there) = state();
    let (mut owner, handle) = owned::new(state);
    handle.post(|state, context| _ = register(state, context)).expect("the owner lives");
    handle.every(Duration::from_micros(300), |state, context| {
        state.log.push(b't');
        if state.log.len() == 5 {
            context.stop();
        }
    });
    assert_eq!(owner.run().log, b"ttttt");
    assert!(!owner.run_once(NOW));
}

/// A socket that is always ready, posts, and an end that is always ready: each has its turn.
#[test]
fn nobody_keeps_the_others_waiting() {
    struct Busy {
        here: UnixStream,
        there: UnixStream,
        events: u64,
        served: u64,
    }

    fn again(busy: &mut Busy, context: &mut Context<Busy>, event: &Event) {
        busy.events += 1;
        // Both ends are registered, and write to each other.
        let mut bytes = [0; 8];
        for end in [&mut busy.here, &mut busy.there] {
            let _ = end.read(&mut bytes);
            end.write_all(&[1]).expect("there is room");
        }
        assert!(context.deregister(&mut busy.here, Token(event.token().0 + 2)).is_err());
    }

    let (here, there) = UnixStream::pair().expect("few files are open");
    let (mut owner, handle) = owned::new(Busy { here, there, events: 0, served: 0 });
    let (mut sender, receiver) = pipe::unbounded::<u64>();
    let posted = Arc::new(AtomicU64::new(0));
    handle
        .post(|busy, context| {
            for end in [&mut busy.here, &mut busy.there] {
                context.register(end, READABLE, again).expect("few files are open");
            }
            context.serve(receiver, |busy: &mut Busy, _, _| busy.served += 1);
            busy.here.write_all(&[1]).expect("there is room");
        })
        .expect("the owner lives");
    (0..10_000).for_each(|number| sender.send(number).expect("the receiver lives"));
    for _ in 0..3_000 {
        let posted = Arc::clone(&posted);
        handle.post(move |_, _| _ = posted.fetch_add(1, Relaxed)).expect("the owner lives");
    }
    owner.run_once(NOW);
    for round in 1..=20 {
        let before = (owner.state().events, owner.state().served);
        assert!(owner.run_once(NOW));
        let Busy { events, served, .. } = *owner.state();
        assert!(events > before.0 && served > before.1, "round {round}: {events}, {served}");
        assert!(events - before.0 + served - before.1 <= 16);
        assert_eq!(posted.load(Relaxed), 63 + 64 * round);
    }
}

#[test]
fn a_closure_that_panics_stays_and_one_that_leaves_is_dropped() {
    let ledger = Arc::new(Ledger::default());
    let (state, mut there) = state();
    let (mut owner, handle) = owned::new(state);
    let captured = Counted::make(1, &ledger);
    handle
        .post(move |state, context| {
            let body = move |state: &mut State, context: &mut Context<State>, event: &Event| {
                assert!(captured.is(1));
                read(state, context, event);
                if state.log == b"a" {
                    std::panic::resume_unwind(Box::new("a closure that panics"));
                }
            };
            let token = context.register(&mut state.socket, READABLE, body);
            let both = READABLE | Interest::WRITABLE;
            let token = token.expect("few files are open");
            context.reregister(&mut state.socket, token, both).expect("it is registered");
            context.reregister(&mut state.socket, token, READABLE).expect("it is registered");
        })
        .expect("the owner lives");
    drop(handle);
    there.write_all(b"a").expect("the owner lives");
    assert!(!surviving(|| _ = owner.run()));
    there.write_all(b"b").expect("the owner lives");
    drop(there);
    assert_eq!(owner.run().log, b"ab");
    ledger.assert_settled();
}

#[test]
fn an_owner_without_sockets_opens_no_file_and_one_that_stops_closes_all() {
    fn files() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("it is there").count()
    }

    // Other tests open files, too, so those of a child are counted.
    // SAFETY: the child of a process with several threads allocates, which glibc and musl allow. It
    // ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let counted = surviving(|| {
            let (state, _there) = state();
            let before = files();
            let (mut owner, handle) = owned::new(state);
            handle.post(|_, _| ()).expect("the owner lives");
            owner.run_once(NOW);
            assert_eq!(files(), before);
            handle.post(|state, context| _ = register(state, context)).expect("the owner lives");
            owner.run_once(NOW);
            assert!(files() > before);
            handle.stop();
            assert!(!owner.run_once(NOW));
            assert_eq!(files(), before);
        });
        // SAFETY: ends the child without running destructors or exit handlers.
        unsafe { libc::_exit((!counted).into()) };
    }
    let mut status = 0;
    // SAFETY: the status is valid.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed: see above");
}

/// A child shares the parent's `epoll`, and leaves it alone. Nor does it handle the events that
/// have come.
#[test]
fn a_forked_child_takes_no_events() {
    const SOCKETS: usize = 20;
    let (here, mut there): (Vec<UnixStream>, Vec<UnixStream>) =
        (0..SOCKETS).map(|_| UnixStream::pair().expect("few files are open")).unzip();
    let (mut owner, handle) = owned::new((here, 0));
    handle
        .post(|(sockets, _), context| {
            for socket in sockets {
                let count = |(_, events): &mut (_, usize), _: &mut Context<_>, _: &Event| {
                    *events += 1;
                };
                context.register(socket, READABLE, count).expect("few files are open");
            }
        })
        .expect("the owner lives");
    owner.run_once(NOW);
    there.iter_mut().for_each(|end| end.write_all(b"a").expect("there is room"));
    handle.post(|_, _| ()).expect("the owner lives");
    owner.run_once(NOW);
    owner.run_once(NOW);
    let handled = owner.state().1;
    assert!(0 < handled && handled < SOCKETS, "{handled}");
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: takes a number; ends a child that hangs.
        unsafe { libc::alarm(30) };
        let ended = surviving(|| assert_eq!(owner.run().1, handled));
        // SAFETY: as above.
        unsafe { libc::_exit((!ended).into()) };
    }
    let mut status = 0;
    // SAFETY: the status is valid.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed: see above");
    owner.run_once(NOW);
    assert_eq!(owner.state().1, SOCKETS);
}
