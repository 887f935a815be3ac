//! The cost to a program of being profiled: rounds of a fixed amount of work, with the profiler and
//! without, in pairs of windows one after the other.

use crate::{Error, bound, chosen, runs, seconds, words};
use threadtoll_profile_programs::account::now;
use threadtoll_profile_programs::options::number;
use threadtoll_profile_programs::profile::profile;
use threadtoll_profile_programs::statistics::{Random, median};
use threadtoll_profile_programs::target::Target;
use threadtoll_profile_programs::truth::{Acquisition, read_folder};

/// The most that being watched may multiply the time of a program with this many threads.
const LIMITS: [(usize, f64); 4] = [(2, 1.02), (16, 1.02), (100, 1.02), (2_000, 1.03)];

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
    let mut random = Random::new(number("seed", "1") as u64);
    let (mut wall, mut cpu, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let most = runs("60");
    println!("rounds-c {line}: windows of {window} s, at most {most} pairs");
    let bounds = |ratios: &[f64]| median(ratios).map_or([0.0, f64::INFINITY], |(_, ends)| ends);
    while wall.len() < most {
        let profiled_first = random.bits().is_multiple_of(2);
        let mut windows = [[0; 2]; 2];
        for turn in [profiled_first, !profiled_first] {
            let from = now();
            if turn {
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
            windows[usize::from(turn)] = [from, now()];
        }
        let account = read_folder(&target.folder)?;
        let without = rounds(&account, windows[0]).ok_or("a round takes longer than a window")?;
        let with = rounds(&account, windows[1]).ok_or("a round takes longer than a window")?;
        wall.push(with[0] / without[0]);
        cpu.push(with[1] / without[1]);
        let [low, high] = bounds(&wall);
        let [cpu_low, cpu_high] = bounds(&cpu);
        println!(
            "    pair {}: wall {:.4} ({low:.4}..{high:.4}), \
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
    let own = own.iter().sum::<f64>() / own.len() as f64;
    println!("    own CPU {:.2}% of a CPU, start and report included", own * 100.0);
    let mut passed = true;
    for (name, ratios) in [("wall", &wall), ("CPU", &cpu)] {
        let (middle, [low, high]) = median(ratios).ok_or("fewer than 6 pairs bound nothing")?;
        let text = format!(
            "{line}: slow-down in {name} time {:.2}% ({:.2}%..{:.2}%), {} pairs, at most {:.0}%",
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
