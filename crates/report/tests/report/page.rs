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
    assert!(page.contains("std-condvar-after") && page.contains("2.08–2.36\u{a0}µs (2011)"));
}

#[test]
fn marks_say_their_figures_without_a_script() {
    let page = page(&[card()], &[]);
    for part in [
        "<title>futex, pinned\none way p50 1.39 µs (1.38–1.40 µs)\nround trip p50 ",
        "<title>std-condvar, published: 2.08 µs\nM. Thompson",
        "<title>atomic-store, pinned\n",
        " round trips\nat most ",
        "<title>futex, p99: ",
        "<title>sleep-poll, maximum: ",
        ".curves:has(.p0:checked) .s0,",
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
    assert!(!page.contains("<figure class=\"chart") && page.contains("To measure this again"));
}

/// The figures, captions and details of the cards.
fn cards(page: &str) -> Vec<[&str; 3]> {
    let of = |card: &'_ str, class: &str| -> Option<std::ops::Range<usize>> {
        let from = card.find(&format!("class=\"{class}\">"))? + class.len() + 9;
        Some(from..from + card[from..].find('<')?)
    };
    page.split("<li class=\"card")
        .skip(1)
        .filter_map(|card| {
            let [figure, what, detail] = ["figure", "what", "detail"].map(|class| of(card, class));
            Some([&card[figure?], &card[what?], &card[detail?]])
        })
        .collect()
}

#[test]
fn the_cards_of_queues_name_the_best_of_each_case() {
    let mut results = fixture::queues();
    let card = |results: &Results, case: &str| {
        let page = page(std::slice::from_ref(results), &[]);
        let found = cards(&page).into_iter().find(|[_, what, _]| *what == case).unwrap();
        found.map(str::to_string)
    };
    let case = "Stream: one message at a time, receivers that spin";
    let [best, _, detail] = card(&results, case);
    assert_eq!(best, "pipe");
    assert!(detail.starts_with("200 M/s, 2.40× rtrb, the best peer ("), "{detail}");
    assert!(detail.ends_with(": better"), "{detail}");
    let case = "Ask-reply: receivers that spin";
    let [best, _, detail] = card(&results, case);
    assert_eq!(best, "pipe");
    assert!(detail.contains("0.989× rtrb, the best peer ("), "{detail}");
    // Intervals that no longer tell the two apart.
    let groups = results.groups.iter_mut().filter_map(|group| group.records.as_mut());
    for record in groups.flatten().filter(|record| record.cell.queue().is_some()) {
        if let Some(one_way) = &mut record.one_way {
            one_way.p50_interval95 = Some([90.0.into(), 110.0.into()]);
        }
    }
    let [best, _, detail] = card(&results, case);
    assert_eq!(best, "pipe, rtrb");
    assert!(detail.starts_with("not told apart; pipe: 99.0 ns, "), "{detail}");
    // A peer that is faster than all of ours.
    results.groups.drain(..1);
    results.plan.groups.drain(..1);
    let case = "Stream: one message at a time, receivers that spin, 2 senders";
    results.groups.truncate(1);
    results.plan.groups.truncate(1);
    let [best, _, detail] = card(&results, case);
    assert_eq!(best, "crossbeam-unbounded");
    assert!(detail.contains("1.63× funnel, our best (") && detail.ends_with("better"), "{detail}");
}

#[test]
fn the_ratio_of_two_queues_stands_beside_the_first() {
    let page = page(&[fixture::queues()], &[]);
    let (_, pairs) = page.split_once("<h3>Our queues in pairs").unwrap();
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
