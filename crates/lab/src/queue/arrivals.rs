//! Arrivals: the times at which an open loop's messages are due.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::{Arrivals, Checksum, Count, Load, Scale, Text};

/// Maximum number of messages in a block. At [`MAX_RATE`], such a block lasts half a millisecond.
pub(super) const MAX_MESSAGES: usize = 50_000;
/// Maximum rate, in messages per second. At this rate, the time between two messages is about as
/// long as a clock read takes.
pub const MAX_RATE: u64 = 100_000_000;
const MAX_BYTES: u64 = 1 << 28;
/// Maximum time between the first and the last arrival in a file, in picoseconds: one day.
const MAX_PS: u128 = 86_400_000_000_000_000;
/// Approximate number of counted messages per warm-up message. A block begins with warm-up
/// messages, which bring the queue into a steady state and do not count.
const LEAD: usize = 10;
/// Minimum number of counted messages in a block.
pub(super) const LEAST: usize = 2;

/// Arrivals from a file.
#[derive(Debug)]
pub struct Trace {
    /// The file's name, as given.
    pub file: Text,
    /// The file's checksum.
    pub sha256: Checksum,
    gaps_ps: Vec<u64>,
    total_ps: u64,
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256 && self.file == other.file
    }
}

impl Trace {
    /// Reads a file with one time per line: `1.25ms` since the start, or `+250us` since the
    /// previous line. Numbers without a unit are seconds. Empty lines and lines that begin with `#`
    /// are skipped.
    ///
    /// # Errors
    ///
    /// Returns the reason if the file cannot be used.
    pub fn read(path: &Path) -> Result<Arc<Trace>, String> {
        let name = path.display();
        let failed = |error: io::Error| format!("{name}: {error}");
        // Opening a named pipe would wait for a writer, and a device may never end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(format!("{name} is not a regular file"));
        }
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(failed)?.take(MAX_BYTES + 1);
        file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("{name} is larger than {} MiB", MAX_BYTES >> 20));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| format!("{name} is not text"))?;
        let gaps_ps = gaps_ps(text).map_err(|why| format!("{name}{why}"))?;
        let total_ps = gaps_ps.iter().sum();
        if total_ps == 0 {
            return Err(match gaps_ps.len() {
                0 => format!("{name} has fewer than two arrivals"),
                _ => format!("all arrivals in {name} have the same time"),
            });
        }
        let file = Text::from(path.to_string_lossy().as_ref());
        let trace = Trace { file, sha256: Checksum::of_bytes(&bytes), gaps_ps, total_ps };
        Ok(Arc::new(trace))
    }

    /// Returns the arrivals in the load's file, which is read once per process. Returns an error if
    /// the file has changed since the load was planned.
    pub(crate) fn of(load: &Load) -> Result<Arc<Trace>, String> {
        static READ: Mutex<BTreeMap<Text, Arc<Trace>>> = Mutex::new(BTreeMap::new());
        let Some((file, sha256)) = load.arrivals_file.as_ref().zip(load.arrivals_sha256.as_ref())
        else {
            return Err("the plan does not name the file of its arrivals".into());
        };
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = read.get(file).filter(|trace| trace.sha256 == *sha256) {
            return Ok(Arc::clone(trace));
        }
        let trace = Trace::read(Path::new(file.as_str()))?;
        if trace.sha256 != *sha256 {
            return Err(format!("{file} has changed since the run was planned"));
        }
        read.insert(file.clone(), Arc::clone(&trace));
        Ok(trace)
    }

    /// Mean number of arrivals per second.
    pub fn rate(&self, scale: Scale) -> f64 {
        self.gaps_ps.len() as f64 / (self.total_ps as f64 / 1e12) / scale.value()
    }

    /// Longest time between two arrivals, in nanoseconds.
    pub fn longest_ns(&self, scale: Scale) -> f64 {
        self.gaps_ps.iter().max().map_or(0.0, |ps| *ps as f64 / 1e3) * scale.value()
    }

    /// Largest number of arrivals at the same time.
    pub fn most_at_once(&self) -> usize {
        let zeros = self.gaps_ps.split(|gap| *gap > 0).map(<[u64]>::len);
        1 + zeros.max().unwrap_or(0)
    }

    pub(super) fn load(&self, scale: Scale) -> Load {
        Load {
            arrivals: Some(Arrivals::File),
            arrivals_file: Some(self.file.clone()),
            arrivals_sha256: Some(self.sha256.clone()),
            scale: Some(scale),
            ..Load::NONE
        }
    }
}

