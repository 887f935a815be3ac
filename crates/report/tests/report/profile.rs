//! Profiles as text, folded stacks and metrics.

use std::collections::HashSet;
use std::path::PathBuf;

use threadtoll_report::text::{Style, first_screen, profile};
use threadtoll_report::{folded, openmetrics};
use unicode_width::UnicodeWidthStr;

use crate::profiles;

const MORE: &str = "threadtoll report profile.jsonl --html profile.html";

fn plain(width: usize) -> Style {
    Style { color: false, width: Some(width) }
}

#[test]
fn the_first_screen_answers() {
    for (name, seen) in profiles::all() {
        insta::assert_snapshot!(
            format!("profile-screen-{name}"),
            first_screen(&seen, MORE, &plain(80))
        );
    }
}

#[test]
fn the_first_screen_fits_a_small_terminal() {
    for (name, seen) in profiles::all() {
        for width in [60, 80, 132] {
            let screen = first_screen(&seen, MORE, &plain(width));
            let lines: Vec<&str> = screen.lines().collect();
            if width >= 80 {
                assert!(lines.len() <= 23, "{name} at {width}: {} lines\n{screen}", lines.len());
            }
            for line in lines {
                assert!(line.width() <= width, "{name} at {width}: {line}");
                assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
            }
        }
    }
}

#[test]
fn details_follow_the_first_screen() {
    let seen = profiles::sleeping_holder();
    insta::assert_snapshot!("profile-details", profile(&seen, MORE, &plain(80)));
    let seen = profiles::three_locks();
    insta::assert_snapshot!("profile-details-three", profile(&seen, MORE, &plain(100)));
}

#[test]
fn colours_change_no_letter() {
    for (name, seen) in profiles::all() {
        let coloured = profile(&seen, MORE, &Style { color: true, width: Some(80) });
        let mut bare = String::new();
        let mut rest = coloured.as_str();
        while let Some(at) = rest.find("\u{1b}[") {
            bare.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = &rest[rest.find('m').unwrap_or(rest.len() - 1) + 1..];
        }
        bare.push_str(rest);
        assert_eq!(bare, profile(&seen, MORE, &plain(80)), "{name}");
        assert_ne!(bare, coloured, "{name} has no colours");
    }
}

#[test]
fn folded_stacks_begin_with_role_and_lock() {
    insta::assert_snapshot!("profile-folded", folded(&profiles::sleeping_holder()));
    for (name, seen) in profiles::all() {
        for line in folded(&seen).lines() {
            let (stack, samples) = line.rsplit_once(' ').unwrap();
            assert!(samples.parse::<u64>().is_ok_and(|samples| samples > 0), "{name}: {line}");
            let role = stack.split(';').next().unwrap();
            assert!(["waiter", "holder", "candidate", "idle"].contains(&role), "{name}: {line}");
            assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
        }
    }
}

#[test]
fn openmetrics_are_those_of_the_specification() {
    insta::assert_snapshot!("profile-openmetrics", openmetrics(&profiles::sleeping_holder()));
    for (name, seen) in profiles::all() {
        let text = openmetrics(&seen);
        std::fs::write(
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{name}.openmetrics")),
            &text,
        )
        .unwrap();
        check_openmetrics(name, &text);
    }
}

/// What the specification asks of families, units, labels and the end.
#[allow(clippy::unwrap_used, reason = "a line without these parts is not OpenMetrics")]
fn check_openmetrics(name: &str, text: &str) {
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{name}");
    let mut families = HashSet::new();
    let mut series = HashSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    for line in text.lines().take_while(|line| *line != "# EOF") {
        assert!(!line.is_empty() && !line.chars().any(char::is_control), "{name}: {line:?}");
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (new, of) = head.split_once(' ').unwrap();
            assert!(families.insert(new.to_string()), "{name}: {new} is interrupted");
            (family, kind) = (new.into(), of.into());
        } else if let Some(head) = line.strip_prefix("# UNIT ") {
            let (of, unit) = head.split_once(' ').unwrap();
            assert!(of == family && family.ends_with(&format!("_{unit}")), "{name}: {line}");
        } else if let Some(head) = line.strip_prefix("# HELP ") {
            assert!(head.starts_with(&format!("{family} ")), "{name}: {line}");
        } else {
            let suffix = match kind.as_str() {
                "counter" => "_total",
                "info" => "_info",
                "gauge" | "stateset" => "",
                other => panic!("{name}: {other}"),
            };
            let rest = line.strip_prefix(&format!("{family}{suffix}")).unwrap();
            let (labels, value) = rest.rsplit_once(' ').unwrap();
            assert!(
                labels.is_empty() || labels.starts_with('{') && labels.ends_with('}'),
                "{line}"
            );
            let quotes = labels.replace("\\\\", "").replace("\\\"", "").matches('"').count();
            assert_eq!(quotes % 2, 0, "{name}: {line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite(), "{name}: {line}");
            assert!(kind != "stateset" || value == 0.0 || value == 1.0, "{name}: {line}");
            assert!(series.insert((family.clone(), labels.to_string())), "{name}: {line} twice");
        }
    }
}
