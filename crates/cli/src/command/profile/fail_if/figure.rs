//! The figures of a lock that `--fail-if` can compare with a limit.

use threadtoll_record::profile::Lock;

#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) of: fn(&Lock) -> Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Share,
    Mean,
    Count,
}

impl Unit {
    /// Parses a value. The error is only a reason and does not contain `text`.
    pub(super) fn read(self, text: &str) -> Result<f64, &'static str> {
        match self {
            Unit::Share => match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(text),
            }
            .and_then(|share| if share <= 1.0 { Ok(share) } else { Err("it is more than 100%") }),
            Unit::Mean => number(text),
            Unit::Count => {
                text.parse::<u32>().map(f64::from).map_err(|_| "it is not a whole number")
            }
        }
    }

    pub(super) fn hint(self) -> &'static str {
        match self {
            Unit::Share => "write shares as 0.8 or 80%",
            Unit::Mean => "write a number such as 0.5",
            Unit::Count => "write a whole number such as 3",
        }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Unit::Share => format!("{}%", short(value * 100.0)),
            Unit::Mean | Unit::Count => short(value),
        }
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn number(text: &str) -> Result<f64, &'static str> {
    let digits = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| digits).ok_or("it must be a number, 0 or more")
}

pub(super) static FIGURES: [Figure; 4] = [
    Figure { name: "efficiency", unit: Unit::Share, of: |lock| lock.efficiency.map(f64::from) },
    Figure { name: "held_share", unit: Unit::Share, of: |lock| lock.held_share.map(f64::from) },
    Figure { name: "queue_mean", unit: Unit::Mean, of: |lock| lock.queue_mean.map(f64::from) },
    Figure { name: "queue_max", unit: Unit::Count, of: |lock| lock.queue_max.map(f64::from) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_are_written() {
        for (unit, text) in [(Unit::Share, "81.5%"), (Unit::Mean, "0.62"), (Unit::Count, "17")] {
            assert_eq!(unit.show(unit.read(text).unwrap()), text);
        }
        assert_eq!(Unit::Share.read("0.8"), Unit::Share.read("80%"));
    }
}
