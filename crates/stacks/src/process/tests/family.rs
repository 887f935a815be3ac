use std::ffi::OsString;
use std::fs;
use std::process::Command;

use super::roles::{Observed, eventually};
use crate::process::{Family, FamilyEvent, HeldProgram, Launched, Process, ProcessError};

/// A shell script, killed on drop with all its descendants.
struct Program {
    program: Launched,
    family: Family,
    started: Vec<(u32, Option<u32>)>,
    replaced: Vec<u32>,
    ended: Vec<u32>,
}

impl Program {
    fn start(script: &str, only: Option<&str>) -> Program {
        let held = HeldProgram::spawn("sh".as_ref(), &["-c".into(), script.into()]).unwrap();
        let process = Process::open(held.pid()).unwrap();
        let program = held.release().unwrap();
        let family = Family::with_descendants(process, only.map(OsString::from)).unwrap();
        Program { program, family, started: vec![], replaced: vec![], ended: vec![] }
    }

    fn refresh(&mut self) {
        let Program { family, started, replaced, ended, .. } = self;
        family
            .refresh(&mut |event| match event {
                FamilyEvent::Started { pid, parent, .. } => started.push((pid, parent)),
                FamilyEvent::Replaced { pid, .. } => replaced.push(pid),
                FamilyEvent::Ended { pid, .. } => ended.push(pid),
                FamilyEvent::Unseen { error, .. } => panic!("{error}"),
            })
            .unwrap();
    }

    fn running(&self, name: &str) -> Vec<u32> {
        let named = |process: &&Process| process.name().is_ok_and(|is| is == name);
        self.family.processes().filter(named).map(Process::pid).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.refresh();
        self.family.members().for_each(|process| kill(process.pid()));
        let _ = self.program.forward(libc::SIGKILL);
        let _ = self.program.wait();
    }
}

fn kill(pid: u32) {
    // SAFETY: touches no memory; the process is one of the test's own.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

#[test]
fn descendants_are_found_and_end() {
    // The inner shell is the parent of the third sleeper.
    let mut program =
        Program::start("sleep 1000 & sleep 1000 & sh -c 'sleep 1000 & wait' & wait", None);
    let root = program.program.pid();
    eventually(|| {
        program.refresh();
        program.running("sleep").len() == 3 && program.running("sh").len() == 2
    });
    let shells = program.running("sh");
    let inner = *shells.iter().find(|&&pid| pid != root).unwrap();
    let children = |parent| program.started.iter().filter(|started| started.1 == parent).count();
    assert_eq!(program.started[0], (root, None));
    assert_eq!((children(Some(root)), children(Some(inner))), (3, 1));
    assert!(program.ended.is_empty());

    let sleeper = program.running("sleep")[0];
    kill(sleeper);
    eventually(|| {
        program.refresh();
        program.ended == [sleeper]
    });
    assert!(program.family.is_running());
    assert!(program.family.processes().all(|process| process.pid() != sleeper));
    // Nothing is reported twice.
    let started = program.started.len();
    for _ in 0..10 {
        program.refresh();
    }
    assert_eq!(program.started.len(), started);
    for process in program.family.processes() {
        kill(process.pid());
    }
    program.program.wait().unwrap();
    eventually(|| {
        program.refresh();
        program.ended.len() == program.started.len()
    });
    assert!(!program.family.is_running());
}

#[test]
fn another_program_is_another_image() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done; exec sleep 1000", go.display());
    let mut program = Program::start(&script, None);
    let root = program.program.pid();
    program.refresh();
    assert!(program.replaced.is_empty());
    fs::write(&go, "").unwrap();
    eventually(|| {
        program.refresh();
        program.replaced.contains(&root)
    });
    assert!(!program.ended.contains(&root));
}

#[test]
fn only_names_that_are_asked_for_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let name = "a-name-that-is-longer-than-kept";
    let (go, long) = (directory.path().join("go"), directory.path().join(name));
    // `cp` writes the file: if this process did, children that other tests fork meanwhile would
    // inherit the open descriptor, and the file could not be executed.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&long).status().unwrap().success());
    let script = format!(
        "sleep 1000 & {0} 1000 & while [ ! -e {1} ]; do sleep 0.01; done; exec {0} 1000",
        long.display(),
        go.display(),
    );
    for only in [name, &name[..15]] {
        let _ = fs::remove_file(&go);
        let mut program = Program::start(&script, Some(only));
        let root = program.program.pid();
        eventually(|| {
            program.refresh();
            program.started.len() == 1
        });
        assert_eq!(program.started[0].1, Some(root));
        assert_eq!(program.family.processes().count(), 1);
        fs::write(&go, "").unwrap();
        eventually(|| {
            program.refresh();
            program.started.len() == 2
        });
        assert_eq!(program.started[1], (root, None));
        assert!(program.replaced.is_empty());
    }
}

#[test]
fn processes_that_others_know_of_are_followed() {
    let (first, _) = Observed::start("threads");
    let (second, _) = Observed::start("threads");
    let mut family = Family::alone(first.open());
    let mut started = Vec::new();
    let mut note = |event| match event {
        FamilyEvent::Started { pid, parent, .. } => started.push((pid, parent)),
        event => panic!("{event:?}"),
    };
    for _ in 0..2 {
        family.follow(second.pid(), first.pid(), &mut note);
        family.refresh(&mut note).unwrap();
    }
    let mut unseen = None;
    family.follow(std::process::id(), first.pid(), &mut |event| unseen = Some(event));
    assert_eq!(started, [(first.pid(), None), (second.pid(), Some(first.pid()))]);
    assert!(matches!(unseen, Some(FamilyEvent::Unseen { error: ProcessError::Itself, .. })));
}
