/// Halvings of an interval: its ends then differ by no more than a double can tell.
const HALVINGS: u32 = 60;

/// End of the numbers between `low` and `high` for which `is_low` holds. It must hold up to some
/// number, and not beyond it.
pub(crate) fn bisect(mut low: f64, mut high: f64, is_low: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_low(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
