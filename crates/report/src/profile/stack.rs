//! Stacks, shortened to the frames that tell something.

use threadtoll_record::Text;
use threadtoll_record::profile::{Lock, Role, Site};

use crate::clean::clean;
use crate::profile::locks::shortened;

/// Functions of runtimes by which a waiter's stack begins.
const LOCKING: &[&str] = &[
    "__lll_",
    "lll_",
    "__GI___lll_",
    "__futex",
    "futex",
    "syscall",
    "___pthread_",
    "__pthread_",
    "__GI___pthread_",
    "pthread_",
    "__gthread",
    "std::sys::",
    "std::sync::",
    "std::mutex",
    "std::__",
    "std::unique_lock",
    "std::lock_guard",
    "std::scoped_lock",
    "std::shared_",
    "parking_lot",
    "lock_api::",
    "core::",
    "absl::",
    "CRYPTO_THREAD_",
    "PyCOND_",
    "PyThread_",
    "g_mutex_",
    "g_rw_lock_",
    "sqlite3_mutex_",
    "uv_mutex_",
    "uv_rwlock_",
    "os::Platform",
    "ObjectMonitor::",
    "ObjectSynchronizer::",
    "Runtime1::",
    "SharedRuntime::",
];

/// Longest name of a function on a line.
const MAX_CHARS: usize = 40;

/// Functions by which threads start.
const STARTING: &[&str] = &[
    "start_thread",
    "clone",
    "__clone",
    "__GI___clone",
    "_start",
    "__libc_start",
    "std::sys::",
    "std::thread::",
    "std::rt::",
    "std::panic",
    "__rust_",
    "std::sys_common::",
    "core::ops::function",
    "alloc::boxed::Box",
    "std::__invoke",
    "std::_Invoke",
    "execute_native_thread_routine",
    "JavaCalls::",
    "JavaThread::",
    "Thread::call_run",
    "thread_entry",
    "thread_native_entry",
];

/// The site of this role with the most samples.
pub(crate) fn main_site(lock: &Lock, role: Role) -> Option<&Site> {
    lock.sites.iter().filter(|site| site.role == role).max_by_key(|site| site.samples)
}

/// Share of the samples of its role.
pub(crate) fn share_of_role(lock: &Lock, site: &Site) -> Option<f64> {
    let of_role = lock.sites.iter().filter(|other| other.role == site.role);
    let all: f64 = of_role.map(|other| other.samples.as_f64()).sum();
    (all > 0.0).then(|| site.samples.as_f64() / all)
}

/// The stack on a line, innermost first, without frames of runtimes and without arguments.
pub(crate) fn line(site: &Site) -> String {
    shown(&site.frames, site.role == Role::Waiter)
}

/// The stack of a thread that waits, as [`line`] draws it.
pub(crate) fn of_waiter(frames: &[Text]) -> String {
    shown(frames, true)
}

fn shown(frames: &[Text], of_waiter: bool) -> String {
    let names: Vec<String> = frames.iter().map(|frame| plain(&clean(frame))).collect();
    let mut shown = &names[..];
    if of_waiter {
        let inner = shown.iter().take_while(|name| begins(name, LOCKING));
        shown = &shown[inner.count()..];
    }
    let outer = shown.iter().rev().take_while(|name| begins(name, STARTING));
    shown = &shown[..shown.len() - outer.count()];
    let shown = if shown.is_empty() { &names[..] } else { shown };
    let mut shown: Vec<String> = shown.iter().map(|name| shortened(name, MAX_CHARS)).collect();
    shown.dedup();
    if shown.is_empty() { "no stack".into() } else { shown.join(" ← ") }
}

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|prefix| name.starts_with(prefix))
}

/// A function's name without the arguments of templates and calls, the trait that it implements,
/// and a hash.
fn plain(frame: &str) -> String {
    // `<Type as Trait>::function`
    let (subject, function) = match frame.strip_prefix('<').and_then(|rest| rest.split_once(">::"))
    {
        Some((subject, function)) => (subject.split(" as ").next(), function),
        None => (None, frame),
    };
    let mut name = String::new();
    for part in subject.into_iter().chain([function]) {
        if !name.is_empty() {
            name.push_str("::");
        }
        name.push_str(&without_arguments(part));
    }
    let hash = name.rfind("::h").filter(|at| {
        name.len() == at + 19 && name[at + 3..].bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    name.truncate(hash.unwrap_or(name.len()));
    if name.trim().is_empty() { frame.to_string() } else { name.trim().to_string() }
}

fn without_arguments(name: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for (at, c) in name.char_indices() {
        match c {
            '<' if !name[..at].ends_with("operator") => depth += 1,
            '>' if depth > 0 => depth -= 1,
            // Not that of `(anonymous namespace)`.
            '(' if depth == 0 && !plain.is_empty() && !plain.ends_with("::") => break,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_only_makes_them_long() {
        for (frame, name) in [
            ("main", "main"),
            ("cache::get<std::string, Entry<int> >(int, char)", "cache::get"),
            ("server::lookup::h0123456789abcdef", "server::lookup"),
            (
                "<server::Pool<T> as server::Run>::next::{{closure}}",
                "server::Pool::next::{{closure}}",
            ),
            ("Index::operator<(Index const&)", "Index::operator<"),
            ("(anonymous namespace)::refresh(Cache&)", "(anonymous namespace)::refresh"),
            ("<", "<"),
            ("", ""),
        ] {
            assert_eq!(plain(frame), name);
        }
        assert_eq!(shortened("server::session::Sessions::touch", 20), "…::Sessions::touch");
        assert_eq!(shortened("abcdefgh", 5), "abcd…");
    }

    fn site(role: Role, frames: &[&str]) -> Site {
        Site {
            role,
            frames: frames.iter().map(|frame| (*frame).into()).collect(),
            inferred_frames: 0,
            samples: 1.into(),
            count: None,
            wait_ns: None,
            hold_ns: None,
            share: None,
            interval95: None,
        }
    }

    #[test]
    fn runtimes_are_left_out_unless_there_is_nothing_else() {
        let frames =
            ["__lll_lock_wait", "pthread_mutex_lock", "get", "serve", "start_thread", "clone3"];
        assert_eq!(line(&site(Role::Waiter, &frames)), "get ← serve");
        let frames = ["clock_nanosleep", "usleep", "refresh", "start_thread"];
        assert_eq!(line(&site(Role::Holder, &frames)), "clock_nanosleep ← usleep ← refresh");
        assert_eq!(line(&site(Role::Waiter, &["futex_wait", "clone"])), "futex_wait ← clone");
        let code = "[generated code]";
        let java = [
            "___pthread_cond_wait",
            "os::PlatformEvent::park()",
            "ObjectMonitor::enter(JavaThread*)",
            code,
            code,
            "JavaCalls::call_helper(JavaValue*, methodHandle const&)",
            "thread_native_entry(Thread*)",
            "start_thread",
        ];
        assert_eq!(line(&site(Role::Waiter, &java)), code);
        assert_eq!(line(&site(Role::Waiter, &[])), "no stack");
    }
}
