//! Cells that a plan left out, by reason.

use threadtoll_record::Refused;

use crate::clean::clean;
use crate::label::list;

/// Maximum number of reasons, and of cells per reason.
const MAX: usize = 4;

/// The reasons in the order of the plan, each with its cells.
pub(crate) fn by_reason(refused: &[Refused]) -> Vec<(String, Vec<String>)> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for Refused { what, why } in refused {
        let (what, why) = (clean(what), clean(why).trim_end_matches('.').to_string());
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, cells)) => cells.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    reasons
}

/// `futex pinned and park pinned (only one CPU is allowed)`; long lists are cut.
pub fn left_out(refused: &[Refused]) -> Vec<String> {
    let reasons = by_reason(refused);
    let mut parts: Vec<String> = reasons
        .iter()
        .take(MAX)
        .map(|(why, cells)| {
            let mut names: Vec<String> = cells.iter().take(MAX).cloned().collect();
            if cells.len() > names.len() {
                names.push(format!("{} more", cells.len() - names.len()));
            }
            format!("{} ({why})", list(&names))
        })
        .collect();
    if reasons.len() > MAX {
        let cells: usize = reasons[MAX..].iter().map(|(_, cells)| cells.len()).sum();
        parts.push(format!("{cells} more for other reasons"));
    }
    parts
}
