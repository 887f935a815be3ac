//! Imports follow the plan of the house: rooms form no circle, and no arrow is a forbidden one.
//!
//! At each level of a crate's module tree the children of one module are rooms, each with all that
//! is below it; a parent and its child are one room. Imports are `use` declarations, full paths and
//! the paths in macro calls of production code. A re-export stands for the module that defines the
//! item.

#![allow(clippy::expect_used, reason = "a test that cannot read the sources has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, Meta, UseTree};

/// A module's path inside its crate; the crate's root is empty.
type Module = Vec<String>;

/// Crates that each crate may use.
const USES: &[(&str, &[&str])] = &[
    ("threadtoll", &[]),
    ("stats", &[]),
    ("record", &["stats"]),
    ("model", &["stats"]),
    ("primitive", &[]),
    ("machine", &["record", "stats"]),
    ("stacks", &[]),
    ("judge", &["model", "stats"]),
    ("profile", &["judge", "machine", "model", "primitive", "record", "stacks", "stats"]),
    ("lab", &["machine", "model", "record", "stats", "threadtoll"]),
    ("report", &["model", "primitive", "record", "stats"]),
    ("cli", &["lab", "machine", "model", "peers_rust", "profile", "record", "report", "stacks"]),
];

/// Imports that are forbidden inside a crate: modules, with all below them, and what they must not
/// name, a module of the crate or a path of another one.
const NEVER: &[(&str, &[&str], &[&str])] = &[
    ("cli", &["measure", "parse", "console"], &["command"]),
    (
        "lab",
        &["budget", "error", "lock", "mechanism", "queue", "samples"],
        &["plan", "real", "run", "simulated"],
    ),
    ("lab", &["plan"], &["real", "simulated"]),
    ("lab", &["real"], &["simulated"]),
    ("lab", &["simulated"], &["real"]),
    ("judge", &[""], &["std::fs", "std::io", "std::net", "std::process"]),
    ("stats", &[""], &["std::fs", "std::io", "std::net", "std::process"]),
    ("profile", &["sample"], &["account"]),
    ("profile", &["account"], &["compose", "std::fs"]),
    ("profile", &["compose"], &["profiler"]),
    ("report", TABLES, TOPICS),
    ("report", TOPICS, &["text", "html", "markdown", "openmetrics"]),
    ("report", &["text"], &["html", "markdown", "openmetrics"]),
    ("report", &["html"], &["text", "markdown", "openmetrics"]),
    (
        "threadtoll",
        &["wait", "sync"],
        &["pipe", "funnel", "call", "oneshot", "owned", "ring", "select", "lock", "memory"],
    ),
    (
        "threadtoll",
        &["memory"],
        &["pipe", "funnel", "call", "oneshot", "owned", "ring", "select", "lock", "wait"],
    ),
    ("threadtoll", &["pipe"], &["funnel", "call", "oneshot", "owned", "ring", "select", "lock"]),
    ("threadtoll", &["funnel"], &["pipe", "call", "oneshot", "owned", "ring", "select", "lock"]),
    ("threadtoll", &["call"], &["pipe", "funnel", "oneshot", "owned", "ring", "select", "lock"]),
    ("threadtoll", &["oneshot"], &["pipe", "funnel", "call", "owned", "ring", "select", "lock"]),
    ("threadtoll", &["ring"], &["pipe", "funnel", "call", "oneshot", "owned", "select", "lock"]),
    ("threadtoll", &["lock"], &["pipe", "funnel", "call", "oneshot", "owned", "ring", "select"]),
    ("threadtoll", &["owned"], &["lock", "memory"]),
    ("threadtoll", &["select"], &["owned", "lock"]),
];
const TABLES: &[&str] = &["table", "units", "label"];
const TOPICS: &[&str] = &["ladder", "locks", "matrix", "overload", "profile", "queues"];

/// Modules whose children never import each other.
const STRANGERS: &[(&str, &str)] = &[("cli", "command")];

/// Circles that stay: modules of one protocol, which only make sense together.
const ONE_PROTOCOL: &[(&str, &[&str])] =
    &[("threadtoll", &["pipe::reader", "pipe::shared", "pipe::writer"])];

