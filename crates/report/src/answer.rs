use threadtoll_record::{Machine, Record, file::Results};

use crate::clean::clean;
use crate::findings::{Findings, findings, is_noisy, pointers, remarks};
use crate::label::plural;
use crate::regimes::Regimes;
use crate::screen::{Run, Screen};
use crate::{ladder, locks, matrix, overload, queues};

/// The screen of the first topic that has records (order: ladder, matrix, queues, locks, overload),
/// and all findings, those on the screen first.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) screen: Option<Screen>,
    pub(crate) findings: Findings,
}

impl Answer {
    pub(crate) fn of(results: &Results, records: &[Record]) -> Self {
        let regimes = Regimes::of(results, records);
        let (of_one, all) = (regimes.records(records), regimes.all_records(records));
        let run = Run { results, records, regimes: &regimes, of_one: &of_one, all: &all };
        let makers =
            [ladder::screen, matrix::screen, queues::screen, locks::screen, overload::screen];
        let mut screen = makers.iter().find_map(|make| make(&run));
        let mut findings = findings(&run);
        let remarks = remarks(&run);
        let answer = screen.iter().flat_map(|screen| screen.answer.iter().chain(&screen.remarks));
        let told: Vec<_> = answer.chain(&remarks).cloned().collect();
        findings.told.splice(0..0, told);
        if let Some(screen) = &mut screen {
            screen.about = about(&results.machine, is_noisy(&run));
            screen.remarks.extend(remarks.into_iter().chain(pointers(&run)));
        }
        Answer { screen, findings }
    }
}

fn about(machine: &Machine, noisy_since: bool) -> Vec<String> {
    let grade = if noisy_since { "before the run" } else { "of A–D" };
    let mut about = vec![
        format!("machine grade {} {grade}", machine.grade),
        plural(machine.cpus.into(), "CPU"),
        clean(&machine.cpu).trim().to_string(),
    ];
    about.extend(machine.virtualised.as_ref().map(|_| "virtual".into()));
    about
}
