//! The universal scalability law: a curve through measured throughputs, not a prediction.
//!
//! `X(N) = γN / (1 + α(N−1) + βN(N−1))` (N. J. Gunther, *Guerrilla Capacity Planning*, Springer
//! 2007; *A general theory of computational scalability based on rational functions*,
//! arXiv:0808.1431). The law knows nothing about hold and think times, so the curve bends only
//! where the points bend. A curve fitted below the knee of a lock promises growth that does not
//! come. Present it as a fit, and never beyond twice the largest measured number of threads
//! ([`Fit::trusted_up_to`]).
//!
//! The fit minimises squared *relative* errors with non-negative α and β. It applies the
//! Levenberg-Marquardt method (D. W. Marquardt, *An algorithm for least-squares estimation of
//! nonlinear parameters*, J. SIAM 11, 1963) to the linear form of the reciprocal.

use crate::{MAX_THREADS, ModelError};

/// A maximum counts as a peak only if throughput then falls by at least this share. On a level
/// curve, a smaller fall may be due to rounding.
const MIN_FALL: f64 = 0.01;

/// Error that is assumed for a curve with no more points than coefficients. Such a curve runs
/// through all points, whatever their errors are.
const UNKNOWN_ERROR: f64 = 0.05;

/// Smallest number of threads of a point. It is below 1 where it is the mean number of busy
/// threads.
const MIN_THREADS: f64 = 1e-3;

/// A fitted curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Throughput of one thread, in the unit of the points.
    pub gamma: f64,
    /// Contention (α).
    pub alpha: f64,
    /// Coherency (β).
    pub beta: f64,
    /// Root of the mean squared relative error over the points.
    pub relative_rms: f64,
    /// Number of threads at which throughput peaks: the [highest point](Self::highest) of the
    /// curve, if the points show that throughput falls beyond it. `None` unless the point with the
    /// most threads is beyond it, and lower by more than 1% and by more than twice the standard
    /// error of a point.
    pub peak_threads: Option<u32>,
    /// Twice the largest measured number of threads, beyond which the curve must not be used.
    pub trusted_up_to: u32,
}

impl Fit {
    /// The curve's throughput at `threads`, in the unit of the points.
    pub fn throughput(&self, threads: impl Into<f64>) -> f64 {
        let n = threads.into();
        self.gamma * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }

    /// Number of threads at which the curve is highest; `None` if it still rises at
    /// [`trusted_up_to`](Self::trusted_up_to).
    pub fn highest(&self) -> Option<u32> {
        if self.alpha >= 1.0 {
            return Some(1);
        }
        let highest = ((1.0 - self.alpha) / self.beta).sqrt().max(1.0);
        if highest > f64::from(self.trusted_up_to) {
            return None;
        }
        let below = highest as u32;
        let above = below.saturating_add(1);
        Some(if self.throughput(above) > self.throughput(below) { above } else { below })
    }

    /// The [highest point](Self::highest), if the points show that throughput falls beyond it.
    /// `error` is the relative standard error of a point.
    fn peak(&self, points: &[(f64, f64)], error: f64) -> Option<u32> {
        let highest = self.highest()?;
        let means = means(points);
        let &(most, last) = means.last()?;
        if most <= f64::from(highest) {
            return None;
        }
        // Neither the curve nor a single point may claim more than the other confirms.
        let measured = means.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
        let fall = 1.0 - last / self.throughput(highest).min(measured);
        (fall > MIN_FALL.max(2.0 * error)).then_some(highest)
    }
}

/// Mean throughput of each number of threads, in ascending order.
fn means(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    sorted
        .chunk_by(|one, other| one.0 == other.0)
        .map(|equal| {
            let sum: f64 = equal.iter().map(|(_, throughput)| throughput).sum();
            (equal[0].0, sum / equal.len() as f64)
        })
        .collect()
}

