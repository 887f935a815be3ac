//! Findings about the run as a whole.

use std::iter;

use threadtoll_record::{Cell, Placement, Record, file::Results};

use crate::clean::clean;
use crate::disturbance::{sum, too_disturbed};
use crate::label::{list, plural};
use crate::left_out::missing;
use crate::regimes::Regimes;
use crate::sentences::{self as say, Sentence};
use crate::units::{per_op, per_second, share, time};

pub(super) fn findings(results: &Results, records: &[Record], regimes: &Regimes) -> Vec<Sentence> {
    let findings = [
        several_regimes(regimes),
        disturbance(results, records),
        left_out(results),
        above_saturation(results),
        few_cpus(results),
        unfinished(results),
    ];
    findings.into_iter().flatten().collect()
}

fn several_regimes(regimes: &Regimes) -> Option<Sentence> {
    let main = regimes.main()?;
    let of_the_blocks = iter::once(" of the blocks").chain(iter::repeat(""));
    let times: Vec<String> = regimes
        .states
        .iter()
        .zip(of_the_blocks)
        .map(|(state, of)| format!("{} in {}{of}", time(state.reference_ns), share(state.share)))
        .collect();
    Some(say::several_regimes(list(&times), time(main.reference_ns)))
}

fn disturbance(results: &Results, records: &[Record]) -> Option<Sentence> {
    let all = sum(records.iter().map(|record| &record.disturbance));
    if all.disturbed == 0 || all.blocks == 0 {
        return None;
    }
    let mut causes: Vec<_> = all.causes.iter().filter(|(_, blocks)| **blocks > 0).collect();
    causes.sort_by(|a, b| b.1.cmp(a.1));
    let causes: Vec<String> =
        causes.into_iter().map(|(cause, blocks)| format!("{cause} {blocks}")).collect();
    let disturbed = share(f64::from(all.disturbed) / f64::from(all.blocks));
    let causes =
        if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    let again = too_disturbed(&all).then(|| say::again(command(results)));
    Some(say::disturbed(all.disturbed, all.blocks, disturbed, causes).and(again))
}

pub(crate) fn command(results: &Results) -> String {
    let mut words = vec!["threadtoll".to_string()];
    let mut skip = false;
    for word in &results.plan.command {
        // If repeated, an existing output file would be rejected, a resumed one would not be
        // measured again, and colours are a matter of taste.
        if matches!(word.as_str(), "--out" | "--resume" | "--html" | "--color") {
            skip = true;
        } else if skip {
            skip = false;
        } else if !["--out=", "--resume=", "--html=", "--color="]
            .iter()
            .any(|option| word.starts_with(option))
        {
            words.push(quoted(&clean(word)));
        }
    }
    if !results.plan.command.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed {}", results.plan.seed));
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn left_out(results: &Results) -> Option<Sentence> {
    let cells = crate::left_out(&missing(results));
    (!cells.is_empty()).then(|| say::left_out(cells.join("; ")))
}

/// Sentence on rows that the plan would have measured at higher rates.
fn above_saturation(results: &Results) -> Option<Sentence> {
    let saturated = results.saturated_rows();
    let of_rate = |(rate, rows): (&u64, &Vec<Cell>)| {
        let rows: Vec<String> = rows.iter().filter_map(row).collect();
        format!("{}/s: {}", per_second(*rate as f64), rows.join(", "))
    };
    let rates: Vec<String> = saturated.iter().map(of_rate).collect();
    (!rates.is_empty()).then(|| say::above_saturation(rates.join("; ")))
}

/// Name of a row: `pipe with park`, and what else distinguishes the rows of a run.
fn row(cell: &Cell) -> Option<String> {
    let queue = cell.queue()?;
    let mut name = format!("{} with {}", clean(&queue.queue), queue.wait);
    if cell.placement != Placement::Pinned {
        name.push_str(&format!(", {}", cell.placement));
    }
    if let Some(neighbour) = cell.neighbour {
        name.push_str(&format!(", beside {}", neighbour.threads()));
    }
    Some(name)
}

pub(super) fn few_cpus(results: &Results) -> Option<Sentence> {
    let machine = &results.machine;
    if machine.allowed.len() == 1 {
        return Some(say::one_cpu());
    }
    let quota = machine.quota_cpus.filter(|quota| *quota < 2.0)?;
    Some(say::quota(per_op(quota.get())))
}

pub(super) fn unfinished(results: &Results) -> Option<Sentence> {
    let groups = &results.groups;
    let complete = results.complete_groups().iter().filter(|complete| **complete).count();
    if complete == groups.len() || groups.iter().all(|group| group.attempts == 0) {
        return None;
    }
    Some(say::unfinished(complete, plural(groups.len() as u64, "group")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(quoted("--cpus=0,1"), "--cpus=0,1");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("$(rm)'x"), r"'$(rm)'\''x'");
        assert_eq!(quoted(""), "''");
    }
}
