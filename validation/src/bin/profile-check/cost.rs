//! The cost to a program of being profiled: rounds of a fixed amount of work, in windows with the
//! profiler, each between two windows without. Times are divided by those of a piece of computing
//! that is not profiled and runs at the same time, which leaves less of the machine's changes of
//! speed. Windows of which the host took a part are left out.
//!
//! A round counts at most 1.5 times the usual one, because the host interrupts some. Two more
//! bounds tell if these corrections hide a cost: what was clipped off, and the speed of the work
//! that is not profiled.

use crate::{Error, bound, chosen, runs, seconds, words};
use threadtoll_profile_programs::account::now;
use threadtoll_profile_programs::profile::profile;
use threadtoll_profile_programs::speed::Speed;
use threadtoll_profile_programs::statistics::{clipped_mean, median};
use threadtoll_profile_programs::target::Target;
use threadtoll_profile_programs::truth::{Acquisition, read_folder};

/// The most that being watched may multiply the time of a program with this many threads.
const LIMITS: [(usize, f64); 4] = [(2, 1.02), (16, 1.02), (100, 1.02), (2_000, 1.03)];

/// Numbers of windows after which the measurement ends if it is decided.
const LOOKS: [usize; 3] = [12, 24, 48];

/// Most that the corrections may surely hide.
const HIDDEN: f64 = 0.005;

/// Most that the host may take of three windows, as a share of one CPU.
const MOST_STOLEN: f64 = 0.01;

/// Time that the host has taken from this machine's CPUs since it started, in seconds of one CPU;
/// 0 if it is not reported. A tick is 10 ms on each architecture that is supported.
fn stolen_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}

/// What a window without or with the profiler tells.
struct Window {
    /// Wall and CPU time of a round, in pieces of work that is not profiled.
    round: [f64; 2],
    /// Wall time that was clipped off long rounds, as a part of what counts.
    clipped: f64,
    piece_ns: f64,
}

impl Window {
    /// `None` if no round lies wholly between the two instants.
    fn of(account: &[Acquisition], speed: &Speed, [from, to]: [u64; 2]) -> Option<Window> {
        let within = |round: &&Acquisition| {
            round.lock == 1 && round.acquired >= from && round.released <= to
        };
        let times = |of: fn(&Acquisition) -> u64| -> Vec<f64> {
            account.iter().filter(within).map(|round| of(round) as f64).collect()
        };
        let all = times(|round| round.released - round.acquired);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let (wall, cpu) = (clipped_mean(all)?, clipped_mean(times(|round| round.cpu))?);
        let piece_ns = speed.piece_ns([from, to])?;
        let round = [wall, cpu].map(|ns| ns / piece_ns);
        Some(Window { round, clipped: mean / wall - 1.0, piece_ns })
    }
}

pub(crate) fn check() -> Result<bool, Error> {
    let lines = ["next", "fixed"].into_iter().flat_map(|pieces| {
        LIMITS.map(|(threads, limit)| (format!("--threads {threads} --pieces {pieces}"), limit))
    });
    let lines: Vec<(String, f64)> = lines.filter(|(line, _)| chosen(line)).collect();
    if lines.is_empty() {
        return Err("no program is chosen".into());
    }
    let mut passed = true;
    for (line, limit) in lines {
        passed &= slow_down(&line, limit)?;
    }
    Ok(passed)
}

fn slow_down(line: &str, limit: f64) -> Result<bool, Error> {
    // Symbols are read when sampling begins, so a window is as long as a run of a user.
    let window = seconds();
    let target = Target::start("rounds-c", &words(line))?;
    let speed = Speed::measure();
    let (mut wall, mut cpu, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let (mut clipped, mut pieces) = (Vec::new(), Vec::new());
    let most = runs("60");
    println!("rounds-c {line}: windows of {window} s, at most {most} of them profiled");
    let bounds = |ratios: &[f64]| median(ratios).map_or([0.0, f64::INFINITY], |(_, ends)| ends);
    let mut left_out = 0;
    while wall.len() + left_out < most {
        let stolen = stolen_s();
        let mut windows = [[0; 2]; 3];
        for (place, kept) in windows.iter_mut().enumerate() {
            let from = now();
            if place == 1 {
                let profiled = profile(target.pid(), window, &[], &target.folder)?;
                if profiled.code != 0 {
                    return Err(
                        format!("exit code {}: {}", profiled.code, profiled.messages).into()
                    );
                }
                own.push(profiled.cpu_s / ((now() - from) as f64 / 1e9));
            } else {
                std::thread::sleep(std::time::Duration::from_secs_f64(window));
            }
            *kept = [from, now()];
        }
        if stolen_s() - stolen > MOST_STOLEN * 3.0 * window {
            left_out += 1;
            continue;
        }
        let account = read_folder(&target.folder)?;
        let windows = windows.map(|window| Window::of(&account, &speed, window));
        let (Some(before), Some(with), Some(after)) = windows.into() else {
            return Err("a window without a whole round, or without unprofiled work".into());
        };
        let ratio = |of: fn(&Window) -> f64| 2.0 * of(&with) / (of(&before) + of(&after));
        wall.push(ratio(|window| window.round[0]));
        cpu.push(ratio(|window| window.round[1]));
        pieces.push(ratio(|window| window.piece_ns));
        clipped.push(with.clipped - (before.clipped + after.clipped) / 2.0);
        let [low, high] = bounds(&wall);
        let [cpu_low, cpu_high] = bounds(&cpu);
        println!(
            "    window {}: wall {:.4} ({low:.4}..{high:.4}), \
             CPU {:.4} ({cpu_low:.4}..{cpu_high:.4})",
            wall.len(),
            wall[wall.len() - 1],
            cpu[cpu.len() - 1],
        );
        // Both are decided, for or against.
        let decided = |low: f64, high: f64| high <= limit || low > limit;
        if LOOKS.contains(&wall.len()) && decided(low, high) && decided(cpu_low, cpu_high) {
            break;
        }
    }
    target.finish()?;
    println!("    {left_out} more left out: the host took more than 1% of a CPU");
    let own = own.iter().sum::<f64>() / own.len() as f64;
    println!("    own CPU {:.2}% of a CPU, start and report included", own * 100.0);
    let mut passed = true;
    for (name, ratios) in [("wall", &wall), ("CPU", &cpu)] {
        let (middle, [low, high]) = median(ratios).ok_or("fewer than 6 windows bound nothing")?;
        let text = format!(
            "{line}: slow-down in {name} time {:.2}% ({:.2}%..{:.2}%), {} windows, at most {:.0}%",
            (middle - 1.0) * 100.0,
            (low - 1.0) * 100.0,
            (high - 1.0) * 100.0,
            ratios.len(),
            (limit - 1.0) * 100.0,
        );
        passed &= bound(&text, high <= limit);
    }
    for (name, hidden) in [
        ("clipped off rounds", clipped),
        ("work that is not profiled takes longer by", pieces.iter().map(|it| it - 1.0).collect()),
    ] {
        let (middle, [low, high]) = median(&hidden).ok_or("fewer than 6 windows bound nothing")?;
        let [middle, from, to] = [middle, low, high].map(|part| part * 100.0);
        passed &=
            bound(&format!("{line}: {name} {middle:.2}% ({from:.2}%..{to:.2}%)"), low <= HIDDEN);
    }
    Ok(passed)
}
