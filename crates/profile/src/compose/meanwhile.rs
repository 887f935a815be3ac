//! For waits that do not name a thread: finds the function in which one thread at a time is found
//! while others wait, and that thread's states.
//!
//! If threads take turns, be it at a lock or as leaders of a group commit, one of them is inside
//! while the others wait. So if a function usually has exactly one thread in it while others wait,
//! the others wait for that thread.

use std::collections::{BTreeMap, HashMap, HashSet};

use threadtoll_record::profile::{Meanwhile, StateShare, StateThen};
use threadtoll_record::{Fraction, Text};

use super::locks::syscall_name;
use super::turns::leave_like_a_lock;
use crate::account::{ProcessAccount, SampledState, ThreadThen, Time};
use crate::stacks::Stacks;

/// Minimum number of instants that show a thread in the function.
const FEWEST: usize = 5;

/// Minimum share of instants with exactly one thread in the function.
const MOST: f64 = 0.8;

/// Minimum share of a state's samples with which one stack or function represents all of them.
const MOSTLY: f64 = 0.6;

const MAX_STATES: usize = 3;
const LEAST: f64 = 0.05;

#[derive(Debug, Default)]
struct Seen {
    /// Number of instants with the function on exactly one thread's stack, and number with it on
    /// several.
    by_one: usize,
    by_several: usize,
    /// Number of instants with the function on one stack, while another thread showed no stack.
    by_one_or_more: usize,
    /// Sum over all counted instants of the function's mean distance from the innermost function.
    depth: usize,
}

#[derive(Debug, Default)]
struct InState {
    instants: usize,
    with: BTreeMap<Vec<String>, usize>,
}

struct Others<'a> {
    all: Vec<&'a ThreadThen>,
}

/// Finds the function that one thread at a time was in while threads waited with one of these
/// stacks. Returns `None` if no function usually has exactly one thread in it.
pub(super) fn meanwhile(
    process: &ProcessAccount,
    waiting_at: &HashSet<u32>,
    stacks: &mut Stacks,
) -> Option<Meanwhile> {
    let waits = |thread: &ThreadThen| {
        let stack = thread.stack.or_else(|| usual_stack(process, thread));
        thread.waits_for_others(&process.targets)
            && stack.is_some_and(|stack| waiting_at.contains(&stack))
    };
    let instants: Vec<&[ThreadThen]> =
        process.instants.all().filter(|instant| instant.iter().any(waits)).collect();
    if instants.len() < FEWEST {
        return None;
    }
    let users: HashSet<u32> = instants
        .iter()
        .flat_map(|instant| instant.iter())
        .filter(|thread| waits(thread))
        .map(|thread| thread.tid)
        .collect();
    let at_rest = at_rest(&instants);
    let others: Vec<Others<'_>> = instants
        .iter()
        .map(|instant| {
            let may = |thread: &&ThreadThen| {
                !thread.waits_for_others(&process.targets)
                    && thread.state != SampledState::Doing(Time::Idle)
                    && !at_rest.contains(&thread.tid)
            };
            Others { all: instant.iter().filter(may).collect() }
        })
        .collect();
    let mut functions: HashMap<u32, Vec<String>> = HashMap::new();
    for stack in others.iter().flat_map(|others| &others.all).filter_map(|thread| thread.stack) {
        functions.entry(stack).or_insert_with(|| stacks.own_functions(stack));
    }
    let running = function_that_runs(process, stacks);
    let function =
        place_of_one(&others, &functions).or_else(|| running.filter(|_| one_runs(&others)))?;
    let found: Vec<&ThreadThen> =
        others.iter().filter_map(|others| others.in_function(&function, &functions)).collect();
    let threads: HashSet<u32> = found.iter().map(|thread| thread.tid).collect();
    let by_users = found.iter().filter(|thread| users.contains(&thread.tid)).count();
    let takes_turns = 2 * by_users > found.len();
    let is_like_a_lock =
        takes_turns && threads.len() >= 2 && leave_like_a_lock(&instants, waits, &users);
    Some(Meanwhile {
        function: Text::from(function),
        threads: threads.len() as u32,
        takes_turns,
        is_like_a_lock,
        states: states(process, &found, stacks),
    })
}

fn usual_stack(process: &ProcessAccount, thread: &ThreadThen) -> Option<u32> {
    let SampledState::On { place, .. } = thread.state else { return None };
    let at = &process.targets.get(place as usize)?.waiting_at;
    at.iter().max_by_key(|&(&stack, &samples)| (samples, stack)).map(|(&stack, _)| stack)
}

