//! Adapters that behave: their queues carry what our loops send, in all ways that they describe.
//!
//! Those that misbehave run in processes of their own: see the command's tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use threadtoll_lab::foreign::{Described, File, Foreign, LeftOut, describe, files};
use threadtoll_lab::queue::{Capacity, Queue, Way, scenario};
use threadtoll_lab::real::check;
use threadtoll_record::{Carry, Origin, Wait};

/// Compiles adapters of this folder. A machine that links Rust has `cc`.
fn built(names: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in names {
        let status = Command::new("cc")
            .args(["-O2", "-fPIC", "-shared", "-I"])
            .arg(package.join("../../peers"))
            .arg("-o")
            .arg(folder.path().join(format!("{name}.so")))
            .arg(package.join(format!("tests/adapters/{name}.c")))
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
    }
    folder
}

fn described(folder: &TempDir, name: &str) -> Described {
    describe(&folder.path().join(format!("{name}.so"))).unwrap()
}

fn queue(described: &Described) -> Queue {
    let Foreign { mut queues, left_out, .. } =
        Foreign::of(std::slice::from_ref(described), |_| false);
    assert_eq!((queues.len(), left_out), (1, vec![]));
    queues.remove(0)
}

/// The queue with this name of an adapter with several.
fn named(described: &Described, name: &str) -> Queue {
    let queues = Foreign::of(std::slice::from_ref(described), |_| false).queues;
    queues.into_iter().find(|queue| queue.name == name).unwrap()
}

#[test]
fn an_adapter_delivers_what_was_sent_in_all_its_ways() {
    let folder = built(&["full"]);
    let full = named(&described(&folder, "full"), "full");
    assert_eq!((full.origin, full.version.as_str()), (Origin::C, "1.0"));
    let built = full.built.as_ref().unwrap();
    let facts = [built.language.as_str(), built.compiler.as_str(), built.flags.as_str()];
    assert_eq!(facts, ["c", "cc 1.2", "-O2"]);
    let Capacity::Slots(slots) = &full.capacity else { panic!("it is bounded") };
    assert_eq!((slots.capacity(1000), slots.ring_bytes(512)), (512, 4096));
    let waits: Vec<Wait> = full.ways.iter().map(|way| way.wait).collect();
    assert_eq!(waits, [Wait::Poll, Wait::PollBackoff, Wait::Block]);
    for way in full.ways {
        assert!(way.batches && !way.many_senders && !way.many_receivers);
        for name in ["open-loop", "burst", "depth", "workers", "night-watch", "for-me"] {
            assert!(scenario(name).unwrap().takes(&way), "{name}");
        }
        assert!(!scenario("flood").unwrap().takes(&way), "it has one sender");
        delivers(&way);
    }
}

fn delivers(way: &Way) {
    for batch in [1, 100] {
        check::stream(way, 1, batch, 128, 2_000).unwrap();
    }
    check::ask_reply(way, 300).unwrap();
    for (carry, bytes, carried) in [
        (Carry::Moved, 8, true),
        (Carry::Moved, 512, true),
        (Carry::Moved, 4096, false),
        (Carry::InPlace, 8, true),
        (Carry::InPlace, 64, true),
    ] {
        assert_eq!(check::payload(way, carry, bytes, 64, 300), Ok(carried), "{carry} {bytes}");
    }
}

#[test]
fn an_unbounded_queue_is_never_asked_to_wait() {
    let folder = built(&["full"]);
    let unbounded = named(&described(&folder, "full"), "full-unbounded");
    let [way] = &unbounded.ways[..] else { panic!("it only blocks") };
    check::ask_reply(way, 1_000).unwrap();
}

#[test]
fn rows_have_what_the_description_says_and_no_more() {
    let folder = built(&["good"]);
    let good = queue(&described(&folder, "good"));
    let waits: Vec<Wait> = good.ways.iter().map(|way| way.wait).collect();
    assert_eq!(waits, [Wait::Poll, Wait::PollBackoff]);
    for way in good.ways {
        assert!(!way.batches);
        assert!(scenario("payload").unwrap().takes(&way), "messages of 8 bytes");
        check::stream(&way, 1, 1, 128, 10_000).unwrap();
        for (carry, bytes, carried) in
            [(Carry::Moved, 8, true), (Carry::Moved, 64, false), (Carry::InPlace, 8, false)]
        {
            assert_eq!(check::payload(&way, carry, bytes, 64, 100), Ok(carried), "{carry}");
        }
    }
}

#[test]
fn a_description_that_names_functions_which_are_not_there_is_refused() {
    let folder = built(&["full"]);
    let whole = described(&folder, "full");
    for function in ["tt_send_many", "tt_claim", "tt_create_sized", "tt_recv", "tt_send_wait"] {
        let mut described = whole.clone();
        described.functions.retain(|name| name != function);
        let Foreign { queues, left_out, .. } = Foreign::of(&[described], |_| false);
        let LeftOut { name, why } = &left_out[0];
        assert!(queues.len() < 2 && why.ends_with(function), "{why}");
        assert_eq!(name, "full of full.so");
    }
}

#[test]
fn a_name_that_is_taken_costs_the_queue_and_no_other() {
    let folder = built(&["clash", "good"]);
    let adapters = [described(&folder, "clash"), described(&folder, "good")];
    let Foreign { queues, left_out, .. } = Foreign::of(&adapters, |name| name == "pipe");
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["twice", "good"]);
    let taken =
        |name: &str| LeftOut { name: name.into(), why: "another queue has this name".into() };
    assert_eq!(left_out, [taken("pipe of clash.so"), taken("twice of clash.so")]);
}

#[test]
fn an_adapter_that_cannot_be_loaded_or_read_is_refused_with_the_reason() {
    let folder = built(&["lacking", "rubbish", "huge", "good"]);
    let why = |name: &str| describe(&folder.path().join(name)).unwrap_err();
    assert_eq!(why("lacking.so"), "it has no function tt_create");
    assert_eq!(why("rubbish.so"), "its description is not UTF-8");
    assert_eq!(why("huge.so"), "its description is longer than 64 KiB");
    std::fs::write(folder.path().join("text.so"), "not a library").unwrap();
    assert!(why("text.so").starts_with("it cannot be loaded: "), "{}", why("text.so"));
    assert!(why("none.so").starts_with("it cannot be read: "), "{}", why("none.so"));
    // It is loaded when a queue is created.
    let described = described(&folder, "good");
    let good = queue(&described);
    // Another file of this name: the old one is still mapped.
    std::fs::rename(folder.path().join("huge.so"), &described.path).unwrap();
    let changed = check::stream(&good.ways[0], 1, 1, 128, 100).unwrap_err();
    assert_eq!(changed, "good.so: it has changed since the run began");
}

#[test]
fn regular_files_that_are_libraries_or_executable_are_peers() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    std::fs::create_dir(path("folder.so")).unwrap();
    for name in ["b.so", "a", "notes"] {
        std::fs::write(path(name), "").unwrap();
    }
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path("a"), executable).unwrap();
    let found = files(folder.path()).unwrap();
    assert_eq!(found, [File::Program(path("a")), File::Adapter(path("b.so"))]);
    assert!(files(&path("notes")).is_err() && files(&path("none")).is_err());
}
