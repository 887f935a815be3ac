//! Names that outlive what they name.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use threadtoll_stacks::image::{CodeAddress, ImageId, Images, Place};
use threadtoll_stacks::stack::{Registers, Stack, StackBytes};
use threadtoll_stacks::symbol::Symbols;

use super::observe::Observer;
use super::programs::{Program, compile, rustc};

/// Starts a program that prints a line for the main thread and sleeps.
fn start(path: &Path) -> (Program, u32) {
    let mut child = Command::new(path).args(["0", "3"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let tid = child.id();
    (Program(child), tid)
}

#[test]
fn a_deleted_program_is_named_after_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain");
    assert!(compile(&rustc(), "chain.rs", "--edition=2024 -C debuginfo=1", &path));
    let (program, tid) = start(&path);
    fs::remove_file(&path).unwrap();

    let mut observer = Observer::new(tid);
    let (registers, base, bytes) = observer.copy(tid, 64 << 10);
    drop(program);

    let mut stack = Stack::default();
    let bytes = StackBytes { base, bytes: &bytes };
    observer.unwinder.unwind(&observer.space, &observer.images, registers, bytes, &mut stack);
    let describe = |frame| observer.symbols.describe(&observer.images, frame);
    let functions: Vec<_> =
        stack.frames.iter().map(|frame| frame.instruction()).map(describe).collect();
    let functions: Vec<_> = functions.iter().flat_map(|functions| functions.iter()).collect();
    assert!(functions.iter().any(|name| name.ends_with("step_next")), "{functions:#?}");
}

#[test]
fn code_without_a_file_is_called_so() {
    let mut symbols = Symbols::new();
    let images = Images::new();
    assert_eq!(symbols.describe(&images, Place::Generated)[0], "[generated code]");
}

#[test]
fn static_variables_are_found_by_the_types_of_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain");
    assert!(compile(&rustc(), "chain.rs", "--edition=2024 -C debuginfo=2", &path));
    let (_program, tid) = start(&path);
    let wanted =
        |path: &str| (path.starts_with("std::") && path.ends_with("::Mutex")).then_some(());
    let mut observer = Observer::new(tid);
    let images: Vec<ImageId> = observer.space.images();
    let mut found = Vec::new();
    for image in images {
        let units = observer.symbols.static_variables(&observer.images, image, wanted);
        for variable in units.into_iter().flatten().flatten() {
            let place = CodeAddress { image, address: variable.address };
            let Some(address) = observer.space.address_of(place) else { continue };
            assert_eq!(observer.space.data(address), Some(place), "{variable:?}");
            found.push((variable.name, address));
        }
    }
    let find = |start: &str| found.iter().find(|(name, _)| name.starts_with(start));
    assert!(find("chain::WAITED.").is_some(), "{found:#?}");
    assert!(find("chain::READERS").is_none() && find("chain::WORD").is_none(), "{found:#?}");
    // The main thread holds the mutex: its word says so, at the address that was found.
    let (_, address) = find("chain::LOCK.").unwrap();
    let mut word = [0; 4];
    let memory = fs::File::open(format!("/proc/{tid}/mem")).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut word, *address).unwrap();
    assert!(matches!(u32::from_le_bytes(word), 1 | 2), "{word:?}");
}

#[test]
fn the_vdso_is_read_from_memory() {
    let mut observer = Observer::new(std::process::id());
    // SAFETY: The call has no preconditions.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let images = observer.space.images();
    let vdso = images.iter().filter_map(|id| observer.images.get(*id));
    assert_eq!({ vdso }.filter(|image| image.name() == "[vdso]").count(), 1);
    let registers = Registers::new(start, 0x1000);
    let mut stack = Stack::default();
    let bytes = StackBytes { base: 0x1000, bytes: &[] };
    observer.unwinder.unwind(&observer.space, &observer.images, registers, bytes, &mut stack);
    let names = observer.symbols.describe(&observer.images, stack.frames[0].place);
    assert!(names[0].starts_with("[vdso]"), "{names:?}");
}
