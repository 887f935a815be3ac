//! Mechanisms and locks that are created at run time, from closures with data of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use threadtoll_lab::Registry;
use threadtoll_lab::backend::Backend;
use threadtoll_lab::contention::{Overrides, scenario};
use threadtoll_lab::lock::{GrantPolicy, Lock, Locks, RawLock};
use threadtoll_lab::mechanism::{Class, Ends, Exchange, Mechanism, Mechanisms};
use threadtoll_lab::plan::{
    CpuSelection, LockChoice, MechanismChoice, budget, contention, latency,
};
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::samples::{BlockSamples, Samples};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_machine::clock::Clock;
use threadtoll_machine::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{BlockKind, Placement, PlannedCell};

struct End {
    to: SyncSender<u64>,
    from: Receiver<u64>,
    sent: Arc<AtomicU64>,
}

impl Exchange for End {
    fn send(&mut self, seq: u64) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        // The other end is gone only at the end of the run.
        let _ = self.to.send(seq);
    }

    fn receive(&mut self) -> u64 {
        self.from.recv().unwrap_or(0)
    }
}

fn channel(capacity: usize, sent: &Arc<AtomicU64>) -> Mechanism {
    let sent = Arc::clone(sent);
    let name = format!("sync-channel-{capacity}");
    Mechanism::new(name, Class::Sleep, "a channel made at run time", move |_| {
        let ((to, there), (back, from)) = (sync_channel(capacity), sync_channel(capacity));
        let end = |to, from| End { to, from, sent: Arc::clone(&sent) };
        Ok(Ends::two(end(to, from), end(back, there)))
    })
}

struct Counting {
    mutex: Mutex<()>,
    acquisitions: Arc<AtomicU64>,
}

impl RawLock for Counting {
    type ThreadState = ();

    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        self.acquisitions.fetch_add(1, Ordering::Relaxed);
        section()
    }
}

fn counting(acquisitions: &Arc<AtomicU64>) -> Lock {
    let acquisitions = Arc::clone(acquisitions);
    let sentence = "a mutex made at run time";
    Lock::new("counting-mutex", GrantPolicy::Barging, sentence, move |count| {
        let lock = |_| Counting { mutex: Mutex::new(()), acquisitions: Arc::clone(&acquisitions) };
        Ok((0..count).map(lock).collect())
    })
}

/// First block of a cell other than the reference.
fn block(
    backend: &mut dyn Backend,
    groups: &[Vec<PlannedCell>],
    name: &str,
    cpus: &[u32],
) -> BlockSamples {
    let mut planned =
        groups.iter().flatten().find(|planned| planned.cell.name() == name).unwrap().clone();
    planned.cell.cpus = cpus.to_vec();
    let machine = SimulatedBackend::new(1).machine();
    let mut open = backend.open(&machine, &[planned], &mut |_| Ok(())).unwrap();
    open[0].block(BlockKind::Stamped).unwrap()
}

#[test]
fn a_mechanism_and_a_lock_made_at_run_time_are_planned_and_measured() {
    let _alone = machine_lock().unwrap();
    let (sent, acquisitions) = (Arc::default(), Arc::default());
    let registry = Registry {
        mechanisms: Mechanisms::with([channel(4, &sent)]),
        locks: Locks::with([counting(&acquisitions)]),
        ..Registry::default()
    };
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanism = registry.mechanisms.find("sync-channel-4").unwrap();
    let choice =
        MechanismChoice { placements: vec![Placement::SameCpu], ..MechanismChoice::default() };
    let (exchanges, _) = latency(
        &site,
        &registry.mechanisms,
        &[mechanism],
        &choice,
        budget(1_000_000, Some(50)),
        true,
    );
    let choice = LockChoice {
        locks: vec!["striped/2:counting-mutex".into()],
        placements: vec![Placement::SameCpu],
        overrides: Overrides { threads: Some(vec![2]), ..Overrides::default() },
    };
    let (contended, _) =
        contention(&site, scenario("hold-think").unwrap(), &registry.locks, &choice);

    let (clock, facts) = Clock::gate().unwrap();
    let mut real = RealBackend::new(clock, facts).with_registry(registry.clone());
    let mut simulated = SimulatedBackend::new(1).with_registry(registry);
    let here = &allowed_cpus()[..1];
    for backend in [&mut real as &mut dyn Backend, &mut simulated] {
        let BlockSamples { samples, .. } = block(backend, &exchanges, "sync-channel-4", here);
        assert!(matches!(samples, Samples::Exchange(_)), "{samples:?}");
        let name = "striped/2:counting-mutex";
        let BlockSamples { samples, .. } = block(backend, &contended, name, here);
        let Samples::Contention(told) = samples else { panic!("{samples:?}") };
        let excerpt = told.excerpt.unwrap();
        assert!(excerpt.length > 0 && excerpt.threads.len() == 2);
        for thread in &excerpt.threads {
            let moments = thread.as_flattened();
            assert!(moments.is_sorted() && moments.iter().all(|at| *at <= excerpt.length));
        }
    }
    assert!(sent.load(Ordering::Relaxed) > 100 && acquisitions.load(Ordering::Relaxed) > 100);
}
