//! Demangled names of functions, as in symbol tables and debug information.

/// The name of a function, split into parts.
///
/// ```
/// use threadtoll_primitive::FunctionName;
///
/// let name = FunctionName::parse("<server::Pool<T> as server::Run>::next::{{closure}}");
/// assert_eq!((name.path(), name.last()), ("server::Pool::next::{{closure}}", "next"));
/// ```
#[derive(Clone, Debug)]
pub struct FunctionName {
    path: String,
    lists_parameters: bool,
}

impl FunctionName {
    /// Parses a demangled name.
    pub fn parse(name: &str) -> FunctionName {
        let (mut path, lists_parameters) = path_of(name);
        let hash = path.rfind("::h").filter(|at| {
            path.len() == at + 19 && path[at + 3..].bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        path.truncate(hash.unwrap_or(path.len()));
        let path = match without_type(path.trim()) {
            "" => name,
            path => path,
        };
        FunctionName { path: path.to_owned(), lists_parameters }
    }

    /// Path of the function, without template and call arguments, return type, implemented trait,
    /// and hash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Last part of the path, without closures and the suffixes that compilers append.
    pub fn last(&self) -> &str {
        let last = self.path.rsplit("::").find(|part| !part.starts_with('{'));
        last.and_then(|last| last.split(['.', ' ', '@']).next()).unwrap_or_default()
    }

    /// Returns `false` if the name lists parameter types, which only mangled names of C++ do.
    pub fn may_be_rust(&self) -> bool {
        !self.lists_parameters
    }

    /// Words of the last part of the path, in lower case: `lock`, `for`, `write` in `lockForWrite`.
    pub(crate) fn words(&self) -> Vec<String> {
        words(self.last())
    }

    /// Words of the second-to-last part of the path, which may be a type.
    pub(crate) fn words_of_type(&self) -> Vec<String> {
        words(self.before_last().unwrap_or_default())
    }

    /// Last part of the path, preceded by its type if there is one. Types begin with a capital
    /// letter; namespaces, modules and crates do not.
    pub(crate) fn with_type(&self) -> String {
        let is_type = |part: &&str| part.starts_with(|c: char| c.is_uppercase());
        match self.before_last().filter(is_type) {
            Some(of) => format!("{of}::{}", self.last()),
            None => self.last().to_owned(),
        }
    }

    fn before_last(&self) -> Option<&str> {
        let mut parts = self.path.rsplit("::").filter(|part| !part.starts_with('{'));
        parts.nth(1)
    }
}

fn words(of: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let letters: Vec<char> = of.chars().collect();
    for (at, &c) in letters.iter().enumerate() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let lower_before = at > 0 && !letters[at - 1].is_uppercase();
        let lower_after = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (lower_before || lower_after) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the path without template arguments and parameter list, and `true` if there was a
/// parameter list.
fn path_of(name: &str) -> (String, bool) {
    let Some((implementor, function)) = implementation(name) else {
        return without_arguments(name);
    };
    let (function, lists_parameters) = without_arguments(function);
    (format!("{}::{function}", path_of(implementor).0), lists_parameters)
}

/// Splits `<Type as Trait>::function` into the type and the function.
fn implementation(name: &str) -> Option<(&str, &str)> {
    let inside = name.strip_prefix('<')?;
    let (mut depth, mut implementor) = (0_u32, None);
    for (at, c) in inside.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if inside[..at].ends_with('-') => {}
            '>' if depth > 0 => depth -= 1,
            '>' => {
                let function = inside[at + 1..].strip_prefix("::")?;
                return Some((implementor.unwrap_or(&inside[..at]), function));
            }
            ' ' if depth == 0 && implementor.is_none() && inside[at..].starts_with(" as ") => {
                implementor = Some(&inside[..at]);
            }
            _ => {}
        }
    }
    None
}

fn without_arguments(name: &str) -> (String, bool) {
    let mut path = String::new();
    let mut depth = 0_u32;
    for (at, c) in name.char_indices() {
        let before = &name[..at];
        match c {
            '<' if !before.ends_with("operator") && !before.ends_with("operator<") => {
                // As in Rust's `read::<u8>`.
                if depth == 0 && path.ends_with("::") {
                    path.truncate(path.len() - 2);
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= u32::from(!before.ends_with('-')),
            '(' if depth == 0 && !path.is_empty() && !path.ends_with([':', '.']) => {
                // As in `void (anonymous namespace)::read<int>(int)`.
                match name[at..].starts_with("(anonymous") {
                    true => path.push(c),
                    false => return (path, true),
                }
            }
            c if depth == 0 => path.push(c),
            _ => {}
        }
    }
    (path, false)
}

/// Removes the return type of a template, as in `void std::this_thread::sleep_for`.
fn without_type(path: &str) -> &str {
    // As in `operator new` and `[generated code]`.
    if path.contains("operator") || path.contains(['[', '{']) {
        return path;
    }
    let (mut depth, mut start) = (0_u32, 0);
    for (at, c) in path.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &path[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_only_makes_them_long() {
        for (name, path, last) in [
            ("main", "main", "main"),
            ("cache::get<std::string, Entry<int> >(int, char)", "cache::get", "get"),
            ("Cache<std::string>::get<int>(int) const", "Cache::get", "get"),
            ("server::Pool::lock::h0123456789abcdef", "server::Pool::lock", "lock"),
            (
                "<server::Pool<T> as server::Run>::next::{{closure}}",
                "server::Pool::next::{{closure}}",
                "next",
            ),
            ("<<server::Pool as Run>::Task as Step<u8>>::go", "server::Pool::Task::go", "go"),
            ("<fn(u8) -> u8 as Run>::go", "fn::go", "go"),
            ("run::<fn() -> u8>::{closure#0}", "run::{closure#0}", "run"),
            ("touch::{{closure}}::{{closure}}", "touch::{{closure}}::{{closure}}", "touch"),
            ("Index::operator<(Index const&)", "Index::operator<", "operator<"),
            ("operator<< <char>(std::ostream&, char)", "operator<<", "operator<<"),
            ("Pointer::operator->() const", "Pointer::operator->", "operator->"),
            ("operator new(unsigned long)", "operator new", "operator"),
            ("Flag::operator bool() const", "Flag::operator bool", "operator"),
            ("(anonymous namespace)::refresh(Cache&)", "(anonymous namespace)::refresh", "refresh"),
            ("int (anonymous namespace)::get<int>(char)", "(anonymous namespace)::get", "get"),
            (
                "void std::this_thread::sleep_for<long>(int)",
                "std::this_thread::sleep_for",
                "sleep_for",
            ),
            ("void std::call_once<void (&)()>(std::once_flag&)", "std::call_once", "call_once"),
            ("std::map<int, int>& get<int>(int, char)", "get", "get"),
            ("lock_wait.part.0", "lock_wait.part.0", "lock_wait"),
            ("main.(*Cache).Get", "main.(*Cache).Get", "main"),
            ("[generated code]", "[generated code]", "[generated"),
            ("<", "<", "<"),
            ("", "", ""),
        ] {
            let parsed = FunctionName::parse(name);
            assert_eq!((parsed.path(), parsed.last()), (path, last), "{name}");
        }
    }

    #[test]
    fn names_have_words() {
        let words = |name| FunctionName::parse(name).words();
        assert_eq!(words("LWLockAcquire"), ["lw", "lock", "acquire"]);
        assert_eq!(words("lock_exclusive_slow"), ["lock", "exclusive", "slow"]);
        assert_eq!(words("__pthread_rwlock_wrlock64"), ["pthread", "rwlock", "wrlock64"]);
        assert_eq!(words("QReadWriteLock::lockForWrite()"), ["lock", "for", "write"]);
        assert!(words("").is_empty());
    }

    #[test]
    fn parameters_tell_cpp_from_rust() {
        for name in [
            "core::Engine::step(int)",
            "(anonymous namespace)::core::step(core::Engine&)",
            "void alloc::fill<int>(int*, unsigned long)",
            "spin::Lock::operator()() const",
        ] {
            assert!(!FunctionName::parse(name).may_be_rust(), "{name}");
        }
        for name in [
            "core::ptr::drop_in_place<alloc::string::String>",
            "<core::pin::Pin<P> as core::future::Future>::poll",
            "<fn(u8) -> u8 as core::ops::function::Fn<(u8,)>>::call",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "pthread_mutex_lock",
            "(anonymous namespace)::step",
        ] {
            assert!(FunctionName::parse(name).may_be_rust(), "{name}");
        }
    }
}
