use threadtoll_machine::topology::Level;
use threadtoll_record::{Budget, Experiment, Placement, Refused};

use crate::mechanism::{Class, Mechanism, Mechanisms};

use super::Planned;
use super::cells::{CpuSelection, MechanismChoice, cells, pair_cells};
use super::groups::{bundle, compared_groups, group, planned_as};

/// Plans all combinations of these mechanisms and the parameters in `choice`. If the placements are
/// only the defaults (`placements_by_default`), refusals of mechanisms with a single thread are not
/// reported.
pub fn latency(
    site: &CpuSelection<'_>,
    known: &Mechanisms,
    mechanisms: &[&Mechanism],
    choice: &MechanismChoice,
    budget: Budget,
    placements_by_default: bool,
) -> Planned {
    let mut groups = Vec::new();
    let mut refused = Vec::new();
    for placement in &choice.placements {
        let mut bundles = Vec::new();
        for mechanism in mechanisms {
            if placements_by_default
                && mechanism.class == Class::OneThread
                && *placement != Placement::Pinned
            {
                continue;
            }
            let at_placement = MechanismChoice { placements: vec![*placement], ..choice.clone() };
            let (found, left_out) = cells(mechanism, &at_placement, site);
            refused.extend(left_out);
            bundle(&mut bundles, mechanism, found);
        }
        groups.extend(compared_groups(bundles, site, known, budget));
    }
    (groups, refused)
}

/// Plans one mechanism on all pairs of CPUs that are no farther apart than `level`.
pub fn matrix(
    site: &CpuSelection<'_>,
    mechanism: Option<&Mechanism>,
    level: Level,
    budget: Budget,
) -> Planned {
    let Some(mechanism) = mechanism else { return (Vec::new(), Vec::new()) };
    let mut refused = Vec::new();
    if let Some(why) = site.missing.of(mechanism) {
        refused.push(Refused {
            what: format!("the matrix of {}", mechanism.name).into(),
            why: why.into(),
        });
        return (Vec::new(), refused);
    }
    let pairs = site.topology.pairs(&site.pool, level);
    if pairs.is_empty() {
        let why = if site.pool.len() < 2 {
            "a matrix needs two CPUs, and only one is allowed".to_string()
        } else {
            format!("no two of the CPUs are within --level {}", level.name())
        };
        refused.push(Refused { what: "the matrix".into(), why: why.into() });
    }
    let cells = pair_cells(mechanism, site, &pairs);
    let planned = planned_as(Experiment::Matrix, budget);
    (group(vec![cells], &[site.reference()], budget, planned), refused)
}
