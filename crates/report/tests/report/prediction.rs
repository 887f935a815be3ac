use threadtoll_record::{
    MeasuredBy, MeasuredLock, PredictedChange, PredictedPolicy, PredictedRow, Prediction,
};
use threadtoll_report::text::{Style, prediction};

fn row(threads: u32, speedup: f64) -> PredictedRow {
    PredictedRow {
        threads,
        model: "simulation".into(),
        why: "asked for".into(),
        speedup,
        speedup_interval99: Some([speedup * 0.99, speedup * 1.01]),
        speedup_interval95: None,
        throughput_per_s: Some(speedup * 1e6),
        queue_mean: 12.5,
        queue_mean_interval99: None,
        queue_mean_interval95: None,
        queue_on_entry: 11.5,
        wait_share: 0.2,
        total_s: Some(3.0),
        bound: speedup,
        amdahl: speedup / 2.0,
    }
}

fn fixture() -> Prediction {
    Prediction {
        from: None,
        hold_ns: Some(5e6),
        think_ns: Some(95e6),
        hold_share: 0.05,
        hold_share_interval95: None,
        handoff_ns: 5e3,
        cores: Some(64),
        tasks: Some(1000),
        hold_shape: "fixed".into(),
        think_shape: "times.txt".into(),
        hold_variation: 0.0,
        think_variation: 1.5,
        policy: PredictedPolicy::Barging,
        stripes: 2,
        seed: 1,
        knee: Some(40.0),
        knee_interval95: None,
        recommended_threads: Some(38),
        recommended_threads_interval95: None,
        rows: [1, 8, 16, 38, 1000].map(|threads| row(threads, f64::from(threads.min(40)))).to_vec(),
        what_if: vec![PredictedChange {
            change: "stripe/4".into(),
            threads: 1000,
            model: "mva".into(),
            throughput_per_s: Some(1.0),
            speedup: 80.0,
            gain: 2.0,
            gain_interval95: None,
        }],
    }
}

fn drawn(what: &Prediction, width: Option<usize>) -> String {
    prediction(what, &Style { color: false, width })
}

#[test]
fn a_prediction_fits_any_terminal() {
    for width in 24..160 {
        for line in drawn(&fixture(), Some(width)).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let narrow = drawn(&fixture(), Some(60));
    assert!(narrow.contains("Columns that did not fit"), "{narrow}");
    for width in [0, 1, 10, 30] {
        assert!(!drawn(&fixture(), Some(width)).is_empty());
    }
}

#[test]
fn only_what_is_colourful_has_escapes() {
    assert!(!drawn(&fixture(), None).contains('\u{1b}'));
    assert!(prediction(&fixture(), &Style { color: true, width: None }).contains('\u{1b}'));
}

#[test]
fn a_thousand_rows_are_not_all_shown() {
    let mut many = fixture();
    many.rows = (1..=1000).map(|threads| row(threads, f64::from(threads))).collect();
    let text = drawn(&many, None);
    assert!(text.contains("of 1000 rows; all are in --json"), "{text}");
    assert!(text.lines().count() < 120, "{text}");
    assert!(
        text.lines().any(|line| line.trim_start().starts_with("38 ")),
        "the advised one is: {text}"
    );
}

#[test]
fn changes_that_gain_nothing_are_left_out() {
    let change = |change: &str, gain| PredictedChange {
        change: change.into(),
        gain,
        ..fixture().what_if.remove(0)
    };
    let told = |gains: [f64; 2]| {
        let what_if = vec![change("hold/2", gains[0]), change("stripe/4", gains[1])];
        drawn(&Prediction { what_if, ..fixture() }, None)
    };
    let text = told([1.004, 1.8]);
    assert!(text.contains("stripe the lock in 4") && !text.contains("half as long"), "{text}");
    let text = told([1.0, 1.004]);
    assert!(text.contains("No change to the lock would help 1000 threads"), "{text}");
    assert!(!text.contains("Changes that would help") && !text.contains("stripe the"), "{text}");
}

#[test]
fn a_knee_without_the_hand_offs_is_an_upper_bound() {
    let told = |policy, handoff_ns| drawn(&Prediction { policy, handoff_ns, ..fixture() }, None);
    assert!(told(PredictedPolicy::Barging, 5e3).contains("below 40.0× the work of one"));
    assert!(!told(PredictedPolicy::Barging, 0.0).contains("below 40.0×"));
    assert!(!told(PredictedPolicy::Fifo, 5e3).contains("below 40.0×"));
}

#[test]
fn odd_figures_and_names_do_no_harm() {
    let mut odd = fixture();
    odd.rows.clear();
    odd.what_if.clear();
    assert!(!drawn(&odd, None).is_empty());
    for figure in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, f64::MIN_POSITIVE] {
        let mut odd = fixture();
        (odd.hold_ns, odd.think_ns, odd.handoff_ns, odd.knee) =
            (Some(figure), Some(figure), figure, Some(figure));
        (odd.hold_share, odd.knee_interval95) = (figure, Some([figure; 2]));
        (odd.hold_variation, odd.stripes, odd.cores) = (figure, 0, Some(0));
        odd.think_shape = "\u{1b}[2J\nno\u{202E}file".into();
        for row in &mut odd.rows {
            (row.speedup, row.amdahl, row.bound, row.queue_mean) = (figure, figure, figure, figure);
            row.threads = row.threads.wrapping_mul(u32::MAX / 7);
        }
        let text = drawn(&odd, Some(80));
        assert!(!text.contains(['\u{1b}', '\u{202E}']), "{text}");
    }
}

