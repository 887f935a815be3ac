use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    Cell, Class, Layout, Neighbour, Pause, Placement, Refused, Relation, Subject,
};

use crate::mechanism::Mechanism;

/// The CPUs available to a plan.
#[derive(Clone, Debug)]
pub struct CpuSelection<'a> {
    /// Topology of the machine.
    pub topology: &'a Topology,
    /// Pair of CPUs for pinned cells; `None` if there is only one CPU.
    pub pair: Option<(u32, u32)>,
    /// CPUs among which unpinned threads are free to move.
    pub pool: Vec<u32>,
    /// Capabilities that the machine lacks.
    pub missing: Missing,
}

/// Capabilities that a machine lacks, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Names of mechanisms that cannot be created, each with the reason.
    pub mechanisms: Vec<(String, String)>,
    /// Reason why CPUs cannot be kept awake; `None` if they can.
    pub awake: Option<String>,
}

impl Missing {
    pub(super) fn of(&self, mechanism: &Mechanism) -> Option<&str> {
        self.mechanisms
            .iter()
            .find(|(name, _)| *name == mechanism.name)
            .map(|(_, why)| why.as_str())
    }
}

impl<'a> CpuSelection<'a> {
    /// Selects the given CPUs, in the given order: pinned cells use the first two.
    pub fn named(topology: &'a Topology, cpus: &[u32]) -> Self {
        let pair = match cpus {
            [a, b, ..] => Some((*a, *b)),
            _ => None,
        };
        CpuSelection { topology, pair, pool: cpus.to_vec(), missing: Missing::default() }
    }

    /// Selects all CPUs that this process may use.
    pub fn whole(topology: &'a Topology, allowed: &[u32]) -> Self {
        let pair = topology.default_pair(allowed);
        CpuSelection { topology, pair, pool: allowed.to_vec(), missing: Missing::default() }
    }

    /// The same CPUs, on a machine that lacks these capabilities.
    pub fn without(self, missing: Missing) -> Self {
        CpuSelection { missing, ..self }
    }

    /// The CPU for cells with one thread, or with both threads on the same CPU.
    pub fn first(&self) -> u32 {
        self.pair.map_or_else(|| self.pool.first().copied().unwrap_or(0), |(first, _)| first)
    }

    /// The reference cell of every group: `atomic-store` with cache lines of its own, pinned to the
    /// pair, or the futex if there is only one CPU.
    pub fn reference(&self) -> Cell {
        let (subject, placement, cpus, relation) = match self.pair {
            Some((a, b)) => (
                Subject::mechanism("atomic-store", Class::Spin),
                Placement::Pinned,
                vec![a, b],
                self.topology.relation(a, b),
            ),
            None => (
                Subject::mechanism("futex", Class::Sleep),
                Placement::SameCpu,
                vec![self.first()],
                Relation::SameCpu,
            ),
        };
        Cell {
            subject,
            placement,
            cpus,
            relation,
            payload_bytes: 8,
            line: self.pair.map(|_| Layout::Own),
            pause: self.pair.map(|_| Pause::Off),
            keep_awake: false,
            neighbour: None,
            built: None,
        }
    }
}

/// Parameters of a mechanism's cells. All combinations are planned.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanismChoice {
    /// Placements.
    pub placements: Vec<Placement>,
    /// Cache-line layouts, for the mechanisms that have a choice.
    pub layouts: Vec<Layout>,
    /// Pause hints, for the mechanisms that have a choice.
    pub pauses: Vec<Pause>,
    /// Message sizes in bytes.
    pub payloads: Vec<u64>,
    /// Values of `keep_awake` to measure, for mechanisms that sleep.
    pub awake: Vec<bool>,
    /// Background load.
    pub neighbour: Option<Neighbour>,
}

impl Default for MechanismChoice {
    fn default() -> Self {
        MechanismChoice {
            placements: Placement::ALL.to_vec(),
            layouts: vec![Layout::Own],
            pauses: vec![Pause::Off],
            payloads: vec![8],
            awake: vec![false],
            neighbour: None,
        }
    }
}