/// Threads that never left one system call and, as far as known, one stack. They take no part.
fn at_rest(instants: &[&[ThreadThen]]) -> HashSet<u32> {
    let mut places: HashMap<u32, Option<(u32, Option<u32>)>> = HashMap::new();
    for thread in instants.iter().flat_map(|instant| instant.iter()) {
        let here = thread.call.map(|call| (call, thread.stack));
        let place = places.entry(thread.tid).or_insert(here);
        *place = match (*place, here) {
            (Some((call, known)), Some((again, stack)))
                if call == again && (known == stack || known.is_none() || stack.is_none()) =>
            {
                Some((call, known.or(stack)))
            }
            _ => None,
        };
    }
    places.retain(|_, place| place.is_some());
    places.into_keys().collect()
}

fn place_of_one(others: &[Others<'_>], functions: &HashMap<u32, Vec<String>>) -> Option<String> {
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for others in others {
        let mut here: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for thread in &others.all {
            let Some(names) = thread.stack.and_then(|stack| functions.get(&stack)) else {
                continue;
            };
            let distinct: BTreeMap<&str, usize> =
                names.iter().enumerate().rev().map(|(depth, name)| (&**name, depth)).collect();
            for (name, depth) in distinct {
                let of = here.entry(name).or_default();
                *of = (of.0 + 1, of.1 + depth);
            }
        }
        // A thread without a stack may be in any function.
        let all_shown = others.all.iter().all(|thread| thread.stack.is_some());
        for (name, (threads, depth)) in here {
            let of = seen.entry(name).or_default();
            match (threads, all_shown) {
                (1, true) => of.by_one += 1,
                (1, false) => of.by_one_or_more += 1,
                _ => of.by_several += 1,
            }
            of.depth += depth / threads;
        }
    }
    // If the only other thread has no stack, it may be in any function.
    let open = others.iter().filter(|others| others.alone_without_stack().is_some()).count();
    // An instant shows nothing if the function is on no stack, but one of several threads has no
    // stack.
    let fits = |name: &str, of: &Seen| {
        let unknown = others
            .iter()
            .filter(|others| others.all.len() > 1 && others.may_hide(name, functions))
            .count();
        let known = others.len() - unknown - of.by_one_or_more;
        of.by_one >= FEWEST && (of.by_one + open) as f64 >= MOST * known as f64
    };
    let fitting = seen.iter().filter(|(name, of)| fits(name, of));
    let depth =
        |of: &Seen| of.depth as f64 / (of.by_one + of.by_several + of.by_one_or_more) as f64;
    let innermost = fitting.min_by(|(one_name, one), (other_name, other)| {
        depth(one).total_cmp(&depth(other)).then_with(|| one_name.cmp(other_name))
    });
    innermost.map(|(name, _)| (*name).to_owned())
}

fn one_runs(others: &[Others<'_>]) -> bool {
    let sole = others.iter().filter_map(|others| match others.all[..] {
        [thread] => Some(thread),
        _ => None,
    });
    let sole: Vec<&ThreadThen> = sole.collect();
    let run = sole.iter().filter(|thread| thread.state.has_or_wants_cpu()).count();
    sole.len() as f64 >= MOST * others.len() as f64 && 2 * run > sole.len()
}

fn function_that_runs(process: &ProcessAccount, stacks: &mut Stacks) -> Option<String> {
    let mut seen: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut all = 0;
    for (&stack, &samples) in &process.ran_at {
        all += samples;
        let names = stacks.own_functions(stack);
        let distinct: BTreeMap<String, u64> =
            (0..).zip(names).map(|(depth, name)| (name, depth)).collect();
        for (name, depth) in distinct {
            let of = seen.entry(name).or_default();
            *of = (of.0 + samples, of.1 + depth * samples);
        }
    }
    seen.retain(|_, (samples, _)| *samples as f64 >= MOSTLY * all as f64);
    let depth = |of: &(u64, u64)| of.1 as f64 / of.0 as f64;
    let innermost = seen
        .into_iter()
        .filter(|_| all >= FEWEST as u64)
        .min_by(|(_, one), (_, other)| depth(one).total_cmp(&depth(other)));
    innermost.map(|(name, _)| name)
}

impl<'a> Others<'a> {
    fn alone_without_stack(&self) -> Option<&'a ThreadThen> {
        match self.all[..] {
            [thread] => Some(thread).filter(|thread| thread.stack.is_none()),
            _ => None,
        }
    }

    fn may_hide(&self, function: &str, functions: &HashMap<u32, Vec<String>>) -> bool {
        self.all.iter().any(|thread| thread.stack.is_none())
            && !self.all.iter().any(|thread| is_in(thread, function, functions))
    }

    fn in_function(
        &self,
        function: &str,
        functions: &HashMap<u32, Vec<String>>,
    ) -> Option<&'a ThreadThen> {
        let mut inside = self.all.iter().filter(|thread| is_in(thread, function, functions));
        let hidden = self.all.iter().any(|thread| thread.stack.is_none());
        match (inside.next(), inside.next()) {
            (Some(_), None) if hidden => None,
            (Some(thread), None) => Some(thread),
            (None, _) => self.alone_without_stack(),
            (Some(_), Some(_)) => None,
        }
    }
}

