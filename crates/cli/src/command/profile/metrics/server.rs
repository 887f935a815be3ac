//! A server of one text over HTTP/1.1.
//!
//! One thread answers up to [`MAX_CLIENTS`] clients at a time, and gives each [`PATIENCE`] for its
//! request and its answer: a client that sends or reads nothing delays no other. It promises no
//! more of HTTP than a collector of metrics needs.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const MAX_CLIENTS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request, its headers included.
const MAX_REQUEST: usize = 8 << 10;
/// Pause after a failure to accept a client, which would be repeated at once.
const PAUSE: Duration = Duration::from_millis(50);

type Shared = Arc<Mutex<Arc<str>>>;

pub(crate) struct Server {
    address: SocketAddr,
    text: Shared,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(listener: TcpListener, text: &str) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = UnixStream::pair()?;
        let text: Shared = Arc::new(Mutex::new(text.into()));
        let shared = Arc::clone(&text);
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || serve(&listener, &stopped, &shared))?;
        Ok(Server { address, text, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn renew(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing left to do, even if it panicked.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, stopped: &UnixStream, text: &Shared) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let Ok((end, news, ready)) = wait(listener, stopped, &clients) else { return };
        if end {
            return;
        }
        let now = Instant::now();
        let mut ready = ready.into_iter();
        clients.retain_mut(|client| {
            let ready = ready.next().unwrap_or_default();
            client.deadline > now && (!ready || client.step(text) == Step::Wait)
        });
        if news {
            match listener.accept() {
                Ok((stream, _)) => {
                    if clients.len() == MAX_CLIENTS {
                        // The first one has had the most time.
                        clients.remove(0);
                    }
                    clients.extend(Client::new(stream, now));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Waits until something can be done: whether to end, whether a client is new, and which clients
/// are ready.
fn wait(
    listener: &TcpListener,
    stopped: &UnixStream,
    clients: &[Client],
) -> io::Result<(bool, bool, Vec<bool>)> {
    let mut waits = vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
    waits.extend(clients.iter().map(|client| {
        let wanted = if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&client.stream, wanted)
    }));
    let limit = clients.iter().map(|client| client.deadline).min().map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
    });
    match poll(&mut waits, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
    Ok((ready[0], ready[1], ready[2..].to_vec()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Wait,
    Done,
}

struct Client {
    stream: TcpStream,
    deadline: Instant,
    request: Vec<u8>,
    /// The answer, and the number of its bytes that are sent.
    answer: Option<(Vec<u8>, usize)>,
}

impl Client {
    fn new(stream: TcpStream, now: Instant) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Client { stream, deadline: now + PATIENCE, request: Vec::new(), answer: None })
    }

    fn step(&mut self, text: &Shared) -> Step {
        if self.answer.is_none() {
            let mut part = [0; 1024];
            match self.stream.read(&mut part) {
                Ok(0) => return Step::Done,
                Ok(read) => self.request.extend_from_slice(&part[..read]),
                Err(error) => return again(&error),
            }
            let text = || Arc::clone(&text.lock().unwrap_or_else(PoisonError::into_inner));
            self.answer = answer(&self.request, text).map(|answer| (answer, 0));
        }
        let Some((answer, sent)) = &mut self.answer else { return Step::Wait };
        match self.stream.write(&answer[*sent..]) {
            Ok(written) => *sent += written,
            Err(error) => return again(&error),
        }
        if *sent < answer.len() {
            return Step::Wait;
        }
        // The client may have gone.
        let _ = self.stream.shutdown(Shutdown::Write);
        Step::Done
    }
}

fn again(error: &io::Error) -> Step {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Step::Wait,
        _ => Step::Done,
    }
}

/// The answer to a request; `None` while the request is incomplete.
fn answer(request: &[u8], text: impl Fn() -> Arc<str>) -> Option<Vec<u8>> {
    let complete = request.windows(4).any(|end| end == b"\r\n\r\n");
    if !complete {
        let refused = response("431 Request Header Fields Too Large", "the request is too long\n");
        return (request.len() > MAX_REQUEST).then_some(refused);
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    Some(match (method, path) {
        (b"GET" | b"HEAD", b"/" | b"/metrics") => {
            let mut found = response("200 OK", &text());
            if method == b"HEAD" {
                let body = found.windows(4).position(|end| end == b"\r\n\r\n");
                found.truncate(body.map_or(found.len(), |at| at + 4));
            }
            found
        }
        (b"GET" | b"HEAD", _) => response("404 Not Found", "the metrics are at /metrics\n"),
        _ => response("405 Method Not Allowed", "the metrics can be read only\n"),
    })
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let kind = if status.starts_with('2') {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), text).unwrap()
    }

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_newest_text_is_served() {
        let server = server("# EOF\n");
        let get = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(ask(&server, get).ends_with("\r\n\r\n# EOF\n"));
        let large = "x 1\n".repeat(1 << 20);
        server.renew(large.clone());
        let answer = ask(&server, get);
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text")
        );
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, large);
        let head = ask(&server, b"HEAD /?a HTTP/1.0\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", large.len())), "{head}");
    }

    #[test]
    fn other_requests_are_refused() {
        let server = server("# EOF\n");
        for (request, status) in [
            (&b"GET /secret HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\xff\xfe\r\n\r\n", "405"),
            (b"\r\n\r\n", "405"),
        ] {
            assert!(ask(&server, request).starts_with(&format!("HTTP/1.1 {status}")), "{status}");
        }
        let mut endless = TcpStream::connect(server.address()).unwrap();
        let answered = (0..100).any(|_| endless.write_all(&[b'a'; 1024]).is_err());
        let mut answer = [0; 12];
        let read = endless.read(&mut answer);
        assert!(answered || read.is_ok_and(|_| answer.starts_with(b"HTTP/1.1 431")));
    }

    #[test]
    fn silent_clients_hold_nobody_up() {
        let server = server("# EOF\n");
        let silent: Vec<TcpStream> = (0..3 * MAX_CLIENTS)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address()).unwrap();
                stream.write_all(b"GET /metr").unwrap();
                stream
            })
            .collect();
        assert!(ask(&server, b"GET / HTTP/1.1\r\n\r\n").contains("# EOF"));
        drop(silent);
        assert!(ask(&server, b"GET / HTTP/1.1\r\n\r\n").contains("# EOF"));
        drop(server);
    }
}
