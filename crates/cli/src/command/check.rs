use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use threadtoll_record::{Grade, Line};
use threadtoll_report::text;

use crate::console::{self, StdStream};
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::inspect::inspect;

/// Duration of the noise test. It very likely catches an interruption that recurs twice a second.
const NOISE: Duration = Duration::from_millis(1000);

/// Grade this machine from A to D, with advice
#[derive(Debug, Args)]
#[command(after_help = threadtoll_machine::THRESHOLDS)]
pub(crate) struct Check {
    /// Exit with code 3 unless the grade is A or B
    #[arg(long)]
    strict: bool,
    /// Also print the noise of each CPU
    #[arg(long)]
    details: bool,
    /// Print the machine as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Check {
    const NAME: &'static str = "check";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        let (machine, _) = inspect(&self.common, NOISE)?;
        if self.json {
            let line = Line::Machine(Box::new(machine.clone()));
            let text =
                serde_json::to_string(&line).map_err(|error| Failure::run(error.to_string()))?;
            console::data(&text);
        } else {
            let draw = if self.details { text::machine } else { text::machine_screen };
            console::out(&draw(&machine, &StdStream::Out.style()));
        }
        if self.strict && machine.grade > Grade::B {
            return Err(Failure::refused(format!(
                "the grade of this machine is {}, but --strict requires A or B",
                machine.grade
            ))
            .hint("each warning above names a remedy"));
        }
        Ok(ExitCode::SUCCESS)
    }
}
