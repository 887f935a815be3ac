//! Findings: the figures in a few plain sentences.
//!
//! A sentence appears only if its figures exist, and claims a difference only if the 95% intervals
//! of both medians are disjoint.

mod mechanisms;
mod run;

use threadtoll_record::{Record, file::Results};

pub(crate) use mechanisms::cheapest_of;
pub(crate) use run::command;

use crate::{locks, queues};

/// Makes the findings.
pub fn findings(results: &Results, records: &[Record]) -> Vec<String> {
    let mut findings = mechanisms::findings(records);
    findings.extend(queues::findings(records));
    findings.extend(locks::findings(records));
    findings.extend(run::findings(results, records));
    findings
}
