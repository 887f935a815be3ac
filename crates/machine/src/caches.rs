//! Sizes of a CPU's own data caches, and what it takes to empty them.

use std::path::Path;

use crate::sysfs;

/// Highest level of caches that belong to a core, or to a few.
const PRIVATE_LEVELS: std::ops::RangeInclusive<u32> = 1..=2;
/// Most caches of a CPU.
const MAX_CACHES: u32 = 16;
/// Largest size that is believed.
const MAX_BYTES: u64 = 1 << 40;

/// Bytes of the data caches of levels 1 and 2 of a CPU in the tree under `root`, which is `/sys` on
/// a real machine; `None` if it does not show them.
pub fn private_cache_bytes(root: &Path, cpu: u32) -> Option<u64> {
    let mut bytes = 0;
    for index in 0..MAX_CACHES {
        let cache = root.join(format!("devices/system/cpu/cpu{cpu}/cache/index{index}"));
        let Some(level) = sysfs::text(cache.join("level")) else { break };
        let holds_data =
            sysfs::text(cache.join("type")).is_some_and(|kind| kind == "Data" || kind == "Unified");
        if holds_data && level.parse().is_ok_and(|level| PRIVATE_LEVELS.contains(&level)) {
            bytes += sysfs::text(cache.join("size")).and_then(|size| size_bytes(&size))?;
        }
    }
    (bytes > 0).then_some(bytes)
}

/// `48K`, as the kernel writes sizes of caches.
fn size_bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('M') {
        Some(number) => (number, 1 << 20),
        None => (text.strip_suffix('K').unwrap_or(text), 1 << 10),
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
    (bytes <= MAX_BYTES).then_some(bytes)
}
