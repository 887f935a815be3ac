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
    assert!(page.len() < 150_000, "{}", page.len());
    for request in
        ["src=\"http", "href=\"http", "src='http", "href='http", "url(http", "@import", "src=\"//"]
    {
        assert!(!page.contains(request), "{request}");
    }
    assert!(!page.contains("http://") && !page.contains("https://"));
    assert!(page.contains("Content-Security-Policy"));
    assert!(page.contains("std-condvar-after") && page.contains("2.08–2.36 µs (2011)"));
}

#[test]
fn marks_say_their_figures_without_a_script() {
    let page = page(&[card()], &[]);
    for part in [
        "<title>futex, pinned\none way p50 1.39 µs (1.38–1.40 µs)\nround trip p50 ",
        "<title>std-condvar, published: 2.08 µs\nM. Thompson",
        "<title>atomic-store, pinned\n",
        " round trips\np50 ",
        "\nmaximum ",
        "<title>futex, p99: ",
        "<label class=\"choice\"><input type=\"radio\" name=\"placement-0\" class=\"pick-same-cpu\">",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<script").count(), 1, "the one that sorts tables");
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
    assert!(page.contains("median ") && page.contains(" pairs</title>"), "values on hover");
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
    assert!(!page.contains("<figure class=\"chart") && page.contains("To reproduce this"));
}

#[test]
fn the_cards_have_the_figures_of_the_answer() {
    let page = page(&[card()], &[]);
    let cards: Vec<&str> = page.split("<li class=\"card").skip(1).collect();
    assert_eq!(cards.len(), 4);
    for (card, part) in cards.iter().zip([">50.9 ns<", ">1.39 µs<", ">27.3×<", ">B<"]) {
        assert!(card.contains(part), "{part}: {card}");
    }
}

#[test]
fn the_ratio_of_two_queues_stands_beside_the_first() {
    let page = page(&[fixture::queues()], &[]);
    let (_, pairs) = page.split_once("<h3>Our queues compared").unwrap();
    let headings: Vec<&str> = pairs.split("<button").skip(1).take(3).collect();
    for (heading, text) in headings.iter().zip([">queue<", ">ratio<", ">95%<"]) {
        assert!(heading.contains(text), "{text}: {headings:?}");
    }
}

#[test]
fn a_matrix_stands_above_its_findings() {
    let page = page(&[fixture::matrix(8)], &[]);
    let place = |part: &str| page.find(part).unwrap();
    assert!(place("<figure class=\"chart cells\"") < place("class=\"machine\""));
    assert_eq!(page.matches("<figure class=\"chart cells\"").count(), 1);
    assert!(page.contains("<title>CPUs 0 and 1, cores that share a cache: "), "values on hover");
}
