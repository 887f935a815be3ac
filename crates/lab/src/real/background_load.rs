//! Background load: workers that are busy while a block is measured, and sleep between blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::LabError;

use super::pool::{Pool, Worker};

/// Time limit for the report of a thread. A piece of work takes only microseconds.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Period {
    over: AtomicBool,
    working: AtomicUsize,
}

pub(super) struct BackgroundLoad {
    pool: Pool<Arc<Period>, ()>,
    period: Option<Arc<Period>>,
}

impl BackgroundLoad {
    /// Starts a thread on each of these CPUs. Each thread calls `prepare` once, and then repeats
    /// the short piece of work that `prepare` returned.
    pub(super) fn start<W: FnMut() + 'static>(
        cpus: &[u32],
        prepare: impl Fn(u32) -> Result<W, LabError> + Clone + Send + 'static,
    ) -> Result<Self, LabError> {
        let mut pool = Pool::new("load", "");
        for cpu in cpus.iter().copied() {
            let prepare = prepare.clone();
            pool.add(Worker::start("load", vec![cpu], move |setup| match prepare(cpu) {
                Err(error) => setup.fail(error),
                Ok(mut work) => setup.serve(|period: Arc<Period>| {
                    period.working.fetch_add(1, Ordering::AcqRel);
                    while !period.over.load(Ordering::Acquire) {
                        work();
                    }
                }),
            }))?;
        }
        pool.ready(PATIENCE)?;
        Ok(BackgroundLoad { pool, period: None })
    }

    pub(super) fn begin(&mut self) -> Result<(), LabError> {
        let threads = self.pool.len();
        let period = Arc::new(Period::default());
        self.period = Some(Arc::clone(&period));
        let jobs = std::iter::repeat_n(Arc::clone(&period), threads);
        self.pool.give(0..threads, jobs)?;
        while period.working.load(Ordering::Acquire) < threads {
            std::thread::yield_now();
        }
        Ok(())
    }

    pub(super) fn end(&mut self) {
        if let Some(period) = self.period.take() {
            period.over.store(true, Ordering::Release);
            // All threads report soon, because their work never blocks. If one has panicked, the
            // panic has already been reported.
            let _ = self.pool.reports(0..self.pool.len(), PATIENCE);
        }
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.end();
    }
}