#[test]
fn rows_that_end_too_early_say_so() {
    assert!(!drawn(&fixture(), None).contains("The rows end"));
    let mut short = fixture();
    (short.knee, short.recommended_threads) = (Some(2000.0), None);
    let said = "The rows end at 1000 threads, below the limit.";
    assert!(drawn(&short, None).contains(said), "{}", drawn(&short, None));
    short.recommended_threads = Some(2100);
    assert!(
        drawn(&short, None).contains("below the limit and the number of threads worth having.")
    );
}

#[test]
fn no_line_ends_between_a_figure_and_its_unit() {
    let mut short = fixture();
    (short.hold_ns, short.hold_shape) = (Some(1000.0), "exponential".into());
    for width in 24..100 {
        for line in drawn(&short, Some(width)).lines() {
            assert!(!line.ends_with(" 1") && !line.starts_with("µs"), "{width}: {line}");
        }
    }
}

/// The text without its line breaks.
fn flowing(what: &Prediction) -> String {
    drawn(what, None).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn measured(speedup: f64, handoff_ns: Option<f64>) -> Prediction {
    let from = MeasuredLock {
        file: "\u{1b}run.jsonl".into(),
        source: MeasuredBy::Contention,
        lock: "std-mutex".into(),
        simulated: true,
        threads: 8,
        held_share: None,
        held_share_interval95: None,
        hold_ns_interval95: Some([4.9e6, 5.1e6]),
        think_ns_interval95: Some([94e6, 96e6]),
        queue_mean: Some(0.2),
        queue_mean_interval95: None,
        queue_is_lower_bound: false,
        speedup: Some(speedup),
        speedup_interval95: Some([speedup - 0.1, speedup + 0.1]),
        acquisitions_per_s: Some(60.0),
        acquisitions_per_s_interval95: None,
        handoff_ns,
        others_set_pace: false,
    };
    let mut prediction = Prediction {
        from: Some(from),
        knee_interval95: Some([39.0, 41.0]),
        recommended_threads_interval95: Some([36, 40]),
        ..fixture()
    };
    for row in &mut prediction.rows {
        row.speedup_interval95 = Some([row.speedup * 0.98, row.speedup * 1.02]);
        row.queue_mean_interval95 = Some([12.0, 13.0]);
    }
    prediction
}

#[test]
fn a_measured_lock_is_named_first_and_compared_with_its_prediction() {
    let text = flowing(&measured(7.9, Some(6e3)));
    let from =
        "From run.jsonl: std-mutex, 8 threads, held 5.00 ms (4.90–5.10 ms), not held 95.0 ms";
    for said in [
        "SIMULATED",
        from,
        "38 threads (36–40) are worth having",
        "40.0× (39.0–41.0) the work of one",
        "For 8 threads this predicts a speed-up of 8.00× (7.84–8.16); 7.90× (7.80–8.00) was measured",
        "12.00–13.00",
    ] {
        assert!(text.contains(said), "{said} is not in {text}");
    }
    let free = Prediction { handoff_ns: 0.0, ..measured(6.0, Some(6e3)) };
    let slower = flowing(&free);
    assert!(slower.contains("but 6.00× (5.90–6.10) was measured: hand-offs took 6 µs"), "{slower}");
    for slower in [measured(6.0, Some(6e3)), measured(6.0, None)] {
        let slower = flowing(&slower);
        assert!(slower.contains("something else slowed the threads down"), "{slower}");
    }
    let faster = flowing(&measured(9.0, None));
    assert!(faster.contains("contain the reading of the clock"), "{faster}");
}

#[test]
fn without_durations_there_is_no_throughput() {
    let mut relative = fixture();
    (relative.hold_ns, relative.think_ns, relative.tasks) = (None, None, None);
    relative.rows.iter_mut().for_each(|row| row.throughput_per_s = None);
    relative.what_if.iter_mut().for_each(|change| change.throughput_per_s = None);
    let text = flowing(&relative);
    assert!(text.contains("Hold times fixed, think times distributed as in times.txt"), "{text}");
    assert!(text.contains("each 5.0% of its time with the lock and 95% of its time without it"));
    assert!(!text.contains("per s"), "{text}");
}
