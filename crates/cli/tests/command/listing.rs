//! Lists of names, and help.

use crate::lines::line;
use crate::program::{threadtoll, words};
use crate::screens::screen;
use threadtoll_record::Line;

/// The promised names, in order.
const MECHANISMS: [&str; 22] = [
    "function-call",
    "fiber-switch",
    "async-wake",
    "atomic-store",
    "atomic-rmw",
    "atomic-seqcst",
    "spin-yield",
    "sleep-poll",
    "futex",
    "park",
    "std-condvar",
    "std-condvar-after",
    "pthread-condvar",
    "pthread-condvar-after",
    "parking-lot-condvar",
    "parking-lot-condvar-after",
    "semaphore",
    "eventfd",
    "os-pipe",
    "socketpair",
    "tcp-loopback",
    "std-mpsc",
];

#[test]
fn mechanisms_are_listed_with_a_sentence_each() {
    let ended = threadtoll(["list", "mechanisms"]).done();
    let names: Vec<&str> =
        ended.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, MECHANISMS);
    assert!(ended.out.lines().all(|line| line.split_whitespace().count() > 3), "{}", ended.out);
}

#[test]
fn queues_peers_and_scenarios_are_listed_with_a_sentence_each() {
    let listed = |what: &str| -> Vec<String> {
        let ended = threadtoll(["list", what]).done();
        assert!(ended.out.lines().all(|line| line.split_whitespace().count() > 1), "{}", ended.out);
        ended
            .out
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_string)
            .collect()
    };
    assert_eq!(
        listed("scenarios"),
        [
            "ask-reply",
            "stream",
            "open-loop",
            "burst",
            "depth",
            "workers",
            "broadcast",
            "flood",
            "funnel",
            "night-watch",
            "payload",
            "for-me",
            "hold-sweep",
            "frequency-sweep",
            "hold-think",
            "pool",
            "overload",
        ]
    );
    let locks = listed("locks");
    for name in [
        "std-mutex",
        "parking-lot-fair",
        "threadtoll",
        "threadtoll-fair",
        "mcs",
        "kernel-eventfd",
        "striped/K:LOCK",
        "counter-sharded",
    ] {
        assert!(locks.contains(&name.to_string()), "{locks:?}");
    }
    assert!(listed("queues").contains(&"raw-copy".to_string()));
    let peers = listed("peers");
    for name in ["crossbeam-unbounded", "std-mpsc-bounded", "rtrb", "crossbeam-array-queue"] {
        assert!(peers.contains(&name.to_string()), "{peers:?}");
    }
}

/// By both of its names.
#[test]
fn schemas_are_listed_and_printed() {
    let names = threadtoll(["schema"]).done().out;
    let names: Vec<&str> =
        names.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"record") && names.contains(&"profile"), "{names:?}");
    for name in names {
        let printed = threadtoll(["schema", name]).done().out;
        let schema: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let full = schema["properties"]["schema"]["const"].as_str().unwrap();
        let number = full.strip_prefix(&format!("threadtoll.{name}/")).unwrap();
        assert!(number.parse::<u32>().is_ok_and(|number| number > 0), "{full}");
        assert_eq!(threadtoll(["schema", full]).done().out, printed);
    }
    threadtoll(["schema", "recrod"]).bad().says("did you mean record");
}

#[test]
fn help_is_an_answer_and_not_an_error() {
    let commands =
        ["check", "survey", "latency", "matrix", "queue", "contention", "report", "list"];
    let ended = threadtoll(["--help"]).done();
    assert!(
        ended.err.is_empty() && commands.iter().all(|name| ended.out.contains(name)),
        "{}",
        ended.out
    );
    for name in commands {
        let ended = threadtoll([name, "--help"]).done();
        assert!(
            !ended.out.contains("--simulated-machine") && !ended.out.contains("--sysfs"),
            "{}",
            ended.out
        );
    }
    assert_eq!(threadtoll(["help"]).done().out, threadtoll(["--help"]).done().out);
    let ended = threadtoll(["--version"]).done();
    assert!(ended.out.starts_with("threadtoll "), "{}", ended.out);
}

