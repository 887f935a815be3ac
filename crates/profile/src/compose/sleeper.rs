//! Finds the program's function in which a lock's holder sleeps. Users can change that function,
//! but not the system call.

use std::collections::{HashMap, HashSet};

use threadtoll_judge::mend::Sleeper;
use threadtoll_primitive::function::{Part, is_queue, plain};

use crate::stacks::Stacks;

const MAX_STACKS: usize = 4;

/// Maximum number of functions between the system call and the reported function.
const WRAPPERS: usize = 4;

const MAX_CHARS: usize = 40;

pub(super) fn sleeper(
    holders: &HashMap<u32, u64>,
    waiters: &HashMap<u32, u64>,
    syscall: &str,
    stacks: &mut Stacks,
) -> Option<Sleeper> {
    let takers: HashSet<String> = most_frequent(waiters)
        .into_iter()
        .filter_map(|stack| stacks.caller(stack))
        .map(|name| plain(&name))
        .collect();
    let holding: Vec<Vec<(String, Part)>> = most_frequent(holders)
        .into_iter()
        .map(|stack| stacks.parts(stack))
        .filter(|frames| !frames.is_empty())
        .collect();
    let calls = |frames: &&Vec<(String, Part)>| {
        frames.iter().take(WRAPPERS).any(|(name, _)| name.contains(syscall))
    };
    let frames = holding.iter().find(calls).or_else(|| holding.first())?;
    find(frames, &takers)
}

fn find(frames: &[(String, Part)], takers: &HashSet<String>) -> Option<Sleeper> {
    let is_own = |&(_, part): &&(String, Part)| *part == Part::Program;
    let own: Vec<&str> = frames.iter().filter(is_own).map(|(name, _)| name.as_str()).collect();
    let &innermost = own.first()?;
    let taker = own.iter().position(|name| takers.contains(*name));
    Some(match taker {
        Some(0) => Sleeper::Taker(short(innermost)),
        Some(taker) => Sleeper::Called(short(own[taker - 1])),
        // The innermost function may only wrap the system call, so its caller is named as well.
        None => {
            let names: Vec<String> = own.iter().take(2).map(|name| short(name)).collect();
            Sleeper::Holder(names.join(" ← "))
        }
    })
}

/// Returns `true` if the holder waits for work: the function that took the lock belongs to a queue,
/// or has called a queue's function.
pub(super) fn waits_at_queue(
    holders: &HashMap<u32, u64>,
    waiters: &HashMap<u32, u64>,
    stacks: &mut Stacks,
) -> bool {
    let takers: HashSet<String> =
        most_frequent(waiters).into_iter().filter_map(|stack| stacks.caller(stack)).collect();
    let Some(most) = most_frequent(holders).first().copied() else { return false };
    let (names, _) = stacks.names(most);
    let inner =
        names.iter().position(|name| takers.contains(name)).map_or(&[][..], |at| &names[..=at]);
    inner.iter().any(|name| is_queue(&plain(name)))
}

fn most_frequent(stacks: &HashMap<u32, u64>) -> Vec<u32> {
    let mut all: Vec<(u32, u64)> =
        stacks.iter().map(|(&stack, &samples)| (stack, samples)).collect();
    all.sort_by_key(|&(stack, samples)| (std::cmp::Reverse(samples), stack));
    all.into_iter().take(MAX_STACKS).map(|(stack, _)| stack).collect()
}

fn short(name: &str) -> String {
    let ends = name.match_indices("::").map(|(at, separator)| &name[at + separator.len()..]);
    let fits = |end: &&str| end.chars().count() <= MAX_CHARS;
    let short = std::iter::once(name).chain(ends).find(fits);
    short.map_or_else(|| name.chars().take(MAX_CHARS).collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(frames: &[(&str, Part)], takers: &[&str]) -> Option<Sleeper> {
        let frames: Vec<_> = frames.iter().map(|&(name, part)| (name.to_owned(), part)).collect();
        find(&frames, &takers.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn the_function_that_the_holder_calls_while_it_holds_the_lock_is_named() {
        let own = Part::Program;
        let frames = [
            ("clock_nanosleep", Part::Library),
            ("wait_for_disk", own),
            ("rebuild", own),
            ("work", own),
            ("start_thread", Part::Start),
        ];
        let called = |name: &str| Some(Sleeper::Called(name.to_owned()));
        assert_eq!(found(&frames, &["work"]), called("rebuild"));
        assert_eq!(found(&frames, &["rebuild", "work"]), called("wait_for_disk"));
        let itself = Some(Sleeper::Taker("wait_for_disk".to_owned()));
        assert_eq!(found(&frames, &["wait_for_disk"]), itself);
        let holder = Some(Sleeper::Holder("wait_for_disk ← rebuild".to_owned()));
        assert_eq!(found(&frames, &["get"]), holder);
        assert_eq!(found(&frames[..1], &[]), None);
    }

    #[test]
    fn long_paths_lose_their_beginning() {
        assert_eq!(short("server::cache::Cache::rebuild"), "server::cache::Cache::rebuild");
        let long = "company::product::component::server::cache::Cache::rebuild";
        assert_eq!(short(long), "component::server::cache::Cache::rebuild");
        assert_eq!(short(&"a".repeat(50)).len(), MAX_CHARS);
    }
}
