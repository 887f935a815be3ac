use std::collections::BTreeSet;

use threadtoll_report::{FORMATS, Report};

use crate::fixture;

#[test]
fn formats_have_different_names() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|format| format.name()).collect();
    assert_eq!(names.len(), FORMATS.len());
}

#[test]
fn every_format_renders_every_table() {
    let results = fixture::everything();
    let records = results.records();
    for format in FORMATS {
        let text = format.render(&[Report::new(&results, &records)]);
        for row in ["std-condvar", "cores that share a cache", "pipe"] {
            assert!(text.contains(row), "{} lacks {row}", format.name());
        }
    }
}

#[test]
fn no_report_is_rendered_too() {
    for format in FORMATS {
        format.render(&[]);
    }
}
