//! Programs that must not compile, as doctests. They would compile if `Send` bounds or lifetimes
//! were unsound.
//!
//! A message that must stay on its thread (is not `Send`) cannot be sent.
//!
//! ```compile_fail,E0277
//! let (sender, receiver) = threadtoll::pipe::unbounded::<std::rc::Rc<u64>>();
//! ```
//!
//! ```compile_fail,E0277
//! let (sender, receiver) = threadtoll::funnel::bounded::<std::rc::Rc<u64>>(1);
//! ```
//!
//! ```compile_fail,E0277
//! let (caller, callee) = threadtoll::call::line::<u64, std::rc::Rc<u64>>();
//! ```
//!
//! ```compile_fail,E0277
//! let (sender, receiver) = threadtoll::oneshot::channel::<std::rc::Rc<u64>>();
//! ```
//!
//! ```compile_fail,E0277
//! let (sender, receiver) = threadtoll::pipe::bounded::<&std::cell::Cell<u64>>(1);
//! ```
//!
//! ```compile_fail,E0277
//! let (sender, receiver) = threadtoll::funnel::unbounded::<std::sync::MutexGuard<'static, u64>>();
//! ```
//!
//! The events of a ring are shared by its readers, so they must be `Sync`, too.
//!
//! ```compile_fail,E0277
//! let builder = threadtoll::ring::Builder::new(1, || std::rc::Rc::new(1));
//! ```
//!
//! ```compile_fail,E0277
//! let builder = threadtoll::ring::Builder::new(1, || std::cell::Cell::new(1));
//! ```
//!
//! ```compile_fail,E0277
//! static LOCK: std::sync::Mutex<u64> = std::sync::Mutex::new(1);
//! let builder = threadtoll::ring::Builder::new(1, || LOCK.lock().unwrap());
//! ```
//!
//! A closure for an owner must not be bound to a thread; nor may its answer be, though the state
//! may. A closure may borrow only if its sender waits for it.
//!
//! ```compile_fail,E0277
//! let (owner, handle) = threadtoll::owned::new(0);
//! let shared = std::rc::Rc::new(1);
//! handle.post(move |count, _| *count += *shared).unwrap();
//! ```
//!
//! ```compile_fail,E0277
//! let (handle, thread) = threadtoll::owned::spawn("tree", || std::rc::Rc::new(1));
//! let shared = handle.ask(|shared, _| std::rc::Rc::clone(shared));
//! ```
//!
//! ```compile_fail
//! let (handle, thread) = threadtoll::owned::spawn("text", || String::from("owned"));
//! let escaped: Result<&String, _> = handle.ask(|text, _| &*text);
//! ```
//!
//! ```compile_fail,E0597
//! let (owner, handle) = threadtoll::owned::new(0);
//! {
//!     let local = 1;
//!     let local = &local;
//!     handle.post(move |count, _| *count += *local).unwrap();
//! }
//! ```
//!
//! ```compile_fail,E0277
//! let (owner, handle) = threadtoll::owned::new(std::rc::Rc::new(0));
//! std::thread::spawn(move || { let mut owner = owner; owner.run(); });
//! ```
//!
//! The ends of a pipe and a line cannot be shared or cloned, nor can the receiver of a funnel.
//!
//! ```compile_fail,E0277
//! let (sender, mut receiver) = threadtoll::pipe::unbounded::<u64>();
//! std::thread::scope(|scope| { scope.spawn(|| { let shared = &sender; shared.len() }); });
//! ```
//!
//! ```compile_fail,E0599
//! let (sender, receiver) = threadtoll::pipe::unbounded::<u64>();
//! let second = sender.clone();
//! ```
//!
//! ```compile_fail,E0599
//! let (sender, receiver) = threadtoll::funnel::unbounded::<u64>();
//! let second = receiver.clone();
//! ```
//!
//! ```compile_fail,E0599
//! let (caller, callee) = threadtoll::call::line::<u64, u64>();
//! let second = caller.clone();
//! ```
//!
//! The ends of a ring cannot be cloned, and there are no readers after the start.
//!
//! ```compile_fail,E0599
//! let mut builder = threadtoll::ring::Builder::new(1, || 0);
//! let reader = builder.reader();
//! let second = reader.clone();
//! ```
//!
//! ```compile_fail,E0382
//! let mut builder = threadtoll::ring::Builder::new(1, || 0);
//! let first = builder.reader();
//! let writer = builder.start().unwrap();
//! let late = builder.reader();
//! ```
//!
//! A one-shot sends once.
//!
//! ```compile_fail,E0382
//! let (sender, receiver) = threadtoll::oneshot::channel();
//! sender.send(1).unwrap();
//! sender.send(2).unwrap();
//! ```
//!
//! ```compile_fail,E0599
//! let (sender, receiver) = threadtoll::oneshot::channel::<u64>();
//! let second = sender.clone();
//! ```
//!
//! A mutex can be shared only if its value can be sent, and its guard only if its value can be
//! shared. A guard stays on its thread, and does not outlive its mutex.
//!
//! ```compile_fail,E0277
//! let mutex = threadtoll::lock::Mutex::new(std::rc::Rc::new(1));
//! std::thread::scope(|scope| { scope.spawn(|| { let shared = &mutex; shared.queue_len() }); });
//! ```
//!
//! ```compile_fail,E0277
//! let mutex = threadtoll::lock::Mutex::new(std::rc::Rc::new(1));
//! std::thread::spawn(move || mutex.into_inner());
//! ```
//!
//! ```compile_fail,E0277
//! let mutex = threadtoll::lock::Mutex::new(1);
//! let guard = mutex.lock();
//! std::thread::scope(|scope| { scope.spawn(move || drop(guard)); });
//! ```
//!
//! ```compile_fail,E0277
//! let mutex = threadtoll::lock::Mutex::new(std::cell::Cell::new(1));
//! let guard = mutex.lock();
//! std::thread::scope(|scope| { scope.spawn(|| { let shared = &guard; shared.get() }); });
//! ```
//!
//! ```compile_fail,E0505
//! let mutex = threadtoll::lock::Mutex::new(1);
//! let guard = mutex.lock();
//! drop(mutex);
//! drop(guard);
//! ```
//!
//! A sender cannot be selected, and a source cannot be used while a `Select` waits for it.
//!
//! ```compile_fail,E0277
//! let (mut sender, receiver) = threadtoll::pipe::unbounded::<u64>();
//! threadtoll::select::Select::new().try_ready((&mut sender,));
//! ```
//!
//! ```compile_fail,E0499
//! let (sender, mut receiver) = threadtoll::pipe::unbounded::<u64>();
//! threadtoll::select::Select::new().try_ready((&mut receiver, &mut receiver));
//! ```
//!
//! A batch, a claim or a peeked message must not outlive the sender or receiver that it came from.
//! As long as it exists, that sender or receiver cannot be used.
//!
//! ```compile_fail,E0505
//! let (sender, mut receiver) = threadtoll::pipe::unbounded::<u64>();
//! let batch = receiver.recv_batch();
//! drop(receiver);
//! drop(batch);
//! ```
//!
//! ```compile_fail,E0505
//! let mut builder = threadtoll::ring::Builder::new(1, || 0);
//! let mut reader = builder.reader();
//! let batch = reader.recv_batch().unwrap();
//! let event = batch.iter().next();
//! drop(batch);
//! assert_eq!(event, Some(&0));
//! ```
//!
//! ```compile_fail,E0499
//! let mut builder = threadtoll::ring::Builder::new(1, || 0);
//! let mut reader = builder.reader();
//! let batch = reader.recv_batch();
//! let second = reader.try_recv_batch();
//! drop(batch);
//! ```
//!
//! ```compile_fail,E0521
//! let mut builder = threadtoll::ring::Builder::new(1, || 0);
//! let reader = builder.reader();
//! let mut writer = builder.start().unwrap();
//! let mut kept = None;
//! writer.publish(|event| kept = Some(event));
//! ```
//!
//! ```compile_fail,E0499
//! let (mut sender, receiver) = threadtoll::pipe::unbounded::<u64>();
//! let claim = sender.claim(1);
//! sender.send(1).unwrap();
//! drop(claim);
//! ```
//!
//! ```compile_fail,E0499
//! let (sender, mut receiver) = threadtoll::funnel::unbounded::<u64>();
//! let first = receiver.peek();
//! receiver.recv().unwrap();
//! assert_eq!(first, Some(&1));
//! ```
