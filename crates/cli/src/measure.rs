//! What all measuring commands do: look at the machine, plan or resume, measure, and show.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use threadtoll_lab::backend::Backend;
use threadtoll_lab::plan::Planned;
pub(crate) use threadtoll_lab::plan::Site;
use threadtoll_lab::plan::{estimate_ns, fit, unsound};
use threadtoll_lab::real::{RealBackend, lacking};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{Outcome, run as run_plan};
use threadtoll_machine::clock::{self, Clock};
use threadtoll_machine::inspect::InspectOptions;
use threadtoll_machine::lock::try_machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::file::{self, Appender, Results};
use threadtoll_record::{
    Experiment, Line, Machine, Plan, PlannedCell, Record, Warning, run_id, timestamp,
};
use threadtoll_report::text::{self, Style};
use threadtoll_report::{clean, cpus};

use crate::arguments::{Look, Measure};
use crate::console;
use crate::failure::Failure;
use crate::page;
use crate::progress::Progress;
use crate::queues::queues;
use crate::request::{Common, Options};

/// How long the machine is watched before it is measured.
const NOISE: Duration = Duration::from_millis(300);
const SYSFS: &str = "/sys";

/// A measuring command.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'static str,
    pub(crate) measure: &'a Measure,
    pub(crate) common: &'a Common,
    /// The options that stood on the command line.
    pub(crate) given: Options,
    /// The options that shape the plan.
    pub(crate) options: Options,
    /// Names the file where none is given; without it, none is written.
    pub(crate) default_out: Option<&'a dyn Fn(&Machine) -> PathBuf>,
    /// Where the page goes.
    pub(crate) page: Option<PathBuf>,
    /// Whether a page is made beside the file.
    pub(crate) makes_page: bool,
    /// Makes the groups, and says what is left out.
    pub(crate) plan: &'a dyn Fn(&Site<'_>) -> Planned,
}

impl<'a> Asked<'a> {
    /// A command all of whose options shape its plan, and that writes no file and no page of its
    /// own accord.
    pub(crate) fn new(
        name: &'static str,
        measure: &'a Measure,
        common: &'a Common,
        given: Options,
        plan: &'a dyn Fn(&Site<'_>) -> Planned,
    ) -> Self {
        let options = given.clone();
        Asked {
            name,
            measure,
            common,
            given,
            options,
            default_out: None,
            page: None,
            makes_page: false,
            plan,
        }
    }
}

/// Looks at the machine.
pub(crate) fn inspect(look: &Look, noise: Duration) -> Result<(Machine, Clock), Failure> {
    let now = clock::unix_ns();
    threadtoll_machine::inspect::inspect(InspectOptions {
        sysfs_root: look.sysfs.clone().unwrap_or_else(|| PathBuf::from(SYSFS)),
        noise,
        run: run_id(now, std::process::id()),
        at: timestamp(now),
        tool: format!("threadtoll {} ({})", env!("CARGO_PKG_VERSION"), env!("THREADTOLL_BUILD")),
    })
    .map_err(|refused| Failure::refused(refused.to_string()))
}

