use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Trace;
use crate::{Block, CellPrediction, Machine, Plan, Profile, Record, Strike, Timeline};

/// A line of a file. The member `schema` names the line's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema")]
pub enum Line {
    /// The first line: the machine.
    #[serde(rename = "threadtoll.machine/1")]
    Machine(Box<Machine>),
    /// The second line: the plan.
    #[serde(rename = "threadtoll.plan/1")]
    Plan(Box<Plan>),
    /// A prediction for a cell, written before the cell's first block.
    #[serde(rename = "threadtoll.foretold/1")]
    CellPrediction(Box<CellPrediction>),
    /// A completed block.
    #[serde(rename = "threadtoll.block/1")]
    Block(Box<Block>),
    /// The beginning of a block in which threads contend for a lock.
    #[serde(rename = "threadtoll.timeline/1")]
    Timeline(Box<Timeline>),
    /// A row that was given up.
    #[serde(rename = "threadtoll.struck/1")]
    Strike(Box<Strike>),
    /// The result of a cell.
    #[serde(rename = "threadtoll.record/1")]
    Record(Box<Record>),
    /// Everything seen so far of a profiled program.
    #[serde(rename = "threadtoll.profile/2")]
    Profile(Box<Profile>),
    /// States of a program's threads over time.
    #[serde(rename = "threadtoll.trace/1")]
    Trace(Box<Trace>),
}
