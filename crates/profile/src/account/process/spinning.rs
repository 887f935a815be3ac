//! Threads that spin for a lock. They run, so only samples of running threads show for which lock.

use threadtoll_judge::samples::LockSamples;
use threadtoll_judge::unseen::Unseen;
use threadtoll_stats::Z95;
use threadtoll_stats::interval::{Estimate, share};

use super::{MAX_USERS, ProcessAccount, Wish};
use crate::account::WaitTarget;
use crate::account::mean::MeanEstimate;
use crate::account::time::Time;
use crate::circumstances::Circumstances;
use crate::sample::{ThreadRead, Watch};

impl ProcessAccount {
    /// Notes that a sample of a running thread saw it spin for the lock at this address.
    pub(crate) fn note_spinning(&mut self, tid: u32, lock: u64, stack: u32, at: u64) {
        // Where glibc for AArch64 calls functions for its atomic operations, the register has
        // another value by then.
        if !lock.is_multiple_of(align_of::<u32>() as u64) {
            return;
        }
        let Some(place) = self.target_of(lock, at) else { return };
        let target = &mut self.targets[place as usize];
        if !target.identity.certain && target.evidence.is_empty() {
            let window = target.evidence.window();
            self.wishes.push((lock, Wish::Watch(Watch::unknown(window))));
        }
        let news = target.spins(tid, stack, at);
        self.judge(lock, place, news);
        let users = &mut self.users;
        if self.targets[place as usize].is_lock() && users.len() < MAX_USERS && users.insert(tid) {
            self.to_name.push(tid);
        }
    }

    /// Index of the lock for which a thread spins at about the time of a sample.
    pub(super) fn spins_for(
        &self,
        read: &ThreadRead,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<u32> {
        let place = *self.by_word.get(&seen.spins_for(read.tid, at)?)?;
        self.targets[place as usize].is_lock().then_some(place)
    }

    /// Mean number of running threads in an activity that `samples` samples of running threads saw.
    pub(crate) fn running_in(&self, samples: u64) -> Option<MeanEstimate> {
        let part = share(samples, self.ran)?;
        // Without records of switches, threads that wait for a CPU count as running.
        let [running, unclear] = [self.time(Time::Running)?, self.time(Time::OnCpu)?];
        let mean = running.mean + unclear.mean;
        let of_part = mean * (part.high - part.low) / 2.0 / Z95;
        let of_mean = part.value * running.error.hypot(unclear.error);
        Some(MeanEstimate {
            mean: mean * part.value,
            error: of_part.hypot(of_mean),
            samples: running.samples,
        })
    }

    /// Samples of a lock for which threads spin. Its queue is the mean number of these threads. The
    /// word of glibc's lock shows the waiters, too, but it shows more of them than there are
    /// without the sampler, which takes the CPU of a thread: if that thread has the lock, others
    /// begin to wait.
    pub(super) fn samples_of_spinlock(&self, lock: &WaitTarget, unknown_s: f64) -> LockSamples {
        let queue = self.running_in(lock.spun).map(|queue| {
            let half = Z95 * queue.error;
            let (low, high) = ((queue.mean - half).max(0.0), queue.mean + half);
            Estimate { value: queue.mean, low, high }
        });
        lock.held.samples.with_queue(queue, unknown_s, self.seconds())
    }

    /// Waits for a spinlock that no sample saw: of threads that lost their CPU while they spun.
    pub(super) fn unseen_spinners(&self) -> Unseen {
        let runnable = self.time(Time::Runnable);
        Unseen { anywhere: runnable.map_or(0.0, |threads| threads.mean), ..Unseen::default() }
    }
}