/// Runs a measuring command from its request to its exit code.
pub(crate) fn run(asked: Asked<'_>) -> Result<ExitCode, Failure> {
    if let Some(page) = &asked.page {
        page::check(page)?;
    }
    if let Some(out) = &asked.measure.out {
        // Also checked when it is made, but nobody should wait for the clock gate to hear of it.
        Appender::check(out)?;
    }
    let resumed = match &asked.measure.resume {
        Some(path) => Some((path.clone(), read_to_resume(path, &asked)?)),
        None => None,
    };
    let simulated = match &resumed {
        Some((_, results)) => results.plan.options.get("simulated_machine").and_then(Value::as_u64),
        None => asked.common.simulated,
    };
    let measuring = Measuring::prepare(&asked, simulated)?;
    let (mut results, mut appender, page) = match resumed {
        Some((path, mut results)) => {
            if let Some(why) = measuring.machine.differs_from(&results.machine) {
                return Err(Failure::usage(format!(
                    "{} cannot be resumed here: {why}",
                    path.display()
                ))
                .hint("resume it on the machine that began it"));
            }
            check_cpus_of(&results.plan, &measuring.machine)?;
            if let Some(why) = unsound(&results.plan, &measuring.topology, queues()) {
                return Err(Failure::usage(format!("{} cannot be resumed: {why}", path.display()))
                    .hint("only files that threadtoll has written, unchanged, can be completed"));
            }
            if asked.measure.plan {
                print_plan(&results);
                return Ok(ExitCode::SUCCESS);
            }
            let page = page_path(&asked, Some(&path))?;
            let appender = Appender::resume(&path, results.length, results.read_length)?;
            note(&asked, &std::mem::take(&mut results.notes));
            (results, Some(appender), page)
        }
        None => {
            let plan = measuring.plan(&asked)?;
            if asked.measure.plan {
                print_plan(&Results::empty(measuring.machine, plan));
                return Ok(ExitCode::SUCCESS);
            }
            if measuring.machine.synthetic {
                return Err(Failure::refused(
                    "a synthetic topology can be planned for, but not measured",
                )
                .hint("add --plan, or leave --sysfs out"));
            }
            let out = asked
                .measure
                .out
                .clone()
                .or_else(|| asked.default_out.map(|name| name(&measuring.machine)));
            let page = page_path(&asked, out.as_deref())?;
            let appender =
                out.map(|out| Appender::create(&out, &measuring.machine, &plan)).transpose()?;
            (Results::empty(measuring.machine.clone(), plan), appender, page)
        }
    };
    measuring.measure(&asked, &mut results, &mut appender, page.as_deref())
}

/// Where the page goes, if one is made; that it can be written there is found out before anything
/// is measured.
fn page_path(asked: &Asked<'_>, results: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    if !asked.makes_page {
        return Ok(None);
    }
    let Some(page) = asked.page.clone().or_else(|| Some(results?.with_extension("html"))) else {
        return Ok(None);
    };
    if results == Some(page.as_path()) {
        return Err(Failure::usage(format!(
            "{} cannot hold the results and their page",
            page.display()
        ))
        .hint("name another file for the page with --html, or for the results"));
    }
    page::prepare(&page)?;
    Ok(Some(page))
}

/// The machine and what measures on it.
struct Measuring {
    machine: Machine,
    topology: Topology,
    rig: Box<dyn Backend>,
    /// Held while measuring, so that a second threadtoll can know.
    _alone: Option<threadtoll_machine::lock::MachineLock>,
}

impl Measuring {
    fn prepare(asked: &Asked<'_>, simulated: Option<u64>) -> Result<Self, Failure> {
        if let Some(seed) = simulated {
            let topology = SimulatedBackend::topology();
            check_cpus(asked.common, &topology, &all(&topology))?;
            let rig = SimulatedBackend::new(seed).with_queues(queues().clone());
            let machine = rig.machine();
            return Ok(Measuring { machine, topology, rig: Box::new(rig), _alone: None });
        }
        let root = asked.measure.look.sysfs.clone().unwrap_or_else(|| PathBuf::from(SYSFS));
        let topology = Topology::read(&root);
        let allowed = if topology.synthetic { all(&topology) } else { allowed_cpus() };
        check_cpus(asked.common, &topology, &allowed)?;
        let alone = try_machine_lock();
        let noise = if asked.measure.plan { Duration::ZERO } else { NOISE };
        let (mut machine, clock) = inspect(&asked.measure.look, noise)?;
        if let Ok(None) = alone {
            machine.warnings.push(Warning::new(
                "another-measurement",
                "Another threadtoll is measuring on this machine: both disturb each other. Run one at a time.",
            ));
        }
        let rig =
            Box::new(RealBackend::new(clock, machine.clock.clone()).with_queues(queues().clone()));
        Ok(Measuring { machine, topology, rig, _alone: alone.ok().flatten() })
    }

