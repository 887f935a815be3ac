//! Programs in C, C++ and Rust, compiled with and without frame pointers and optimisation,
//! dynamically and statically linked.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::observe::Observer;

const THREADS: usize = 48;
const SEEDS: u64 = 4;

/// Stacks by how they came out.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    right: usize,
    /// What is there is right, outer frames are missing.
    cut: usize,
    wrong: usize,
    inferred: usize,
}

impl Tally {
    fn all(&self) -> usize {
        self.right + self.cut + self.wrong
    }

    fn add(&mut self, other: Tally) {
        self.right += other.right;
        self.cut += other.cut;
        self.wrong += other.wrong;
        self.inferred += other.inferred;
    }
}

pub(crate) struct Program(pub(crate) Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks")
}

pub(crate) fn compile(compiler: &str, source: &str, options: &str, to: &Path) -> bool {
    let status = Command::new(compiler)
        .args(options.split(' ').filter(|option| !option.is_empty()))
        .arg("-o")
        .arg(to)
        .arg(sources().join(source))
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs a program; returns it with the chain of each thread.
pub(crate) fn start(path: &Path, threads: usize, seed: u64) -> (Program, Vec<(u32, Vec<String>)>) {
    let mut child = Command::new(path)
        .args([threads.to_string(), seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let program = Program(child);
    let chains = lines.take(threads + 1).map(|line| {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let tid = words.next().unwrap().parse().unwrap();
        (tid, words.map(str::to_owned).collect())
    });
    let chains = chains.collect();
    (program, chains)
}

/// Name of a function without its types, its scope, and what the compiler appended.
fn plain(name: &str) -> String {
    let mut depth = 0usize;
    let outside = name.chars().filter(|&letter| {
        depth += usize::from(matches!(letter, '<' | '('));
        let kept = depth == 0;
        depth = depth.saturating_sub(usize::from(matches!(letter, '>' | ')')));
        kept
    });
    let outside: String = outside.collect();
    let name = outside.split('.').next().unwrap_or_default();
    let name = name.rsplit("::").find(|part| !part.is_empty()).unwrap_or_default();
    name.rsplit(' ').next().unwrap_or_default().to_owned()
}

fn judge(path: &Path, seeds: u64, verbose: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let (program, chains) = start(path, THREADS, seed);
        assert_eq!(chains.len(), THREADS + 1, "{path:?} ended early");
        let known: HashSet<&str> =
            chains.iter().flat_map(|(_, chain)| chain.iter().map(String::as_str)).collect();
        let mut observer = Observer::new(program.0.id());
        for (tid, chain) in &chains {
            let seen = loop {
                let seen = observer.sample(*tid);
                if !seen.names.iter().any(|name| plain(name) == "leave") {
                    break seen;
                }
            };
            let names = seen.names.iter().map(|name| plain(name));
            let names: Vec<String> = names.filter(|name| known.contains(name.as_str())).collect();
            let complete = names == *chain;
            let begins = chain.len() >= names.len() && names == chain[..names.len()];
            tally.inferred += usize::from(seen.stack.frames.iter().any(|frame| frame.inferred));
            match () {
                () if complete && !seen.stack.cut => tally.right += 1,
                () if begins && seen.stack.cut => tally.cut += 1,
                () => tally.wrong += 1,
            }
            if verbose && (!complete || seen.stack.cut) {
                println!("  expected {chain:?}\n  found    {names:?}");
                println!("  cut {}, all names {:#?}", seen.stack.cut, seen.names);
            }
        }
    }
    tally
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn judge_all(compilers: &[(&str, &str, &str, &[&str])]) {
    let folder = tempfile::tempdir().unwrap();
    let verbose = std::env::var_os("VERBOSE_STACKS").is_some();
    let mut all = Tally::default();
    println!("{:<96}{:>8}{:>8}{:>8}{:>10}", "program", "right", "cut", "wrong", "inferred");
    for (language, compiler, source, variants) in compilers {
        for options in *variants {
            let name = format!("{language} {options}");
            if std::env::var("ONLY_STACKS").is_ok_and(|only| !name.contains(&only)) {
                continue;
            }
            let path = folder.path().join(name.replace(['/', ' '], "_"));
            if !compile(compiler, source, options, &path) {
                println!("{name:<96} skipped: {compiler} cannot compile it");
                continue;
            }
            let tally = judge(&path, SEEDS, verbose);
            println!(
                "{name:<96}{:>7.1}%{:>7.1}%{:>7.1}%{:>9.1}%",
                percent(tally.right, tally.all()),
                percent(tally.cut, tally.all()),
                percent(tally.wrong, tally.all()),
                percent(tally.inferred, tally.all()),
            );
            all.add(tally);
        }
    }
    println!("{} stacks, {} cut short, {} wrong", all.all(), all.cut, all.wrong);
    assert!(all.all() > 0);
    assert!(percent(all.right, all.all()) >= 99.0, "{all:?}");
}

const C_OPTIONS: &[&str] = &[
    "-O0 -pthread",
    "-O0 -fomit-frame-pointer -pthread",
    "-O2 -pthread",
    "-O2 -fno-omit-frame-pointer -pthread",
    "-O2 -fstack-protector-strong -fstack-clash-protection -fno-omit-frame-pointer -pthread",
    "-O3 -g -pthread",
    "-O0 -static -pthread",
    "-O2 -static -pthread",
    "-O2 -fno-omit-frame-pointer -static -pthread",
    // Cold parts have no names of their own once local symbols are gone.
    "-O2 -DLOCAL= -s -rdynamic -fno-reorder-blocks-and-partition -fno-omit-frame-pointer -pthread",
];

const RUST_OPTIONS: &[&str] = &[
    "--edition=2024 -C opt-level=0",
    "--edition=2024 -C opt-level=2",
    "--edition=2024 -C opt-level=0 -C debuginfo=2",
    "--edition=2024 -C opt-level=0 -C force-frame-pointers=yes",
    "--edition=2024 -C opt-level=2 -C force-frame-pointers=yes",
    "--edition=2024 -C opt-level=2 -C debuginfo=1",
    "--edition=2024 -C opt-level=2 -C target-feature=+crt-static",
    "--edition=2024 -C opt-level=0 -C target-feature=+crt-static",
];

pub(crate) fn rustc() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

#[test]
fn rust_programs_are_unwound() {
    judge_all(&[("Rust", &rustc(), "chain.rs", &RUST_OPTIONS[1..2])]);
}

#[test]
#[ignore = "compilers: ci/long/profile-stacks.sh"]
fn programs_of_all_languages_are_unwound() {
    judge_all(&[
        ("C", "cc", "chain.c", C_OPTIONS),
        ("C++", "c++", "chain.cpp", C_OPTIONS),
        ("Rust", &rustc(), "chain.rs", RUST_OPTIONS),
    ]);
}