/// The error is the reason why the mechanism cannot be measured at this placement.
pub(super) fn place(
    mechanism: &Mechanism,
    placement: Placement,
    site: &CpuSelection<'_>,
) -> Result<(Vec<u32>, Relation), String> {
    if let Some(why) = site.missing.of(mechanism) {
        return Err(why.to_string());
    }
    suited(mechanism.class, placement, site).map_err(str::to_string)
}

pub(super) fn suited(
    class: Class,
    placement: Placement,
    site: &CpuSelection<'_>,
) -> Result<(Vec<u32>, Relation), &'static str> {
    let alone = site.pool.len() < 2;
    match (class, placement) {
        (Class::OneThread, Placement::Pinned) => Ok((vec![site.first()], Relation::SameThread)),
        (Class::OneThread, _) => Err("it runs on one thread, which is always pinned"),
        (_, Placement::Pinned) => match site.pair {
            Some((a, b)) => Ok((vec![a, b], site.topology.relation(a, b))),
            None => Err("two pinned threads need two CPUs, and only one is allowed"),
        },
        (Class::Spin, Placement::SameCpu) => {
            Err("a spinning thread keeps its partner off the CPU until the next scheduler tick")
        }
        (Class::Spin, Placement::Free) if alone => {
            Err("only one CPU is allowed, and a spinning thread keeps its partner off it")
        }
        (_, Placement::SameCpu) => Ok((vec![site.first()], Relation::SameCpu)),
        (_, Placement::Free) if alone => {
            Err("only one CPU is allowed, so free placement equals same-cpu")
        }
        (_, Placement::Free) => Ok((site.pool.clone(), Relation::Free)),
    }
}

pub(super) fn cells(
    mechanism: &Mechanism,
    choice: &MechanismChoice,
    site: &CpuSelection<'_>,
) -> (Vec<Cell>, Vec<Refused>) {
    let layouts = varied(mechanism.has_layout, &choice.layouts);
    let pauses = varied(mechanism.has_pause, &choice.pauses);
    let sleeps = matches!(mechanism.class, Class::Sleep | Class::Poll);
    let mut found = Vec::new();
    let mut refused = Vec::new();
    for placement in &choice.placements {
        let (cpus, relation) = match place(mechanism, *placement, site) {
            Ok(place) => place,
            Err(why) => {
                refused.push(Refused {
                    what: format!("{} {placement}", mechanism.name).into(),
                    why: why.into(),
                });
                continue;
            }
        };
        let mut awake: Vec<bool> = choice.awake.iter().map(|awake| *awake && sleeps).collect();
        if let (Some(why), true) = (&site.missing.awake, awake.contains(&true)) {
            refused.push(Refused {
                what: format!("{} {placement}, CPUs awake", mechanism.name).into(),
                why: why.clone().into(),
            });
            awake.retain(|awake| !awake);
        }
        for (line, pause) in
            layouts.iter().flat_map(|line| pauses.iter().map(move |pause| (*line, *pause)))
        {
            for payload_bytes in &choice.payloads {
                for keep_awake in &awake {
                    let cell = Cell {
                        subject: mechanism.subject(),
                        placement: *placement,
                        cpus: cpus.clone(),
                        relation,
                        payload_bytes: *payload_bytes,
                        line,
                        pause,
                        keep_awake: *keep_awake,
                        neighbour: choice.neighbour,
                        built: mechanism.built.clone(),
                    };
                    if !found.contains(&cell) {
                        found.push(cell);
                    }
                }
            }
        }
    }
    (found, refused)
}

fn varied<T: Copy>(has: bool, values: &[T]) -> Vec<Option<T>> {
    if has { values.iter().copied().map(Some).collect() } else { vec![None] }
}

pub(super) fn pair_cells(
    mechanism: &Mechanism,
    site: &CpuSelection<'_>,
    pairs: &[(u32, u32)],
) -> Vec<Cell> {
    pairs
        .iter()
        .map(|&(a, b)| Cell {
            subject: mechanism.subject(),
            placement: Placement::Pinned,
            cpus: vec![a, b],
            relation: site.topology.relation(a, b),
            payload_bytes: 8,
            line: mechanism.has_layout.then_some(Layout::Own),
            pause: mechanism.has_pause.then_some(Pause::Off),
            keep_awake: false,
            neighbour: None,
            built: mechanism.built.clone(),
        })
        .collect()
}
