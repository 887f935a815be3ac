use std::cmp::Ordering;

/// The mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median (of an even number of values, the mean of the middle two); `None` if there are no
/// values.
pub fn median<T: Into<f64> + From<f64>>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<f64> = values.into_iter().map(Into::into).collect();
    let upper = upper_median(&mut values, f64::total_cmp)?;
    if values.len() % 2 == 1 {
        return Some(upper.into());
    }
    let below = values[..values.len() / 2].iter().copied().max_by(f64::total_cmp)?;
    Some(((below + upper) / 2.0).into())
}

/// The upper median (of an even number of values, the larger of the middle two); `None` if there
/// are no values. Reorders the values.
pub fn upper_median<T: Copy>(values: &mut [T], compare: impl Fn(&T, &T) -> Ordering) -> Option<T> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, compare).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts_are_the_textbook_ones() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median::<f64>([]), None);
        assert_eq!(upper_median(&mut [4, 1, 2, 3], i32::cmp), Some(3));
        assert_eq!(upper_median(&mut [], f64::total_cmp), None);
    }
}