/// Parses the times between the arrivals in a file. The error is the rest of a sentence that begins
/// with the file's name.
fn gaps_ps(text: &str) -> Result<Vec<u64>, String> {
    let mut gaps_ps = Vec::new();
    let mut last: Option<u128> = None;
    let lines = text.lines().map(str::trim).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let number = index + 1;
        let (is_gap, time) = match line.strip_prefix('+') {
            Some(gap) => (true, gap),
            None => (false, line),
        };
        let shown: String = line.chars().take(40).collect();
        let ps =
            time_ps(time).ok_or_else(|| format!(", line {number}: “{shown}” is not a time"))?;
        let at = if is_gap { last.unwrap_or(0) + ps } else { ps };
        if let Some(last) = last {
            let Some(gap) = at.checked_sub(last) else {
                return Err(format!(
                    ", line {number}: the time “{shown}” is before that of the previous line (write +{shown} for a time since that line)"
                ));
            };
            if gap > MAX_PS {
                return Err(format!(", line {number}: a gap of more than a day"));
            }
            gaps_ps.push(gap as u64);
        }
        last = Some(at);
    }
    if last.is_none() {
        return Err(" has no arrivals".into());
    }
    match gaps_ps.iter().map(|gap| u128::from(*gap)).sum::<u128>() {
        all if all > MAX_PS => Err(" covers more than a day".into()),
        _ => Ok(gaps_ps),
    }
}

/// Parses a decimal time, and rounds it down to picoseconds. Avoids floats, because a time in
/// seconds since 1970 with nanoseconds has more digits than an `f64` holds.
fn time_ps(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let digits = match unit.trim() {
        "ns" => 3,
        "us" | "µs" => 6,
        "ms" => 9,
        "s" | "" => 12,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || whole.len() > 20 || fraction.contains('.') {
        return None;
    }
    let digit = |place: usize| fraction.as_bytes().get(place).map_or(0, |byte| byte - b'0');
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((0..digits).fold(whole, |ps, place| ps * 10 + u128::from(digit(place))))
}

pub(super) enum Pattern {
    Uniform { gap_ns: f64 },
    Poisson { gap_ns: f64 },
    Trace { trace: Arc<Trace>, scale: f64 },
    Bursts { burst: usize, gap_ns: f64 },
}

/// Due times of a block's messages, relative to the start of the block.
#[derive(Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) due_ps: Vec<u64>,
    /// Number of warm-up messages at the beginning.
    pub(super) lead: usize,
}

impl Schedule {
    /// Returns the share of sender number `sender`, if the messages are dealt to `senders` senders
    /// round-robin.
    pub(super) fn dealt(&self, [sender, senders]: [usize; 2]) -> Self {
        let own = self.due_ps.iter().skip(sender).step_by(senders);
        let lead = (self.lead + senders - 1 - sender) / senders;
        Schedule { due_ps: own.copied().collect(), lead }
    }
}

impl Pattern {
    pub(super) fn of(load: &Load) -> Result<Self, String> {
        if let (Some(burst), Some(gap_ns)) = (load.burst, load.gap_ns) {
            return Ok(Pattern::Bursts { burst: burst.get() as usize, gap_ns: gap_ns.as_f64() });
        }
        if let Some(gap_ns) = load.gap_ns {
            return Ok(Pattern::Uniform { gap_ns: gap_ns.as_f64() });
        }
        let gap_ns = |rate: Option<Count>| 1e9 / rate.map_or(1.0, Count::as_f64).max(1.0);
        match load.arrivals {
            Some(Arrivals::Uniform) => Ok(Pattern::Uniform { gap_ns: gap_ns(load.rate_per_s) }),
            Some(Arrivals::Poisson) => Ok(Pattern::Poisson { gap_ns: gap_ns(load.rate_per_s) }),
            Some(Arrivals::File) => Ok(Pattern::Trace {
                trace: Trace::of(load)?,
                scale: load.scale.unwrap_or(Scale::ONE).value(),
            }),
            None => Err("the plan does not say when messages are due".into()),
        }
    }

