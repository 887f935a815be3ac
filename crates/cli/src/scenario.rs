//! The scenario of a command that has several.

use clap::Args;

use crate::by_name::Named;
use crate::failure::Failure;
use crate::nearest::unknown;

#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario to run, as named by `threadtoll list scenarios`; a resumed file knows its own
    #[arg(value_name = "SCENARIO")]
    scenario: Option<String>,
}

impl ScenarioArgs {
    /// Finds the scenario among those of `command`; `None` only where a run is resumed.
    ///
    /// `subject` is what the scenarios are about, such as a queue, and `is_subject` tells if a name
    /// is one: it may have been given in place of the scenario.
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
                    .hint(format!("it is one of: {all}")))
            };
        };
        let found = scenarios.iter().find(|scenario| scenario.name() == name);
        found.map(Some).ok_or_else(|| {
            let otherwise = if is_subject(name) {
                format!("that is a {subject}; the scenario stands before it: {all}")
            } else {
                format!("it is one of: {all}")
            };
            unknown(format!("there is no scenario “{name}”"), name, names, otherwise)
        })
    }
}
