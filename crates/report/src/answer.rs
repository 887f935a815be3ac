//! The answer of a run: its first screen, and all findings.

use threadtoll_record::{Machine, Record, file::Results};

use crate::clean::clean;
use crate::findings::{self, Findings, remarks};
use crate::label::plural;
use crate::regimes::Regimes;
use crate::screen::{Run, Screen};
use crate::{ladder, locks, matrix, queues};

/// All findings: the sentences of the first screen, then the others.
pub(crate) fn findings(results: &Results, records: &[Record]) -> Findings {
    let mut findings = findings::findings(results, records);
    let answer = screen(results, records).map_or_else(Vec::new, |screen| screen.answer);
    findings.told.splice(0..0, answer);
    findings
}

/// The screen of the first topic with records.
pub(crate) fn screen(results: &Results, records: &[Record]) -> Option<Screen> {
    let regimes = Regimes::of(results, records);
    let of_one = regimes.records(records);
    let run = Run { results, records, of_one: &of_one };
    let makers = [ladder::screen, matrix::screen, queues::screen, locks::screen];
    let mut screen = makers.iter().find_map(|make| make(&run))?;
    screen.title = title(&screen.title, &results.machine);
    screen.remarks.extend(remarks(results, records, &regimes));
    Some(screen)
}

/// `What a hand-off costs · AMD EPYC, 2 CPUs, virtual · grade B`.
fn title(question: &str, machine: &Machine) -> String {
    let cpu = clean(&machine.cpu);
    let cpus = plural(machine.cpus.into(), "CPU");
    let machine_words = [Some(cpu.trim().to_string()), Some(cpus)]
        .into_iter()
        .chain([machine.virtualised.as_ref().map(|_| "virtual".into())])
        .flatten()
        .collect::<Vec<_>>()
        .join(", ");
    format!("{question} · {machine_words} · grade {}", machine.grade)
}
