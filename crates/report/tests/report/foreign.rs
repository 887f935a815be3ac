//! Queues of other languages: published figures beside them, and what articles say of them.

use threadtoll_record::file::Results;
use threadtoll_record::{
    Experiment, Figures, Layout, LockSubject, Origin, Placement, Spread, Subject, Wait, Work,
};
use threadtoll_report::text::tables;

use crate::fixture::{self, Spec};
use crate::text::{WIDE, findings};

const ASK_REPLY: &str = "queue/ask-reply";
const STREAM: &str = "queue/stream";

fn reference(experiment: &'static str) -> Spec {
    Spec { experiment, ..fixture::reference() }
}

/// A queue whose message takes `ns` one way.
fn one_way(name: &str, origin: Origin, wait: Wait, ns: f64) -> Spec {
    fixture::queue(ASK_REPLY, (name, origin, wait, 1), 1, 2.0 * ns)
}

fn measured(experiment: &'static str, mut rows: Vec<Spec>) -> Results {
    rows.insert(0, reference(experiment));
    let mut results = fixture::results(fixture::machine(2), &[(21, rows)]);
    results.plan.refused.clear();
    results
}

fn says(text: &str, claim: &str, answer: &str) {
    let sentence = text.lines().find(|line| line.contains(claim));
    assert!(sentence.is_some_and(|line| line.contains(answer)), "{claim}: {text}");
}

#[test]
fn claims_on_other_languages_are_judged() {
    use Origin::{Cpp, D};
    use Wait::{Block, Poll};
    let results = measured(
        ASK_REPLY,
        vec![
            one_way("mutex-queue", Cpp, Poll, 390.0),
            one_way("boost-queue", Cpp, Poll, 180.0),
            one_way("mutex-queue-usleep", Cpp, Block, 60_000.0),
            one_way("d-concurrency", D, Block, 20_000.0),
            one_way("d-channel", D, Block, 60_000.0),
            one_way("d-channel-spin", D, Block, 200.0),
        ],
    );
    let text = findings(&results, &results.records());
    let says = |claim, answer| says(&text, claim, answer);
    says("a mutex and a queue take about 400 ns", "mutex-queue (poll) yes (39");
    says("a lock-free queue takes about 400 ns", "boost-queue (poll) no (18");
    says("`usleep` takes 40 µs or worse", "mutex-queue-usleep (block) yes");
    says("std.concurrency takes about 5 µs", "d-concurrency (block) no");
    says(
        "as fast as a lock-free queue",
        "against boost-queue (poll) no (390 ns against 180 ns, 2.1",
    );
    says("spinning first fixes that", "d-channel-spin (block) against d-channel (block) yes");
    assert!(!text.contains("boost::asio"), "it was not measured: {text}");

    let table = tables(&results, &results.records(), &WIDE);
    for figure in ["≥40 µs (2016)", "400 ns (2016)", "5 µs (2016)"] {
        assert!(table.contains(figure), "{figure}: {table}");
    }
    assert!(table.contains("Published: an article on Habr"), "{table}");
}

#[test]
fn claims_on_rates_are_judged() {
    let stream = |name, origin, batch, senders, ns| {
        fixture::queue(STREAM, (name, origin, Wait::Block, batch), senders, ns)
    };
    let disruptor = |batch, ns| stream("disruptor-yielding", Origin::Java, batch, 1, ns);
    let asio = |senders, ns| stream("asio-post", Origin::Cpp, 1, senders, ns);
    let results = measured(
        STREAM,
        vec![disruptor(1, 50.0), disruptor(256, 5.0), asio(1, 300.0), asio(2, 900.0)],
    );
    let text = findings(&results, &results.records());
    let says = |claim, answer| says(&text, claim, answer);
    says("25 million messages a second", "disruptor-yielding (block) no (20.");
    says("100 million messages a second if its publisher", "disruptor-yielding (block) yes (20");
    says("worse with more senders", "against asio-post (block), 2 senders yes (");
    let table = tables(&results, &results.records(), &WIDE);
    assert!(table.contains("≥25.0 M/s (2011)") && table.contains("≥100 M/s (2011)"), "{table}");
}

