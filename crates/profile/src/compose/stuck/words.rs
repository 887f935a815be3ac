//! Describes a standstill in sentences.

use threadtoll_record::profile::StuckKind;

const MOST: usize = 4;

#[derive(Debug)]
pub(super) struct Said {
    pub(super) kind: StuckKind,
    pub(super) for_ns: u64,
    /// Threads of a cycle, or a holder and its waiters.
    pub(super) members: Vec<Member>,
    pub(super) waiting: usize,
    /// Number of further threads that wait behind the members.
    pub(super) behind: usize,
    pub(super) alive: usize,
    pub(super) locks: Vec<String>,
    /// Description of the holder, if it is not a thread of the program.
    pub(super) owner: String,
    pub(super) holder_first: bool,
    /// True if the locks were never seen in any other state.
    pub(super) always: bool,
    pub(super) inferred: bool,
    pub(super) ends_in_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) who: String,
    pub(super) holds: Option<String>,
    pub(super) waits: String,
}

impl Member {
    fn text(&self) -> String {
        let Member { who, holds, waits } = self;
        match holds {
            Some(holds) => format!("{who} holds {holds} and {waits}"),
            None => format!("{who} {waits}"),
        }
    }
}

pub(super) fn stopped(now: bool, stopped_ns: u64, seconds: f64, by: &str) -> String {
    let all = stopped_ns as f64 / 1e9 >= 0.9 * seconds - 0.3;
    match (now, all) {
        (true, true) => format!("Stopped {by}: none of its threads runs."),
        (true, false) => format!(
            "Stopped for at least the last {} {by}: figures of its locks are withheld.",
            time(stopped_ns)
        ),
        (false, _) => format!(
            "Stopped for {} of {seconds:.1} s {by}: figures of its locks are withheld.",
            time(stopped_ns)
        ),
    }
}

pub(super) fn text(said: &Said) -> String {
    let lasted = time(said.for_ns);
    match said.kind {
        StuckKind::Stopped => String::new(),
        StuckKind::Deadlock => {
            let inferred = match said.inferred {
                true => " Some locks do not name their holders; these holders were inferred.",
                false => "",
            };
            format!("Deadlock for at least {lasted}: {}.{}{inferred}", circle(said), others(said))
        }
        StuckKind::SelfDeadlock => {
            let who = said.members.first().map(|one| one.who.as_str()).unwrap_or_default();
            let lock = said.locks.first().map(String::as_str).unwrap_or_default();
            format!(
                "Deadlock for at least {lasted}: {who} waits for {lock}, which it holds itself.{}",
                others(said)
            )
        }
        StuckKind::StandStill => format!(
            "Stuck for at least {lasted}: {}; nothing was seen that could end this.",
            circle(said)
        ),
        StuckKind::LostWakeUp => format!(
            "Lost wake-up: {} is free, yet {} slept on it for at least {lasted}.{}",
            list(&said.locks),
            have(said),
            others(said)
        ),
        StuckKind::OwnerEnded => format!(
            "Stuck: {} is held by {}. Nobody can release it, and {} waited for it for at least \
             {lasted}.{}",
            first_lock(said),
            said.owner,
            have(said),
            others(said)
        ),
        StuckKind::OwnerElsewhere => format!(
            "Stuck: {} is held by {}; {} waited for it for at least {lasted}.{}",
            first_lock(said),
            said.owner,
            have(said),
            others(said)
        ),
        StuckKind::Circle => {
            let most = said
                .ends_in_ns
                .map_or_else(String::new, |ns| format!(", in at most {}", time_up(ns)));
            format!("Threads wait in a circle until a wait times out{most}: {}.", circle(said))
        }
        StuckKind::NeverReleased => not_released(said),
    }
}

fn not_released(said: &Said) -> String {
    let several = said.locks.len() > 1;
    let (is, was, locks) = match several {
        true => ("are", "were", list(&said.locks)),
        false => ("is", "was", list(&said.locks)),
    };
    let lasted = match said.always {
        true => format!("in {}", time(said.for_ns)),
        false => format!("for the last {}", time(said.for_ns)),
    };
    let waiters = said.waiting - usize::from(said.holder_first && said.waiting > 0);
    let waiting = said.members.iter().skip(usize::from(said.holder_first));
    let wait_for = |them: &str| match (waiters, waiting.clone().next()) {
        (1, Some(one)) => format!("{} waits for {them}", one.who),
        _ => format!("{waiters} threads wait for {them}"),
    };
    let rest = match said.members.first().filter(|_| said.holder_first) {
        Some(holder) => {
            let them = if several { "them" } else { "it" };
            let (who, waits) = (&holder.who, &holder.waits);
            format!(
                "{locks} {is} held by {who}, which {waits}, and {was} not released {lasted}; {}",
                wait_for(them)
            )
        }
        None if several => {
            let waits: Vec<String> = waiting.clone().take(MOST).map(Member::text).collect();
            format!(
                "{locks} were not released {lasted}; {}{}. The locks do not name their holders: \
                 perhaps a deadlock",
                waits.join("; "),
                more(waiters, waits.len())
            )
        }
        None if said.owner.is_empty() => format!(
            "{locks}, which does not name its holder, was not released {lasted}; {}",
            wait_for("it")
        ),
        None => format!(
            "{locks} is held by {} (the lock does not record which) and was not released {lasted}; {}",
            said.owner,
            wait_for("it")
        ),
    };
    format!("Probably stuck: {rest}.")
}

