use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BlockKind, Cell, Checksum, Count, Experiment, Kind, Subject, Text};

/// The second line of a file: the groups of cells to measure, and settings for all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Id of the run.
    pub run: Text,
    /// The command line without the program's name.
    pub command: Vec<Text>,
    /// Seed of all random choices: the order of blocks, and resampling.
    pub seed: u64,
    /// Time in nanoseconds above which a round trip counts as long.
    pub over_ns: u64,
    /// Options that affected the plan, by their long names; a resumed run must not contradict them.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Requested cells that are not measured, each with the reason.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// The raw file from which this file was folded; only in folded files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    /// Number of processes that measure each group, one after another. Each process measures some
    /// of the group's rounds.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub processes: u32,
    /// Set if the last group repeats an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// True if the groups are a sweep of rates that ends at saturation. A group is then skipped if
    /// each of its rows was saturated at the next lower rate at which the row was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_saturated: bool,
    /// The groups, in the order in which they are measured. The other cells of a group are compared
    /// with its first cell, the reference.
    pub groups: Vec<Vec<PlannedCell>>,
}

/// A group that is measured again at the end, to show how much figures differ within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeat {
    /// Index of the group that is repeated.
    pub group: usize,
    /// Minimum time from the end of the group to its repetition, in nanoseconds.
    pub after_ns: u64,
}

fn one() -> u32 {
    1
}

fn is_one(processes: &u32) -> bool {
    *processes == 1
}

/// A requested cell or experiment that is not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The requested cell or experiment.
    pub what: Text,
    /// Reason for leaving out the cell or experiment.
    pub why: Text,
}

/// The raw file from which a file was folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Folded {
    /// Number of blocks that were folded into the records. The folded file contains no blocks.
    pub blocks: Count,
    /// SHA-256 of the raw file, as 64 lower-case hexadecimal digits.
    pub sha256: Checksum,
    /// Size of the raw file in bytes.
    pub raw_bytes: Count,
}

/// One cell of a group, with the number and lengths of its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedCell {
    /// The experiment that the cell belongs to (`latency`, `matrix`, …).
    pub experiment: Experiment,
    /// Parameters of the cell.
    pub cell: Cell,
    /// Number and lengths of the cell's blocks.
    pub budget: Budget,
    /// Kind of loop; absent if the experiment's default applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
}

impl PlannedCell {
    /// A cell with the experiment's default kind of loop.
    pub fn new(experiment: Experiment, cell: Cell, budget: Budget) -> Self {
        PlannedCell { experiment, cell, budget, kind: None }
    }

    /// A queue's cell with this kind of loop. Other subjects always have the default kind.
    pub fn of_kind(kind: Kind, experiment: Experiment, cell: Cell, budget: Budget) -> Self {
        let told = cell.queue().is_none() || kind == experiment.usual_kind(&cell.subject);
        let kind = (!told).then_some(kind);
        PlannedCell { experiment, cell, budget, kind }
    }

    /// Kind of loop that the cell's threads run.
    pub fn kind(&self) -> Kind {
        match (&self.cell.subject, self.kind) {
            (Subject::Queue(_), Some(kind)) if kind != Kind::Contention => kind,
            (subject, _) => self.experiment.usual_kind(subject),
        }
    }
}

/// Number and lengths of a cell's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Number of rounds of the group, each with one stretch block and one stamped block.
    pub rounds: u32,
    /// Intended duration of a stretch block, in nanoseconds; 0 if the cell has only stamped blocks.
    pub stretch_ns: u64,
    /// Intended duration of a stamped block, in nanoseconds. If this is 0 and `stamped_count` is
    /// null, the cell has only stretch blocks.
    pub stamped_ns: u64,
    /// Number of stamped exchanges per block; null if the duration determines it.
    pub stamped_count: Option<u64>,
}

impl Budget {
    /// Kinds of block that the cell has in each round.
    pub fn kinds(&self) -> &'static [BlockKind] {
        if self.stamped_ns == 0 && self.stamped_count.is_none() {
            &[BlockKind::Stretch]
        } else if self.stretch_ns == 0 {
            &[BlockKind::Stamped]
        } else {
            &[BlockKind::Stretch, BlockKind::Stamped]
        }
    }

    /// Intended duration of a block of this kind, in nanoseconds.
    pub fn length_ns(&self, kind: BlockKind) -> u64 {
        match kind {
            BlockKind::Stretch => self.stretch_ns,
            BlockKind::Stamped => self.stamped_ns,
        }
    }
}

/// Maximum number of rounds of a group. It limits the memory that a hostile plan takes when read,
/// and that a legitimate plan takes when measured.
pub const MAX_ROUNDS: u32 = 10_000;
/// Maximum number of processes that measure a group.
pub const MAX_PROCESSES: u32 = 100;
pub(crate) const MAX_CELLS_IN_GROUP: usize = 64;

impl Plan {
    /// A profile measures no cells.
    pub(crate) fn is_profile(&self) -> bool {
        self.groups.is_empty() && self.command.first().is_some_and(|name| *name == "profile")
    }

    /// Index of the process that measures round `round` of `rounds`. Each process measures
    /// consecutive rounds, and the processes' numbers of rounds differ by at most one. A group with
    /// few rounds uses fewer processes.
    pub fn process(&self, round: u32, rounds: u32) -> u32 {
        let processes = u64::from(self.processes.clamp(1, rounds.max(1)));
        // The last process whose first round, `process * rounds / processes`, is at most `round`.
        (((u64::from(round) + 1) * processes - 1) / u64::from(rounds.max(1))) as u32
    }

    /// Index of the group that `group` repeats; `None` if `group` is not a repetition.
    pub fn repeated_by(&self, group: usize) -> Option<usize> {
        let repeat = self.repeat.filter(|_| group + 1 == self.groups.len())?;
        Some(repeat.group)
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.groups.is_empty() {
            return Err("the plan has no groups".into());
        }
        if let Some(repeat) = self.repeat {
            let last = self.groups.len() - 1;
            if repeat.group >= last || self.groups[repeat.group] != self.groups[last] {
                return Err("the plan's last group differs from the one that it repeats".into());
            }
        }
        if !(1..=MAX_PROCESSES).contains(&self.processes) {
            return Err("the plan has an impossible number of processes".into());
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
                return Err(format!("group {index} of the plan has a cell without samples"));
            }
            if group.iter().any(|cell| cell.cell.cpus.is_empty()) {
                return Err(format!("group {index} of the plan has a cell without CPUs"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_contiguous_shares_of_about_equal_size() {
        for (processes, rounds) in [(1, 1), (1, 31), (3, 31), (3, 21), (5, 3), (100, 10_000)] {
            let plan = Plan {
                run: "".into(),
                command: Vec::new(),
                seed: 1,
                over_ns: 1,
                options: BTreeMap::new(),
                refused: Vec::new(),
                folded: None,
                processes,
                repeat: None,
                until_saturated: false,
                groups: Vec::new(),
            };
            let of: Vec<u32> = (0..rounds).map(|round| plan.process(round, rounds)).collect();
            assert!(of.is_sorted() && of[0] == 0);
            let used = processes.min(rounds);
            assert_eq!(of[of.len() - 1], used - 1, "{processes} {rounds}");
            let sizes = (0..used).map(|one| of.iter().filter(|process| **process == one).count());
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(least > 0 && most - least <= 1, "{processes} {rounds}: {least} to {most}");
        }
    }
}
