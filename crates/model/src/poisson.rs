//! Means over the Poisson distribution.

/// Smallest weight, relative to that of the mode, that still counts.
const NEGLIGIBLE: f64 = 1e-20;

/// Mean of `value` over a Poisson distribution with this mean.
///
/// Weights are relative to that of the mode, so no factorial overflows (B. L. Fox and P. W. Glynn,
/// *Computing Poisson probabilities*, Communications of the ACM 31, 1988).
pub(crate) fn over(mean: f64, value: impl Fn(u32) -> f64) -> f64 {
    let mode = mean as u32;
    let (mut sum, mut total) = (value(mode), 1.0);
    let mut weight = 1.0;
    for below in (0..mode).rev() {
        weight *= f64::from(below + 1) / mean;
        if weight < NEGLIGIBLE {
            break;
        }
        sum += weight * value(below);
        total += weight;
    }
    weight = 1.0;
    for above in mode.saturating_add(1).. {
        weight *= mean / f64::from(above);
        if weight < NEGLIGIBLE {
            break;
        }
        sum += weight * value(above);
        total += weight;
    }
    sum / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distribution() {
        for mean in [0.0, 0.3, 1.0, 7.5, 1e3, 1e6] {
            let first = over(mean, f64::from);
            let spread = over(mean, |number| (f64::from(number) - mean).powi(2));
            assert!((first - mean).abs() <= 1e-9 * mean, "{mean}: {first}");
            assert!((spread - mean).abs() <= 1e-9 * mean, "{mean}: {spread}");
        }
        assert!((over(2.0, |number| f64::from(number == 0)) - (-2.0f64).exp()).abs() < 1e-15);
    }
}
