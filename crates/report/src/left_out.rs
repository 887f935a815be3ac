use threadtoll_record::Refused;
use threadtoll_record::file::Results;

use crate::clean::clean;
use crate::label::list;

const MAX: usize = 4;

pub(crate) fn missing(results: &Results) -> Vec<Refused> {
    let plan = &results.plan;
    let failed = results
        .strikes
        .iter()
        .map(|strike| Refused { what: strike.name(plan).into(), why: strike.what.clone() });
    plan.refused.iter().cloned().chain(failed).collect()
}

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

/// Renders texts such as `futex pinned and park pinned (only one CPU is allowed)`, and shortens
/// long lists.
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
