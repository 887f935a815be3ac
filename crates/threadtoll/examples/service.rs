//! A tokio service whose work is done by a thread that is pinned to one CPU:
//! `cargo run -p threadtoll --example service`.
//!
//! ```text
//!  TCP ──► task: lines ──pipe──► pinned thread ──pipe──► task: answers ──► TCP
//! ```
//!
//! The thread runs no tasks. When it falls behind, the first pipe fills, its task waits for room,
//! and TCP holds back the client.

#![cfg(target_os = "linux")]

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use threadtoll::pipe::{self, Receiver, Sender};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// Lines, or answers, that wait.
const ROOM: usize = 64;

/// Keeps the calling thread on the last CPU that it may use.
fn pin() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(last);
    Ok(sched_setaffinity(None, &one)?)
}

/// Answers each line with the longest so far.
fn work(mut lines: Receiver<String>, mut answers: Sender<String>) {
    // Without it, the thread may be moved, and is slower.
    let _ = pin();
    let mut longest = String::new();
    while let Ok(line) = lines.recv() {
        if line.len() > longest.len() {
            longest = line;
        }
        if answers.send(longest.clone()).is_err() {
            return;
        }
    }
}

async fn read(stream: OwnedReadHalf, mut lines: Sender<String>) -> io::Result<()> {
    let mut stream = BufReader::new(stream).lines();
    while let Some(line) = stream.next_line().await? {
        if lines.send_async(line).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Ends when the thread has answered everything and is gone.
async fn write(mut stream: OwnedWriteHalf, mut answers: Receiver<String>) -> io::Result<()> {
    while let Ok(answer) = answers.recv_async().await {
        stream.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

/// Serves one connection.
async fn serve(stream: TcpStream) -> io::Result<()> {
    let (reading, writing) = stream.into_split();
    let (to_worker, lines) = pipe::bounded(ROOM);
    let (to_client, answers) = pipe::bounded(ROOM);
    let worker: JoinHandle<()> = thread::spawn(move || work(lines, to_client));
    let (read, written) = tokio::join!(read(reading, to_worker), write(writing, answers));
    worker.join().map_err(|_| io::Error::other("the worker panicked"))?;
    read.and(written)
}

/// Sends lines over a connection, and returns the answers.
async fn ask(address: SocketAddr, lines: Vec<String>) -> io::Result<Vec<String>> {
    let (reading, mut writing) = TcpStream::connect(address).await?.into_split();
    let send = async move {
        for line in lines {
            writing.write_all(format!("{line}\n").as_bytes()).await?;
        }
        writing.shutdown().await
    };
    let receive = async move {
        let (mut answers, mut reading) = (Vec::new(), BufReader::new(reading).lines());
        while let Some(answer) = reading.next_line().await? {
            answers.push(answer);
        }
        io::Result::Ok(answers)
    };
    let (sent, answers) = tokio::join!(send, receive);
    sent.and(answers)
}

/// Serves one client, which sends these lines.
fn run(runtime: &Runtime, lines: Vec<String>) -> io::Result<Vec<String>> {
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let client = tokio::spawn(ask(listener.local_addr()?, lines));
        let (stream, _) = listener.accept().await?;
        serve(stream).await?;
        client.await?
    })
}

fn main() -> io::Result<()> {
    let runtime = Builder::new_multi_thread().enable_io().build()?;
    let lines = ["a", "thread", "with", "a CPU"].map(str::to_owned);
    println!("{:?}", run(&runtime, lines.into())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_answered_in_its_order() {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder.enable_io().build().unwrap();
            let lines: Vec<String> = (0..2_000).map(|number| format!("{number}")).collect();
            let answers = run(&runtime, lines.clone()).unwrap();
            // The first of each length is the longest so far.
            let expected = lines.iter().map(|line| match line.len() {
                1 => "0",
                2 => "10",
                3 => "100",
                _ => "1000",
            });
            assert!(answers.iter().map(String::as_str).eq(expected));
        }
    }
}
