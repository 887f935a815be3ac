//! Passes commit and compiler to the program, for the first line of its files.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if std::path::Path::new(file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    let first_line = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().next().map(|line| line.trim().to_string()).filter(|line| !line.is_empty())
    };
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let compiler = first_line(&rustc, &["--version"]).unwrap_or_else(|| "rustc unknown".into());
    // The version is "rustc 1.95.0 (hash date)"; the first two words suffice.
    let compiler = compiler.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let commit = first_line("git", &["rev-parse", "--short=10", "HEAD"]);
    // Marks builds of uncommitted files.
    let edited = if first_line("git", &["status", "--porcelain"]).is_some() { "+" } else { "" };
    let commit =
        commit.map_or_else(|| "no git".to_string(), |commit| format!("git {commit}{edited}"));
    println!("cargo:rustc-env=THREADTOLL_BUILD={commit}, {compiler}");
}
