use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of input or output that a thread waits for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum IoKind {
    /// Files and block devices, and page faults that read them.
    Disk,
    /// Sockets.
    Socket,
    /// Pipes.
    Pipe,
    /// Terminals.
    Terminal,
    /// Child processes.
    Child,
    /// Any of several descriptors, by `poll`, `select` or `epoll_wait`.
    Poll,
    /// Reads from a descriptor of an unknown kind.
    Read,
    /// Writes to a descriptor of an unknown kind.
    Write,
    /// Other system calls for input and output.
    Other,
}

impl IoKind {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            IoKind::Disk => "disk",
            IoKind::Socket => "socket",
            IoKind::Pipe => "pipe",
            IoKind::Terminal => "terminal",
            IoKind::Child => "child",
            IoKind::Poll => "poll",
            IoKind::Read => "read",
            IoKind::Write => "write",
            IoKind::Other => "other",
        }
    }
}