/// A crate's modules and their imports of each other.
#[derive(Default)]
struct Crate {
    /// Names that a module defines or re-exports, and where the latter come from.
    exports: BTreeMap<Module, BTreeMap<String, Export>>,
    /// Each path in production code: module, path as written, file and line.
    paths: Vec<Written>,
}

/// Meaning of a name in a module.
enum Export {
    /// An item of the module, or a child.
    Own,
    /// A path that the module re-exports or imports.
    Other(Vec<String>),
}

/// A path as it is written in a module.
struct Written {
    module: Module,
    path: Vec<String>,
    place: String,
}

/// An import of one module by another.
#[derive(Clone)]
struct Import {
    from: Module,
    to: Module,
    place: String,
}

impl Crate {
    /// Reads a crate's production code from its root file.
    fn read(root: &Path) -> Self {
        let mut krate = Self::default();
        krate.read_file(root, &Module::new(), root.parent().expect("a file has a folder"));
        krate
    }

    /// Reads a module's file; `children` is the folder of the files of its children.
    fn read_file(&mut self, file: &Path, module: &Module, children: &Path) {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(&parsed.items, module, children, file);
    }

    fn read_items(&mut self, items: &[Item], module: &Module, children: &Path, file: &Path) {
        self.exports.entry(module.clone()).or_default();
        for item in items {
            if !is_production(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let mut path = module.clone();
                    path.push(name.clone());
                    self.export(module, &name, Export::Own);
                    let folder = children.join(&name);
                    match &child.content {
                        Some((_, items)) => self.read_items(items, &path, &folder, file),
                        None => {
                            let flat = children.join(format!("{name}.rs"));
                            let file = if flat.exists() { flat } else { folder.join("mod.rs") };
                            self.read_file(&file, &path, &folder);
                        }
                    }
                }
                Item::Use(import) => {
                    for (name, path) in leaves(&import.tree) {
                        self.note(module, path.clone(), file, import.use_token.span.start().line);
                        match name {
                            Some(name) => self.export(module, &name, Export::Other(path)),
                            None => self.export(
                                module,
                                &format!("*{}", path.join("::")),
                                Export::Other(path),
                            ),
                        }
                    }
                }
                Item::Macro(call) if call.ident.is_none() => {
                    // A registry: its macro declares a module for each file that it names.
                    for name in names(call.mac.tokens.clone()) {
                        let declared = children.join(format!("{name}.rs"));
                        let mut path = module.clone();
                        path.push(name.clone());
                        if declared.exists() && !self.exports.contains_key(&path) {
                            self.export(module, &name, Export::Own);
                            self.read_file(&declared, &path, &children.join(&name));
                        }
                    }
                }
                other => {
                    if let Some(name) = name(other) {
                        self.export(module, &name, Export::Own);
                    }
                    let mut reader = Reader { krate: self, module, file };
                    reader.visit_item(other);
                }
            }
        }
    }

    fn export(&mut self, module: &Module, name: &str, what: Export) {
        self.exports.entry(module.clone()).or_default().insert(name.to_owned(), what);
    }

    fn note(&mut self, module: &Module, path: Vec<String>, file: &Path, line: usize) {
        let place = format!("{}:{line}", file.display());
        self.paths.push(Written { module: module.clone(), path, place });
    }

    /// Returns the module that defines what a path names, seen from a module; `None` if it is not
    /// of this crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        if depth > 16 {
            return None;
        }
        let mut at = from.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|first| first == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                // A name of this module: a child, an item, or something that it imports.
                self.exports.get(from)?.get(first)?;
            }
        }
        while let Some((first, after)) = rest.split_first() {
            let Some(names) = self.exports.get(&at) else { return Some(at) };
            let mut child = at.clone();
            child.push(first.clone());
            if self.exports.contains_key(&child) {
                at = child;
                rest = after;
                continue;
            }
            match names.get(first) {
                Some(Export::Other(path))
                    if !(depth > 0
                        && &at == from
                        && path.first() == Some(first)
                        && path.len() == 1) =>
                {
                    let mut path = path.clone();
                    path.extend(after.iter().cloned());
                    return match self.resolve(&at, &path, depth + 1) {
                        Some(module) => Some(module),
                        // Re-exports something of another crate.
                        None if depth == 0 && at == *from => None,
                        None => Some(at),
                    };
                }
                Some(_) => return Some(at),
                None => {
                    // Perhaps through a glob.
                    for (name, export) in names {
                        let Export::Other(path) = export else { continue };
                        if !name.starts_with('*') {
                            continue;
                        }
                        if let Some(module) = self.resolve(&at, path, depth + 1)
                            && module != at
                            && self
                                .exports
                                .get(&module)
                                .is_some_and(|names| names.contains_key(first))
                        {
                            let mut path = vec!["crate".to_owned()];
                            path.extend(module.iter().cloned());
                            path.extend(rest.iter().cloned());
                            return self.resolve(&Module::new(), &path, depth + 1);
                        }
                    }
                    return Some(at);
                }
            }
        }
        Some(at)
    }

    /// Returns all paths into other crates.
    fn outside(&self) -> Vec<Import> {
        self.paths
            .iter()
            .filter(|written| self.resolve(&written.module, &written.path, 0).is_none())
            .map(|written| Import {
                from: written.module.clone(),
                to: written.path.clone(),
                place: written.place.clone(),
            })
            .collect()
    }

    /// Returns all imports between different modules.
    fn imports(&self) -> Vec<Import> {
        self.paths
            .iter()
            .filter_map(|written| {
                let to = self.resolve(&written.module, &written.path, 0)?;
                (to != written.module).then(|| Import {
                    from: written.module.clone(),
                    to,
                    place: written.place.clone(),
                })
            })
            .collect()
    }
}

