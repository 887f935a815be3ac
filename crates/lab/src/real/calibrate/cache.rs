//! Measurements that several cells of a group share.

use crate::LabError;

pub(super) struct Cache<K, V>(Vec<(K, V)>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Cache(Vec::new())
    }
}

impl<K: PartialEq, V: Clone> Cache<K, V> {
    pub(super) fn get_or_measure(
        &mut self,
        key: K,
        measure: impl FnOnce() -> Result<V, LabError>,
    ) -> Result<V, LabError> {
        if let Some((_, known)) = self.0.iter().find(|(other, _)| *other == key) {
            return Ok(known.clone());
        }
        let value = measure()?;
        self.0.push((key, value.clone()));
        Ok(value)
    }
}
