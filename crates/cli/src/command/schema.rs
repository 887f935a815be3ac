use std::process::ExitCode;

use clap::Args;
use threadtoll_record::schema::ALL;

use crate::console::{self, entries};
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::nearest::unknown;

/// Print the JSON Schema of a line of a file or of a printed object
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Name of a schema, such as record or profile [default: list all names]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Schema {
    const NAME: &'static str = "schema";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        let Some(name) = &self.name else {
            entries(ALL.iter().map(|one| (one.name, one.sentence)));
            return Ok(ExitCode::SUCCESS);
        };
        // Result files contain the full name, so it is accepted, too.
        let Some(described) = ALL.iter().find(|one| one.name == name || one.full_name() == *name)
        else {
            return Err(unknown(
                format!("“{name}” is not a schema"),
                name,
                ALL.iter().map(|one| one.name),
                "`threadtoll schema` lists them",
            ));
        };
        let text = serde_json::to_string_pretty(&described.schema())
            .map_err(|error| Failure::run(error.to_string()))?;
        console::out(&text);
        Ok(ExitCode::SUCCESS)
    }
}
