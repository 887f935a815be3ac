//! `--openmetrics FILE|:PORT`: gives the profile so far to a metrics collector.

mod server;

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use threadtoll_record::profile::Profile;
use threadtoll_report::OpenMetrics;

use crate::failure::Failure;
use crate::{console, draft};
use server::Served;

/// Beginning of each metrics file. A file that begins like this may be replaced.
const BEGIN: &[u8] = b"# TYPE threadtoll_";
/// Metrics of a program of which nothing is known yet.
const NOTHING: &str = "# EOF\n";

const HINT: &str = "write --openmetrics FILE, --openmetrics :9100, or --openmetrics ADDRESS:PORT";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    File(PathBuf),
    Address(SocketAddr),
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::usage(format!("--openmetrics {text}: {why}")).hint(HINT);
        if text.is_empty() {
            return Err(bad("neither a file nor a port"));
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().map_err(|_| bad("not a port from 0 to 65535"))?;
            return Ok(Target::Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        Ok(text.parse().map_or_else(|_| Target::File(text.into()), Target::Address))
    }
}

pub(super) struct Metrics {
    counters: OpenMetrics,
    place: Place,
}

enum Place {
    File(PathBuf),
    Served(Served),
}

impl Metrics {
    /// Starts the server, or checks that the file can be written.
    pub(super) fn open(target: &Target) -> Result<Self, Failure> {
        let place = match target {
            Target::File(path) => {
                check_file(path)?;
                draft::probe(path, "the metrics")?;
                Place::File(path.clone())
            }
            Target::Address(address) => {
                let refused = |error: std::io::Error| {
                    Failure::usage(format!("--openmetrics: cannot listen at {address}: {error}"))
                        .hint("choose another port, or :0 for any free one")
                };
                let listener = TcpListener::bind(address).map_err(refused)?;
                let address = listener.local_addr().map_err(refused)?;
                let served = Served::start(listener, NOTHING).map_err(refused)?;
                console::err(&format!("metrics  http://{address}/metrics"));
                Place::Served(served)
            }
        };
        Ok(Metrics { counters: OpenMetrics::default(), place })
    }

    pub(super) fn renew(&mut self, profile: &Profile) -> Result<(), Failure> {
        let text = self.counters.render(profile);
        match &self.place {
            Place::File(path) => draft::replace(path, "the metrics", &text),
            Place::Served(served) => {
                served.renew(text);
                Ok(())
            }
        }
    }
}

/// Rejects a file that contains anything other than metrics.
pub(super) fn check_file(path: &Path) -> Result<(), Failure> {
    let mut start = Vec::new();
    let read = match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(Failure::usage(format!(
                "cannot write the metrics {}: it is not a regular file",
                path.display()
            ))
            .hint(HINT));
        }
        Ok(_) => std::fs::File::open(path)
            .and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut start)),
        Err(_) => Ok(0),
    };
    if read.is_ok() && (start.is_empty() || start == BEGIN || start == NOTHING.as_bytes()) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} exists and is not a threadtoll metrics file; it was not changed",
        path.display()
    ))
    .hint("choose another file for the metrics"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_served_on_this_machine_only() {
        let address = |text: &str| Target::Address(text.parse().unwrap());
        assert_eq!(Target::parse(":9100").unwrap(), address("127.0.0.1:9100"));
        assert_eq!(Target::parse("0.0.0.0:80").unwrap(), address("0.0.0.0:80"));
        assert_eq!(Target::parse("[::1]:9100").unwrap(), address("[::1]:9100"));
        for file in ["metrics.prom", "9100", "./:9100", "dir/a:b"] {
            assert_eq!(Target::parse(file).unwrap(), Target::File(file.into()));
        }
        for wrong in ["", ":", ":x", ":65536", ":-1"] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }
}
