//! Times of a measured lock, for `--from`: a lock of a profile, or a cell of `contention`.

mod contention;
mod profile;

use std::path::Path;

use threadtoll_model::Workload;
use threadtoll_model::choose::{Answers, Options};
use threadtoll_record::file::{self, Contents};
use threadtoll_record::{MeasuredLock, Spread};

use super::distribution::Distribution;
use crate::console;
use crate::failure::Failure;
use crate::nearest::unknown;

/// Smallest share of time for which a measured lock may be held, at the lower end of an interval.
/// The end may be zero, which would promise that the lock never limits any number of threads.
const LEAST_SHARE: f64 = 1e-6;

/// Maximum number of locks that an error names.
const MAX_NAMED: usize = 10;

/// What a prediction takes from a file.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) times: Times,
    /// Times with the least and with the largest hold share that the intervals allow; `None` if the
    /// file has no intervals.
    pub(super) ends: Option<[Times; 2]>,
    /// True if the times are durations, and false if only their ratio is known.
    pub(super) durations: bool,
    /// Distribution of hold and think times, if the file says it.
    spread: Option<Spread>,
    pub(super) stripes: u32,
    /// Number of CPUs, if the threads compute.
    pub(super) cores: Option<u32>,
    pub(super) measured: MeasuredLock,
}

impl Taken {
    /// Mean hold time in nanoseconds, and its 95% interval. In a profile, it follows from the held
    /// share if this many threads acquired the lock per second.
    pub(super) fn hold_ns(&self, acquisitions_per_s: f64) -> (f64, Option<[f64; 2]>) {
        let MeasuredLock { held_share, held_share_interval95, hold_ns_interval95, .. } =
            self.measured;
        // The utilisation law: held share = acquisitions per second × mean hold time.
        let of_share = |share: f64| share.max(LEAST_SHARE) / acquisitions_per_s * 1e9;
        match held_share {
            Some(share) if !self.durations => {
                (of_share(share), held_share_interval95.map(|ends| ends.map(of_share)))
            }
            _ => (self.times.hold_ns, hold_ns_interval95),
        }
    }

    /// Distributions of hold and think times. If the file does not say them, those of which the
    /// predicted queue is closest to the measured one.
    pub(super) fn shapes(&self) -> Result<[Distribution; 2], Failure> {
        if let Some(spread) = self.spread {
            let shape = Distribution::from(spread);
            return Ok([shape.clone(), shape]);
        }
        let mut nearest = [Distribution::Exponential, Distribution::Exponential];
        let measured = self.measured.queue_mean.filter(|_| !self.measured.queue_is_lower_bound);
        let Some(queue) = measured else { return Ok(nearest) };
        let mut closest = self.queue(&nearest)?;
        for shapes in [
            [Distribution::Fixed, Distribution::Exponential],
            [Distribution::Fixed, Distribution::Fixed],
        ] {
            let predicted = self.queue(&shapes)?;
            if (predicted - queue).abs() < (closest - queue).abs() {
                (nearest, closest) = (shapes, predicted);
            }
        }
        Ok(nearest)
    }

    /// Predicted queue of the threads that were measured.
    fn queue(&self, [hold, think]: &[Distribution; 2]) -> Result<f64, Failure> {
        let workload = Workload::new(
            hold.shape("--hold", Some(self.times.hold_ns))?,
            think.shape("--think", Some(self.times.think_ns))?,
        );
        let mut answers = Answers::new(&workload, Options::default());
        Ok(answers.answer(self.measured.threads)?.performance.queue_mean)
    }
}

/// Mean hold time and mean think time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) hold_ns: f64,
    pub(super) think_ns: f64,
}

impl Times {
    /// Times with this ratio. Their sum, a second, is arbitrary.
    fn of_share(hold_share: f64) -> Self {
        Self { hold_ns: hold_share * 1e9, think_ns: (1.0 - hold_share) * 1e9 }
    }
}

/// The file of a lock.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    file: &'a str,
    simulated: bool,
}

/// A lock of a file.
#[derive(Debug)]
struct Candidate {
    /// Name that chooses the lock, unless several locks have it.
    name: String,
    /// Description that distinguishes locks of one name.
    label: String,
    /// The lock's times, or the reason why nothing can be predicted from the lock.
    taken: Result<Taken, &'static str>,
}

