//! The second line of a file: what is to be measured, in which groups.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{BlockKind, Cell, Count, Experiment, Kind, Subject, Text};

/// Groups of cells to be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Names the run.
    pub run: Text,
    /// The command line without the program's name.
    pub command: Vec<Text>,
    /// Seed of every random choice: the order of blocks and the resampling.
    pub seed: u64,
    /// Limit of the reported share, in nanoseconds.
    pub over_ns: u64,
    /// The options that shaped the plan, by their long names; a resumed run must not contradict
    /// them.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Cells that were asked for and left out, each with the reason.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// Of a folded file: the raw file that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    /// The groups in the order in which they are measured. The first cell of a group is its
    /// reference.
    pub groups: Vec<Vec<PlannedCell>>,
}

/// A cell that was asked for and cannot be measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The cell or experiment that was asked for.
    pub what: Text,
    /// Reason for which it is left out.
    pub why: Text,
}

/// The raw file that a folded file was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Folded {
    /// Number of blocks that the records were folded from; the folded file has none of them.
    pub blocks: Count,
    /// SHA-256 of the raw file, as 64 lower-case hexadecimal digits.
    pub sha256: Checksum,
    /// Size of the raw file in bytes.
    pub raw_bytes: Count,
}

/// A SHA-256 as 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checksum(String);

impl Checksum {
    /// The sum of what was digested.
    pub(crate) fn of(digest: Sha256) -> Self {
        Checksum(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for Checksum {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 64 && digits.bytes().all(is_digit) {
            Ok(Checksum(digits))
        } else {
            Err("the raw file's checksum is not 64 lower-case hexadecimal digits")
        }
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> String {
        checksum.0
    }
}

impl JsonSchema for Checksum {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Checksum".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

/// One cell of a group with its share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedCell {
    /// The experiment that it belongs to (`latency`, `matrix`, …).
    pub experiment: Experiment,
    /// Its parameters.
    pub cell: Cell,
    /// Amount that is measured of it.
    pub budget: Budget,
    /// Kind of loop, of a queue in a scenario whose name does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
}

impl PlannedCell {
    /// A cell whose kind of loop is the usual one for its experiment.
    pub fn new(experiment: Experiment, cell: Cell, budget: Budget) -> Self {
        PlannedCell { experiment, cell, budget, kind: None }
    }

    /// A cell of an experiment in which queues are put through this kind of loop.
    pub fn of_kind(kind: Kind, experiment: Experiment, cell: Cell, budget: Budget) -> Self {
        let told = cell.queue().is_none() || kind == experiment.usual_kind(&cell.subject);
        let kind = (!told).then_some(kind);
        PlannedCell { experiment, cell, budget, kind }
    }

    /// Kind of loop that its threads run.
    pub fn kind(&self) -> Kind {
        match (&self.cell.subject, self.kind) {
            (Subject::Queue(_), Some(kind @ (Kind::Exchange | Kind::Stream))) => kind,
            (subject, _) => self.experiment.usual_kind(subject),
        }
    }
}

/// Amount that is measured of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Number of rounds of the group; each gives one block of stretches and one stamped
    /// block.
    pub rounds: u32,
    /// Intended length of a block of stretches, in nanoseconds; 0, beside stamped ones, means that
    /// there are none.
    pub stretch_ns: u64,
    /// Intended length of a stamped block, in nanoseconds; 0, without a number of exchanges, means
    /// that there are none.
    pub stamped_ns: u64,
    /// Number of stamped exchanges in a block where it was asked for; null where the length
    /// decides.
    pub stamped_count: Option<u64>,
}

impl Budget {
    /// The blocks of one round.
    pub fn kinds(&self) -> &'static [BlockKind] {
        if self.stamped_ns == 0 && self.stamped_count.is_none() {
            &[BlockKind::Stretch]
        } else if self.stretch_ns == 0 {
            &[BlockKind::Stamped]
        } else {
            &[BlockKind::Stretch, BlockKind::Stamped]
        }
    }
}

/// No group goes round more often: a limit that keeps a hostile plan from exhausting the reader,
/// and an honest one from exhausting the memory of who measures.
pub const MAX_ROUNDS: u32 = 10_000;
/// No group has more cells.
pub(crate) const MAX_CELLS_IN_GROUP: usize = 64;

impl Plan {
    /// Checks what was read from a file.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.groups.is_empty() {
            return Err("the plan has no groups".into());
        }
        for (index, group) in self.groups.iter().enumerate() {
            let Some(first) = group.first() else {
                return Err(format!("group {index} of the plan is empty"));
            };
            if group.len() > MAX_CELLS_IN_GROUP {
                return Err(format!(
                    "group {index} of the plan has more than {MAX_CELLS_IN_GROUP} cells"
                ));
            }
            let rounds = first.budget.rounds;
            if rounds == 0
                || rounds > MAX_ROUNDS
                || group.iter().any(|cell| cell.budget.rounds != rounds)
            {
                return Err(format!(
                    "group {index} of the plan has an impossible number of rounds"
                ));
            }
            if group.iter().any(|cell| cell.budget.stamped_count == Some(0)) {
                return Err(format!("group {index} of the plan asks for no samples"));
            }
            if group.iter().any(|cell| cell.cell.cpus.is_empty()) {
                return Err(format!("group {index} of the plan names no CPUs"));
            }
        }
        Ok(())
    }
}
