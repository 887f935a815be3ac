//! Simulated programs for tests, whose locks behave in an exactly known way.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Distribution of a time around its mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Times {
    Fixed,
    /// Uniform, within this share of the mean on either side.
    Jittered(f64),
    Exponential,
}

impl Times {
    pub(crate) fn draw(self, mean: f64, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Fixed => mean,
            Self::Jittered(share) => mean * (1.0 + share * (2.0 * rng.random::<f64>() - 1.0)),
            Self::Exponential => -mean * (1.0 - rng.random::<f64>()).ln(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) threads: u32,
    /// Mean hold time in seconds; `think` is the mean think time.
    pub(crate) hold: f64,
    pub(crate) think: f64,
    pub(crate) hold_times: Times,
    pub(crate) think_times: Times,
    /// Time in seconds from a release until a waiter has the lock.
    pub(crate) hand_off: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) thread: u32,
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// A run of a program with one FIFO lock.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// In order and disjoint.
    pub(crate) holds: Vec<Span>,
    /// Times for which a woken thread does not run yet.
    pub(crate) hand_offs: Vec<Span>,
    /// Waits of each thread, in order and disjoint; they include hand-offs.
    pub(crate) waits: Vec<Vec<Span>>,
}

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

impl Program {
    pub(crate) fn run(&self, seconds: f64, seed: u64) -> Run {
        let mut rng = rng(seed);
        let mut next: Vec<f64> =
            (0..self.threads).map(|_| rng.random::<f64>() * (self.think + self.hold)).collect();
        let mut run = Run {
            seconds,
            holds: Vec::new(),
            hand_offs: Vec::new(),
            waits: vec![Vec::new(); self.threads as usize],
        };
        let mut free_at = 0.0;
        loop {
            let (thread, &request) =
                next.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1)).unwrap();
            if request >= seconds {
                return run;
            }
            let mut start = request;
            let id = thread as u32;
            if free_at > request {
                start = free_at + self.hand_off;
                run.waits[thread].push(Span { thread: id, start: request, end: start });
                run.hand_offs.push(Span { thread: id, start: free_at, end: start });
            }
            free_at = start + self.hold_times.draw(self.hold, &mut rng);
            run.holds.push(Span { thread: id, start, end: free_at });
            next[thread] = free_at + self.think_times.draw(self.think, &mut rng);
        }
    }
}

/// The span that contains an instant, among spans that are in order and disjoint.
pub(crate) fn at(spans: &[Span], time: f64) -> Option<&Span> {
    let index = spans.partition_point(|span| span.start <= time).checked_sub(1)?;
    Some(&spans[index]).filter(|span| time < span.end)
}

impl Run {
    fn covered(&self, spans: &[Span]) -> f64 {
        let inside = |span: &Span| (span.end.min(self.seconds) - span.start).max(0.0);
        spans.iter().map(inside).sum::<f64>() / self.seconds
    }

    pub(crate) fn held(&self) -> f64 {
        self.covered(&self.holds)
    }

    pub(crate) fn queue(&self) -> f64 {
        self.waits.iter().map(|waits| self.covered(waits)).sum()
    }

    pub(crate) fn waiting(&self, thread: u32, time: f64) -> bool {
        at(&self.waits[thread as usize], time).is_some()
    }

    /// Random instants, drawn as the sampler draws its times.
    pub(crate) fn instants(&self, per_second: f64, seed: u64) -> Vec<f64> {
        let mut rng = rng(seed);
        let spans = (self.seconds * per_second) as u32;
        (0..spans).map(|span| (f64::from(span) + rng.random::<f64>()) / per_second).collect()
    }
}