pub(super) fn mend(said: &Said) -> Option<String> {
    let lock = first_lock(said);
    let joins = |one: &Member| one.holds.is_some() && one.waits.ends_with(" to end");
    let joins = said.members.iter().any(joins);
    let known = said.members.iter().any(|one| one.holds.is_some());
    Some(match said.kind {
        StuckKind::Deadlock | StuckKind::Circle if joins => {
            format!("Release {lock} before waiting for the end of a thread that needs it.")
        }
        StuckKind::Deadlock if said.locks.len() == 1 && !known => {
            format!(
                "Look for a thread that takes {lock} when it already holds it, or waits for others \
                 while holding it."
            )
        }
        StuckKind::Deadlock | StuckKind::Circle if said.locks.len() > 1 => {
            format!("Take {} in the same order everywhere.", list(&said.locks))
        }
        StuckKind::SelfDeadlock => format!(
            "Split the function into one that takes {lock} and one that expects it to be held, or \
             make the lock recursive."
        ),
        StuckKind::LostWakeUp => {
            format!("Check the code that frees {lock}: it has to wake a thread that sleeps on it.")
        }
        StuckKind::OwnerEnded => {
            format!("Release {lock} on every path out of the thread, or make the lock robust.")
        }
        StuckKind::OwnerElsewhere if said.owner.contains("did not survive the fork") => {
            "Fork before threads start, or call nothing that takes locks between fork and exec."
                .to_owned()
        }
        StuckKind::StandStill if said.members.iter().any(|one| one.holds.is_some()) => {
            format!("Wait for other threads only after {lock} is released.")
        }
        StuckKind::StandStill if said.locks.is_empty() => {
            let at_barrier = said.members.iter().any(|one| one.waits.contains("at the barrier"));
            let check = match at_barrier {
                true => "Check how many threads the barrier waits for.",
                false => "Check the condition before each wait, and signal after each change.",
            };
            check.to_owned()
        }
        StuckKind::NeverReleased if said.holder_first => {
            let holder = said.members.first()?;
            let place = holder.waits.split_once(" ← ").map(|(_, function)| function);
            match place {
                Some(function) => {
                    format!("Look for the path to {function} that does not release {lock}.")
                }
                None => format!("Look for a path on which {} does not release {lock}.", holder.who),
            }
        }
        _ => return None,
    })
}

fn circle(said: &Said) -> String {
    let texts: Vec<String> = said.members.iter().take(MOST).map(Member::text).collect();
    format!("{}{}", texts.join("; "), more(said.waiting, texts.len()))
}

fn more(all: usize, said: usize) -> String {
    match all.saturating_sub(said) {
        0 => String::new(),
        1 => "; and 1 more thread".to_owned(),
        some => format!("; and {some} more threads"),
    }
}

fn others(said: &Said) -> String {
    let mut text = match said.behind {
        0 => String::new(),
        1 => " 1 more thread waits behind them.".to_owned(),
        some => format!(" {some} more threads wait behind them."),
    };
    let free = said.alive.saturating_sub(said.waiting + said.behind);
    if said.kind.is_deadlock() && free > 0 {
        let are = if free == 1 { "is" } else { "are" };
        text.push_str(&format!(" {free} of {} threads {are} not part of it.", said.alive));
    }
    text
}

fn have(said: &Said) -> String {
    match (&said.members[..], said.waiting) {
        ([one], 1) => format!("{} has", one.who),
        _ => format!("{} threads have", said.waiting),
    }
}

fn first_lock(said: &Said) -> &str {
    said.locks.first().map_or("a lock", String::as_str)
}

/// Lists names: `a`, `a and b`, or `a, b, c, d and 4 more`.
fn list(names: &[String]) -> String {
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>();
    match (&shown[..], names.len() - shown.len()) {
        ([], _) => "a lock".to_owned(),
        ([only], 0) => (*only).to_owned(),
        ([most @ .., last], 0) => format!("{} and {last}", most.join(", ")),
        (shown, left_out) => format!("{} and {left_out} more", shown.join(", ")),
    }
}

/// Formats a lower bound, rounded down.
fn time(ns: u64) -> String {
    format!("{:.1} s", (ns / 100_000_000) as f64 / 10.0)
}

