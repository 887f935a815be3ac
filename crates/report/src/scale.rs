/// Maximum number of ticks on an axis.
const MOST: usize = 11;

#[derive(Clone, Copy, Debug)]
enum Scale {
    Linear { high: f64 },
    Log { low: f64, high: f64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) title: String,
}

impl Axis {
    /// A logarithmic axis that extends beyond its values by the factor `margin`. Values that are
    /// not positive are ignored; `None` if there are no others.
    pub(crate) fn log(
        values: impl IntoIterator<Item = f64>,
        margin: f64,
        text: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return None;
        }
        let (low, high) = ((low / margin).max(f64::MIN_POSITIVE), (high * margin).min(f64::MAX));
        Some(Axis::new(Scale::Log { low, high }, log_ticks(low, high), text))
    }

    /// A linear axis from zero to `margin` times the largest value; `None` if no value is finite.
    pub(crate) fn from_zero(
        values: impl IntoIterator<Item = f64>,
        margin: f64,
        text: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let most = finite.reduce(f64::max)?;
        let high =
            if most > 0.0 { (most * margin).clamp(f64::MIN_POSITIVE, f64::MAX) } else { 1.0 };
        Some(Axis::new(Scale::Linear { high }, linear_ticks(high), text))
    }

    pub(crate) fn marked(low: f64, high: f64, ticks: Vec<(f64, String)>) -> Axis {
        Axis { scale: Scale::Log { low, high }, ticks, title: String::new() }
    }

    fn new(scale: Scale, ticks: Vec<f64>, text: impl Fn(f64) -> String) -> Axis {
        let ticks = ticks.into_iter().map(|value| (value, text(value))).collect();
        Axis { scale, ticks, title: String::new() }
    }

    pub(crate) fn titled(self, title: &str) -> Axis {
        Axis { title: title.to_string(), ..self }
    }

    /// Restricts labels to whole numbers.
    pub(crate) fn whole(mut self) -> Axis {
        self.ticks.retain(|(value, _)| value.fract() == 0.0);
        self
    }

    /// Position as a share of the axis length. A value beyond the axis is placed at its end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear { high } => value / high,
            Scale::Log { low, high } => (value.ln() - low.ln()) / (high.ln() - low.ln()),
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    pub(crate) fn high(&self) -> f64 {
        match self.scale {
            Scale::Linear { high } | Scale::Log { high, .. } => high,
        }
    }
}

/// At most six round values, from zero.
fn linear_ticks(high: f64) -> Vec<f64> {
    let power = 10_f64.powf((high / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|step| high / step <= 5.0).unwrap_or(high);
    let ticks = (0..=5).map(|nth| f64::from(nth) * step);
    ticks.filter(|tick| *tick <= high && tick.is_finite()).collect()
}

/// Ticks within a power of ten, from the most closely spaced set to the most widely spaced.
const STEPS: [&[f64]; 5] = [
    &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
    &[1.0, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 3.0],
    &[1.0],
];

/// Round values, as closely spaced as their labels allow.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |steps: &[f64], stride: usize| -> Vec<f64> {
        let powers = (from..=to).step_by(stride).map(|power| 10_f64.powi(power));
        let values = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        values.filter(|value| (low..=high).contains(value)).collect()
    };
    let all = STEPS.iter().map(|steps| inside(steps, 1));
    let sparse = (2..=700).map(|stride| inside(&[1.0], stride));
    all.chain(sparse).find(|ticks| ticks.len() <= MOST).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(values: &[f64]) -> Option<Axis> {
        Axis::log(values.iter().copied(), 1.25, |value| value.to_string())
    }

    #[test]
    fn linear_axes_have_round_ticks() {
        assert_eq!(linear_ticks(8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(linear_ticks(3.4), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(linear_ticks(1000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        for high in [f64::MIN_POSITIVE, 1e18, f64::MAX] {
            assert!(linear_ticks(high).len() <= 6, "{high}");
        }
    }

    #[test]
    fn logarithmic_axes_have_the_closest_round_ticks_that_fit() {
        assert_eq!(log_ticks(9.0, 21.0), [10.0, 12.0, 15.0, 20.0]);
        assert_eq!(log_ticks(0.9, 60.0), [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 30.0, 50.0]);
        assert_eq!(log_ticks(0.5, 3e6).len(), 7);
        for (low, high) in [(1e-300, 1e300), (f64::MIN_POSITIVE, f64::MAX), (1e299, 2e300)] {
            let ticks = log_ticks(low, high);
            assert!((2..=MOST).contains(&ticks.len()), "{low}–{high}: {ticks:?}");
            assert!(ticks.is_sorted());
        }
    }

    #[test]
    fn equal_values_stand_in_the_middle() {
        let axis = log(&[45.0, 45.0]).unwrap();
        assert!((axis.at(45.0) - 0.5).abs() < 1e-9 && axis.ticks.len() >= 2);
    }

    #[test]
    fn values_without_a_place_neither_move_the_axis_nor_leave_it() {
        let axis = log(&[0.0, -3.0, f64::NAN, f64::INFINITY, 10.0, 1000.0]).unwrap();
        assert!((axis.at(100.0) - 0.5).abs() < 1e-9);
        for odd in [0.0, -3.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(axis.at(odd), 0.0, "{odd}");
        }
        assert_eq!(axis.at(f64::INFINITY), 1.0);
        assert!(log(&[]).is_none() && log(&[0.0, f64::NAN]).is_none());
    }

    #[test]
    fn linear_axes_begin_at_zero_whatever_their_values() {
        let axis = |values: &[f64]| {
            Axis::from_zero(values.iter().copied(), 1.0, |value| value.to_string())
        };
        assert!(axis(&[]).is_none() && axis(&[f64::NAN]).is_none());
        assert_eq!(axis(&[0.0]).unwrap().at(0.0), 0.0);
        assert_eq!(axis(&[-4.0]).unwrap().at(-4.0), 0.0);
        assert_eq!(axis(&[5.0, 10.0]).unwrap().at(5.0), 0.5);
        assert_eq!(axis(&[f64::MAX]).unwrap().at(f64::MAX), 1.0);
        let whole = axis(&[2.0]).unwrap().whole();
        assert!(whole.ticks.iter().all(|(value, _)| value.fract() == 0.0));
    }
}
