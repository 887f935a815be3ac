//! `sentences/all.md` lists all sentences about figures, and no other one is printed.

use std::path::{Path, PathBuf};

use crate::contention::{OVERLOAD, POOL, SWEEP};
use crate::order::SURVEY;
use crate::program::{each, kept, threadtoll, words};
use crate::queue::ASK_REPLY;
use crate::simulated::QUICK;

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
    let on = |line: &str| format!("{line} --simulated-machine 7");
    let measured = [
        QUICK.to_string(),
        SURVEY.to_string(),
        ASK_REPLY.to_string(),
        POOL.to_string(),
        on("latency futex std-condvar std-condvar-after atomic-store --keep-awake --payload 1024 \
            --time 20ms"),
        SWEEP.to_string(),
        OVERLOAD.to_string(),
        on("contention hold-sweep spin --threads 1,9 --hold-share 50% --time 20ms"),
        on("contention frequency-sweep std-mutex spin --threads 2 --time 20ms"),
        on("queue stream pipe --wait spin --batch 1 --time 20ms --repeat 5s"),
    ];
    let predicted = [
        "predict --hold 1us --think 9us",
        "predict --hold 1us --think 9us --handoff 300ns --cores 4",
        "predict --hold 9us --think 1us",
        "predict --hold 0 --think 1us",
        "predict --arrivals 20/s --hold 300ms --servers 3,9",
        "predict --arrivals 4/s --hold 300ms --servers 1,2",
        "predict --arrivals 1/s --hold 300ms",
        "predict --arrivals 20/s --hold 300ms --queue 0",
        "predict --arrivals 20/s --hold 300ms --queue 3",
        "predict --arrivals 2000000/s --hold 1s --servers 9",
        "predict --arrivals 10000/s --hold 1s --hold-shape fixed --servers 10100",
    ];
    let lines: Vec<String> = measured.into_iter().chain(predicted.map(String::from)).collect();
    each(&lines, |_, line| {
        let out = if line.starts_with("predict") {
            threadtoll(words(line, &[]).into_iter().chain(words("--details", &[])))
        } else {
            threadtoll(words("report --details", &[&kept(line).file]))
        };
        let out = out.done().out;
        let bullets = out.lines().filter_map(|line| line.strip_prefix("• "));
        let mut count = 0;
        for sentence in bullets {
            assert!(forms.iter().any(|form| fills(sentence, form)), "{line}: {sentence}");
            count += 1;
        }
        assert!(count > 0, "{line}: {out}");
    });
}
