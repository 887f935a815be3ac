//! Memory that does not fault while the clock runs.

/// A vector of this length, every page of which has been written: fresh zeroed pages are not mapped
/// before they are touched.
pub(crate) fn touched<T: Clone + Default>(len: usize) -> Vec<T> {
    std::iter::repeat_n(std::hint::black_box(T::default()), len).collect()
}