    fn plan(&self, asked: &Asked<'_>) -> Result<Plan, Failure> {
        let site = match &asked.common.cpus {
            Some(cpus) => Site::named(&self.topology, cpus),
            None => Site::whole(&self.topology, &self.machine.allowed),
        };
        let measurable = !self.machine.simulated && !self.machine.synthetic;
        let site = if measurable { site.without(lacking()) } else { site };
        let (mut groups, refused) = (asked.plan)(&site);
        // A survey has promised how long it takes, and contention needs blocks of many cycles.
        if !matches!(asked.name, "survey" | "contention") {
            fit(&mut groups, &self.machine.noise);
        }
        if !asked.measure.quiet {
            for left_out in &refused {
                console::err(&format!("note: {} is left out: {}.", left_out.what, left_out.why));
            }
        }
        if groups.is_empty() {
            let why =
                refused.first().map_or("nothing can be measured", |refused| refused.why.as_str());
            return Err(Failure::refused(format!("nothing is left to measure: {why}"))
                .hint(match asked.name {
                    "contention" => "other locks or fewer threads may do: `threadtoll list locks`, --threads",
                    "queue" => "other queues, ways of waiting or placements may do: `threadtoll list peers`, --wait, --placement",
                    _ => "other mechanisms or placements may do: `threadtoll list mechanisms`, --placement",
                }));
        }
        let command = std::env::args_os()
            .skip(1)
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        Ok(Plan {
            run: self.machine.run.clone(),
            command,
            seed: asked.common.seed.unwrap_or(Common::SEED),
            over_ns: asked.common.over_ns.unwrap_or(Common::OVER_NS),
            options: asked.options.clone(),
            folded: None,
            refused,
            groups,
        })
    }

    fn measure(
        mut self,
        asked: &Asked<'_>,
        results: &mut Results,
        appender: &mut Option<Appender>,
        page: Option<&Path>,
    ) -> Result<ExitCode, Failure> {
        if !asked.measure.quiet {
            self.announce(results);
        }
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second signal ends the program at once, should a block hang.
            let registered =
                signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
                    .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
            registered
                .map_err(|error| Failure::run(format!("cannot listen for signals: {error}")))?;
        }
        let json = asked.measure.json;
        let mut progress = Progress::new(
            asked.measure.quiet,
            Box::new(move |record| {
                if json {
                    print_record(record);
                }
            }),
        );
        let outcome = run_plan(&mut *self.rig, results, appender, &mut progress, &stop);
        progress.finish();
        let outcome = outcome.map_err(|error| kept(error.into(), appender.as_ref()))?;
        let records = results.records();
        if !records.is_empty() {
            print_tables(results, &records, json);
            if !asked.measure.quiet {
                print_verdict(results, &records, json);
            }
        }
        self.close(asked, results, appender.as_ref(), page, outcome)
    }

    /// Says what is about to happen.
    fn announce(&self, results: &Results) {
        let left: Vec<&[PlannedCell]> = left(results).map(|(_, group)| group).collect();
        let cells: usize = left.iter().map(|group| group.len()).sum();
        console::err(&format!(
            "{} · {} CPUs · grade {} · {cells} cells in {} groups · {}",
            clean(&self.machine.cpu),
            self.machine.cpus,
            self.machine.grade,
            left.len(),
            about(estimate_ns(left.iter().copied())),
        ));
        for warning in &self.machine.warnings {
            console::err(&format!("warning: {}", warning.text));
        }
    }

    /// Writes the page and says where everything is.
    fn close(
        &self,
        asked: &Asked<'_>,
        results: &Results,
        appender: Option<&Appender>,
        page: Option<&Path>,
        outcome: Outcome,
    ) -> Result<ExitCode, Failure> {
        if let Some(page) = page {
            page::write(page, std::slice::from_ref(results))?;
        }
        let interrupted = outcome == Outcome::Interrupted;
        if !asked.measure.quiet || interrupted {
            let mut lines = Vec::new();
            if let Some(appender) = appender {
                lines.push(format!("results  {}", appender.path().display()));
            }
            if let Some(page) = page {
                lines.push(format!("page     {}", page.display()));
            }
            match (interrupted, appender) {
                (true, Some(appender)) => lines.push(format!(
                    "next     threadtoll {} --resume {}   (completes the interrupted run)",
                    asked.name,
                    appender.path().display()
                )),
                (true, None) => lines.push(
                    "interrupted; no file was asked for, so only the tables above are left".into(),
                ),
                (false, _) if asked.name == "survey" => {
                    lines.push("next     threadtoll latency futex --keep-awake   (how much of a wake-up is leaving idle?)".into());
                }
                (false, _) => {}
            }
            if !lines.is_empty() {
                console::err("");
                console::err(&lines.join("\n"));
            }
        }
        Ok(if interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
    }
}

