//! Static locks of real programs, found by the types that their debug information names.
//!
//! The test that needs compilers for C and C++ runs in `ci/long/profile-stacks.sh`.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use threadtoll_primitive::{Identity, declared};
use threadtoll_stacks::image::{AddressSpace, CodeAddress, Images};
use threadtoll_stacks::process::Process;
use threadtoll_stacks::symbol::Symbols;

const MUTEX: &str = "glibc mutex";
const RWLOCK: &str = "glibc rwlock";

/// A program that sleeps once it has printed a line, until it is dropped.
struct Program(Child);

impl Program {
    fn start(compiler: &str, source: &str, options: &[&str], folder: &Path) -> Program {
        let path = folder.join(source.replace('.', "_"));
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/static_locks");
        let mut compile = Command::new(compiler);
        compile.args(options).arg("-o").arg(&path).arg(sources.join(source));
        assert!(compile.status().unwrap().success());
        let mut child = Command::new(path).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Program(child)
    }

    /// Its static locks by the names of their variables.
    fn locks(&self) -> Vec<(String, Identity)> {
        let process = Process::open(self.0.id()).unwrap();
        let (mut images, mut symbols) = (Images::new(), Symbols::new());
        let space = AddressSpace::new(process.pid(), &process.maps().unwrap(), &mut images);
        let mut found = Vec::new();
        for image in space.images() {
            let units = symbols.static_variables(&images, image, |path| declared(path, 0));
            for lock in units.into_iter().flatten().flatten() {
                let place = CodeAddress { image, address: lock.address };
                let address = space.address_of(place);
                found.extend(address.map(|address| (lock.name, lock.kind.at(address))));
            }
        }
        found
    }

    fn word(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        let memory = File::open(format!("/proc/{}/mem", self.0.id())).unwrap();
        memory.read_exact_at(&mut word, address).unwrap();
        u32::from_le_bytes(word)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Address of the lock of this primitive in the variable, or the part of one, of this name.
fn address_of(locks: &[(String, Identity)], name: &str, of: &str) -> u64 {
    let inside = format!("{name}.");
    let is_in = |path: &str| path == name || path.starts_with(&inside);
    let found = locks.iter().find(|(path, lock)| is_in(path) && lock.name() == of);
    found.unwrap_or_else(|| panic!("{name}: {locks:#?}")).1.address
}

#[test]
fn static_locks_of_rust_are_found_by_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let options = ["--edition=2024", "-C", "debuginfo=2"];
    let program = Program::start(&rustc, "locks.rs", &options, folder.path());
    let locks = program.locks();
    let mutex = address_of(&locks, "locks::LOCK", "Rust mutex");
    let readers = address_of(&locks, "locks::READERS", "Rust rwlock");
    // The main thread holds the mutex alone.
    assert_eq!((program.word(mutex), program.word(readers)), (1, 0));
}

#[test]
#[ignore = "compilers: ci/long/profile-stacks.sh"]
fn static_locks_of_c_are_found_by_their_types() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, source, options) in [
        ("cc", "locks.c", &["-g", "-pthread"][..]),
        ("c++", "locks.cpp", &["-g", "-O2", "-pthread"]),
    ] {
        let program = Program::start(compiler, source, options, folder.path());
        let locks = program.locks();
        for (name, of) in [
            ("plain", MUTEX),
            ("readers", RWLOCK),
            ("cache.lock", MUTEX),
            ("shards.[2].lock", MUTEX),
        ] {
            // The program has locked each of them.
            assert_ne!(program.word(address_of(&locks, name, of)), 0, "{name}");
        }
    }
}