/// Fits the curve to measured pairs of threads and throughput. The number of threads may be a mean
/// number of busy threads, such as throughput × latency (Little's law).
///
/// ```
/// use threadtoll_model::usl;
///
/// let fit = usl::fit(&[(1, 100.0), (2, 190.0), (4, 340.0), (8, 520.0)])?;
/// assert_eq!((fit.trusted_up_to, fit.peak_threads), (16, None));
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If fewer than three different numbers of threads were measured, a number of threads is below a
/// thousandth or above [`MAX_THREADS`], or a throughput is not a positive number.
pub fn fit<N: Copy + Into<f64>>(points: &[(N, f64)]) -> Result<Fit, ModelError> {
    let points: Vec<(f64, f64)> =
        points.iter().map(|&(threads, throughput)| (threads.into(), throughput)).collect();
    for &(threads, throughput) in &points {
        if !(MIN_THREADS..=f64::from(MAX_THREADS)).contains(&threads) {
            return Err(ModelError::Figure {
                what: "number of threads",
                value: threads,
                range: "from 0.001 to 10 million",
            });
        }
        if !(1e-30..=1e30).contains(&throughput) {
            return Err(ModelError::Figure {
                what: "throughput",
                value: throughput,
                range: "a positive number (1e-30 to 1e30)",
            });
        }
    }
    let means = means(&points);
    if means.len() < 3 {
        return Err(ModelError::TooFew {
            what: "different numbers of threads",
            least: 3,
            given: means.len(),
        });
    }
    // 1/X is linear in 1/γ, α/γ and β/γ. To keep α and β non-negative, each is either fitted or
    // fixed at zero. All four combinations are tried.
    let rows: Vec<Row> = points.iter().map(|&point| Row::new(point)).collect();
    let fitted = [[true, true], [true, false], [false, true], [false, false]]
        .into_iter()
        .map(|[alpha, beta]| descend(&rows, [true, alpha, beta]))
        .filter(|theta| theta[0] > 0.0 && theta[1] >= 0.0 && theta[2] >= 0.0)
        .min_by(|one, other| squares(&rows, one).total_cmp(&squares(&rows, other)))
        .unwrap_or([1.0, 0.0, 0.0]);
    let largest = means.last().map_or(1.0, |(threads, _)| *threads);
    let squares = squares(&rows, &fitted);
    let coefficients = fitted.iter().filter(|coefficient| **coefficient > 0.0).count();
    let error = match rows.len().saturating_sub(coefficients) {
        0 => UNKNOWN_ERROR,
        freedom => (squares / freedom as f64).sqrt(),
    };
    let fit = Fit {
        gamma: 1.0 / fitted[0],
        alpha: fitted[1] / fitted[0],
        beta: fitted[2] / fitted[0],
        relative_rms: (squares / rows.len() as f64).sqrt(),
        peak_threads: None,
        trusted_up_to: ((2.0 * largest) as u32).max(1),
    };
    Ok(Fit { peak_threads: fit.peak(&points, error), ..fit })
}

/// Coefficients of 1/γ, α/γ and β/γ for one measured point. Their weighted sum is 1 for a perfect
/// fit.
#[derive(Clone, Copy, Debug)]
struct Row([f64; 3]);

impl Row {
    fn new((n, throughput): (f64, f64)) -> Self {
        Self([throughput / n, throughput * (n - 1.0) / n, throughput * (n - 1.0)])
    }

    /// Ratio of measured to modelled throughput.
    fn ratio(&self, theta: &[f64; 3]) -> f64 {
        self.0.iter().zip(theta).map(|(coefficient, value)| coefficient * value).sum()
    }
}

/// Sum of squared relative errors of the modelled throughput.
fn squares(rows: &[Row], theta: &[f64; 3]) -> f64 {
    rows.iter().map(|row| (1.0 / row.ratio(theta) - 1.0).powi(2)).sum()
}

/// Minimises the squared relative errors over the coefficients in `free`; the others stay zero.
fn descend(rows: &[Row], free: [bool; 3]) -> [f64; 3] {
    // The best straight line through the origin is always a valid start.
    let mut theta =
        [rows.iter().map(|row| 1.0 / row.0[0]).sum::<f64>() / rows.len() as f64, 0.0, 0.0];
    let mut error = squares(rows, &theta);
    let mut damping = 1e-3;
    for _ in 0..500 {
        let mut normal = [[0.0; 3]; 3];
        let mut slope = [0.0; 3];
        for row in rows {
            let ratio = row.ratio(&theta);
            let residual = 1.0 / ratio - 1.0;
            let by = row.0.map(|coefficient| -coefficient / (ratio * ratio));
            for (i, line) in normal.iter_mut().enumerate() {
                slope[i] -= by[i] * residual;
                for (entry, by_j) in line.iter_mut().zip(by) {
                    *entry += by[i] * by_j;
                }
            }
        }
        for i in 0..3 {
            normal[i][i] *= 1.0 + damping;
            if !free[i] {
                slope[i] = 0.0;
                normal[i] = [0.0; 3];
                for row in &mut normal {
                    row[i] = 0.0;
                }
                normal[i][i] = 1.0;
            }
        }
        let Some(step) = solve(normal, slope) else { break };
        let tried: [f64; 3] = std::array::from_fn(|i| theta[i] + step[i]);
        let tried_error = squares(rows, &tried);
        // A step across a pole of the curve may look good by accident, so each modelled throughput
        // must stay positive.
        let sound = tried_error.is_finite() && rows.iter().all(|row| row.ratio(&tried) > 0.0);
        if sound && tried_error <= error {
            let settled = error - tried_error <= 1e-15 * error;
            theta = tried;
            error = tried_error;
            damping = (damping * 0.3).max(1e-12);
            if settled {
                break;
            }
        } else {
            damping *= 5.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    theta
}

/// Solves three linear equations by elimination with pivoting; `None` if they are singular.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    let scale: [f64; 3] = std::array::from_fn(|i| 1.0 / matrix[i][i].sqrt());
    for i in 0..3 {
        right[i] *= scale[i];
        for j in 0..3 {
            matrix[i][j] *= scale[i] * scale[j];
        }
    }
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() < 1e-14 || !matrix[column][column].is_finite() {
            return None;
        }
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let upper = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(upper) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|j| matrix[row][j] * right[j]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(std::array::from_fn(|i| right[i] * scale[i]))
}