/// Adds to a failure what has become of the figures so far.
fn kept(failure: Failure, appender: Option<&Appender>) -> Failure {
    match appender {
        Some(appender) => failure.or_hint(|| {
            format!(
                "what was measured until then is kept in {}, which --resume completes",
                appender.path().display()
            )
        }),
        None => failure,
    }
}

fn note(asked: &Asked<'_>, notes: &[String]) {
    if !asked.measure.quiet {
        notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    }
}

/// Reads the file that is to be completed and refuses what contradicts it.
fn read_to_resume(path: &Path, asked: &Asked<'_>) -> Result<Results, Failure> {
    let results = file::read(path)?;
    if let Some((why, hint)) = results.not_resumable() {
        return Err(
            Failure::usage(format!("{} cannot be resumed: {why}", path.display())).hint(hint)
        );
    }
    let made_by = results.plan.command.first().map_or("", String::as_str);
    if made_by != asked.name {
        return Err(Failure::usage(format!(
            "{} was begun by `threadtoll {made_by}`, not by `{}`",
            path.display(),
            asked.name
        ))
        .hint("resume it with the command that began it"));
    }
    for (name, value) in &asked.given {
        // What the plan holds anyway is no contradiction, whether it was given or is the default.
        let default = match name.as_str() {
            "seed" => Some(results.plan.seed.into()),
            "over_ns" => Some(results.plan.over_ns.into()),
            _ => None,
        };
        let theirs = results.plan.options.get(name).or(default.as_ref());
        if theirs != Some(value) {
            let theirs = theirs.map_or_else(
                || "without it".to_string(),
                |value| format!("with {}", shown(name, value)),
            );
            let path = path.display();
            return Err(Failure::usage(format!(
                "{} contradicts {path}, which was begun {theirs}",
                option(name, value)
            ))
            .hint("leave the option out: a resumed run takes all options from its file"));
        }
    }
    Ok(results)
}

/// An option as it is typed, from its name and value in a plan.
fn option(name: &str, value: &Value) -> String {
    let typed = name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', "-");
    match name {
        "mechanisms" | "queues" | "locks" | "scenario" => shown(name, value),
        "depth" => format!("--{}", shown(name, value)),
        "keep_awake" => format!("--{typed}"),
        _ => format!("--{typed} {}", shown(name, value)),
    }
}

fn shown(name: &str, value: &Value) -> String {
    let unit = if name.ends_with("_ns") { "ns" } else { "" };
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            values.iter().map(|value| shown(name, value)).collect::<Vec<_>>().join(",")
        }
        other => format!("{other}{unit}"),
    }
}

fn all(topology: &Topology) -> Vec<u32> {
    topology.places.iter().map(|place| place.cpu).collect()
}

/// Refuses CPUs that were named and are not to be had: before the machine is watched, which takes a
/// while.
fn check_cpus(common: &Common, topology: &Topology, allowed: &[u32]) -> Result<(), Failure> {
    let Some(cpu) = common.cpus.iter().flatten().find(|cpu| !allowed.contains(cpu)) else {
        return Ok(());
    };
    let why = match topology.place(*cpu) {
        Some(_) => "this process may not use it",
        None => "this machine has no such CPU online",
    };
    Err(Failure::usage(format!("--cpus: CPU {cpu}: {why}"))
        .hint(format!("can be used: {}", cpus(allowed))))
}

