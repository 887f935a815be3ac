use threadtoll_record::{Machine, Relation};

use crate::clean::clean;
use crate::units::count;

pub(crate) fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::SameThread => "one thread",
        Relation::SameCpu => "the same CPU",
        Relation::Smt => "hardware threads of one core",
        Relation::SameLlc => "cores that share a cache",
        Relation::SameNode => "cores without a shared cache",
        Relation::OtherNode => "cores of different nodes",
        Relation::Free => "placed by the scheduler",
    }
}

pub(crate) fn on_machine(subject: &str, machine: &Machine) -> String {
    format!(
        "{subject} on {}, {}, grade {}",
        clean(&machine.cpu).trim(),
        plural(machine.cpus.into(), "CPU"),
        machine.grade
    )
}

/// `1 CPU`, `2 CPUs`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Capitalizes a name: `ask-reply` becomes `Ask-reply`.
pub(crate) fn title(name: &str) -> String {
    let name = clean(name);
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Text for CPUs: `CPU 3`, `CPUs 0, 1`, `CPUs 0-7, 9`; at most eight ranges, followed by an
/// ellipsis.
pub fn cpus(cpus: &[u32]) -> String {
    const MAX_RUNS: usize = 8;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let mut texts: Vec<String> = runs
        .iter()
        .take(MAX_RUNS)
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    if runs.len() > MAX_RUNS {
        texts.push("…".into());
    }
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_a_person_writes_them() {
        let words = ["a".to_string(), "b".to_string(), "c".to_string()];
        assert_eq!(list(&words), "a, b and c");
        assert_eq!(list(&words[..2]), "a and b");
        assert_eq!(list(&words[..1]), "a");
    }

    #[test]
    fn runs_of_cpus_are_drawn_together() {
        assert_eq!(cpus(&[3]), "CPU 3");
        assert_eq!(cpus(&[0, 1]), "CPUs 0, 1");
        assert_eq!(cpus(&[0, 1, 2, 7]), "CPUs 0-2, 7");
        assert_eq!(cpus(&[]), "CPUs ");
        assert_eq!(cpus(&[u32::MAX, 0]), format!("CPUs {}, 0", u32::MAX));
        let scattered: Vec<u32> = (0..500).map(|cpu| cpu * 2).collect();
        assert_eq!(cpus(&scattered), "CPUs 0, 2, 4, 6, 8, 10, 12, 14, …");
    }
}
