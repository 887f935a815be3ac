//! One thread that serves TCP connections, a timer, and other threads:
//! `cargo run -p threadtoll --example server --features mio`.
//!
//! The server echoes what it receives. Its state belongs to one thread, so nothing is locked; other
//! threads change it by closures.

#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use threadtoll::owned::{self, Handle};

type Context = owned::Context<Server>;

struct Server {
    listener: TcpListener,
    connections: HashMap<Token, Connection>,
    /// Put before each answer.
    greeting: String,
    bytes: usize,
    ticks: usize,
}

struct Connection {
    stream: TcpStream,
    unsent: Vec<u8>,
}

impl Server {
    fn accept(&mut self, context: &mut Context, _: &Event) {
        // Until an error: mostly that there are no more, and otherwise a later event tries again.
        while let Ok((mut stream, _)) = self.listener.accept() {
            let both = Interest::READABLE | Interest::WRITABLE;
            if let Ok(token) = context.register(&mut stream, both, Server::echo) {
                let unsent = self.greeting.clone().into_bytes();
                self.connections.insert(token, Connection { stream, unsent });
            }
        }
    }

    fn echo(&mut self, context: &mut Context, event: &Event) {
        let Some(connection) = self.connections.get_mut(&event.token()) else { return };
        let before = connection.unsent.len();
        let ended = connection.exchange().is_ok();
        self.bytes += connection.unsent.len().saturating_sub(before);
        if ended && let Some(mut connection) = self.connections.remove(&event.token()) {
            drop(context.deregister(&mut connection.stream, event.token()));
        }
    }
}

impl Connection {
    /// Reads and writes until nothing more can be done now, which is an error. Returns `Ok` at the
    /// end of the connection.
    fn exchange(&mut self) -> io::Result<()> {
        let read = self.stream.read_to_end(&mut self.unsent);
        while !self.unsent.is_empty() {
            let written = self.stream.write(&self.unsent)?;
            self.unsent.drain(..written);
        }
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(_) | Ok(_) => Ok(()),
        }
    }
}

fn start() -> io::Result<(Handle<Server>, JoinHandle<()>, SocketAddr)> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    let (handle, thread) = owned::spawn("server", move || Server {
        listener,
        connections: HashMap::new(),
        greeting: String::new(),
        bytes: 0,
        ticks: 0,
    });
    handle.every(Duration::from_millis(1), |server, _| server.ticks += 1);
    handle
        .ask(|server, context| {
            context.register(&mut server.listener, Interest::READABLE, Server::accept)
        })
        .map_err(io::Error::other)??;
    Ok((handle, thread, address))
}

fn echo(address: SocketAddr, text: &str) -> io::Result<String> {
    let mut client = Client::connect(address)?;
    client.write_all(text.as_bytes())?;
    client.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer)
}

fn main() -> io::Result<()> {
    let (handle, thread, address) = start()?;
    println!("{}", echo(address, "hello")?);
    let greeted = handle.ask(|server, _| server.greeting.push_str("you said: "));
    println!("{}", echo(address, "hello again")?);
    let counts = handle.ask(|server, _| (server.bytes, server.ticks));
    println!("{greeted:?}, {counts:?}");
    handle.stop();
    thread.join().map_err(|_| io::Error::other("the server panicked"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn sockets_timers_and_posts_are_served_by_one_thread() {
        let (handle, running, address) = start().unwrap();
        let text = "threads ".repeat(100_000);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|number| {
                    let text = format!("{number} {text}");
                    scope.spawn(move || assert_eq!(echo(address, &text).unwrap(), text))
                })
                .collect();
            for _ in 0..1_000 {
                handle.post(|server, _| server.greeting = String::new()).unwrap();
            }
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        handle.ask(|server, _| server.greeting.push_str("greeted: ")).unwrap();
        assert_eq!(echo(address, "all").unwrap(), "greeted: all");
        while handle.ask(|server, _| server.ticks < 3) == Ok(true) {}
        assert_eq!(handle.ask(|server, _| server.connections.len()), Ok(0));
        handle.stop();
        running.join().unwrap();
        assert!(echo(address, "anybody").is_err());
    }
}
