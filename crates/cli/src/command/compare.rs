use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use threadtoll_record::comparison::{Incompatible, Outcome, compare};
use threadtoll_record::file::{self, Contents, Results};
use threadtoll_record::{Comparison, Document};
use threadtoll_report::{markdown, text};

use crate::console::{self, StdStream};
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;

/// Exit code for a regression.
const REGRESSION: u8 = 4;
const MAX_PERCENT: f64 = 1e6;

/// Show what changed between two runs, beyond noise
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Result file to compare with, raw or folded
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// Result file to judge
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Exit with code 4 if a cell is certainly worse by more than this percentage [default: 5]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    fail_above: Option<String>,
    /// Print full tables, notes and undecided results
    #[arg(long)]
    details: bool,
    /// Print one JSON object, threadtoll.comparison/1
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown, for a comment on a pull request
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Compare {
    const NAME: &'static str = "compare";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        let limit = self.fail_above.as_deref().map_or(Ok(5.0), percent)?;
        let (base, new) = (read(&self.base)?, read(&self.new)?);
        let comparison = compare(&base, &new, limit).map_err(|refusal| self.failure(&refusal))?;
        let regressed = comparison.cells.iter().any(|one| one.outcome == Outcome::Regression);
        self.print(comparison)?;
        Ok(if regressed { ExitCode::from(REGRESSION) } else { ExitCode::SUCCESS })
    }
}

impl Compare {
    fn print(&self, comparison: Comparison) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string(&Document::Comparison(Box::new(comparison)))
                .map_err(|error| Failure::run(format!("cannot write JSON: {error}")))?;
            console::data(&text);
        } else if self.markdown {
            console::data(&markdown(&comparison));
        } else {
            let draw = if self.details { text::comparison } else { text::comparison_screen };
            console::out(&draw(&comparison, &StdStream::Out.style()));
        }
        Ok(())
    }

    fn failure(&self, refusal: &Incompatible) -> Failure {
        let what = refusal.to_string();
        let failure = if refusal.is_bad_input() { Failure::usage } else { Failure::refused }(what);
        failure.hint(match refusal {
            Incompatible::SameRun(_) => {
                "measure the new code, and compare the result with this run"
            }
            Incompatible::NothingInCommon => "compare runs of the same command",
            Incompatible::Simulated => "compare simulated runs with each other",
            Incompatible::Machine(_) | Incompatible::Clock(..) => {
                "measure both on one machine, with one clock"
            }
            Incompatible::Grade { .. } => "`threadtoll check` says what to do about the machine",
        })
    }
}

fn read(path: &Path) -> Result<Results, Failure> {
    match file::read_any(path)? {
        Contents::Results(results) => {
            let name = path.display();
            results.notes.iter().for_each(|note| console::note(&format!("{name}: {note}")));
            let missing = results.complete_groups().iter().filter(|complete| !**complete).count();
            if missing > 0 {
                let groups = results.groups.len();
                console::note(&format!(
                    "{name}: {missing} of {groups} groups of measurements are incomplete."
                ));
            }
            Ok(*results)
        }
        Contents::Profile(_) => Err(Failure::usage(format!(
            "{} is a profile, and profiles cannot be compared",
            path.display()
        ))
        .hint("compare files written by survey, latency, matrix, queue or contention")),
    }
}

fn percent(text: &str) -> Result<f64, Failure> {
    let number = text.trim().trim_end_matches('%').parse::<f64>().ok();
    number.filter(|percent| (0.0..=MAX_PERCENT).contains(percent)).ok_or_else(|| {
        Failure::usage(format!("--fail-above {text} is not a percentage"))
            .hint("try --fail-above 5, or 0 to fail on any change for the worse")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_not_negative() {
        assert_eq!((percent("5").unwrap(), percent("2.5%").unwrap()), (5.0, 2.5));
        for text in ["", "-1", "five", "nan", "inf", "1e9", "5 6"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