    /// Draws the due times of a block's messages, `most` at most. The counted messages span about
    /// `length_ns`.
    pub(super) fn schedule(&self, length_ns: f64, most: usize, seed: u64) -> Schedule {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        if let Pattern::Bursts { burst, gap_ns } = *self {
            let bursts = ((length_ns / gap_ns) as usize).clamp(LEAST, (most / burst).max(LEAST));
            let due_ps = (0..=bursts)
                .flat_map(|nth| std::iter::repeat_n((nth as f64 * gap_ns * 1e3) as u64, burst));
            return Schedule { due_ps: due_ps.collect(), lead: burst };
        }
        let mut place = match self {
            Pattern::Trace { trace, .. } => rng.random_range(0..trace.gaps_ps.len()),
            _ => 0,
        };
        let mut next_ps = || match self {
            Pattern::Uniform { gap_ns } | Pattern::Bursts { gap_ns, .. } => gap_ns * 1e3,
            Pattern::Poisson { gap_ns } => -gap_ns * 1e3 * (1.0 - rng.random::<f64>()).ln(),
            Pattern::Trace { trace, scale } => {
                let gap = trace.gaps_ps[place] as f64 * scale;
                place = (place + 1) % trace.gaps_ps.len();
                gap
            }
        };
        let lead_ps = length_ns * 1e3 / LEAD as f64;
        let most_lead = most / (LEAD + 1);
        let mut due_ps = Vec::new();
        let mut at = 0.0;
        let mut lead = None;
        loop {
            due_ps.push(at as u64);
            at += next_ps();
            match lead {
                None if at >= lead_ps || due_ps.len() >= most_lead => {
                    lead = Some((due_ps.len(), at + length_ns * 1e3));
                }
                None => {}
                Some((first, end)) => {
                    let counted = &due_ps[first..];
                    let enough = counted.len() >= LEAST && counted.first() < counted.last();
                    if enough && (at > end || due_ps.len() >= most) {
                        return Schedule { due_ps, lead: first };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Result<Arc<Trace>, String> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("arrivals");
        std::fs::write(&path, text).unwrap();
        let place = format!("{}", path.display());
        Trace::read(&path).map_err(|why| why.replace(&place, "FILE"))
    }

    #[test]
    fn files_hold_times_and_gaps() {
        let times = trace("# a comment\n1.5ms\n\n2500us\n+250ns\n0.0030\n").unwrap();
        assert_eq!(times.gaps_ps, [1_000_000_000, 250_000, 499_750_000]);
        // Seconds since 1970 with nanoseconds, as in log files.
        let logged = trace("1700000000.123456789\n1700000000.123456790\n").unwrap();
        assert_eq!(logged.gaps_ps, [1000]);
        let twice = Scale::new(2.0).unwrap();
        assert_eq!(logged.rate(Scale::ONE).round(), 1e9);
        assert_eq!(logged.longest_ns(twice), 2.0);
        assert_eq!(trace("+1us\n+1us\n+0\n+0\n+2us\n").unwrap().most_at_once(), 3);
    }

    #[test]
    fn unusable_files_say_why() {
        for (text, why) in [
            ("", "FILE has no arrivals"),
            ("# nothing\n", "FILE has no arrivals"),
            ("1ms\n", "FILE has fewer than two arrivals"),
            ("1ms\n1ms\n", "all arrivals in FILE have the same time"),
            ("1ms\nsoon\n", "FILE, line 2: “soon” is not a time"),
            ("1ms\n-2ms\n", "is not a time"),
            ("5ms\n2ms\n", "line 2: the time “2ms” is before"),
            ("0\n+90000s\n", "more than a day"),
            ("1.2.3\n", "is not a time"),
            (".\n", "is not a time"),
        ] {
            let found = trace(text).unwrap_err();
            assert!(found.contains(why), "{text:?}: {found}");
        }
        assert!(Trace::read(Path::new("/nowhere/at/all")).is_err());
        let endless = Trace::read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless, "/dev/zero is not a regular file");
    }

    #[test]
    fn schedules_have_the_rate_that_was_asked_for() {
        for pattern in [Pattern::Uniform { gap_ns: 1000.0 }, Pattern::Poisson { gap_ns: 1000.0 }] {
            let mut gaps = 0;
            let mut time_ps = 0;
            for seed in 0..50 {
                let Schedule { due_ps, lead } = pattern.schedule(1e6, MAX_MESSAGES, seed);
                assert!(due_ps.is_sorted());
                gaps += due_ps.len() - lead - 1;
                time_ps += due_ps[due_ps.len() - 1] - due_ps[lead];
            }
            let gap_ns = time_ps as f64 / 1e3 / gaps as f64;
            assert!((gap_ns / 1000.0 - 1.0).abs() < 0.02, "{gap_ns}");
        }
    }

    #[test]
    fn schedules_are_limited_but_never_too_short() {
        let fast = Pattern::Uniform { gap_ns: 10.0 }.schedule(1e9, 1000, 1);
        assert_eq!((fast.due_ps.len(), fast.lead), (1000, 90));
        let rare = Pattern::Uniform { gap_ns: 1e9 }.schedule(1e6, 1000, 1);
        assert_eq!((rare.due_ps.len(), rare.lead), (3, 1));
        let burst = Pattern::Bursts { burst: 3, gap_ns: 10.0 }.schedule(20.0, 1000, 1);
        assert_eq!(burst.due_ps, [0, 0, 0, 10_000, 10_000, 10_000, 20_000, 20_000, 20_000]);
        assert_eq!(burst.lead, 3);
    }

    #[test]
    fn a_file_is_played_from_any_place_in_order() {
        let trace = trace("0\n+1us\n+2us\n+3us\n").unwrap();
        let pattern = Pattern::Trace { trace, scale: 2.0 };
        let mut begins = Vec::new();
        for seed in 0..20 {
            let Schedule { due_ps, .. } = pattern.schedule(30_000.0, 1000, seed);
            let gaps: Vec<u64> = due_ps.windows(2).map(|pair| pair[1] - pair[0]).collect();
            begins.push(gaps[0]);
            for pair in gaps.windows(2) {
                assert_eq!(
                    pair[1],
                    if pair[0] == 6_000_000 { 2_000_000 } else { pair[0] + 2_000_000 }
                );
            }
        }
        begins.sort_unstable();
        begins.dedup();
        assert_eq!(begins, [2_000_000, 4_000_000, 6_000_000]);
    }
}
