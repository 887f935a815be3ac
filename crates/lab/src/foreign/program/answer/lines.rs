//! The lines of an answer, each with a name and a figure.

use super::super::talk::{Fault, Listening, spoken};
use super::wrong;

/// Most distinct values of a distribution.
const MAX_VALUES: u64 = 2_000_000;

/// Times in nanoseconds that occurred, with the number of times that they did, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) Vec<(u64, u64)>);

impl Tally {
    /// Number of times.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|(_, times)| times).sum()
    }

    /// Their sum, in nanoseconds.
    pub(crate) fn sum_ns(&self) -> u128 {
        self.0.iter().map(|(ns, times)| u128::from(*ns) * u128::from(*times)).sum()
    }

    /// The longest one, in nanoseconds.
    pub(crate) fn max_ns(&self) -> u64 {
        self.0.last().map_or(0, |(ns, _)| *ns)
    }
}

/// Lines of an answer, of which the first may be an error instead.
pub(super) struct Lines<'a> {
    lines: Listening<'a>,
    first: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn of(lines: Listening<'a>) -> Self {
        Lines { lines, first: true }
    }

    pub(super) fn next(&mut self) -> Result<String, Fault> {
        let line = self.lines.line()?;
        let first = std::mem::replace(&mut self.first, false);
        match error(&line) {
            Some(sentence) if first => Err(wrong(format!("it reports: {sentence}"))),
            _ => Ok(line),
        }
    }

    pub(super) fn pair(&mut self) -> Result<(String, String), Fault> {
        let line = self.next()?;
        match line.split_once(' ') {
            Some((name, value)) => Ok((name.into(), value.into())),
            None => Err(Fault::rubbish(format!("it said “{}”, which has no figure", said(&line)))),
        }
    }

    pub(super) fn value(&mut self, name: &str) -> Result<String, Fault> {
        let (found, value) = self.pair()?;
        if found == name { Ok(value) } else { Err(instead(&found, name)) }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<u64, Fault> {
        number(name, &self.value(name)?)
    }

    pub(super) fn positive_number(&mut self, name: &str) -> Result<u64, Fault> {
        match self.number(name)? {
            0 => Err(wrong(format!("its “{name}” is 0"))),
            number => Ok(number),
        }
    }

    pub(super) fn decimal(&mut self, name: &str) -> Result<f64, Fault> {
        let value = self.value(name)?;
        let digits = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let parsed = value.parse::<f64>().ok().filter(|_| digits);
        let parsed = parsed.filter(|number| number.is_finite() && *number < 1e18);
        parsed.ok_or_else(|| no_number(name, &value))
    }

    pub(super) fn positive(&mut self, name: &str) -> Result<f64, Fault> {
        match self.decimal(name)? {
            0.0 => Err(wrong(format!("its “{name}” is 0"))),
            number => Ok(number),
        }
    }

    pub(super) fn all_checked(&mut self, count: u64) -> Result<(), Fault> {
        let checked = self.number("checked")?;
        if checked == count {
            return Ok(());
        }
        Err(wrong(format!("it counted {count} messages, but checked {checked}")))
    }

    /// Lines of a value and the times that it occurs.
    pub(super) fn tally(&mut self, name: &str, least: u64) -> Result<Tally, Fault> {
        let count = self.number(name)?;
        if count > MAX_VALUES {
            return Err(Fault::rubbish(format!("its answer has over {MAX_VALUES} lines")));
        }
        let mut values: Vec<(u64, u64)> = Vec::new();
        let mut all = 0_u64;
        for _ in 0..count {
            let (value, times) = self.pair()?;
            let (value, times) = (number(name, &value)?, number(name, &times)?);
            if values.last().is_some_and(|(before, _)| *before >= value) {
                return Err(Fault::rubbish(format!("its values after “{name}” do not ascend")));
            }
            // Neither a sum nor a product of them overflows.
            let sum = all.checked_add(times).filter(|sum| times > 0 && *sum < 1 << 40);
            all = sum.ok_or_else(|| {
                Fault::rubbish(format!("a value after “{name}” occurs {times} times"))
            })?;
            if value < least || value > 1 << 60 {
                return Err(wrong(format!("a time after “{name}” is {value} ns")));
            }
            values.push((value, times));
        }
        Ok(Tally(values))
    }
}

/// The sentence of a line that reports an error.
pub(in super::super) fn error(line: &str) -> Option<String> {
    let sentence = line.strip_prefix("error")?;
    let whole = sentence.is_empty() || sentence.starts_with(' ');
    let sentence = if sentence.trim().is_empty() { "an error" } else { sentence.trim() };
    whole.then(|| said(sentence))
}

pub(super) fn number(name: &str, digits: &str) -> Result<u64, Fault> {
    let decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| decimal).ok_or_else(|| no_number(name, digits))
}

fn no_number(name: &str, value: &str) -> Fault {
    Fault::rubbish(format!("it said “{}” where the figure of “{name}” was expected", said(value)))
}

pub(super) fn instead(found: &str, expected: &str) -> Fault {
    Fault::rubbish(format!("it said “{}” instead of “{expected}”", said(found)))
}

pub(in super::super) fn said(text: &str) -> String {
    spoken(text.as_bytes())
}
