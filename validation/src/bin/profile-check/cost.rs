//! The cost to a program of being profiled: rounds of a fixed amount of work, in windows with the
//! profiler, each between two windows without. So a machine that steadily becomes slower or faster
//! does not matter. Windows of which the host took a part are left out.

use crate::{Error, bound, chosen, runs, seconds, words};
use threadtoll_profile_programs::account::now;
use threadtoll_profile_programs::profile::profile;
use threadtoll_profile_programs::statistics::median;
use threadtoll_profile_programs::target::Target;
use threadtoll_profile_programs::truth::{Acquisition, read_folder};

/// The most that being watched may multiply the time of a program with this many threads.
const LIMITS: [(usize, f64); 4] = [(2, 1.02), (16, 1.02), (100, 1.02), (2_000, 1.03)];

/// Most that the host may take of three windows, as a share of one CPU.
const MOST_STOLEN: f64 = 0.01;

/// Time that the host has taken from this machine's CPUs since it started, in seconds of one CPU;
/// 0 if it is not reported. A tick is 10 ms on each architecture that is supported.
fn stolen_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}

/// Mean wall and CPU time of the rounds that lie wholly between two instants.
fn rounds(account: &[Acquisition], [from, to]: [u64; 2]) -> Option<[f64; 2]> {
    let mut sums = [0.0; 3];
    for round in account {
        if round.lock == 1 && round.acquired >= from && round.released <= to {
            sums[0] += (round.released - round.acquired) as f64;
            sums[1] += round.cpu as f64;
            sums[2] += 1.0;
        }
    }
    (sums[2] > 0.0).then(|| [sums[0] / sums[2], sums[1] / sums[2]])
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
    let (mut wall, mut cpu, mut own) = (Vec::new(), Vec::new(), Vec::new());
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
        let means = windows.map(|window| rounds(&account, window));
        let (Some(before), Some(with), Some(after)) = means.into() else {
            return Err("a round takes longer than a window".into());
        };
        wall.push(2.0 * with[0] / (before[0] + after[0]));
        cpu.push(2.0 * with[1] / (before[1] + after[1]));
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
        if wall.len() >= 21 && decided(low, high) && decided(cpu_low, cpu_high) {
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
    Ok(passed)
}
