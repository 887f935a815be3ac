//! Tells the adapter the compiler and the flags that it is built with.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.unwrap_or_default();
    // `rustc 1.95.0 (…)`: its hash and date say no more.
    let words: Vec<&str> = version.split_whitespace().take(2).collect();
    println!("cargo::rustc-env=COMPILER={}", words.join(" "));
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Quotes would end the text in the description.
    let flags = flags.replace('\u{1f}', " ").replace(['"', '\\'], "'");
    println!("cargo::rustc-env=FLAGS={}", format!("-C opt-level={level} {flags}").trim());
    println!("cargo::rerun-if-changed=build.rs");
}
