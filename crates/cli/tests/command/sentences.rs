//! `sentences/all.md` lists all sentences about figures, and no other one is printed.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::program::{command, each, ran, words};

/// Returns `true` if the text fills in the braces of the form.
pub(crate) fn fills(text: &str, form: &str) -> bool {
    let mut literals = form.split('{').map(|part| part.split_once('}').map_or(part, |(_, l)| l));
    let Some(mut rest) = literals.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    for literal in literals {
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    true
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/sentences/all.md")
}

/// The forms in the document.
pub(crate) fn forms() -> Vec<String> {
    let document = std::fs::read_to_string(document()).unwrap();
    let form = |line: &str| Some(line.strip_prefix("| ")?.split(" | ").next()?.to_string());
    document.lines().filter_map(form).collect()
}

#[test]
fn the_document_is_up_to_date() {
    let generated = threadtoll_report::sentences(threadtoll_machine::grade::WARNINGS);
    if std::env::var_os("UPDATE_SENTENCES").is_some() {
        std::fs::write(document(), &generated).unwrap();
    }
    let committed = std::fs::read_to_string(document()).unwrap();
    assert!(
        committed == generated,
        "update it with UPDATE_SENTENCES=1 cargo test -p threadtoll-cli --test command sentences"
    );
}

#[test]
fn what_is_printed_is_in_the_document() {
    let forms = forms();
    let measured = [
        "survey --quick",
        "survey --time 20ms",
        "latency futex std-condvar std-condvar-after atomic-store --keep-awake --payload 1024",
        "contention hold-sweep spin std-mutex --threads 1,2,9 --time 20ms",
        "contention frequency-sweep --threads 2 --time 20ms",
        "contention pool --time 20ms",
        "queue ask-reply pipe rtrb --time 20ms",
        "queue stream pipe --wait spin --batch 1 --time 20ms --repeat 5s",
    ];
    let mut lines: Vec<String> = (0..)
        .zip(measured)
        .map(|(at, line)| format!("{line} --simulated-machine {}", 1 + at % 2))
        .collect();
    lines.extend(
        [
            "predict --hold 1us --think 9us",
            "predict --hold 1us --think 9us --handoff 300ns --cores 4",
            "predict --hold 9us --think 1us",
            "predict --hold 0 --think 1us",
        ]
        .map(String::from),
    );
    each(&lines, |_, line| {
        let directory = TempDir::new().unwrap();
        let mut command = command();
        command.current_dir(directory.path()).args(words(line, &[])).arg("--details");
        let out = ran(command).done().out;
        let bullets = out.lines().filter_map(|line| line.strip_prefix("• "));
        let mut count = 0;
        for sentence in bullets {
            assert!(forms.iter().any(|form| fills(sentence, form)), "{line}: {sentence}");
            count += 1;
        }
        assert!(count > 0, "{line}: {out}");
    });
}
