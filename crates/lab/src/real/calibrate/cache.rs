//! Measurements that several cells of a group share, each repeated in several passes.

use crate::LabError;

/// Repeats of a measurement, in the order in which they were taken.
pub(super) trait Repeats: Clone + Default {
    fn append(&mut self, more: Self);
}

impl<T: Clone> Repeats for Vec<T> {
    fn append(&mut self, more: Self) {
        self.extend(more);
    }
}

pub(super) struct Cache<K, V>(Vec<Measured<K, V>>);

struct Measured<K, V> {
    key: K,
    passes: usize,
    repeats: V,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Cache(Vec::new())
    }
}

impl<K: PartialEq, V: Repeats> Cache<K, V> {
    /// Returns the repeats of all passes so far. Measures first if there are none of the current
    /// pass. Passes are numbered from 1.
    pub(super) fn measured(
        &mut self,
        key: K,
        pass: usize,
        measure: impl FnOnce() -> Result<V, LabError>,
    ) -> Result<V, LabError> {
        let known = self.0.iter().position(|measured| measured.key == key);
        let at = known.unwrap_or_else(|| {
            self.0.push(Measured { key, passes: 0, repeats: V::default() });
            self.0.len() - 1
        });
        let measured = &mut self.0[at];
        if measured.passes < pass {
            measured.repeats.append(measure()?);
            measured.passes = pass;
        }
        Ok(measured.repeats.clone())
    }
}