/// Visits the paths of one item.
struct Reader<'a> {
    krate: &'a mut Crate,
    module: &'a Module,
    file: &'a Path,
}

impl Reader<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path, line);
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.end(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.krate.note(self.module, path, self.file, line);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A single name was imported, and counts there.
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let line = path.segments[0].ident.span().start().line;
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.krate.note(self.module, names, self.file, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        for (_, path) in leaves(&import.tree) {
            self.krate.note(self.module, path, self.file, import.use_token.span.start().line);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(function) => &function.attrs,
            syn::ImplItem::Const(constant) => &constant.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if is_production(attributes) {
            visit::visit_impl_item(self, item);
        }
    }
}

/// Returns the names that a `use` brings into scope (`None` for a glob) with their paths.
fn leaves(tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    fn walk(tree: &UseTree, before: &[String], into: &mut Vec<(Option<String>, Vec<String>)>) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            if name != "self" || before.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) => walk(&path.tree, &with(&path.ident), into),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                into.push((path.last().cloned(), path));
            }
            UseTree::Rename(rename) => {
                into.push((Some(rename.rename.to_string()), with(&rename.ident)));
            }
            UseTree::Glob(_) => into.push((None, before.to_vec())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, into)),
        }
    }
    let mut all = Vec::new();
    walk(tree, &[], &mut all);
    all
}

/// Returns the names among tokens.
fn names(tokens: TokenStream) -> Vec<String> {
    tokens
        .into_iter()
        .filter_map(|token| match token {
            TokenTree::Ident(ident) => Some(ident.to_string()),
            _ => None,
        })
        .collect()
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// True unless the attributes leave an item out of what users build: tests, models, checks.
fn is_production(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().all(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().ok().as_ref().and_then(holds) != Some(false)
        }
        _ => true,
    })
}

/// Value of a `cfg` in a user's build; `None` if it depends on the target or on features.
fn holds(cfg: &Meta) -> Option<bool> {
    match cfg {
        Meta::Path(path) => {
            let checks = ["test", "loom", "shuttle", "threadtoll_loom", "threadtoll_shuttle"];
            checks.iter().any(|name| path.is_ident(name)).then_some(false)
        }
        Meta::List(list) => {
            let parts: Vec<Option<bool>> = list
                .parse_args_with(
                    syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated,
                )
                .ok()?
                .iter()
                .map(holds)
                .collect();
            if list.path.is_ident("not") {
                return parts.first().copied().flatten().map(|value| !value);
            }
            let decisive = list.path.is_ident("any");
            if parts.contains(&Some(decisive)) {
                Some(decisive)
            } else if parts.contains(&None) {
                None
            } else {
                Some(!decisive)
            }
        }
        Meta::NameValue(_) => None,
    }
}

