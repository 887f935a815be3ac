//! `--openmetrics`: a file, or a server that hostile clients do not hold up.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;

use super::{Stage, show};
use crate::program::wait_until;

const TYPE: &str = "# TYPE threadtoll_";

fn get(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_port_serves_the_newest_metrics_until_the_profile_ends() {
    let stage = Stage::new();
    let mut command = stage.command("-p 1 --openmetrics :0", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("metrics  http://").unwrap();
    let address: SocketAddr = address.strip_suffix("/metrics").unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());

    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut answer = String::new();
    wait_until("the metrics", || {
        // A client that this machine delays by seconds is sent away.
        answer = get(address).unwrap_or_default();
        answer.contains(TYPE)
    });
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
    super::ending::send(&child, libc::SIGINT);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert!(TcpStream::connect(address).is_err());
    drop(silent);
}

#[test]
fn a_file_of_metrics_is_replaced() {
    let stage = Stage::new();
    for _ in 0..2 {
        stage.profile("-p 1 --seconds 50ms --openmetrics metrics.prom", &[]).done();
        let text = std::fs::read_to_string(stage.path("metrics.prom")).unwrap();
        assert!(text.starts_with(TYPE) && text.ends_with("# EOF\n"), "{text}");
    }
    let metrics = stage.path("metrics.prom");
    show(&stage.kept(), &format!("--openmetrics {}", metrics.display())).done();
}

#[test]
fn a_port_in_use_is_said_before_anything_starts() {
    let stage = Stage::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    stage
        .profile(&format!("--openmetrics :{port}"), &["touch", "witness"])
        .bad()
        .says("cannot listen")
        .says("another port");
    assert!(!stage.path("witness").exists());
}
