//! `native/not-locks.c` in Rust: programs that are slow for other reasons than locks, though each
//! has a lock and uses it a little.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use threadtoll_profile_programs::account::{self, stopping};
use threadtoll_profile_programs::locks::Lock;
use threadtoll_profile_programs::options::{fail, given, number};
use threadtoll_profile_programs::work::{Work, calibrate, compute_for, sleep_for};

fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    println!("{}", listener.local_addr().expect("it is bound").port());
    for client in listener.incoming() {
        let mut client = client.expect("a client arrives");
        thread::spawn(move || {
            let mut request = [0];
            while client.read_exact(&mut request).is_ok() {
                sleep_for(1e6);
                if client.write_all(&request).is_err() {
                    break;
                }
            }
        });
    }
}

/// Starts this program again as a server: its threads are not the client's.
fn start_server() -> (std::process::Child, u16) {
    let itself = std::env::current_exe().expect("the program has a path");
    let mut server = std::process::Command::new(itself)
        .arg("server")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut output = std::io::BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).expect("the server says its port");
    (server, line.trim().parse().expect("a port"))
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    if kind == "server" {
        return serve();
    }
    account::start(given("truth").map(Into::into), false);
    calibrate();
    let lock = Arc::new(Lock::new(0, "std-mutex"));
    lock.print();
    let server = (kind == "socket").then(start_server);
    let mut posts = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..number("threads", "4") as usize {
        let lock = lock.clone();
        threads.push(match kind.as_str() {
            "cpu" => thread::spawn(move || {
                while !stopping() {
                    compute_for(2e6);
                    lock.hold(|| {});
                }
            }),
            "disk" => thread::spawn(move || {
                while !stopping() {
                    Work::Fsync.run(1.0);
                    lock.hold(|| {});
                }
            }),
            "socket" => {
                let port = server.as_ref().expect("it was started").1;
                let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
                thread::spawn(move || {
                    while !stopping() {
                        socket.write_all(&[1]).expect("the server reads");
                        socket.read_exact(&mut [0]).expect("the server answers");
                        lock.hold(|| {});
                    }
                })
            }
            "idle" => {
                let (post, jobs) = mpsc::channel::<()>();
                posts.push(post);
                thread::spawn(move || {
                    for () in jobs {
                        compute_for(50e3);
                        lock.hold(|| {});
                    }
                })
            }
            _ => fail(&format!("no such program: {kind}")),
        });
    }
    if !posts.is_empty() {
        threads.push(thread::spawn(move || {
            for post in posts.iter().cycle() {
                sleep_for(20e6);
                if stopping() || post.send(()).is_err() {
                    break;
                }
            }
        }));
    }
    account::run_until_told();
    for thread in threads {
        thread.join().expect("nobody panics");
    }
    if let Some((mut server, _)) = server {
        server.kill().expect("the server is ours");
        server.wait().expect("the server is ours");
    }
    lock.print_gaps();
}
