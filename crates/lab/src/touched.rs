/// Writes to every page of the vector, because the kernel maps zeroed pages only when they are
/// touched. No page faults then happen while the clock runs.
pub(crate) fn touched<T: Clone + Default>(len: usize) -> Vec<T> {
    std::iter::repeat_n(std::hint::black_box(T::default()), len).collect()
}
