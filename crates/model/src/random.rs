//! Fast random numbers.
//!
//! Exponential numbers are drawn by the ziggurat method (G. Marsaglia and W. W. Tsang, *The
//! ziggurat method for generating random variables*, Journal of Statistical Software 5, 2000),
//! because taking a logarithm for each number would use a third of a simulation's time. 256 layers
//! of equal area cover the area under `e⁻ˣ`. In 99% of cases, a point in a layer is under the curve
//! without a further test.

use std::sync::LazyLock;

use rand::Rng;

const LAYERS: usize = 256;
/// Start of the tail in the lowest layer.
const TAIL: f64 = 7.697_117_470_131_05;
/// Area of a layer.
const AREA: f64 = 0.003_949_659_822_581_557;

/// Right ends of the layers, lowest first, and the height of the curve at each end.
struct Layers {
    right: [f64; LAYERS + 1],
    height: [f64; LAYERS + 1],
}

static ZIGGURAT: LazyLock<Layers> = LazyLock::new(|| {
    let mut right = [0.0f64; LAYERS + 1];
    // The rectangle and the tail of the lowest layer are treated as one rectangle of equal area.
    right[0] = AREA * TAIL.exp();
    right[1] = TAIL;
    for layer in 2..LAYERS {
        let below = right[layer - 1];
        right[layer] = -(AREA / below + (-below).exp()).ln();
    }
    Layers { right, height: right.map(|x| (-x).exp()) }
});

/// In [0, 1), with 53 random bits.
#[inline]
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// An integer below `limit`, by multiplication (D. Lemire, *Fast random integer generation in an
/// interval*, ACM TOMACS 29, 2019) without the rejection step. The bias is below `limit`/2⁶⁴.
#[inline]
pub(crate) fn below(rng: &mut impl Rng, limit: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(limit)) >> 64) as u64
}

/// Exponentially distributed with mean 1.
#[inline]
pub(crate) fn exponential(rng: &mut impl Rng) -> f64 {
    let Layers { right, height } = &*ZIGGURAT;
    loop {
        let bits = rng.next_u64();
        // The lowest 8 bits select the layer, and the highest 53 the position in the layer.
        let layer = (bits & 0xff) as usize;
        let x = (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64) * right[layer];
        if x < right[layer + 1] {
            return x;
        }
        if layer == 0 {
            // The exponential distribution is memoryless, so the tail is the curve itself, shifted.
            return TAIL - (1.0 - unit(rng)).ln();
        }
        if height[layer] + (height[layer + 1] - height[layer]) * unit(rng) < (-x).exp() {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn layers_meet_at_the_top() {
        // With the right area, the highest layer ends at a height of one.
        let Layers { right, height } = &*ZIGGURAT;
        let last = right[LAYERS - 1];
        assert!((last * (1.0 - height[LAYERS - 1]) - AREA).abs() < 1e-12);
    }

    #[test]
    fn shares_beyond_each_point_are_exponential() {
        const DRAWS: u32 = 1_000_000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let points = [0.001, 0.01, 0.06, 0.3, 1.0, 2.0, 4.0, 7.0, 7.7, 9.0, 11.0];
        let mut beyond = [0u32; 11];
        for _ in 0..DRAWS {
            let x = exponential(&mut rng);
            for (count, point) in beyond.iter_mut().zip(points) {
                *count += u32::from(x > point);
            }
        }
        for (count, point) in beyond.into_iter().zip(points) {
            let share = (-point).exp();
            let deviation = (share * (1.0 - share) * f64::from(DRAWS)).sqrt();
            let off = f64::from(count) - share * f64::from(DRAWS);
            assert!(
                off.abs() < 4.0 * deviation,
                "beyond {point}: {off} off, deviation {deviation}"
            );
        }
    }
}
