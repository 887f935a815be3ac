//! Serves a text over HTTP/1.1, for metrics collectors.
//!
//! Each client has its own thread, so a client that neither sends nor reads delays no other client.
//! If there are more than [`MAX_CLIENTS`] clients, the oldest one is disconnected. The server runs
//! until the process ends.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{Builder, sleep};
use std::time::Duration;

const MAX_CLIENTS: usize = 16;
/// Maximum size of a request with its headers, in bytes.
const MAX_REQUEST: u64 = 8 << 10;
/// Pause after a failed `accept`: an immediate retry would probably fail, too.
const PAUSE: Duration = Duration::from_millis(50);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone)]
pub(super) struct Served(Arc<Mutex<Arc<str>>>);

impl Served {
    pub(super) fn start(listener: TcpListener, text: &str) -> io::Result<Self> {
        let served = Served(Arc::new(Mutex::new(text.into())));
        let text = served.clone();
        Builder::new().name("metrics".into()).spawn(move || text.serve(&listener))?;
        Ok(served)
    }

    pub(super) fn renew(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn text(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn serve(&self, listener: &TcpListener) {
        // Weak references, so that each connection closes as soon as its thread ends. Only closing
        // stops a client that goes on sending after the answer.
        let mut clients: VecDeque<Weak<TcpStream>> = VecDeque::new();
        for client in listener.incoming() {
            let Ok(client) = client.map(Arc::new) else {
                sleep(PAUSE);
                continue;
            };
            clients.retain(|client| client.strong_count() > 0);
            if clients.len() == MAX_CLIENTS {
                let oldest = clients.pop_front().and_then(|oldest| oldest.upgrade());
                oldest.map(|oldest| oldest.shutdown(Shutdown::Both));
            }
            clients.push_back(Arc::downgrade(&client));
            let text = self.clone();
            // A client without a thread, or with a failing connection, is dropped and may ask
            // again.
            let _ = Builder::new().spawn(move || {
                let _ = text.answer(&client);
                client.shutdown(Shutdown::Both)
            });
        }
    }

    fn answer(&self, mut client: &TcpStream) -> io::Result<()> {
        let mut request = Vec::new();
        let mut limited = client.take(MAX_REQUEST);
        let mut part = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match limited.read(&mut part)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&part[..count]),
            }
        }
        let mut words = request.split(|byte| byte.is_ascii_whitespace());
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default().split(|byte| *byte == b'?').next();
        let (status, kind, body) = match (method, path) {
            (b"GET" | b"HEAD", Some(b"/" | b"/metrics")) => ("200 OK", OPEN_METRICS, self.text()),
            _ => ("404 Not Found", "text/plain", "GET /metrics has the metrics\n".into()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}");
        let body = if method == b"HEAD" { "" } else { &*body };
        client.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn server(text: &str) -> (Served, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (Served::start(listener, text).unwrap(), address)
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_newest_text_is_served() {
        let (served, address) = server("# EOF\n");
        let get = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(ask(address, get).ends_with("\r\n\r\n# EOF\n"));
        let large = "x 1\n".repeat(1 << 20);
        served.renew(large.clone());
        let answer = ask(address, get);
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text")
        );
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, large);
        let head = ask(address, b"HEAD /?a HTTP/1.0\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", large.len())), "{head}");
    }

    #[test]
    fn other_requests_are_refused() {
        let (_served, address) = server("# EOF\n");
        for request in [
            &b"GET /secret HTTP/1.1\r\n\r\n"[..],
            b"POST /metrics HTTP/1.1\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
            b"\r\n\r\n",
        ] {
            assert!(ask(address, request).starts_with("HTTP/1.1 404"), "{request:?}");
        }
        let mut endless = TcpStream::connect(address).unwrap();
        while endless.write_all(&[b'a'; 1024]).is_ok() {}
        assert!(ask(address, b"GET / HTTP/1.1\r\n\r\n").contains("# EOF"));
    }

    #[test]
    fn silent_clients_hold_nobody_up() {
        let (_served, address) = server("# EOF\n");
        let silent: Vec<TcpStream> = (0..3 * MAX_CLIENTS)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /metr").unwrap();
                stream
            })
            .collect();
        assert!(ask(address, b"GET / HTTP/1.1\r\n\r\n").contains("# EOF"));
        drop(silent);
        assert!(ask(address, b"GET / HTTP/1.1\r\n\r\n").contains("# EOF"));
    }
}
