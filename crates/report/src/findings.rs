//! The meaning of the figures, in a few plain sentences.
//!
//! A sentence is made only from figures that are there, and a difference is claimed only where the
//! 95% intervals of both medians lie apart.

mod mechanisms;
mod run;

use threadtoll_record::{Record, file::Results};

pub(crate) use mechanisms::cheapest_of;
pub(crate) use run::command;

use crate::{locks, queues};

/// Makes the sentences that the figures allow.
pub fn findings(results: &Results, records: &[Record]) -> Vec<String> {
    let mut findings = mechanisms::findings(records);
    findings.extend(queues::findings(records));
    findings.extend(locks::findings(records));
    findings.extend(run::findings(results, records));
    findings
}
