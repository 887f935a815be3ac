//! Stacks reduced to their informative frames.

use threadtoll_primitive::FunctionName;
use threadtoll_primitive::function::Part;
use threadtoll_record::Text;
use threadtoll_record::profile::{Lock, Role, Site};

use crate::clean::clean;
use crate::label::plural;
use crate::profile::locks::{self, shortened};
use crate::units::percent;

/// Maximum length of a function's name on a line, in characters.
const MAX_CHARS: usize = 40;

pub(crate) fn main_site(lock: &Lock, role: Role) -> Option<&Site> {
    lock.sites.iter().filter(|site| site.role == role).max_by_key(|site| site.samples)
}

pub(crate) fn share_of_role(lock: &Lock, site: &Site) -> Option<f64> {
    let of_role = lock.sites.iter().filter(|other| other.role == site.role);
    let all: f64 = of_role.map(|other| other.samples.as_f64()).sum();
    (all > 0.0).then(|| site.samples.as_f64() / all)
}

pub(crate) fn caption(lock: &Lock, site: &Site) -> String {
    let part = share_of_role(lock, site)
        .map_or_else(String::new, |part| format!(", {} of its samples", percent(part)));
    let inferred = match site.inferred_frames {
        0 => String::new(),
        some => format!(", {some} of {} inferred", plural(site.frames.len() as u64, "frame")),
    };
    format!("{}{part}{inferred}", locks::role(lock, site.role))
}

/// Returns `true` for a function in which threads start, or that leads from there to the thread's
/// own code.
fn starts(name: &FunctionName) -> bool {
    matches!(name.part(), Part::Start | Part::Library)
}

/// The stack on one line, innermost function first, without the runtime's frames and without
/// arguments.
pub(crate) fn line(site: &Site) -> String {
    shown(&site.frames, site.role == Role::Waiter)
}

/// The function that takes or releases a lock, and the program's function that called it.
pub(crate) fn taker(site: &Site) -> String {
    let innermost = site.frames.first().map_or_else(String::new, |frame| short_name(frame));
    let caller = caller(site);
    if caller == innermost { innermost } else { format!("{innermost} ← {caller}") }
}

/// The innermost function that [`line`] shows.
pub(crate) fn caller(site: &Site) -> String {
    line(site).split(" ← ").next().unwrap_or_default().to_owned()
}

pub(crate) fn of_waiter(frames: &[Text]) -> String {
    shown(frames, true)
}

/// The stack of a thread that does not wait, or its inner part, in the format of [`line`].
pub(crate) fn of_holder(frames: &[Text]) -> String {
    shown(frames, false)
}

fn shown(frames: &[Text], of_waiter: bool) -> String {
    let names: Vec<FunctionName> = frames.iter().map(|frame| parsed(frame)).collect();
    let mut shown = &names[..];
    if of_waiter {
        let between =
            |name: &&FunctionName| matches!(name.part(), Part::Lock | Part::Wait | Part::Library);
        let inner = shown.iter().take_while(between);
        shown = &shown[inner.count()..];
    }
    let outer = shown.iter().rev().take_while(|name| starts(name));
    shown = &shown[..shown.len() - outer.count()];
    let shown = if shown.is_empty() { &names[..] } else { shown };
    let mut shown: Vec<String> = shown.iter().map(short).collect();
    shown.dedup();
    if shown.is_empty() { "no stack".into() } else { shown.join(" ← ") }
}

/// `function` and, if the frames contain it, its caller.
pub(crate) fn from_function(frames: &[Text], function: &str) -> String {
    let at = frames.iter().position(|frame| &**frame == function);
    let outer = at.and_then(|at| frames.get(at + 1..)).unwrap_or_default();
    let names = std::iter::once(function).chain(outer.iter().map(|frame| &**frame));
    let mut shown: Vec<String> = names
        .map(parsed)
        .enumerate()
        .filter(|(at, name)| *at == 0 || tells(name))
        .map(|(_, name)| short(&name))
        .collect();
    shown.dedup();
    shown.truncate(2);
    shown.join(" ← ")
}

/// The innermost function, and the program's function that called it.
pub(crate) fn place(site: &Site) -> String {
    site.frames.first().map_or_else(String::new, |innermost| from_function(&site.frames, innermost))
}

/// For a stack without functions of the program: its outermost function, except for functions that
/// start threads.
pub(crate) fn outermost(site: &Site) -> String {
    let names = site.frames.iter().map(|frame| parsed(frame));
    let own = names.take_while(|name| name.part() != Part::Start);
    let name = own.last().map_or_else(|| "no stack".into(), |name| short(&name));
    // An address in a library says no more than the library's name.
    match name.split_once("+0x") {
        Some((file, _)) if file.contains(".so") => file.to_owned(),
        _ => name,
    }
}

fn tells(name: &FunctionName) -> bool {
    let nameless = name.path().contains(".so") && name.path().contains("+0x");
    !nameless && name.part() == Part::Program
}

pub(crate) fn short_name(function: &str) -> String {
    short(&parsed(function))
}

fn parsed(frame: &str) -> FunctionName {
    FunctionName::parse(&clean(frame))
}

fn short(name: &FunctionName) -> String {
    shortened(name.path(), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shortened("server::session::Sessions::touch", 20), "…::Sessions::touch");
        assert_eq!(shortened("abcdefgh", 5), "ab…gh");
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
    fn a_place_is_a_function_and_its_caller() {
        let frames = ["syscall", "void Table::read<int>(int)", "libx.so+0x12", "serve", "clone3"];
        let waiter = site(Role::Waiter, &frames);
        assert_eq!(from_function(&waiter.frames, frames[1]), "Table::read ← serve");
        assert_eq!(from_function(&waiter.frames, "serve"), "serve");
        assert_eq!(from_function(&[], "[generated code]"), "[generated code]");
        let frames = ["syscall", "std::sync::Barrier::wait", "alloc::boxed::Box::call", "clone3"];
        assert_eq!(outermost(&site(Role::Waiter, &frames)), "std::sync::Barrier::wait");
        assert_eq!(outermost(&site(Role::Waiter, &[])), "no stack");
    }

    #[test]
    fn runtimes_are_left_out_unless_there_is_nothing_else() {
        let frames =
            ["__lll_lock_wait", "pthread_mutex_lock", "get", "serve", "start_thread", "clone3"];
        assert_eq!(line(&site(Role::Waiter, &frames)), "get ← serve");
        let frames = ["clock_nanosleep", "usleep", "refresh", "start_thread"];
        assert_eq!(line(&site(Role::Holder, &frames)), "clock_nanosleep ← usleep ← refresh");
        assert_eq!(line(&site(Role::Waiter, &["futex_wait", "clone"])), "futex_wait ← clone");
        // A C++ namespace may have the name of a Rust crate.
        let frames = ["pthread_mutex_lock", "core::Table::get(int)", "core::serve()", "clone3"];
        assert_eq!(line(&site(Role::Waiter, &frames)), "core::Table::get ← core::serve");
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