/// Returns the circles between sibling rooms, each with the imports that close it.
fn circles(imports: &[Import], allowed: &[&str]) -> Vec<(Vec<String>, Vec<Import>)> {
    // Per parent: edges between its children.
    let mut levels: BTreeMap<Module, BTreeMap<(String, String), Vec<Import>>> = BTreeMap::new();
    for import in imports {
        let common = import.from.iter().zip(&import.to).take_while(|(from, to)| from == to).count();
        // One is above the other: the same room.
        if common == import.from.len() || common == import.to.len() {
            continue;
        }
        levels
            .entry(import.from[..common].to_vec())
            .or_default()
            .entry((import.from[common].clone(), import.to[common].clone()))
            .or_default()
            .push(import.clone());
    }
    let mut found = Vec::new();
    for (parent, edges) in levels {
        let rooms: BTreeSet<&String> = edges.keys().flat_map(|(from, to)| [from, to]).collect();
        let reach = |start: &String| {
            let mut seen: BTreeSet<&String> = BTreeSet::new();
            let mut todo = vec![start];
            while let Some(room) = todo.pop() {
                for (from, to) in edges.keys() {
                    if from == room && seen.insert(to) {
                        todo.push(to);
                    }
                }
            }
            seen.into_iter().cloned().collect::<BTreeSet<String>>()
        };
        let reached: BTreeMap<&String, BTreeSet<String>> =
            rooms.iter().map(|room| (*room, reach(room))).collect();
        let mut done: BTreeSet<&String> = BTreeSet::new();
        for room in &rooms {
            if done.contains(*room) || !reached[*room].contains(*room) {
                continue;
            }
            let circle: Vec<&String> = rooms
                .iter()
                .filter(|other| {
                    reached[*room].contains(**other) && reached[**other].contains(*room)
                })
                .copied()
                .collect();
            done.extend(&circle);
            let full =
                |name: &String| parent.iter().chain([name]).cloned().collect::<Vec<_>>().join("::");
            let names: Vec<String> = circle.iter().map(|name| full(name)).collect();
            if names.iter().all(|name| allowed.contains(&name.as_str())) {
                continue;
            }
            let closing = edges
                .iter()
                .filter(|((from, to), _)| circle.contains(&from) && circle.contains(&to))
                .flat_map(|(_, imports)| imports.clone())
                .collect();
            found.push((names, closing));
        }
    }
    found
}

/// Folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the workspace's crates by the names of their folders.
fn crates() -> &'static BTreeMap<String, Crate> {
    static CRATES: OnceLock<BTreeMap<String, Crate>> = OnceLock::new();
    CRATES.get_or_init(|| {
        let folders =
            std::fs::read_dir(workspace().join("crates")).expect("the workspace has crates");
        let roots = folders.filter_map(|entry| {
            let folder = entry.expect("a folder can be listed").path();
            let name = folder.file_name()?.to_str()?.to_owned();
            let roots = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file));
            Some((name, roots.into_iter().find(|file| file.exists())?))
        });
        // Each in a thread of its own: parsing is what takes the time.
        let readers = roots.map(|(name, root)| (name, thread::spawn(move || Crate::read(&root))));
        let readers: Vec<_> = readers.collect();
        let read = |reader: JoinHandle<Crate>| reader.join().expect("a crate is read");
        readers.into_iter().map(|(name, reader)| (name, read(reader))).collect()
    })
}

/// Returns a crate by the name of its folder.
fn named(name: &str) -> &'static Crate {
    crates().get(name).unwrap_or_else(|| panic!("there is no crate {name}"))
}

/// True if a path is that of `above`, or below it.
fn within(path: &[String], above: &str) -> bool {
    if above.is_empty() {
        return true;
    }
    let above: Vec<&str> = above.split("::").collect();
    path.len() >= above.len() && above.iter().zip(path).all(|(above, part)| above == part)
}

