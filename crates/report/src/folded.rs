//! Folded stacks, the input of flame graphs: one line for each stack, outermost function first,
//! with its number of samples.
//!
//! The first frame is the role of the threads (`waiter`, `holder`, `candidate`, or `idle` for waits
//! that are not for a lock), the second is the lock. The format is that of Brendan Gregg's
//! `stackcollapse` scripts.

use std::collections::BTreeMap;

use threadtoll_record::profile::{Profile, Site};

use crate::clean::clean;
use crate::profile::{by_cost, waits};

/// Renders the stacks of all locks and of all other waits.
pub fn folded(profile: &Profile) -> String {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |role: &str, name: &str, site: &Site| {
        let mut stack = format!("{role};{}", frame(name));
        for function in site.frames.iter().rev() {
            stack.push(';');
            stack.push_str(&frame(function));
        }
        let samples = stacks.entry(stack).or_default();
        *samples = samples.saturating_add(site.samples.get());
    };
    for seen in by_cost(profile) {
        seen.lock.sites.iter().for_each(|site| add(site.role.name(), &seen.name(), site));
    }
    for waiting in waits::waits(profile) {
        waiting.wait.sites.iter().for_each(|site| add("idle", &waiting.name(), site));
    }
    stacks
        .iter()
        .filter(|(_, samples)| **samples > 0)
        .map(|(stack, samples)| format!("{stack} {samples}\n"))
        .collect()
}

fn frame(name: &str) -> String {
    clean(name).replace(';', ":")
}
