//! Profiles as text, page, folded stacks and metrics.

use std::collections::HashSet;
use std::path::PathBuf;

use threadtoll_record::Profile;
use threadtoll_record::file::Profiled;
use threadtoll_record::profile::{Ended, Interval, Lock, ThreadShare};
use threadtoll_report::html::page;
use threadtoll_report::text::{Style, first_screen, profile};
use threadtoll_report::{OpenMetrics, folded, openmetrics};
use unicode_width::UnicodeWidthStr;

use crate::{fixture, profiles};

pub(crate) const MORE: &str = "threadtoll report profile.jsonl --html profile.html";

pub(crate) fn plain(width: usize) -> Style {
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
fn waits_that_cost_nothing_are_told_from_those_that_do() {
    let answer = |gain: Option<f64>| {
        let gain_interval95 = None;
        let lock = Lock { gain: gain.map(Into::into), gain_interval95, ..profiles::saturated() };
        let time = profiles::time([0.0, 0.0, 0.3, 0.7, 0.0], &[]);
        let screen = first_screen(&profiles::profile(&["a"], time, vec![lock]), MORE, &plain(90));
        screen.lines().nth(1).map(str::to_owned).unwrap_or_default()
    };
    let little =
        "Locks, at little cost: threads waited for them 30% (29–31%) of the time, but without";
    assert!(answer(Some(0.0)).starts_with(little), "{}", answer(Some(0.0)));
    let locks = "Locks: threads waited for them 30% (29–31%) of the time;";
    for gain in [Some(0.5), None] {
        assert!(answer(gain).starts_with(locks), "{}", answer(gain));
    }
}

/// Threads that are freed from one of two locks that they all pass queue for the other.
#[test]
fn waits_for_several_locks_are_not_said_to_cost_nothing() {
    let lock = |id, name: &str| Lock {
        id,
        name: name.into(),
        gain: Some(0.0.into()),
        gain_interval95: None,
        ..profiles::saturated()
    };
    let time = profiles::time([0.0, 0.0, 0.9, 0.1, 0.0], &[]);
    let locks = vec![lock(1, "first"), lock(2, "second")];
    let screen = first_screen(&profiles::profile(&["a"], time, locks), MORE, &plain(90));
    assert!(!screen.contains("at little cost"), "{screen}");
    assert!(screen.contains("because another lock"), "{screen}");
}

#[test]
fn a_lock_that_others_release_has_no_gain() {
    let lock = Lock {
        released_by_others: true,
        gain: None,
        gain_interval95: None,
        what_if: Vec::new(),
        causes: Vec::new(),
        ..profiles::saturated()
    };
    let screen = screen_of(vec![lock]);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "Cannot be told whether locks are to blame: 60% of the time its threads waited for",
        "which a thread other than its owner releases, as if it were an event.",
        "cannot be determined: it is released by a thread other than its owner.",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert!(!screen.contains("Release") && !screen.contains("What if"), "{screen}");
}

/// Screen of a program that waits for these locks.
fn screen_of(locks: Vec<Lock>) -> String {
    let time = profiles::time([0.1, 0.0, 0.6, 0.3, 0.0], &[]);
    first_screen(&profiles::profile(&["a"], time, locks), MORE, &plain(100))
}

#[test]
fn rows_that_say_nothing_are_left_out() {
    let unclear = Lock {
        queue_mean: Some(0.01.into()),
        queue_mean_interval95: Interval::new(0.0.into(), 0.04.into()),
        queue_max: Some(1),
        ..profiles::lock(4, "unclear_lock")
    };
    let screen = screen_of(vec![profiles::saturated(), unclear, profiles::lock(5, "free_lock")]);
    assert!(!screen.contains("unclear_lock") && !screen.contains("free_lock"), "{screen}");
    let left_out = "Left out: 1 lock with too few samples to judge, 1 lock that nobody waited for.";
    assert!(screen.contains(left_out), "{screen}");
}

#[test]
fn names_differ_after_they_are_cut() {
    let name =
        |end: &str| format!("lock in application_framework_write_journal_{end}_of_all_pages");
    let one = Lock { name: (&*name("entry")).into(), ..profiles::saturated() };
    let other = Lock { id: 9, name: (&*name("index")).into(), ..profiles::saturated() };
    let screen = screen_of(vec![one, other]);
    let rows: Vec<&str> = screen.lines().filter(|line| line.contains("185%")).collect();
    let names: HashSet<&str> =
        rows.iter().filter_map(|row| row.split("  +").next()).map(str::trim).collect();
    assert_eq!(names.len(), 2, "{screen}");
}

#[test]
fn holders_and_those_not_seen_are_shares_of_one_whole() {
    let lock = Lock {
        holders: vec![profiles::thread(4712, "refresher", 0.4)],
        holder_not_seen_share: Some(0.96.into()),
        ..profiles::saturated()
    };
    let screen = screen_of(vec![lock]);
    assert!(screen.contains("held by refresher (TID 4712) 40%, not seen 60%"), "{screen}");
}

#[test]
fn a_gain_between_wide_bounds_is_a_range() {
    let lock = Lock {
        gain: Some(0.04.into()),
        gain_interval95: Interval::new(0.0.into(), 0.6.into()),
        ..profiles::saturated()
    };
    let screen = screen_of(vec![lock]);
    assert!(screen.contains("0–60%"), "{screen}");
    // It may be worth a change.
    assert!(!screen.contains("at little cost"), "{screen}");
    let unknown =
        Lock { gain: None, gain_interval95: None, what_if: Vec::new(), ..profiles::saturated() };
    let screen = screen_of(vec![unknown]);
    let said =
        "The gain without waits for cache_lock cannot be determined while all CPUs are busy.";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn stand_stills_come_first_and_their_names_are_cleaned() {
    let mut seen = profiles::deadlock();
    if let Some(stuck) = &mut seen.processes[0].stuck {
        let name = "a\u{1b}[2Jb\n<b>";
        (stuck.text, stuck.threads[0].name) = (format!("Deadlock: {name}.").into(), name.into());
    }
    let screen = first_screen(&seen, MORE, &plain(80));
    assert!(screen.lines().nth(1).is_some_and(|line| line.starts_with("Deadlock: a")), "{screen}");
    assert!(!screen.contains('\u{1b}') && !screen.contains("too few samples"), "{screen}");
    let full = profile(&seen, MORE, &plain(80));
    assert!(full.matches("Deadlock: a").count() == 2 && !full.contains('\u{1b}'), "{full}");
}

#[test]
fn a_small_lower_bound_of_a_queue_is_no_upper_one() {
    for (queue, text) in [(0.0001, " ≥0 "), (0.0312, " ≥0.031 ")] {
        let lock = Lock {
            queue_mean: Some(queue.into()),
            queue_mean_interval95: None,
            queue_is_lower_bound: true,
            ..profiles::saturated()
        };
        let time = profiles::time([0.9, 0.0, 0.04, 0.06, 0.0], &[]);
        let screen = first_screen(&profiles::profile(&["a"], time, vec![lock]), MORE, &plain(100));
        assert!(screen.contains(text), "{screen}");
    }
}

#[test]
fn the_answer_is_about_all_processes() {
    let waits = profiles::time([0.0, 0.0, 0.8, 0.2, 0.0], &[]);
    let computes = profiles::time([0.9, 0.0, 0.04, 0.06, 0.0], &[]);
    let lock = Lock { gain: None, ..profiles::saturated() };
    let mut seen = profiles::profile(&["make"], waits, vec![lock]);
    seen.processes.push(profiles::process(4712, &["cc1"], computes.clone(), Vec::new()));
    let screen = |seen: &Profile| first_screen(seen, MORE, &plain(100));
    let locks = "\nLocks: threads waited for them 80%";
    assert!(screen(&seen).contains(locks), "{}", screen(&seen));
    seen.time = Some(computes);
    let of_all = screen(&seen);
    assert!(of_all.contains("\nNot locks: 90% of the time its threads ran; 4%"), "{of_all}");
    assert!(of_all.contains("\nrunning 90%"), "{of_all}");
    // Older files have the time of each process only.
    seen.time = None;
    assert!(screen(&seen).contains(locks), "{}", screen(&seen));
}

#[test]
fn it_may_be_locks_if_the_gain_is_not_known() {
    let screen = |lock: Lock, time| {
        let screen = first_screen(&profiles::profile(&["a"], time, vec![lock]), MORE, &plain(80));
        screen.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let computes = || profiles::time([0.9, 0.0, 0.04, 0.06, 0.0], &[]);
    let idles = || profiles::time([0.1, 0.0, 0.04, 0.86, 0.0], &[]);
    let unknown = Lock { gain: None, ..profiles::saturated() };
    let withheld = Lock { queue_mean: None, queue_mean_interval95: None, ..unknown.clone() };
    let perhaps = "Cannot be told: 86% of the time its threads waited for work; 4% for locks, but \
                   the gain without waits for";
    // If all who wait worked instead, the program would gain 4% and 40%.
    assert!(screen(unknown.clone(), computes()).contains(" Not locks: "));
    // The time spent waiting is not certain either.
    let said = screen(withheld.clone(), computes());
    assert!(said.contains(" Cannot be told: 90% of the time its threads ran; 4%"), "{said}");
    for (lock, gain) in [(&unknown, "is not known."), (&withheld, "is withheld.")] {
        let said = screen(lock.clone(), idles());
        assert!(said.contains(&format!(" {perhaps}")) && said.contains(gain), "{said}");
    }
    let nobody = Lock { queue_max: Some(0), waiters: Vec::new(), causes: Vec::new(), ..withheld };
    assert!(screen(nobody, idles()).contains(" Not locks: "));
}

#[test]
fn little_is_concluded_from_few_samples() {
    let mut seen = profiles::sleeping_holder();
    let answer = |seen: &Profile| {
        let screen = first_screen(seen, MORE, &plain(100));
        let causes = screen.contains("of the waiting") || screen.contains("What if");
        (screen.lines().nth(1).map(str::to_owned).unwrap_or_default(), causes)
    };
    assert!(answer(&seen).1);
    (seen.samples, seen.seconds) = (5.into(), 0.037.into());
    assert_eq!(answer(&seen), ("Too short to say: 5 samples in 37.0 ms.".into(), false));
    seen.seconds = 4.0.into();
    assert_eq!(answer(&seen), ("Too few samples to say: 5 samples in 4.00 s.".into(), false));
    seen.finished = false;
    assert_eq!(answer(&seen), ("Too early to say: 5 samples in 4.00 s so far.".into(), false));
}

#[test]
fn a_program_that_goes_on_in_the_background_is_named() {
    let mut seen = profiles::sleeping_holder();
    let says = |seen: &Profile, text: &str| first_screen(seen, MORE, &plain(100)).contains(text);
    assert!(!says(&seen, "background"));
    seen.background = vec![77];
    assert!(says(
        &seen,
        "\nThe program went on in the background as PID 77: threadtoll profile -p 77\n"
    ));
    seen.background = vec![77, 78, 79];
    assert!(says(&seen, "as PID 77 and 2 more processes: threadtoll profile -p 77"));
}

#[test]
fn threads_without_a_name_have_ended() {
    let mut seen = profiles::sleeping_holder();
    let mut held_by = |holders: Vec<ThreadShare>| {
        let lock = &mut seen.processes[0].locks[0];
        (lock.holders, lock.holder_not_seen_share) = (holders, None);
        let screen = profile(&seen, MORE, &plain(100));
        let line = screen.lines().find_map(|line| line.strip_prefix("Holder: "));
        line.map(str::to_owned).unwrap_or_default()
    };
    let thread = profiles::thread;
    assert_eq!(held_by(vec![thread(7, "", 1.0)]), "a thread that has ended (TID 7) 100%");
    let many = vec![thread(7, "", 0.3), thread(8, "", 0.2), thread(9, "worker", 0.5)];
    assert_eq!(held_by(many), "2 threads that have ended 50%, worker (TID 9) 50%");
    let stranger = ThreadShare { pid: Some(25), ..thread(26, "checkpointer", 1.0) };
    assert_eq!(held_by(vec![stranger]), "checkpointer (PID 25, TID 26) 100%");
}

#[test]
fn what_some_of_the_threads_show_is_a_lower_bound() {
    let lock = Lock {
        seen_in_part: true,
        queue_max: Some(36),
        threads: 211,
        threads_interval: Interval::new(211, 1_000),
        ..profiles::saturated()
    };
    let time = profiles::time([0.3, 0.0, 0.3, 0.4, 0.0], &[]);
    let screen = first_screen(&profiles::profile(&["a"], time, vec![lock]), MORE, &plain(100));
    assert!(screen.contains(" ≥36 ") && screen.contains(" ≥211 "), "{screen}");
    // All threads were examined in each sample, but few samples show who used the lock.
    let threads = |most| {
        let (threads, threads_interval) = (3, Interval::new(3, most));
        let lock = Lock { threads, threads_interval, ..profiles::saturated() };
        let time = profiles::time([0.3, 0.0, 0.3, 0.4, 0.0], &[]);
        first_screen(&profiles::profile(&["a"], time, vec![lock]), MORE, &plain(100))
    };
    assert!(threads(26).contains(" ≥3 ") && !threads(4).contains(" ≥3 "));
}

#[test]
fn a_lock_of_a_short_life_costs_less() {
    let time = || profiles::time([0.3, 0.0, 0.3, 0.4, 0.0], &[]);
    let lock = |name: &str| Lock { name: name.into(), ..profiles::saturated() };
    let mut seen = profiles::profile(&["sh"], time(), vec![lock("short")]);
    seen.processes[0].seconds = Some(0.15.into());
    seen.processes[0].ended = Ended::Exec;
    let mut prog = profiles::process(4711, &["./prog"], time(), vec![lock("long")]);
    (prog.image, prog.seconds) = (2, Some(5.85.into()));
    seen.processes.push(prog);
    let screen = first_screen(&seen, MORE, &plain(100));
    assert!(screen.starts_with("prog (PID 4711) · 9 threads"), "{screen}");
    assert!(screen.contains("; long costs most."), "{screen}");
    assert!(screen.contains("short (PID 4711, program 1)"), "{screen}");
}

#[test]
fn processes_are_told_apart_however_long_the_names_of_their_locks() {
    let time = || profiles::time([0.3, 0.0, 0.3, 0.4, 0.0], &[]);
    let lock = || Lock { name: "lock in write_journal_entry".into(), ..profiles::saturated() };
    let mut seen = profiles::profile(&["make"], time(), Vec::new());
    for pid in [32101, 32102] {
        seen.processes.push(profiles::process(pid, &["writer"], time(), vec![lock()]));
    }
    let screen = first_screen(&seen, MORE, &plain(80));
    assert!(screen.starts_with("make (PID 4711) and 2 other processes ·"), "{screen}");
    let rows = screen.lines().filter(|line| line.starts_with("lock in"));
    let mut rows: Vec<&str> = rows.filter_map(|line| line.split('%').next()).collect();
    rows.dedup();
    assert!(rows.iter().any(|row| row.contains("(PID 32101)")), "{screen}");
    assert!(rows.iter().any(|row| row.contains("(PID 32102)")), "{screen}");
}

#[test]
fn the_title_has_room_for_its_figures() {
    let code = "import threading, time; exec(open('/srv/app.py').read()); serve(threads=8)";
    let command = ["/usr/local/bin/python3", "-c", code, "       "];
    let time = profiles::time([0.3, 0.0, 0.0, 0.7, 0.0], &[]);
    let one = profiles::profile(&command, time, Vec::new());
    let mut three = one.clone();
    for pid in [4712, 4713] {
        let time = one.processes[0].time.clone().unwrap();
        three.processes.push(profiles::process(pid, &["cc1"], time, Vec::new()));
    }
    let title = |profile: &Profile| {
        let screen = first_screen(profile, MORE, &plain(80));
        screen.lines().next().map(str::to_owned).unwrap_or_default()
    };
    let program = "python3 -c import threading, time; exec(… (PID 4711)";
    assert_eq!(title(&one), format!("{program} · 9 threads · 10.0 s · 9400"));
    assert!(title(&three).contains("and 2 other processes"), "{}", title(&three));
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

/// Leaves the page for people to look at.
fn page_of(name: &str, profiles: &[Profile]) -> String {
    let profiled: Vec<Profiled> = profiles
        .iter()
        .map(|profile| Profiled {
            plan: fixture::plan(&fixture::machine(2), &[]),
            profile: profile.clone(),
            notes: Vec::new(),
        })
        .collect();
    let page = page(&[], &profiled);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{name}.html"));
    assert!(std::fs::write(&path, &page).is_ok(), "{} cannot be written", path.display());
    page
}

#[test]
fn each_profile_is_a_small_page_that_asks_for_nothing() {
    for (name, seen) in profiles::all() {
        let page = page_of(name, std::slice::from_ref(&seen));
        assert!(page.len() < 200_000, "{name}: {}", page.len());
        assert!(!page.contains("http://") && !page.contains("https://"), "{name}");
        assert!(page.contains("<h1>Where the threads of"), "{name}");
        assert!(page.contains("Not seen"), "{name}");
        assert!(!page.contains("<script>alert") && !page.contains("NaN"), "{name}");
    }
}

#[test]
fn a_page_shows_time_locks_graph_and_curve() {
    let page = page_of("one", &[profiles::sleeping_holder()]);
    for part in [
        "Locks: threads waited for them 62% (61–63%) of the time; cache_lock costs most.",
        "class=\"spent-lock\"",
        "class=\"graph\"",
        "refresher (TID 4712)",
        "8 × worker",
        "<title>predicted, 4 threads: ",
        "<title>now, 8 threads: 2.80</title>",
        "now: 2.80 with 8",
        "Cache::refresh(std::string const&amp;)",
        "What would help",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page_of("disk-again", &[profiles::disk()]).contains("class=\"graph\""));
    assert!(page_of("three", &[profiles::three_locks()]).contains("its holder waits, 34%"));
}

#[test]
fn profiles_and_measurements_share_a_page() {
    let profiled = Profiled {
        plan: fixture::plan(&fixture::machine(2), &[]),
        profile: profiles::undecided(),
        notes: vec!["The last line is incomplete.".into()],
    };
    let results = fixture::results(fixture::machine(2), &[(2, vec![fixture::reference()])]);
    let page = page(&[results], &[profiled]);
    assert!(page.contains("id=\"run-0\"") && page.contains("id=\"profile-0\""));
    assert!(page.contains("class=\"chart list\"") && page.contains("The last line is incomplete."));
    assert!(page.contains("was interrupted, or is still running"));
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

/// Values of the samples whose line begins so.
fn values(text: &str, begin: &str) -> Vec<f64> {
    let of = text.lines().filter(|line| line.starts_with(begin));
    of.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect()
}

#[test]
fn counters_of_metrics_never_go_down() {
    let mut metrics = OpenMetrics::default();
    let mut seen = profiles::sleeping_holder();
    let mut waited = |seconds: f64, queue: f64, generation: u32| {
        seen.processes[0].seconds = Some(seconds.into());
        let lock = &mut seen.processes[0].locks[0];
        (lock.queue_mean, lock.generation) = (Some(queue.into()), generation);
        let text = metrics.render(&seen);
        check_openmetrics("counters", &text);
        values(&text, "threadtoll_lock_wait_seconds_total{")[0]
    };
    assert_eq!(waited(5.0, 4.0, 1), 20.0);
    // Looks at fewer waiters may lower the mean by more than the time adds.
    assert_eq!(waited(6.0, 3.0, 1), 20.0);
    assert_eq!(waited(7.0, 3.0, 1), 21.0);
    // The mean of another lock at this address is that of the whole time, too.
    assert_eq!(waited(8.0, 0.5, 2), 25.0);
    assert_eq!(waited(10.0, 1.0, 2), 31.0);
    // Older files do not say how long each process was seen.
    seen.processes[0].seconds = None;
    assert!(values(&openmetrics(&seen), "threadtoll_lock_wait_seconds_total").is_empty());
}

#[test]
fn spinning_is_a_state_of_its_own() {
    let mut seen = profiles::sleeping_holder();
    let share = |seen: &Profile, state: &str| {
        let begin = format!("threadtoll_thread_time_ratio{{pid=\"4711\",image=\"1\",state={state}");
        values(&openmetrics(seen), &begin).iter().sum::<f64>()
    };
    let before = (share(&seen, "\"running\""), share(&seen, ""));
    let time = seen.processes[0].time.as_mut().unwrap();
    time.spinning = 0.12.into();
    let after = (share(&seen, "\"running\""), share(&seen, ""));
    assert_eq!(share(&seen, "\"spinning\""), 0.12);
    assert!((before.0 - after.0 - 0.12).abs() < 1e-9, "{before:?} {after:?}");
    assert!((after.1 - 1.0).abs() < 1e-9 && (before.1 - 1.0).abs() < 1e-9, "{before:?} {after:?}");
    // The two kinds of time on a CPU may not be told apart.
    let time = seen.processes[0].time.as_mut().unwrap();
    (time.running, time.runnable) = (None, None);
    let sum = share(&seen, "");
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let screen = profile(&seen, MORE, &plain(80));
    assert!(
        screen.contains("spinning 12%") && screen.contains("on or waiting for a CPU 10%"),
        "{screen}"
    );
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
