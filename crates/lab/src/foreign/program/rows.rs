use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadtoll_record::{Build, Checksum, Load, Origin};

use super::hello::{Hello, Peer, ProgramQueue};
use super::{Program, request};
use crate::lock::Lock;
use crate::mechanism::Mechanism;
use crate::program_file::ProgramFile;
use crate::queue::{Capacity, Queue, Slots, Way};

/// A program and its description of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DescribedProgram {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: Checksum,
    /// The program's description of itself.
    pub hello: Hello,
}

/// Rows of a program.
#[derive(Debug, Default)]
pub struct ProgramRows {
    /// Queues of the program.
    pub queues: Vec<Queue>,
    /// Mechanisms of the program.
    pub mechanisms: Vec<Mechanism>,
    /// Locks of the program.
    pub locks: Vec<Lock>,
    /// Peers of the program that cannot be measured: name, and reason as a clause.
    pub left_out: Vec<(String, String)>,
}

/// Starts a program, obtains its description within `patience`, and ends the program.
///
/// # Errors
///
/// If the program cannot be read or started, or does not describe itself. The error is worded as a
/// clause.
pub fn describe(path: &Path, patience: Duration) -> Result<DescribedProgram, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let path = path.canonicalize().map_err(unreadable)?;
    let sha256 = Checksum::of_bytes(&fs::read(&path).map_err(unreadable)?);
    let hello = Program::start(&path, &[], patience)?.hello().clone();
    Ok(DescribedProgram { path, sha256, hello })
}

impl DescribedProgram {
    /// Makes the rows of the program.
    pub fn rows(&self) -> ProgramRows {
        let Hello { language, runtime, compiler, flags, peers, .. } = &self.hello;
        let compiler =
            if runtime == compiler { compiler.clone() } else { format!("{compiler}, {runtime}") };
        let built = Build {
            language: language.as_str().into(),
            compiler: compiler.into(),
            flags: flags.as_str().into(),
            sha256: self.sha256.clone(),
        };
        let file = ProgramFile::new(&self.path, self.sha256.clone());
        let mut rows = ProgramRows::default();
        for peer in peers {
            match peer {
                Peer::Queue(queue) => rows.queues.push(row(queue, &file, &built)),
                Peer::Mechanism { name, sentence, class } => {
                    let mechanism =
                        Mechanism::elsewhere(name, *class, sentence, file.clone(), built.clone());
                    rows.mechanisms.push(mechanism);
                }
                Peer::Contention { scenario, name, sentence } if scenario == "pool" => {
                    let lock = Lock::elsewhere(name, sentence, file.clone(), built.clone());
                    rows.locks.push(lock);
                }
                Peer::Contention { scenario, name, .. } => rows.left_out.push((
                    name.clone(),
                    format!("programs in other languages cannot run contention {scenario}"),
                )),
            }
        }
        rows
    }
}

fn row(queue: &ProgramQueue, file: &ProgramFile, built: &Build) -> Queue {
    let slots = queue.slot_bytes.map(|bytes| {
        let slots = Slots::groups(1, bytes.into());
        if queue.power_of_two { slots.power_of_two() } else { slots }
    });
    let way = |wait| {
        let known = queue.scenarios.clone();
        let asked = move |scenario: &str, load: &Load, payload_bytes: u64| {
            known.iter().any(|name| name == scenario)
                && request::question(scenario, load, payload_bytes).is_some()
        };
        let way = Way::elsewhere(wait, file.clone(), asked);
        if queue.batches { way.in_batches() } else { way }
    };
    Queue {
        name: queue.name.clone(),
        origin: Origin::of_language(&built.language),
        version: queue.version.clone(),
        sentence: queue.sentence.clone(),
        capacity: slots.map_or(Capacity::Unbounded, Capacity::Slots),
        built: Some(built.clone()),
        ways: queue.waits.iter().copied().map(way).collect(),
    }
}