/// Formats an upper bound, rounded up.
fn time_up(ns: u64) -> String {
    format!("{:.1} s", ns.div_ceil(100_000_000) as f64 / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(who: &str, holds: Option<&str>, waits: &str) -> Member {
        Member { who: who.into(), holds: holds.map(str::to_owned), waits: waits.into() }
    }

    fn said(kind: StuckKind, members: Vec<Member>, locks: &[&str]) -> Said {
        Said {
            kind,
            for_ns: 4_080_000_000,
            waiting: members.len(),
            members,
            behind: 0,
            alive: 2,
            locks: locks.iter().map(|&lock| lock.into()).collect(),
            owner: String::new(),
            holder_first: false,
            always: true,
            inferred: false,
            ends_in_ns: None,
        }
    }

    #[test]
    fn a_deadlock_is_told_both_ways() {
        let members = || {
            vec![
                member("transfers (TID 7)", Some("journal"), "waits for accounts"),
                member("audit (TID 8)", Some("accounts"), "waits for journal"),
            ]
        };
        let mut deadlock = said(StuckKind::Deadlock, members(), &["accounts", "journal"]);
        let circle = "transfers (TID 7) holds journal and waits for accounts; audit (TID 8) holds \
                      accounts and waits for journal.";
        assert_eq!(text(&deadlock), format!("Deadlock for at least 4.0 s: {circle}"));
        (deadlock.behind, deadlock.alive) = (100, 200);
        let others = "100 more threads wait behind them. 98 of 200 threads are not part of it.";
        assert_eq!(text(&deadlock), format!("Deadlock for at least 4.0 s: {circle} {others}"));
        deadlock.kind = StuckKind::Circle;
        deadlock.ends_in_ns = Some(1_210_000_000);
        let until = "until a wait times out, in at most 1.3 s";
        assert_eq!(text(&deadlock), format!("Threads wait in a circle {until}: {circle}"));
    }

    #[test]
    fn stand_stills_say_what_is_known() {
        let own = said(
            StuckKind::SelfDeadlock,
            vec![member("main (TID 9)", Some("m"), "waits for m")],
            &["m"],
        );
        let own = Said { alive: 1, ..own };
        let expected =
            "Deadlock for at least 4.0 s: main (TID 9) waits for m, which it holds itself.";
        assert_eq!(text(&own), expected);
        let waiters = || vec![member("a (TID 1)", None, "waits for m")];
        let lost = said(StuckKind::LostWakeUp, waiters(), &["m"]);
        let expected = "Lost wake-up: m is free, yet a (TID 1) has slept on it for at least 4.0 s.";
        assert_eq!(text(&lost), expected);
        let owner = "a thread that has ended (TID 3)".to_owned();
        let ended = Said { owner, ..said(StuckKind::OwnerEnded, waiters(), &["m"]) };
        let expected = "Stuck: m is held by a thread that has ended (TID 3). Nobody can release \
                        it, and a (TID 1) has waited for it for at least 4.0 s.";
        assert_eq!(text(&ended), expected);
    }

    #[test]
    fn locks_that_are_not_released_have_a_holder_or_none() {
        let holder = member("leaker (TID 5)", Some("m"), "waits in epoll_wait ← serve");
        let waiter = |who: &str, lock: &str| member(who, None, &format!("waits for {lock}"));
        let waiters = || vec![waiter("a (TID 1)", "m"), waiter("b (TID 2)", "n")];
        let held = [vec![holder], waiters()].into_iter().flatten().collect();
        let mut held = said(StuckKind::NeverReleased, held, &["m"]);
        held.holder_first = true;
        let held_for = |lasted: &str| {
            format!(
                "Probably stuck: m is held by leaker (TID 5), which waits in epoll_wait ← serve, \
                 and was not released {lasted}; 2 threads wait for it."
            )
        };
        assert_eq!(text(&held), held_for("in 4.0 s"));
        held.always = false;
        assert_eq!(text(&held), held_for("for the last 4.0 s"));
        let untold = said(StuckKind::NeverReleased, waiters(), &["m", "n"]);
        let expected = "Probably stuck: m and n were not released in 4.0 s; a (TID 1) waits for m; \
                        b (TID 2) waits for n. The locks do not name their holders: perhaps a \
                        deadlock.";
        assert_eq!(text(&untold), expected);
    }

    #[test]
    fn stops_are_told_with_their_time() {
        let by = "by a signal";
        let all = stopped(true, 3_900_000_000, 4.0, by);
        assert_eq!(all, "Stopped by a signal: none of its threads runs.");
        let part = "Stopped for at least the last 1.5 s by a signal: figures of its locks are \
                    withheld.";
        assert_eq!(stopped(true, 1_500_000_000, 4.0, by), part);
        let past = "Stopped for 1.5 s of 4.0 s by a signal: figures of its locks are withheld.";
        assert_eq!(stopped(false, 1_500_000_000, 4.0, by), past);
    }
}
