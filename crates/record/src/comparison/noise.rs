//! Noise between two runs.
//!
//! The variance of a change has two parts. The part within a run comes from the record's intervals,
//! which include the noise between blocks and between processes. The part between runs is estimated
//! from repetitions: the same cell in other groups of a run, measured minutes apart. Since there
//! are only a few repetitions, the estimate is shrunk towards the usual value, as in G. K. Smyth,
//! *Linear models and empirical Bayes methods* (Statistical Applications in Genetics and Molecular
//! Biology 3, 2004). The degrees of freedom of both parts are combined as in F. E. Satterthwaite,
//! *An approximate distribution of estimates of variance components* (Biometrics 2, 1946).

use threadtoll_stats::{Z95, student};

use crate::{Cell, Work};

use super::observed::Observation;

/// Usual noise between runs of unchanged code on virtual machines, minutes apart: the standard
/// deviation of the logarithm of a cell's figure. The values are for spinning threads, sleeping
/// threads and speed-ups. They come from the repeated runs in `docs/results`.
const VIRTUAL: [f64; 3] = [0.03, 0.08, 0.01];
/// Usual noise on other machines: assumed to be a third of that on virtual machines.
const BARE: [f64; 3] = [VIRTUAL[0] / 3.0, VIRTUAL[1] / 3.0, VIRTUAL[2] / 3.0];
/// The usual noise counts as much as this number of repetitions.
const USUAL: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    usual: f64,
}

impl Family {
    pub(super) fn of(cell: &Cell, sleeps: bool, virtualised: bool) -> Self {
        let at = match cell.lock() {
            // The scheduler decides how often the holder loses its CPU, so such cells are as noisy
            // as those of sleeping threads.
            Some(_) if cell.oversubscribed() => 1,
            Some(lock) if lock.work == Work::Spin => 2,
            _ if sleeps => 1,
            _ => 0,
        };
        Family { usual: if virtualised { VIRTUAL[at] } else { BARE[at] } }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    variance: f64,
    freedom: f64,
}

impl Noise {
    /// Half-width of the interval of one of `ratios` changes. With 95% confidence, all these
    /// intervals contain their true values.
    pub(super) fn reach(self, ratios: usize) -> f64 {
        student(0.025 / ratios as f64, self.freedom) * self.variance.sqrt()
    }
}

pub(super) fn noise(observations: [&[&Observation]; 2], family: Family) -> Noise {
    let (mut squares, mut repeats, mut within) = (USUAL * family.usual.powi(2), USUAL, 0.0);
    for run in observations {
        let count = run.len() as f64;
        let mean = run.iter().map(|one| one.log).sum::<f64>() / count;
        squares += run.iter().map(|one| (one.log - mean).powi(2)).sum::<f64>();
        repeats += count - 1.0;
        let of_interval = |one: &&Observation| (one.half_width / Z95).powi(2);
        within += run.iter().map(of_interval).sum::<f64>() / count.powi(2);
    }
    // Groups of the same run differ less than groups of different runs, so the variance is not
    // divided by the number of groups.
    let between = 2.0 * squares / repeats;
    let variance = within + between;
    Noise { variance, freedom: (variance / between).powi(2) * repeats }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(log: f64, group: usize) -> Observation {
        Observation { half_width: 0.01, group, ..Observation::fixture(log) }
    }

    #[test]
    fn repetitions_that_differ_widen_and_those_that_agree_narrow() {
        let usual = Family { usual: 0.02 };
        let reach = |logs: &[f64]| {
            let own: Vec<Observation> =
                logs.iter().enumerate().map(|(group, log)| observation(*log, group)).collect();
            let own: Vec<&Observation> = own.iter().collect();
            noise([&own, &own], usual).reach(5)
        };
        let once = reach(&[1.0]);
        assert!((0.06..0.12).contains(&once), "{once}");
        assert!(reach(&[1.0; 10]) < 0.8 * once);
        assert!(reach(&[0.9, 1.1]) > 1.5 * once);
    }
}
