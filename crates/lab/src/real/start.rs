//! Starts the threads of a cell, each with its role. They sleep between blocks.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_record::Placement;

use crate::LabError;
use crate::error::Make;
use crate::thread_group::Role;

use super::displacement::Displacement;
use super::pinning::Pinning;
use super::pool::{Pool, Setup, Worker, receive_within};

/// Roles in the order of the CPUs. The thread of the last role creates all roles.
pub(super) type Roles<B, R> = Vec<Box<dyn Role<B, R>>>;

/// Threads that report on each block, with their counters.
pub(super) type Threads<B, R> = Pool<B, (R, ThreadCounters)>;

/// Everything needed to start the threads of a cell, as often as required.
pub(super) struct Start<B, R> {
    pub(super) clock: Clock,
    pub(super) name: String,
    pub(super) placement: Placement,
    pub(super) pinning: Pinning,
    pub(super) make: Make<Roles<B, R>>,
    /// True if the threads wait for each other after they have prepared for a block.
    pub(super) meet: bool,
}

impl<B: Copy + Send + 'static, R: Send + 'static> Start<B, R> {
    /// Starts the threads and waits until everything is created, touched and placed. The last
    /// thread, which receives or leads, creates all roles, so that their memory is local to that
    /// thread.
    pub(super) fn start(&self, patience: Duration) -> Result<Threads<B, R>, LabError> {
        let Start { clock, name, placement, pinning, make, meet } = self;
        let (clock, meet) = (*clock, *meet);
        let (give, take) = channel::<(Roles<B, R>, Arc<Barrier>)>();
        let (of, make) = (name.clone(), Arc::clone(make));
        let last = Worker::start("last", pinning.last.clone(), move |setup| {
            let _displacement = Displacement::random();
            let mut roles = match make() {
                Err(reason) => {
                    drop(give);
                    return setup.fail(LabError::Unavailable { mechanism: of, reason });
                }
                Ok(roles) => roles,
            };
            let together = Arc::new(Barrier::new(roles.len()));
            let Some(own) = roles.pop() else { unreachable!("a cell has threads") };
            let _ = give.send((roles, Arc::clone(&together)));
            serve(own, setup, &together, clock, meet);
        })?;
        let mut pool = Pool::new(name, *placement);
        // The other threads are added first, so that they get their jobs before the last thread. If
        // the last thread has failed, it reports the failure, and no other thread is added.
        if let Some((roles, together)) = receive_within(&take, patience) {
            for (role, cpus) in roles.into_iter().zip(&pinning.others) {
                let together = Arc::clone(&together);
                pool.add(Worker::start("other", cpus.clone(), move |setup| {
                    serve(role, setup, &together, clock, meet);
                }))?;
            }
        }
        pool.add(Ok(last))?;
        pool.ready(patience)?;
        Ok(pool)
    }
}

fn serve<B, R>(
    mut role: Box<dyn Role<B, R>>,
    setup: Setup<B, (R, ThreadCounters)>,
    together: &Barrier,
    clock: Clock,
    meet: bool,
) {
    role.enter();
    together.wait();
    let probe = ThreadProbe::new();
    setup.serve(|block| {
        role.prepare(block, &clock);
        if meet {
            together.wait();
        }
        let before = probe.sample();
        let report = role.work(&clock);
        let after = probe.sample_after();
        (report, after.delta(&before))
    });
}
