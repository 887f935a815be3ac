//! Programs that ended, or continued in the background, before enough of them was seen.

use threadtoll_record::profile::{Method, Profile};

use crate::units::time as duration;

/// Minimum number of samples, and of seconds, for a report.
const SAMPLES: u64 = 50;
const SECONDS: f64 = 0.1;

pub(crate) fn too_short(profile: &Profile) -> Option<String> {
    let (samples, seconds) = (profile.samples.get(), profile.seconds.get());
    if profile.method != Method::Sampled || samples >= SAMPLES && seconds >= SECONDS {
        return None;
    }
    let seen = match samples {
        1 => "1 sample".into(),
        samples => format!("{samples} samples"),
    };
    let within = duration(seconds * 1e9);
    Some(match (profile.finished, seconds < SECONDS) {
        (false, _) => format!("Too early to say: {seen} in {within} so far."),
        (true, true) => format!("Too short to say: {seen} in {within}."),
        (true, false) => format!("Too few samples to say: {seen} in {within}."),
    })
}

/// Sentence about a launched program that continued in the background.
pub(crate) fn background(profile: &Profile) -> Option<String> {
    let (first, others) = profile.background.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        1 => " and 1 more process".into(),
        more => format!(" and {more} more processes"),
    };
    Some(format!(
        "The program went on in the background as PID {first}{more}: threadtoll profile -p {first}"
    ))
}
