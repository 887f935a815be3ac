//! Findings: the figures summarised in a few plain sentences.
//!
//! A sentence appears only if its figures exist, and it claims a difference only if an interval
//! supports it. If the intervals are inconclusive, the difference is called undecided, and both
//! figures are given.

mod mechanisms;
mod repeat;
mod run;

use threadtoll_record::{Record, file::Results};

pub(crate) use mechanisms::representative;
pub(crate) use run::command;

use crate::regimes::Regimes;
use crate::sentences::Sentence;
use crate::{locks, queues};

/// Returns the findings. Their figures are all from one regime, except for claims about other
/// languages and about CPU time, which are answered if their rows were measured at all.
pub(crate) fn findings(results: &Results, records: &[Record]) -> Vec<Sentence> {
    let regimes = Regimes::of(results, records);
    let of_one = regimes.records(records);
    let all = regimes.all_records(records);
    let mut findings = mechanisms::findings(&of_one);
    findings.extend(mechanisms::claims(&all));
    findings.extend(queues::findings(results, &of_one));
    findings.extend(queues::peer_findings(&all));
    findings.extend(locks::findings(&of_one, records));
    findings.extend(run::findings(results, records, &regimes));
    if !records.is_empty() {
        findings.push(repeat::finding(results, &regimes));
    }
    findings
}