fn check_cpus_of(plan: &Plan, machine: &Machine) -> Result<(), Failure> {
    let missing = plan
        .groups
        .iter()
        .flatten()
        .flat_map(|planned| &planned.cell.cpus)
        .find(|cpu| !machine.allowed.contains(cpu));
    match missing {
        Some(cpu) => Err(Failure::refused(format!(
            "the run used CPU {cpu}, which this process may not use now"
        ))
        .hint(format!("can be used: {}", cpus(&machine.allowed)))),
        None => Ok(()),
    }
}

/// `about 50 s`, `about 12 min`.
fn about(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds {
        0..=119 => format!("about {seconds} s"),
        120..=7199 => format!("about {} min", seconds.div_ceil(60)),
        _ => format!("about {} h", seconds.div_ceil(3600)),
    }
}

/// The groups that are not complete, with their numbers.
fn left(results: &Results) -> impl Iterator<Item = (usize, &[PlannedCell])> {
    let states = results.plan.groups.iter().zip(&results.groups).enumerate();
    states
        .filter(|(_, (_, state))| state.records.is_none())
        .map(|(index, (group, _))| (index, group.as_slice()))
}

/// Prints what is still to be measured.
fn print_plan(results: &Results) {
    let mut text = String::new();
    for (index, group) in left(results) {
        let rounds = group.first().map_or(0, |planned| planned.budget.rounds);
        text.push_str(&format!("group {index}: {rounds} rounds\n"));
        for planned in group {
            let cell = &planned.cell;
            text.push_str(&format!(
                "  {:10} {:40} {:9} {:12} {}\n",
                planned.experiment,
                cell.label(),
                cell.placement,
                cell.relation,
                cpus(&cell.cpus)
            ));
        }
    }
    let cells: usize = left(results).map(|(_, group)| group.len()).sum();
    let ns = estimate_ns(left(results).map(|(_, group)| group));
    text.push_str(&format!("{cells} cells in {} groups, {}", left(results).count(), about(ns)));
    console::out(&text);
}

fn print_record(record: &Record) {
    match serde_json::to_string(&Line::Record(Box::new(record.clone()))) {
        Ok(text) => console::out(&text),
        Err(error) => unreachable!("a record is made of maps with text keys: {error}"),
    }
}

fn print(text: &str, to_stderr: bool) {
    if to_stderr { console::err(text) } else { console::out(text) }
}

/// Prints the ladder, the matrix and the queues, as far as there are records for them.
pub(crate) fn print_tables(results: &Results, records: &[Record], to_stderr: bool) {
    let style = Style { color: true, width: console::width(to_stderr) };
    if records.iter().any(|record| record.experiment == Experiment::Latency) {
        print(&text::ladder(results, records, &style), to_stderr);
    }
    if records.iter().any(|record| record.experiment == Experiment::Matrix) {
        print("", to_stderr);
        print(&text::matrix(results, records, &style), to_stderr);
    }
    if records.iter().any(|record| matches!(record.experiment, Experiment::Queue(_))) {
        print(&text::queues(results, records, &style), to_stderr);
    }
    if records.iter().any(|record| matches!(record.experiment, Experiment::Contention(_))) {
        print(&text::contention(results, records, &style), to_stderr);
    }
}

/// Prints the sentences that the figures allow.
pub(crate) fn print_verdict(results: &Results, records: &[Record], to_stderr: bool) {
    let sentences = text::verdict(results, records);
    if sentences.is_empty() {
        return;
    }
    print("", to_stderr);
    for sentence in sentences {
        print(&format!("• {sentence}"), to_stderr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_are_said_in_a_unit_that_fits() {
        assert_eq!(about(50_000_000_001), "about 51 s");
        assert_eq!(about(600_000_000_000), "about 10 min");
        assert_eq!(about(36_000_000_000_000), "about 10 h");
    }
}
