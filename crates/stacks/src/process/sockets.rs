//! Sockets of a process's network namespace (proc_pid_net(5)).

use std::collections::{HashMap, HashSet};
use std::io;

use super::Process;
use super::files::{self, ShortPath};

/// Maximum number of bytes read of a table. The kernel lists listening sockets first.
const MAX_TABLE: usize = 1 << 20;

/// State of a listening TCP socket.
const LISTENS: &str = "0A";
/// State and type of a connected Unix stream socket.
const CONNECTED_STREAM: [&str; 2] = ["0001", "03"];

/// Tells which sockets are the client's end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// By the socket's inode.
    clients: HashMap<u64, Client>,
}

/// Tells if a socket is the client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The socket listens, or a listening socket accepted its connection.
    No,
    /// One of these: a TCP connection on whose local port no socket listens; a UDP socket with a
    /// fixed peer, such as a name server; a Unix connection without a name of its own, such as
    /// either end of a socketpair(2).
    Yes,
}

impl Sockets {
    fn parse(tcp: &[Vec<u8>], udp: &[Vec<u8>], unix: &[u8]) -> Sockets {
        let mut clients = HashMap::new();
        for row in rows(udp) {
            let client = if row.has_peer { Client::Yes } else { Client::No };
            clients.insert(row.inode, client);
        }
        let rows: Vec<Row<'_>> = rows(tcp).collect();
        let listens: HashSet<&str> =
            rows.iter().filter(|row| row.state == LISTENS).map(|row| row.port).collect();
        for row in &rows {
            let client = if listens.contains(row.port) { Client::No } else { Client::Yes };
            clients.insert(row.inode, client);
        }
        for line in lines(unix) {
            let mut fields = line.split_ascii_whitespace().skip(4);
            let kind = [fields.next(), fields.next()];
            let Some(Ok(inode)) = fields.next().map(str::parse) else { continue };
            let unnamed = fields.next().is_none() && kind == CONNECTED_STREAM.map(Some);
            // A name may contain a line feed and a forged line, which must not replace an earlier
            // entry.
            clients.entry(inode).or_insert(if unnamed { Client::Yes } else { Client::No });
        }
        Sockets { clients }
    }

    /// Tells if the socket with this inode belongs to a client. `None` for other kinds of sockets,
    /// for a socket newer than the tables, and for a socket beyond the part of a table that was
    /// read.
    pub fn client(&self, inode: u64) -> Option<Client> {
        self.clients.get(&inode).copied()
    }

    /// Number of sockets.
    pub fn number(&self) -> usize {
        self.clients.len()
    }
}

struct Row<'a> {
    port: &'a str,
    has_peer: bool,
    state: &'a str,
    inode: u64,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (_, port) = fields.next()?.rsplit_once(':')?;
        let (_, of_peer) = fields.next()?.rsplit_once(':')?;
        let state = fields.next()?;
        let inode = fields.nth(5)?.parse().ok()?;
        Some(Row { port, has_peer: of_peer != "0000", state, inode })
    }
}

fn rows(tables: &[Vec<u8>]) -> impl Iterator<Item = Row<'_>> {
    tables.iter().flat_map(|table| lines(table)).filter_map(Row::parse)
}

/// Complete lines of a table, without its heading.
fn lines(table: &[u8]) -> impl Iterator<Item = &str> {
    let lines = table.split_inclusive(|&byte| byte == b'\n').skip(1);
    lines.filter_map(|line| std::str::from_utf8(line.strip_suffix(b"\n")?).ok())
}

impl Process {
    /// TCP, UDP and Unix sockets of the process's network namespace. Takes some microseconds per
    /// socket.
    pub fn sockets(&self) -> Sockets {
        let table = |name| {
            let path = ShortPath::new(format_args!("net/{name}"));
            // A kernel without IPv6 lacks `tcp6` and `udp6`.
            files::read(&self.directory, &path, MAX_TABLE).unwrap_or_default()
        };
        Sockets::parse(&["tcp", "tcp6"].map(table), &["udp", "udp6"].map(table), &table("unix"))
    }

    /// Inode of the socket behind a descriptor; `None` if the descriptor refers to anything else.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn socket(&self, descriptor: u32) -> io::Result<Option<u64>> {
        let target = self.descriptor_target(descriptor)?;
        let inode = |name: &str| name.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
        Ok(target.to_str().and_then(inode))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use super::*;

    /// Results for these files while another process has them open.
    fn clients(files: [OwnedFd; 3]) -> [Option<Client>; 3] {
        let [input, output, errors] = files.map(Stdio::from);
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").stdin(input).stdout(output).stderr(errors).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let sockets = process.sockets();
        let inodes = [0, 1, 2].map(|descriptor| process.socket(descriptor).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        inodes.map(|inode| sockets.client(inode?))
    }

    #[test]
    fn sides_of_connections_are_told_apart() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            let files = [listener.into(), server.into(), client.into()];
            assert_eq!(
                clients(files),
                [Client::No, Client::No, Client::Yes].map(Some),
                "{address}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let client = UnixStream::connect(folder.path().join("socket")).unwrap();
        let (server, _) = listener.accept().unwrap();
        let files = [listener.into(), server.into(), client.into()];
        assert_eq!(clients(files), [Client::No, Client::No, Client::Yes].map(Some));
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.local_addr().unwrap()).unwrap();
        let null = File::open("/dev/null").unwrap();
        let files = [server.into(), client.into(), null.into()];
        assert_eq!(clients(files), [Some(Client::No), Some(Client::Yes), None]);
    }

    #[test]
    fn tables_may_be_anything() {
        for bytes in
            [&b""[..], b"\n", b"head\n: : :\n\xff\n 0: 0:1 0:0 01 x", b"head\n1 2 3 4 5 6\n"]
        {
            assert_eq!(Sockets::parse(&[bytes.to_vec()], &[bytes.to_vec()], bytes).number(), 0);
        }
    }
}
