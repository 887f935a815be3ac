use std::process::ExitCode;

use clap::Args;
use threadtoll_lab::queue::{Queue, SCENARIOS, ours};
use threadtoll_lab::{contention, lock};
use threadtoll_record::Origin;

use crate::console::entries;
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::peers::{PeersArgs, add, bad};
use crate::registry::registry;

const PEERS: &str = "peers";
const LISTS: [&str; 5] = ["mechanisms", "queues", "locks", "scenarios", PEERS];

/// List mechanisms, queues, locks, scenarios or peers
#[derive(Debug, Args)]
pub(crate) struct List {
    /// mechanisms, queues, locks, scenarios or peers
    #[arg(value_name = "LIST")]
    list: String,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for List {
    const NAME: &'static str = "list";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        if let Some(folder) = self.peers.folder()? {
            if self.list != PEERS {
                return Err(Failure::usage(format!("--peers does not apply to {}", self.list))
                    .hint("`threadtoll list peers` lists them"));
            }
            add(&folder).map_err(|why| bad(&folder, &why))?;
        }
        match self.list.as_str() {
            "mechanisms" => entries(
                registry().mechanisms.all().map(|one| (one.name.as_str(), one.sentence.as_str())),
            ),
            "queues" => {
                entries(ours().iter().map(|one| (one.name.as_str(), one.sentence.as_str())))
            }
            PEERS => {
                let is_peer = |one: &&Queue| !matches!(one.origin, Origin::Ours | Origin::Raw);
                let peers: Vec<&Queue> = registry().queues.all().filter(is_peer).collect();
                let mechanisms = registry().mechanisms.all().filter(|one| one.is_elsewhere());
                let locks = registry().locks.all().filter(|one| one.is_elsewhere());
                entries(
                    peers
                        .iter()
                        .map(|one| (one.name.as_str(), one.sentence.as_str()))
                        .chain(mechanisms.map(|one| (one.name.as_str(), one.sentence.as_str())))
                        .chain(locks.map(|one| (one.name.as_str(), one.sentence.as_str()))),
                );
            }
            "locks" => entries(
                registry()
                    .locks
                    .all()
                    .map(|one| (one.name.as_str(), one.sentence.as_str()))
                    .chain([(lock::STRIPED, lock::STRIPED_SENTENCE)]),
            ),
            "scenarios" => {
                let queues = SCENARIOS.iter().map(|one| (one.name, one.sentence));
                let locks = contention::SCENARIOS.iter().map(|one| (one.name, one.sentence));
                entries(queues.chain(locks));
            }
            other => {
                return Err(unknown(
                    format!("“{other}” is not a list"),
                    other,
                    LISTS,
                    format!("use one of: {}", LISTS.join(", ")),
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
