//! Idle states of synthetic trees.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use threadtoll_machine::IdleProbe;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = root.join("devices/system/cpu/cpu3").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn stays_are_those_between_two_samples() {
    let root = TempDir::new().unwrap();
    write(
        root.path(),
        &[
            ("cpuidle/state0/name", "POLL\n"),
            ("cpuidle/state0/usage", "7\n"),
            ("cpuidle/state0/time", "100\n"),
            ("cpuidle/state1/name", "C6\n"),
            ("cpuidle/state1/usage", "40\n"),
            ("cpuidle/state1/time", "5000\n"),
        ],
    );
    let probe = IdleProbe::new(root.path(), 3);
    let before = probe.sample().unwrap();
    // Long enough for the 400 µs that are added.
    std::thread::sleep(std::time::Duration::from_millis(1));
    write(root.path(), &[("cpuidle/state1/usage", "42\n"), ("cpuidle/state1/time", "5400\n")]);
    let idle = probe.between(&before, &probe.sample().unwrap());
    let states = idle.states.iter();
    let states: Vec<_> =
        states.map(|own| (own.name.as_str(), own.time_ns.get(), own.entered.get())).collect();
    assert_eq!(states, [("POLL", 0, 0), ("C6", 400_000, 2)]);
    assert!(idle.window_ns.get() >= 1_000_000);

    // A stay that began an hour before the first sample ended between the two.
    let before = probe.sample().unwrap();
    write(
        root.path(),
        &[("cpuidle/state1/usage", "43\n"), ("cpuidle/state1/time", "3600000000\n")],
    );
    let idle = probe.between(&before, &probe.sample().unwrap());
    assert_eq!(idle.states[1].time_ns, idle.window_ns);
}

#[test]
fn a_kernel_without_counters_has_no_states() {
    let root = TempDir::new().unwrap();
    let probe = IdleProbe::new(root.path(), 3);
    let sample = probe.sample().unwrap();
    assert!(probe.between(&sample, &sample).states.is_empty());
    let files = [("state0/name", "POLL"), ("state0/usage", "none"), ("state0/time", "1")];
    let files = files.map(|(path, content)| (format!("cpuidle/{path}"), content));
    write(root.path(), &files.each_ref().map(|(path, content)| (path.as_str(), *content)));
    assert!(IdleProbe::new(root.path(), 3).sample().is_none(), "not a number");
}
