//! Command line: `--name VALUE`, and parts of the names of the rows to measure.

use std::process;
use std::str::FromStr;

/// Arguments not yet read.
pub(crate) struct Arguments {
    named: Vec<(String, String)>,
    rows: Vec<String>,
}

impl Arguments {
    pub(crate) fn read() -> Arguments {
        let (mut named, mut rows) = (Vec::new(), Vec::new());
        // Cargo adds `--bench` by itself.
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                Some(name) => match arguments.next() {
                    Some(value) => named.push((name.to_string(), value)),
                    None => refuse(&format!("`--{name}` needs a value")),
                },
                None => rows.push(argument),
            }
        }
        Arguments { named, rows }
    }

    /// The value of `--name`.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str, default: T) -> T {
        self.text(name).map_or(default, |text| parse(name, &text))
    }

    /// The comma-separated values of `--name`.
    pub(crate) fn list<T: FromStr + Clone>(&mut self, name: &str, default: &[T]) -> Vec<T> {
        let split = |text: String| text.split(',').map(|part| parse(name, part)).collect();
        self.text(name).map_or(default.to_vec(), split)
    }

    /// Selects rows among `names`; ends the process if an argument was not understood.
    pub(crate) fn wanted(self, names: &[&str]) -> Vec<bool> {
        if let Some((name, _)) = self.named.first() {
            refuse(&format!("there is no option `--{name}`; benches/README.md names them"));
        }
        for part in &self.rows {
            if !names.iter().any(|name| name.contains(part.as_str())) {
                refuse(&format!("no row is named `{part}`; choose among: {}", names.join("; ")));
            }
        }
        let named = |name: &str| self.rows.iter().any(|part| name.contains(part));
        names.iter().map(|name| self.rows.is_empty() || named(name)).collect()
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let at = self.named.iter().position(|(given, _)| given == name)?;
        Some(self.named.remove(at).1)
    }
}

fn parse<T: FromStr>(name: &str, text: &str) -> T {
    text.parse().unwrap_or_else(|_| refuse(&format!("`--{name} {text}` is not a number")))
}

fn refuse(why: &str) -> ! {
    eprintln!("{why}");
    process::exit(2);
}
