use threadtoll_record::{Cell, Placement, Record, file::Results};

use crate::clean::clean;
use crate::disturbance::sum;
use crate::label::plural;
use crate::left_out::missing;
use crate::screen::Run;
use crate::sentences::{self as say, Sentence};
use crate::units::{per_op, per_second, share};

pub(super) fn findings(run: &Run<'_>) -> Vec<Sentence> {
    let results = run.results;
    let findings = [disturbance(run.records), left_out(results), above_saturation(results)];
    findings.into_iter().flatten().collect()
}

fn disturbance(records: &[Record]) -> Option<Sentence> {
    let all = sum(records.iter().map(|record| &record.disturbance));
    let mut causes: Vec<_> = all.causes.iter().filter(|(_, blocks)| **blocks > 0).collect();
    causes.sort_by(|a, b| b.1.cmp(a.1));
    let causes: Vec<String> =
        causes.into_iter().map(|(cause, blocks)| format!("{cause} {blocks}")).collect();
    let causes =
        if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    let part = share(f64::from(all.disturbed) / f64::from(all.blocks));
    (all.disturbed > 0).then(|| say::disturbed(all.disturbed, all.blocks, part, causes))
}

pub(crate) fn command(results: &Results) -> String {
    let mut words = vec!["threadtoll".to_string()];
    let mut skip = false;
    for word in &results.plan.command {
        // These options are omitted from the repeated command: an existing output file would be
        // rejected, a resumed run would not be measured again, and colours are a matter of taste.
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

fn above_saturation(results: &Results) -> Option<Sentence> {
    let saturated = results.saturated_rows();
    let of_rate = |(rate, rows): (&u64, &Vec<Cell>)| {
        let rows: Vec<String> = rows.iter().filter_map(row).collect();
        format!("{}/s: {}", per_second(*rate as f64), rows.join(", "))
    };
    let rates: Vec<String> = saturated.iter().map(of_rate).collect();
    (!rates.is_empty()).then(|| say::above_saturation(rates.join("; ")))
}

/// Such as `pipe with park`, followed by the properties that distinguish the rows of a run.
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
