use std::path::PathBuf;

use threadtoll_record::file::Results;
use threadtoll_report::html::page;

use crate::fixture;

/// Leaves the page for `ci/long/page.sh` and for people.
fn kept(name: &str, results: &[Results]) -> String {
    let page = page(results, &[]);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    assert!(std::fs::write(&path, &page).is_ok(), "{} cannot be written", path.display());
    page
}

/// The survey with a matrix of its two CPUs.
fn card() -> Results {
    let mut results = fixture::survey();
    let pairs = fixture::matrix(2);
    results.plan.groups.extend(pairs.plan.groups);
    results.groups.extend(pairs.groups);
    results
}

#[test]
fn a_survey_is_one_small_page_that_asks_for_nothing() {
    let page = kept("survey.html", &[card()]);
    assert!(page.len() < 5_000_000, "{}", page.len());
    for request in
        ["src=\"http", "href=\"http", "src='http", "href='http", "url(http", "@import", "src=\"//"]
    {
        assert!(!page.contains(request), "{request}");
    }
    let (ours, _) = page.split_once("id=\"plotly\"").unwrap();
    assert!(!ours.contains("http://") && !ours.contains("https://"));
    assert!(page.contains("Content-Security-Policy"));
    assert!(page.contains("std-condvar-after") && page.contains("2.08–2.36\u{a0}µs (2011)"));
}

#[test]
fn a_matrix_of_thirty_two() {
    let page = kept("matrix-32.html", &[fixture::matrix(32)]);
    assert!(page.contains("cores of different nodes"));
}

#[test]
fn a_matrix_of_five_hundred_is_still_a_small_page() {
    let page = kept("matrix-500.html", &[fixture::matrix(500)]);
    assert!(page.len() < 5_000_000, "{}", page.len());
}

#[test]
fn several_runs_share_a_page() {
    let mut simulated = card();
    simulated.machine.simulated = true;
    let page = kept("two.html", &[card(), simulated]);
    assert!(
        page.contains("id=\"run-0\"")
            && page.contains("id=\"run-1\"")
            && page.contains("Simulated.")
    );
}

#[test]
fn nothing_measured_is_a_page_too() {
    assert!(page(&[], &[]).contains("No results were given"));
    let mut results = fixture::survey();
    results.groups.iter_mut().for_each(|group| *group = Default::default());
    let page = kept("empty.html", &[results]);
    assert!(!page.contains("data-chart=\"ladder\"") && page.contains("To measure this again"));
}
