use threadtoll_record::file::{GroupState, Results};
use threadtoll_record::*;
use threadtoll_report::html::page;
use threadtoll_report::text::{Style, findings, machine, tables};

use crate::fixture;

const EVIL: &str = "\u{1b}[31m</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202E}evil\u{7}\n{{x}} $x$ %{y} & \"'";

/// All renderings of a file.
fn all(results: &Results) -> String {
    let records = results.records();
    let mut text = String::new();
    for width in [None, Some(0), Some(1), Some(40), Some(80)] {
        let style = Style { color: false, width };
        text.push_str(&tables(results, &records, &style));
        text.push_str(&machine(&results.machine, &style));
        text.push_str(&findings(results, &records, &style));
    }
    text
}

fn evil() -> Results {
    let mut results = fixture::everything();
    let text = Text::from(EVIL);
    let machine = &mut results.machine;
    for field in [
        &mut machine.run,
        &mut machine.at,
        &mut machine.tool,
        &mut machine.cpu,
        &mut machine.arch,
        &mut machine.kernel,
    ] {
        *field = text.clone();
    }
    machine.governor = Some(text.clone());
    machine.virtualised = Some(text.clone());
    machine.idle_driver = Some(text.clone());
    machine.warnings = vec![Warning::new(text.clone(), text.clone())];
    machine.topology[0].kind = Some(text.clone());
    results.plan.command = vec![text.clone()];
    results.plan.refused = vec![Refused { what: text.clone(), why: text.clone() }];
    results.notes = vec![EVIL.to_string()];
    for group in &mut results.groups {
        for (index, record) in group.records.iter_mut().flatten().enumerate() {
            match &mut record.cell.subject {
                Subject::Mechanism { mechanism, .. } => {
                    *mechanism = format!("{index}{EVIL}").into()
                }
                Subject::Queue(queue) => {
                    queue.queue = format!("{index}{EVIL}").into();
                    queue.version = format!("{index}{EVIL}").into();
                }
                Subject::Lock(lock) => lock.lock = format!("{index}{EVIL}").into(),
            }
            record.warnings = vec![Warning::new(text.clone(), text.clone())];
            if index % 3 == 0 {
                record.experiment = Experiment::Matrix;
            }
        }
    }
    results
}

#[test]
fn no_text_steers_the_terminal() {
    let text = all(&evil());
    assert!(text.contains("evil"));
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202E}'));
}

#[test]
fn no_text_becomes_part_of_the_page() {
    let page = page(&[evil()], &[]);
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.html"), &page)
        .unwrap();
    assert!(page.contains("evil"));
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert!(!page.contains('\u{202E}') && !page.contains('\u{1b}'));
    assert_eq!(page.matches("</script>").count(), 1);
}

#[test]
fn no_figure_makes_anything_fail_or_explode() {
    let figures = [
        0.0,
        -1.0,
        -0.0,
        1e-300,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for figure in figures {
        let mut results = fixture::everything();
        for record in results.groups.iter_mut().filter_map(|group| group.records.as_mut()).flatten()
        {
            if let Some(one_way) = &mut record.one_way {
                one_way.p50 = Some(figure.into());
                one_way.mean = Some(figure.into());
                one_way.p50_interval95 = Some([figure.into(), (-figure).into()]);
            }
            if record.rate_per_s.is_some() {
                record.rate_per_s = Some(figure.into());
                record.interval95.rate_per_s = Some([figure.into(), (-figure).into()]);
            }
            record.max = Some(figure.into());
            record.quantiles = Quantiles {
                p50: Some(figure.into()),
                p90: Some(figure.into()),
                p99: Some(figure.into()),
                p999: Some(figure.into()),
                p9999: Some(figure.into()),
            };
            record.over = Over { limit_ns: u64::MAX, share: Some(figure.into()) };
            record.cost = Cost {
                user_ns_per_op: Some(figure.into()),
                system_ns_per_op: Some(figure.into()),
                voluntary_switches_per_op: Some(figure.into()),
                involuntary_switches_per_op: Some(figure.into()),
            };
            record.figures =
                Figures::HandOffs(HandOffFigures { same_cpu_share: Some(figure.into()) });
            record.count = u64::MAX.into();
            record.disturbance.blocks = u32::MAX;
            record.disturbance.disturbed = u32::MAX;
            record.disturbance.causes.insert(Cause::Gap, u32::MAX);
            record.worst =
                vec![
                    Worst { at_s: figure.into(), ns: figure.into(), cpu: u32::MAX, cause: None };
                    64
                ];
            record.against.iter_mut().for_each(|against| {
                against.ratio = figure.into();
                against.interval95 = [figure.into(); 2];
                against.blocks = u32::MAX;
            });
        }
        results.machine.noise.iter_mut().for_each(|cpu| {
            cpu.lost_share = figure.into();
            cpu.longest_ns = u64::MAX.into();
            cpu.watched_ns = u64::MAX.into();
            cpu.gaps = (0..1000).map(|class| (Count::from(class), u64::MAX.into())).collect();
        });
        results.machine.clock.step_ns = figure.into();
        results.machine.clock.drift_ppm = figure.into();
        results.machine.quota_cpus = Some(figure.into());
        results.plan.over_ns = u64::MAX;
        let text = all(&results);
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest < 2500, "{figure}: {longest}");
        assert!(page(&[results.clone()], &[]).len() < 3_000_000);
        // The same cells as pairs.
        for record in results.groups.iter_mut().filter_map(|group| group.records.as_mut()).flatten()
        {
            record.experiment = Experiment::Matrix;
        }
        assert!(all(&results).len() < 200_000);
        assert!(page(&[results], &[]).len() < 3_000_000);
    }
}

#[test]
fn nothing_at_all_is_no_reason_to_fail() {
    let mut results = fixture::everything();
    results.groups.iter_mut().for_each(|group| *group = GroupState::default());
    let text = all(&results);
    let mut bullets = text.lines().filter(|line| line.starts_with('•'));
    assert!(bullets.all(|line| line.starts_with("• Left out")), "{text}");
    results.machine.topology.clear();
    results.machine.allowed.clear();
    results.machine.noise.clear();
    results.machine.warnings.clear();
    results.machine.cpu = "".into();
    results.plan.groups.clear();
    results.groups.clear();
    all(&results);
    page(&[results], &[]);
}

#[test]
fn records_without_any_figure_are_drawn_as_such() {
    let mut results = fixture::everything();
    for record in results.groups.iter_mut().filter_map(|group| group.records.as_mut()).flatten() {
        record.one_way = None;
        record.rate_per_s = None;
        record.quantiles = Quantiles::default();
        record.max = None;
        record.over.share = None;
        record.cost = Cost::default();
        record.histogram = None;
        record.cell.cpus.clear();
    }
    assert!(all(&results).contains('–'));
    page(&[results], &[]);
}

#[test]
fn very_many_records_leave_the_page_small() {
    let mut results = fixture::everything();
    let template = results.groups[0].records.as_ref().unwrap()[0].clone();
    let many = (0..5000u64).map(|payload| {
        let mut record = template.clone();
        record.cell.payload_bytes = payload + 9;
        record.histogram = None;
        record
    });
    results.groups[0].records.as_mut().unwrap().extend(many);
    results.plan.refused = vec![Refused { what: "x".repeat(2000).into(), why: "y".into() }; 10_000];
    results.machine.warnings = vec![Warning::new("x", "y".repeat(9000)); 10_000];
    let page = page(&[results], &[]);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("more rows are in the file"));
}
