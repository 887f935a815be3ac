//! Passes the versions of the peers to their rows: those of the lock file, which are the ones that
//! are compiled.

use std::process::Command;

const LOCK: &str = "../../Cargo.lock";
const PEERS: [&str; 12] = [
    "async-channel",
    "crossbeam-channel",
    "crossbeam-queue",
    "flume",
    "gil",
    "kanal",
    "nexus-queue",
    "ringbuf",
    "rtrb",
    "thingbuf",
    "tokio",
    "yring",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LOCK}");
    let lock = std::fs::read_to_string(LOCK).unwrap_or_default();
    for peer in PEERS {
        let version = version(&lock, peer).unwrap_or("unknown");
        println!("cargo::rustc-env=VERSION_{}={version}", peer.to_uppercase().replace('-', "_"));
    }
    // The standard library has the compiler's version: "rustc 1.95.0 (hash date)".
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().ok();
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    println!(
        "cargo::rustc-env=VERSION_STD={}",
        text.split_whitespace().nth(1).unwrap_or("unknown")
    );
}

/// The version that stands below a package's name.
fn version<'l>(lock: &'l str, package: &str) -> Option<&'l str> {
    let (_, rest) = lock.split_once(&format!("\nname = \"{package}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version)
}
