//! `threadtoll check`: is this machine fit to be measured?

use std::process::ExitCode;
use std::time::Duration;

use threadtoll_record::{Grade, Line};
use threadtoll_report::text::{self, Style};

use crate::arguments::Check;
use crate::console;
use crate::failure::Failure;
use crate::measure::inspect;

/// Long enough that a gap that comes twice a second is likely seen.
const NOISE: Duration = Duration::from_millis(1000);

pub(crate) fn run(check: &Check) -> Result<ExitCode, Failure> {
    let (machine, _) = inspect(&check.look, NOISE)?;
    if check.json {
        let line = Line::Machine(Box::new(machine.clone()));
        let text = serde_json::to_string(&line).map_err(|error| Failure::run(error.to_string()))?;
        console::out(&text);
    } else {
        console::out(&text::machine(
            &machine,
            &Style { color: true, width: console::width(false) },
        ));
    }
    if check.strict && machine.grade > Grade::B {
        return Err(Failure::refused(format!(
            "the grade of this machine is {}, and --strict asks for A or B",
            machine.grade
        ))
        .hint("each warning above says what helps"));
    }
    Ok(ExitCode::SUCCESS)
}
