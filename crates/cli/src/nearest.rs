use crate::failure::Failure;

/// The error for an unknown name. The hint lists the nearest names or, if there are none, is
/// `otherwise`.
pub(crate) fn unknown<'a>(
    what: String,
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> Failure {
    let near = nearest(typed, names);
    let hint = if near.is_empty() {
        otherwise.into()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Failure::usage(what).hint(hint)
}

/// At most three names similar to `typed`, best first.
fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| {
            let alike = strsim::jaro_winkler(&typed, name);
            let within = !typed.is_empty() && name.contains(&typed);
            // Among the names that contain the typed text, the shortest is preferred.
            let share = typed.len() as f64 / name.len() as f64;
            (if within { alike.max(0.9 + share / 10.0) } else { alike }, name)
        })
        .filter(|(alike, _)| *alike > 0.7)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.truncate(3);
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names =
            ["futex", "parking-lot-condvar", "park", "std-condvar", "std-condvar-after", "os-pipe"];
        assert_eq!(nearest("futx", names), ["futex"]);
        assert_eq!(
            nearest("condvar", names),
            ["std-condvar", "std-condvar-after", "parking-lot-condvar"]
        );
        assert_eq!(nearest("PARK", names)[0], "park");
        assert!(nearest("zzzz", names).is_empty());
        assert!(nearest("", names).is_empty());
    }
}