#[test]
fn java_is_compared_with_what_the_program_in_cpp_did() {
    let mut rows = vec![
        fixture::spec("java-volatile", Placement::Pinned, 111.0, [100.0, 0.0, 0.0]),
        fixture::spec("atomic-rmw", Placement::Pinned, 100.0, [100.0, 0.0, 0.0]),
    ];
    let results_of = |rows: &[Spec]| {
        let rows = rows.iter().map(|row| Spec { cell: row.cell.clone(), ..*row }).collect();
        measured("latency", rows)
    };
    let judged = |rows: &[Spec]| {
        let results = results_of(rows);
        findings(&results, &results.records())
    };
    assert!(!judged(&rows).contains("10% faster"), "its counters are not on one line");
    rows[1].cell.line = Some(Layout::Shared);
    let text = judged(&rows);
    let sentence = text.lines().find(|line| line.contains("about 10% faster than Java"));
    let sentence = sentence.unwrap_or_else(|| panic!("{text}"));
    let answer = "java-volatile against atomic-rmw, shared line yes (55.";
    assert!(sentence.contains(answer), "{sentence}");
    let results = results_of(&rows);
    let table = tables(&results, &results.records(), &WIDE);
    assert!(table.contains("50 ns (2011)"), "{table}");
}

#[test]
fn published_pools_stand_beside_their_equals() {
    let results = fixture::survey();
    let template = results.records().remove(0);
    let pool = |threads, tasks| {
        let mut record = crate::locks::COMPUTING.record(&template);
        record.cell.subject = Subject::Lock(LockSubject {
            lock: "java-reentrant-fair".into(),
            threads,
            work: Work::Sleep,
            spread: Spread::Fixed,
            hold_ns: 5_000_000,
            think_ns: 95_000_000,
            read_share: None,
            tasks: Some(tasks),
            overload: None,
        });
        record.experiment = Experiment::Contention("pool".into());
        if let Figures::Contention { contention } = &mut record.figures {
            contention.total_s = Some(6.3.into());
            contention.total_s_interval95 = Some([6.2.into(), 6.4.into()]);
        }
        record
    };
    let table = tables(&results, &[pool(20, 1000), pool(21, 1000)], &WIDE);
    assert!(table.contains("6.25 s") && table.contains("2.63"), "{table}");
    let text = findings(&results, &[pool(20, 1000), pool(1, 1000)]);
    says(&text, "6.25 ms a task", "20 threads, 5.0% yes (6.30 ms, 6.20–6.40 ms");
    says(&text, "105.7 ms a task", "java-reentrant-fair, sleeping, 1 thread, 5.0% no (6.30 ms");
    let table = tables(&results, &[pool(20, 999)], &WIDE);
    assert!(!table.contains("6.25 s"), "another pool: {table}");
}

/// A claim is answered by all blocks of its rows if their group did not see the speed at which most
/// of the run was measured.
#[test]
fn claims_are_answered_from_groups_of_another_regime() {
    let row = |name, ns| one_way(name, Origin::Cpp, Wait::Poll, ns);
    let fast = vec![reference(ASK_REPLY), row("boost-spsc", 100.0), row("mutex-queue", 390.0)];
    let mut slow = vec![reference(ASK_REPLY), row("boost-queue", 1_800.0)];
    slow[0].round_trip_ns *= 10.0;
    let results = fixture::results(fixture::machine(2), &[(21, fast), (21, slow)]);
    let text = findings(&results, &results.records());
    says(&text, "a mutex and a queue take about 400 ns", "mutex-queue (poll) yes (39");
    says(&text, "a lock-free queue takes about 400 ns", "boost-queue (poll) no (1.80");
}

#[test]
fn a_note_explains_the_pipe_behind_the_interface() {
    let results = measured(
        ASK_REPLY,
        vec![
            one_way("pipe", Origin::Ours, Wait::Spin, 100.0),
            one_way("pipe-adapter", Origin::Rust, Wait::Poll, 130.0),
        ],
    );
    let table = tables(&results, &results.records(), &WIDE);
    assert!(
        table.contains("pipe-adapter: our pipe, called through the interface of adapters"),
        "{table}"
    );
}
