//! Stands in for `threadtoll` in checks of the harness: a perfect sampler, which looks at the
//! account that the program keeps of itself at random instants.
//!
//! `FAKE_BIAS=0.05` adds to the held shares, `FAKE_CAUSE=hog` names that cause for every lock: the
//! harness must find both wrong. It looks more often than a sampler can, and its intervals are of
//! 99.7%, so that a dozen short runs pass.

use serde_json::{Value, json};
use std::collections::HashMap;
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::account::now;
use threadtoll_profile_programs::options::given;
use threadtoll_profile_programs::statistics::Random;
use threadtoll_profile_programs::target::{Facts, TrueLock};
use threadtoll_profile_programs::truth::{Acquisition, Modes, Steps, read_folder, realised};

const RATE_PER_S: f64 = 10_000.0;
/// Half an interval, in standard errors.
const ERRORS: f64 = 3.0;

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip_while(|word| word != "-p");
    let pid: u32 = words.nth(1).ok_or("-p PID")?.parse()?;
    let seconds: f64 = given("seconds").ok_or("--seconds")?.trim_end_matches('s').parse()?;
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"))?;
    let mut command = command.split('\0').skip_while(|word| *word != "--truth");
    let folder = std::path::Path::new(command.nth(1).ok_or("the program keeps no account")?);

    let from = now();
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
    let to = now();
    let mut account: HashMap<u32, Vec<Acquisition>> = HashMap::new();
    for acquisition in read_folder(folder)? {
        account.entry(acquisition.lock).or_default().push(acquisition);
    }
    let mut facts = Facts::default();
    for line in std::fs::read_to_string(folder.join("facts"))?.lines() {
        facts.add(line)?;
    }
    let locks: Vec<Value> = facts
        .locks
        .iter()
        .map(|lock| {
            let used = account.get(&lock.id).map_or(&[][..], Vec::as_slice);
            look(&facts, used, lock, from, to)
        })
        .collect();
    let profile = json!({
        "schema": "threadtoll.profile/2", "seconds": seconds, "interval_ns": [from, to],
        "processes": [{"pid": pid, "time": {"on_cpu": 1.0}, "locks": locks}],
    });
    println!("{profile}");
    Ok(())
}

fn look(facts: &Facts, account: &[Acquisition], lock: &TrueLock, from: u64, to: u64) -> Value {
    let steps = Steps::new(account, lock.id);
    let mut random = Random::new(from);
    let (mut samples, mut held, mut waiting, mut squares) = (0usize, 0usize, 0.0, 0.0);
    let mut at = from as f64;
    loop {
        at += random.exponential(1e9 / RATE_PER_S);
        if at >= to as f64 {
            break;
        }
        let (holders, waiters) = steps.at(at as u64);
        samples += 1;
        held += usize::from(holders > 0);
        waiting += f64::from(waiters);
        squares += f64::from(waiters * waiters);
    }
    let count = samples as f64;
    let bias: f64 = std::env::var("FAKE_BIAS").map_or(0.0, |text| text.parse().unwrap_or(0.0));
    let queue = waiting / count;
    let half = |variance: f64| ERRORS * (variance / count).sqrt();
    let queue_half = half(squares / count - queue * queue);
    let held_share = held as f64 / count;
    let held_half = half(held_share * (1.0 - held_share));
    let truth = realised(account, lock.id, Modes::Any, from, to);
    let holders: Vec<Value> =
        truth.holders.iter().map(|(tid, share)| json!({"tid": tid, "share": share})).collect();
    let cause = facts.cause.as_ref().map(|truth| {
        let cause = std::env::var("FAKE_CAUSE").unwrap_or_else(|_| truth.cause.clone());
        json!([{"cause": cause, "share": 0.9, "syscall": truth.call}])
    });
    json!({
        "kind": lock.kind, "name": lock.name, "address": format!("{:#x}", lock.address),
        "held_share": held_share + bias,
        "held_share_interval95": [held_share - held_half + bias, held_share + held_half + bias],
        "queue_mean": queue, "queue_mean_interval95": [queue - queue_half, queue + queue_half],
        "threads": truth.users, "verdict": "comfortable", "holders": holders, "causes": cause,
    })
}