fn is_in(thread: &ThreadThen, function: &str, functions: &HashMap<u32, Vec<String>>) -> bool {
    let names = thread.stack.and_then(|stack| functions.get(&stack));
    names.is_some_and(|names| names.iter().any(|name| name == function))
}

fn states(process: &ProcessAccount, found: &[&ThreadThen], stacks: &mut Stacks) -> Vec<StateShare> {
    let mut seen: BTreeMap<(StateThen, Option<u32>), InState> = BTreeMap::new();
    for thread in found {
        let state = match thread.state {
            SampledState::On { place, .. } => match process.targets.get(place as usize) {
                Some(target) if target.is_lock() => StateThen::Lock,
                _ => StateThen::Asleep,
            },
            SampledState::Lock => StateThen::Lock,
            SampledState::Doing(Time::OnCpu | Time::Running) => StateThen::Running,
            SampledState::Doing(Time::Runnable) => StateThen::Runnable,
            SampledState::Doing(_) => StateThen::Asleep,
        };
        let call = thread.call.filter(|_| state == StateThen::Asleep);
        let of = seen.entry((state, call)).or_default();
        of.instants += 1;
        if let Some(stack) = thread.stack {
            *of.with.entry(stacks.names(stack).0).or_default() += 1;
        }
    }
    let of_state = |((state, call), of): ((StateThen, Option<u32>), InState)| {
        let known: usize = of.with.values().sum();
        let most = of.with.into_iter().max_by_key(|&(_, instants)| instants);
        let most = most.filter(|&(_, instants)| instants as f64 >= MOSTLY * known as f64);
        let frames = most.map(|(names, _)| names).unwrap_or_default();
        StateShare {
            state,
            syscall: call.map(|call| Text::from(syscall_name(call))),
            frames: frames.into_iter().map(Text::from).collect(),
            share: Fraction::new(of.instants as f64 / found.len() as f64),
        }
    };
    let mut all: Vec<StateShare> = seen.into_iter().map(of_state).collect();
    all.retain(|one| one.share.get() >= LEAST);
    all.sort_by(|one, other| other.share.get().total_cmp(&one.share.get()));
    all.truncate(MAX_STATES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADS: u32 = 1;
    const THINKS: u32 = 2;

    fn functions() -> HashMap<u32, Vec<String>> {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect();
        [(LEADS, names(&["write_log", "commit", "client"])), (THINKS, names(&["think", "client"]))]
            .into()
    }

    fn thread(tid: u32, stack: Option<u32>) -> ThreadThen {
        ThreadThen::new(tid, SampledState::Doing(Time::Running), None, stack)
    }

    fn place(instants: &[&[ThreadThen]]) -> Option<String> {
        let others = instants.iter().map(|&instant| Others { all: instant.iter().collect() });
        let all: Vec<Others<'_>> = others.collect();
        let thirty: Vec<Others<'_>> =
            (0..30).flat_map(|_| all.iter().map(|one| Others { all: one.all.clone() })).collect();
        place_of_one(&thirty, &functions())
    }

    #[test]
    fn one_thread_at_a_time_leads_while_any_number_thinks() {
        let [leads, thinks, hidden] = [Some(LEADS), Some(THINKS), None];
        let alone: &[_] = &[thread(7, leads)];
        let beside: &[_] = &[thread(8, leads), thread(9, thinks), thread(7, thinks)];
        assert_eq!(place(&[alone, beside]).as_deref(), Some("write_log"));
        // A single thread without a stack may be in the function. If one of two has no stack,
        // nothing is known.
        let unseen: &[_] = &[thread(7, hidden)];
        let unclear: &[_] = &[thread(7, hidden), thread(8, thinks)];
        assert_eq!(place(&[alone, beside, unseen, unclear]).as_deref(), Some("write_log"));
        let both: &[_] = &[thread(7, leads), thread(8, leads)];
        assert_eq!(place(&[alone, both]), None);
        assert_eq!(place(&[alone, &[]]), None);
        assert_eq!(place(&[unseen]), None);
    }

    #[test]
    fn a_thread_that_never_moves_takes_no_part() {
        let asleep = |tid, stack| ThreadThen { call: Some(230), ..thread(tid, stack) };
        let first = [asleep(1, Some(5)), asleep(2, Some(5)), thread(3, None)];
        let second = [asleep(1, None), asleep(2, None), thread(3, None)];
        let third = [asleep(1, Some(5)), asleep(2, Some(6)), thread(3, None)];
        assert_eq!(at_rest(&[&first, &second, &third]), [1].into());
    }
}