/// The help of a command lists its scenarios, and that of a scenario the options that it takes.
#[test]
fn each_scenario_has_help_of_its_own() {
    let help = |line: &str| threadtoll(words(&format!("{line} --help"), &[])).done().out;
    let mut own = String::new();
    for command in ["queue", "contention"] {
        let all = help(command);
        let (_, scenarios) = all.split_once("Scenarios:\n").unwrap();
        let (scenarios, _) = scenarios.split_once("\n\n").unwrap();
        for scenario in scenarios.lines().filter(|line| !line.starts_with("   ")) {
            let name = scenario.split_whitespace().next().unwrap();
            let [of_one, of_all] = options(&help(&format!("{command} {name}")));
            assert_eq!(of_all, options(&all)[1], "{name}");
            own += &format!("{command} {name}: {}\n", of_one.join(" "));
        }
    }
    insta::assert_snapshot!("options_of_scenarios", own);
}

/// The options in a help text: of the scenario, and of all.
fn options(help: &str) -> [Vec<String>; 2] {
    let (own, all) = help.split_once("\nOptions of all scenarios:\n").unwrap();
    let option = |line: &str| {
        let text = line.strip_prefix("      ").filter(|text| text.starts_with("--"))?;
        text.split_whitespace().next().map(str::to_string)
    };
    [own, all].map(|text| text.lines().filter_map(option).collect())
}

/// Options may stand before the scenario, as before it had options of its own.
#[test]
fn options_may_stand_before_the_scenario() {
    let plan = |line: &str| {
        let line = format!("queue --simulated-machine 7 --relaunch 1 --plan {line}");
        threadtoll(words(&line, &[])).done().out
    };
    let after = plan("stream rtrb --wait spin --senders 1 --quiet");
    for line in
        ["--senders 1 --quiet stream --wait spin rtrb", "--wait=spin --quiet -- stream rtrb"]
    {
        assert_eq!(plan(line), after, "{line}");
    }
    for (line, what) in [
        ("queue --time 5ms stream --time 6ms", "--time <D> is given twice"),
        ("queue --wait spin stream --wait spin", "--wait spin is given twice"),
        ("queue --tme 5ms stream", "unknown option or argument “--tme”"),
        ("queue --time 5ms strem", "no scenario is called “strem”"),
    ] {
        threadtoll(words(line, &[])).bad().says(what);
    }
}

#[test]
fn what_is_printed_to_no_terminal_has_no_colours_unless_they_are_asked_for() {
    let plain = threadtoll(words("latency futex --time 1ms --simulated-machine 1", &[])).done();
    assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'));
    let coloured =
        threadtoll(words("latency futex --time 1ms --simulated-machine 1 --color always", &[]))
            .done();
    assert!(coloured.out.contains('\u{1b}'));
    assert_eq!(strip(&coloured.out), plain.out, "colours change nothing else");
    let never =
        threadtoll(words("latency futex --time 1ms --simulated-machine 1 --color never", &[]))
            .done();
    assert_eq!(never.out, plain.out);
}

pub(crate) fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let end = after[2..]
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .map_or(after.len(), |end| end + 2);
        if after[end..].starts_with('m') {
            rest = &after[end + 1..];
        } else {
            plain.push('\u{1b}');
            rest = &after[1..];
        }
    }
    plain + rest
}

#[test]
fn a_check_says_what_the_machine_is() {
    let ended = threadtoll(["check", "--json"]).done();
    let Line::Machine(machine) = line(ended.out.trim_end()) else { panic!("{}", ended.out) };
    assert!(!machine.simulated && !machine.synthetic);
    assert_eq!(machine.cpus as usize, machine.topology.len());
    let strict = threadtoll(["check", "--strict"]);
    assert!(screen("check", &strict.out).contains(&*machine.cpu), "{}", strict.out);
    let code = strict.code.unwrap();
    assert!(code == 0 || (code == 3 && strict.err.contains("--strict")), "{strict:?}");
}
