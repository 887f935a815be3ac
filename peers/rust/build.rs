//! Passes the versions of the peers to their rows: those in the lock file, which are compiled.

use std::process::Command;

const LOCK: &str = "../../Cargo.lock";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={LOCK}");
    let lock = std::fs::read_to_string(LOCK)?;
    for (package, version) in dependencies(&lock) {
        println!("cargo::rustc-env=VERSION_{package}={version}");
    }
    // The standard library has the compiler's version: "rustc 1.95.0 (hash date)".
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("cargo::rustc-env=VERSION_std={}", text.split(' ').nth(1).unwrap_or("unknown"));
    Ok(())
}

/// This package's dependencies with their versions.
fn dependencies(lock: &str) -> impl Iterator<Item = (&str, &str)> {
    let package = |name| lock.split_once(&format!("\nname = \"{name}\"\n")).map(|(_, rest)| rest);
    let own = package(env!("CARGO_PKG_NAME")).and_then(|rest| rest.split_once("dependencies = ["));
    let list = own.and_then(|(_, rest)| rest.split_once(']')).map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(move |entry| {
        // The lock file names a version only if it has several.
        entry.split_once(' ').unwrap_or_else(|| {
            let version = package(entry).and_then(|rest| rest.split('"').nth(1));
            (entry, version.unwrap_or("unknown"))
        })
    })
}
