//! The scenario argument.

use clap::Args;

use crate::by_name::Named;
use crate::failure::Failure;
use crate::nearest::unknown;

#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario to run, as named by `threadtoll list scenarios`; not needed with --resume
    #[arg(value_name = "SCENARIO")]
    scenario: Option<String>,
}

impl ScenarioArgs {
    /// Finds the scenario among those of `command`; `None` only if a run is resumed.
    ///
    /// `subject` names what the scenarios use, such as a queue, and `is_subject` recognizes one
    /// that was given in place of the scenario.
    pub(crate) fn check<S: Named>(
        &self,
        command: &str,
        scenarios: &'static [S],
        resumed: bool,
        subject: &str,
        is_subject: impl FnOnce(&str) -> bool,
    ) -> Result<Option<&'static S>, Failure> {
        let names: Vec<&str> = scenarios.iter().map(Named::name).collect();
        let all = names.join(", ");
        let Some(name) = &self.scenario else {
            return if resumed {
                Ok(None)
            } else {
                Err(Failure::usage(format!("{command} needs a scenario"))
                    .hint(format!("use one of: {all}")))
            };
        };
        let found = scenarios.iter().find(|scenario| scenario.name() == name);
        found.map(Some).ok_or_else(|| {
            let otherwise = if is_subject(name) {
                format!("that is a {subject}; put a scenario before it: {all}")
            } else {
                format!("use one of: {all}")
            };
            unknown(format!("no scenario is called “{name}”"), name, names, otherwise)
        })
    }
}