/// One line for each pair of modules.
fn lines(imports: &[Import]) -> String {
    let pairs: BTreeMap<(String, String), &String> = imports
        .iter()
        .map(|import| ((import.from.join("::"), import.to.join("::")), &import.place))
        .collect();
    let mut text = String::new();
    for ((from, to), place) in pairs {
        writeln!(text, "    {from} imports {to} ({place})").expect("a string takes it");
    }
    text
}

#[test]
fn crates_use_only_those_below_them() {
    let mut report = String::new();
    for (name, krate) in crates() {
        let uses = USES.iter().find(|(of, _)| of == name).map(|(_, uses)| *uses);
        let uses = uses.unwrap_or_else(|| panic!("USES has no row for {name}"));
        let wrong: Vec<Import> = krate
            .outside()
            .into_iter()
            .filter(|import| {
                let first = import.to[0]
                    .strip_prefix("threadtoll")
                    .map(|rest| rest.strip_prefix('_').unwrap_or("threadtoll"));
                first.is_some_and(|first| !uses.contains(&first))
            })
            .collect();
        report += &lines(&wrong);
    }
    assert!(report.is_empty(), "crates that import one that is not below them:\n{report}");
}

#[test]
fn no_room_imports_what_it_must_not_know() {
    let mut report = String::new();
    for (name, from, to) in NEVER {
        let krate = named(name);
        let own = |path: &&&str| !path.is_empty() && !path.starts_with("std::");
        for module in from.iter().chain(to.iter()).filter(own) {
            let path: Module = module.split("::").map(str::to_owned).collect();
            assert!(
                krate.exports.contains_key(&path),
                "NEVER names {module}, which {name} has not"
            );
        }
        let imports = krate.imports().into_iter().chain(krate.outside());
        let wrong: Vec<Import> = imports
            .filter(|import| from.iter().any(|from| within(&import.from, from)))
            .filter(|import| to.iter().any(|to| within(&import.to, to)))
            .collect();
        report += &lines(&wrong);
    }
    assert!(report.is_empty(), "imports that the plan of the house forbids:\n{report}");
}

#[test]
fn strangers_do_not_import_each_other() {
    let mut report = String::new();
    for (name, parent) in STRANGERS {
        let depth = parent.split("::").count();
        let wrong: Vec<Import> = named(name)
            .imports()
            .into_iter()
            .filter(|import| within(&import.from, parent) && within(&import.to, parent))
            .filter(|import| import.from.len() > depth && import.to.len() > depth)
            .filter(|import| import.from[depth] != import.to[depth])
            .collect();
        report += &lines(&wrong);
    }
    assert!(report.is_empty(), "modules that know each other:\n{report}");
}

#[test]
fn no_circle_runs_between_rooms() {
    let mut report = String::new();
    for (name, krate) in crates() {
        let allowed = ONE_PROTOCOL
            .iter()
            .filter(|(of, _)| of == name)
            .flat_map(|(_, modules)| modules.iter().copied())
            .collect::<Vec<_>>();
        for (rooms, imports) in circles(&krate.imports(), &allowed) {
            writeln!(report, "{name}: {}", rooms.join(", ")).expect("a string takes it");
            report += &lines(&imports);
        }
    }
    assert!(report.is_empty(), "rooms that import each other in a circle:\n{report}");
}

#[test]
fn circles_are_seen_through_re_exports_and_macros_but_not_in_tests() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("it has a folder")).expect("it is made");
        std::fs::write(file, text).expect("it is written");
    };
    write("lib.rs", "mod a; mod b; mod c; mod d; pub use a::inner::Inner;");
    write("a.rs", "pub mod inner; pub fn first() { println!(\"{}\", crate::b::second()); }");
    write("a/inner.rs", "use super::first; pub struct Inner;");
    write("b.rs", "use crate::Inner; pub fn second() -> u8 { 0 }");
    write("c.rs", "use crate::d::fourth; pub fn third() { fourth() }");
    write("d.rs", "pub fn fourth() {} #[cfg(test)] mod tests { use crate::c::third; }");
    let found = circles(&Crate::read(&folder.path().join("lib.rs")).imports(), &[]);
    let rooms: Vec<&[String]> = found.iter().map(|(rooms, _)| rooms.as_slice()).collect();
    assert_eq!(rooms, [["a", "b"]]);
}
