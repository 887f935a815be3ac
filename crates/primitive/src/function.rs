//! Classifies functions on stacks: the program's own, and those between the program and its locks.
//!
//! Each family of primitives declares the prefixes of its functions' names. The longest prefix that
//! matches decides.

use crate::{FAMILIES, FunctionName};

/// Role of a function on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The function takes or releases a lock, or is part of such an operation.
    Lock,
    /// The function sleeps, waits in another way, or wraps a system call.
    Wait,
    /// The function belongs to a language's library, a common library, or a virtual machine.
    Library,
    /// Code that a JIT compiler generated.
    Generated,
    /// The function starts threads or the program.
    Start,
    /// The function belongs to the program, as far as is known.
    Program,
}

/// Role of the function with this name.
pub fn part(function: &str) -> Part {
    FunctionName::parse(function).part()
}

/// [Path](FunctionName::path) of a function.
pub fn plain(function: &str) -> String {
    FunctionName::parse(function).path().to_owned()
}

/// Parts of names of functions in which idle threads of a pool wait for work.
const QUEUES: [&str; 15] = [
    "queue",
    "pop",
    "recv",
    "receive",
    "job",
    "task",
    "pool",
    "idle",
    "consume",
    "channel",
    "mailbox",
    "inbox",
    "worker_loop",
    "main_loop",
    "event_loop",
];

/// Parts of names of functions that wait for one of a limited number of things.
const LIMITS: [&str; 6] = ["borrow", "acquire", "checkout", "check_out", "lease", "connection"];

/// Returns `true` if the name of a function or of its type suggests that idle threads of a pool
/// wait there for work. Names of crates, modules and namespaces do not count.
pub fn is_queue(name: &str) -> bool {
    let name = FunctionName::parse(name).with_type().to_ascii_lowercase();
    let has_any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    has_any(&QUEUES) && !has_any(&LIMITS)
}

impl FunctionName {
    /// Role of the function.
    pub fn part(&self) -> Part {
        let fits = |&(beginning, _): &&(&str, Part)| match beginning.strip_suffix('$') {
            Some(whole) => self.path() == whole,
            None => self.path().starts_with(beginning),
        };
        let beginnings = FAMILIES.iter().flat_map(|family| {
            let of_rust = if self.may_be_rust() { family.rust_functions } else { &[] };
            family.functions.iter().chain(of_rust)
        });
        let longest = beginnings.filter(fits).max_by_key(|(beginning, _)| beginning.len());
        longest.map_or(Part::Program, |&(_, part)| part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Part::{Generated, Library, Lock, Start, Wait};

    #[test]
    fn functions_of_queues_are_known_by_their_own_names() {
        for name in [
            "flume::Shared<T>::recv_sync::{{closure}}",
            "queue_pop",
            "server::WorkQueue::take()",
            "next_job",
            "main_loop",
        ] {
            assert!(is_queue(name), "{name}");
        }
        for name in [
            "cond_pool::checkout",
            "ConnectionPool::borrow",
            "task_server::main::{{closure}}",
            "update",
            "",
        ] {
            assert!(!is_queue(name), "{name}");
        }
    }

    #[test]
    fn functions_between_a_program_and_its_locks_are_known() {
        for (name, expected) in [
            ("__lll_lock_wait_private", Lock),
            ("___pthread_mutex_lock", Lock),
            ("__GI___pthread_mutex_unlock_usercnt", Lock),
            ("__gthread_mutex_lock(pthread_mutex_t*)", Lock),
            ("std::lock_guard<std::mutex>::lock_guard(std::mutex&)", Lock),
            ("std::unique_lock<std::mutex>::lock()", Lock),
            ("std::sys::sync::mutex::futex::Mutex::lock_contended", Lock),
            ("<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock", Lock),
            ("absl::Mutex::LockSlowLoop(absl::SynchWaitParams*, int)", Lock),
            ("sqlite3_mutex_enter", Lock),
            ("QBasicMutex::lockInternal()", Lock),
            ("__syscall6", Wait),
            ("__syscall_cp_c", Wait),
            ("___pthread_cond_wait", Wait),
            ("pthread_join", Wait),
            ("absl::CondVar::WaitCommon", Wait),
            ("os::PlatformMonitor::wait(long)", Wait),
            ("runtime.futex", Wait),
            ("std::vector<int>::push_back", Library),
            ("core::ptr::drop_in_place", Library),
            ("start_thread", Start),
            ("std::thread::Builder::spawn_unchecked_", Start),
            ("[generated code]", Generated),
        ] {
            assert_eq!(part(name), expected, "{name}");
        }
        for own in [
            "sqlite3_step",
            "take_gil",
            "CompileQueue::get()",
            "Unsafe_Park",
            "semantics",
            "clone_it",
            // C++ namespaces with the names of Rust crates.
            "core::Engine::step(int)",
            "void alloc::refill<Pool>(Pool&)",
            "spin::Wheel::turn() const",
        ] {
            assert_eq!(part(own), Part::Program, "{own}");
        }
    }
}