/// Reads the only lock of FILE, or the lock that FILE#NAME or FILE#N names.
pub(super) fn read(text: &str) -> Result<Taken, Failure> {
    let (path, chosen) = split(text);
    let (candidates, notes) = match file::read_any(path)? {
        Contents::Profile(profiled) => {
            (profile::locks(&profiled.profile, &shown(path)), profiled.notes)
        }
        Contents::Results(results) => (contention::cells(&results, &shown(path)), results.notes),
    };
    let taken = choose(&path.display().to_string(), &candidates, chosen)?;
    notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    Ok(taken)
}

/// Splits FILE#NAME. The name of a file may contain `#`, too.
fn split(text: &str) -> (&Path, Option<&str>) {
    let whole = Path::new(text);
    if whole.exists() {
        return (whole, None);
    }
    text.match_indices('#')
        .map(|(at, _)| (Path::new(&text[..at]), Some(&text[at + 1..])))
        .find(|(path, _)| path.exists())
        .unwrap_or((whole, None))
}

/// Name of a file without its folder.
fn shown(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn choose(file: &str, all: &[Candidate], chosen: Option<&str>) -> Result<Taken, Failure> {
    let usable: Vec<(&Candidate, &Taken)> = all
        .iter()
        .filter_map(|candidate| Some((candidate, candidate.taken.as_ref().ok()?)))
        .collect();
    let Some(chosen) = chosen else {
        return match usable[..] {
            [] => Err(nothing(file, all)),
            [(_, taken)] => Ok(taken.clone()),
            _ => Err(Failure::usage(format!("{file} holds {} locks", usable.len())).hint(choices(
                file,
                &usable,
                |_| true,
            ))),
        };
    };
    let named: Vec<&Candidate> = all.iter().filter(|it| it.name == chosen).collect();
    let mut of_name = usable.iter().filter(|(candidate, _)| candidate.name == chosen);
    match (named.first(), of_name.next(), of_name.next()) {
        (_, Some((_, taken)), None) => Ok((*taken).clone()),
        (_, Some(_), Some(_)) => {
            Err(Failure::usage(format!("{file} holds several locks with the name {chosen}"))
                .hint(choices(file, &usable, |candidate| candidate.name == chosen)))
        }
        (Some(named), None, _) => Err(unusable(file, named)),
        (None, ..) if usable.is_empty() => Err(nothing(file, all)),
        (None, ..) => numbered(file, &usable, chosen).cloned(),
    }
}

/// The lock with this number, from 1, in the list of choices.
fn numbered<'a>(
    file: &str,
    usable: &[(&'a Candidate, &'a Taken)],
    chosen: &str,
) -> Result<&'a Taken, Failure> {
    let Ok(number) = chosen.parse::<usize>() else {
        let names = usable.iter().map(|(candidate, _)| candidate.name.as_str());
        let choices = choices(file, usable, |_| true);
        return Err(unknown(format!("{file} has no lock {chosen}"), chosen, names, choices));
    };
    let found = number.checked_sub(1).and_then(|index| usable.get(index));
    found.map(|(_, taken)| *taken).ok_or_else(|| {
        Failure::usage(format!("{file} has no lock #{number}; it has {}", usable.len()))
            .hint(choices(file, usable, |_| true))
    })
}

fn choices(
    file: &str,
    usable: &[(&Candidate, &Taken)],
    shown: impl Fn(&Candidate) -> bool,
) -> String {
    let mut names: Vec<String> = usable
        .iter()
        .enumerate()
        .filter(|(_, (candidate, _))| shown(candidate))
        .map(|(index, (candidate, _))| format!("#{} {}", index + 1, candidate.label))
        .collect();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    names.extend((more > 0).then(|| format!("and {more} more")));
    format!("choose one with {file}#N or {file}#NAME: {}", names.join("; "))
}

fn nothing(file: &str, all: &[Candidate]) -> Failure {
    match all {
        [] => Failure::usage(format!("{file} holds no locks"))
            .hint("give a file of `threadtoll profile` or `threadtoll contention`"),
        [only] => unusable(file, only),
        [first, ..] => Failure::usage(format!("{file} holds no lock from which to predict"))
            .hint(format!("{}: {}", first.label, reason(first))),
    }
}

fn unusable(file: &str, candidate: &Candidate) -> Failure {
    Failure::usage(format!(
        "nothing can be predicted from {} in {file}: {}",
        candidate.label,
        reason(candidate)
    ))
    .hint("choose another lock, or give hold and think times with --hold and --think")
}

fn reason(candidate: &Candidate) -> &'static str {
    candidate.taken.as_ref().err().copied().unwrap_or("it has no times")
}
