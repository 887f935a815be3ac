//! Calibration figures that were measured repeatedly. Consecutive repeats form batches, whose
//! spread shows the error of a calibration, including drifts of the machine's speed.

use threadtoll_stats::{mean, upper_median};

/// Number of batches: enough to estimate an error, but few enough to make a prediction from each.
pub(crate) const BATCHES: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Batch(usize),
}

impl Part {
    pub(crate) fn batches() -> impl Iterator<Item = Part> {
        (0..BATCHES).map(Part::Batch)
    }

    /// `repeats` must be in the order of measurement. If there are fewer repeats than batches, some
    /// batches share a repeat.
    pub(crate) fn of<T>(self, repeats: &[T]) -> &[T] {
        let count = repeats.len();
        match self {
            Part::All => repeats,
            Part::Batch(_) if count == 0 => repeats,
            Part::Batch(batch) if count < BATCHES => {
                let at = batch % count;
                &repeats[at..=at]
            }
            Part::Batch(batch) => &repeats[batch * count / BATCHES..(batch + 1) * count / BATCHES],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repeated {
    all: f64,
    batches: [f64; BATCHES],
}

impl Repeated {
    pub(crate) fn by_part(figure: impl Fn(Part) -> f64) -> Self {
        Repeated {
            all: figure(Part::All),
            batches: std::array::from_fn(|batch| figure(Part::Batch(batch))),
        }
    }

    /// NaN if there are no values.
    pub(crate) fn median(repeats: &[f64]) -> Self {
        Self::by_part(|part| {
            upper_median(&mut part.of(repeats).to_vec(), f64::total_cmp).unwrap_or(f64::NAN)
        })
    }

    /// NaN if there are no values.
    pub(crate) fn mean(repeats: &[f64]) -> Self {
        Self::by_part(|part| mean(part.of(repeats)).unwrap_or(f64::NAN))
    }

    pub(crate) fn exact(value: f64) -> Self {
        Self::by_part(|_| value)
    }

    pub(crate) fn get(&self, part: Part) -> f64 {
        match part {
            Part::All => self.all,
            Part::Batch(batch) => self.batches[batch],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_consecutive_and_hold_every_repeat_once() {
        for count in [9, 10, 27, 41, 602] {
            let repeats: Vec<usize> = (0..count).collect();
            let joined: Vec<usize> =
                Part::batches().flat_map(|part| part.of(&repeats).to_vec()).collect();
            assert_eq!(joined, repeats);
        }
        assert_eq!(Part::Batch(4).of(&[1, 2, 3]), [2], "fewer repeats than batches");
        assert!(Part::Batch(4).of::<f64>(&[]).is_empty());
    }

    #[test]
    fn a_figure_comes_from_all_repeats_and_from_each_batch() {
        let repeats: Vec<f64> = (0..27).map(f64::from).collect();
        let figure = Repeated::median(&repeats);
        assert_eq!((figure.get(Part::All), figure.get(Part::Batch(8))), (13.0, 25.0));
    }
}
