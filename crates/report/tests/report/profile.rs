//! Profiles as text.

use threadtoll_report::text::{Style, first_screen, profile};
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
