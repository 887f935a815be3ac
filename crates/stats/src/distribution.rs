//! Quantiles of the normal distribution and of Student's t.

/// Half-width of a 95% interval of the normal distribution, in standard errors: `normal(0.025)`.
pub const Z95: f64 = 1.959_963_984_540_054;

/// The quantile that the normal distribution exceeds with probability `tail`, accurate to seven
/// digits. `tail` must be at most 7.5%.
///
/// From M. J. Wichura, *Algorithm AS 241: the percentage points of the normal distribution*,
/// Applied Statistics 37, 1988; its formula for the middle of the distribution is left out.
pub fn normal(tail: f64) -> f64 {
    debug_assert!(0.0 < tail && tail <= 0.075, "{tail}");
    let root = (-tail.ln()).sqrt();
    if root <= 5.0 {
        let r = root - 1.6;
        (((0.170_238_211_03 * r + 1.306_728_481_6) * r + 2.756_815_39) * r + 1.423_437_277_7)
            / ((0.120_211_329_75 * r + 0.737_001_642_5) * r + 1.0)
    } else {
        let r = root - 5.0;
        (((0.017_337_203_997 * r + 0.428_682_943_37) * r + 3.081_226_386) * r + 6.657_905_115)
            / ((0.012_258_202_635 * r + 0.241_978_942_25) * r + 1.0)
    }
}

/// The quantile that Student's t exceeds with probability `tail`, which must be at most 7.5%. Fewer
/// than 2.5 degrees of freedom are rounded to one or two.
///
/// From G. W. Hill, *Algorithm 396: Student's t-quantiles*, Communications of the ACM 13, 1970.
pub fn student(tail: f64, freedom: f64) -> f64 {
    let (p, n) = (2.0 * tail, freedom);
    if n < 1.5 {
        return 1.0 / (std::f64::consts::FRAC_PI_2 * p).tan();
    }
    if n < 2.5 {
        return (2.0 / (p * (2.0 - p)) - 2.0).sqrt();
    }
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let y = (d * p).powf(2.0 / n);
    let square = if y > 0.05 + a {
        let x = -normal(tail);
        let x2 = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        let y = (((((0.4 * x2 + 6.3) * x2 + 36.0) * x2 + 94.5) / c - x2 - 3.0) / b + 1.0) * x;
        (a * y * y).exp_m1()
    } else {
        let inner = 1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0);
        ((inner + 0.5 / (n + 4.0)) * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y
    };
    (n * square).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (tail, quantile) in
            [(0.05, 1.644_853_6), (0.025, Z95), (0.005, 2.575_829_3), (1e-12, 7.034_483_8)]
        {
            let found = normal(tail);
            assert!((found / quantile - 1.0).abs() < 2e-7, "{tail}: {found}");
        }
        for (tail, freedom, quantile) in [
            (0.025, 1.0, 12.706_205),
            (0.025, 2.0, 4.302_653),
            (0.025, 3.0, 3.182_446),
            (0.025, 4.0, 2.776_445),
            (0.025, 5.0, 2.570_582),
            (0.025, 6.0, 2.446_912),
            (0.025, 10.0, 2.228_139),
            (0.025, 19.0, 2.093_024),
            (0.025, 120.0, 1.979_930),
            (0.025, 1e9, Z95),
            (0.005, 1.0, 63.656_741),
            (0.005, 3.0, 5.840_909),
            (0.005, 4.0, 4.604_095),
            (0.005, 5.0, 4.032_143),
            (0.005, 19.0, 2.860_935),
            (0.0005, 10.0, 4.586_894),
            (0.0005, 30.0, 3.645_959),
        ] {
            let found = student(tail, freedom);
            assert!((found / quantile - 1.0).abs() < 1e-5, "{tail} {freedom}: {found}");
        }
    }
}
