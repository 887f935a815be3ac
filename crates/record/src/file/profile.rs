//! Reads the file of a profile: the machine, the plan, and then at most one profile per second,
//! each in a line of its own. A line with the states of threads over time may precede a profile.
//! Only the last complete line of each of the two kinds is used.

use std::path::Path;

use crate::profile::Trace;
use crate::{Line, Machine, Plan, Profile};

use super::former_profile;
use super::read::{Fault, NextText, Reader, begin_reading, parse};

/// Maximum length of a line of a profile, in bytes. Longer lines are rejected without reading them
/// into memory.
pub const MAX_PROFILE_LINE: u64 = 16 << 20;

/// Beginning of a line with a profile: `BEGIN` as [`Line`] writes it now, `FORMER` as earlier
/// versions wrote it.
const BEGIN: &[u8] = b"{\"schema\":\"threadtoll.profile/2\",";
const FORMER: &[u8] = b"{\"schema\":\"threadtoll.profile/1\",";
const TRACE: &[u8] = b"{\"schema\":\"threadtoll.trace/1\",";

/// Contents of a profile's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiled {
    /// The plan.
    pub plan: Plan,
    /// The last complete profile, with the machine and the latest trace of the threads' states.
    pub profile: Profile,
    /// Notes on repairs made while reading.
    pub notes: Vec<String>,
}

/// Reads a profile, finished or not, plain or compressed with gzip. The file is not changed.
///
/// The last line is ignored, with a note, if it has no line feed: the run was interrupted or is
/// still writing. An invalid line with states of threads over time is ignored, too.
///
/// # Errors
///
/// If the file cannot be read, is not a profile, or has no complete profile.
pub fn read_profile(path: &Path) -> Result<Profiled, Fault> {
    let (mut reader, machine, plan) = begin_reading(path)?;
    if !plan.is_profile() {
        return Err(Fault::NotProfile(path.to_path_buf()));
    }
    read_rest(&mut reader, machine, plan)
}

/// Reads the lines after the machine and the plan. Only the last profile is parsed, because it
/// includes everything in the earlier ones.
pub(super) fn read_rest(
    reader: &mut Reader<'_>,
    machine: Machine,
    plan: Plan,
) -> Result<Profiled, Fault> {
    let (mut last, mut text) = (Vec::new(), Vec::new());
    let (mut notes, mut number) = (Vec::new(), 0);
    let (mut traced, mut trace_number) = (Vec::new(), 0);
    loop {
        match reader.next_text(MAX_PROFILE_LINE, &mut text)? {
            NextText::Line if text.starts_with(BEGIN) || text.starts_with(FORMER) => {
                std::mem::swap(&mut last, &mut text);
                number = reader.number;
            }
            NextText::Line if text.starts_with(TRACE) => {
                std::mem::swap(&mut traced, &mut text);
                trace_number = reader.number;
            }
            NextText::Line => return Err(reader.fault("it is not a profile")),
            NextText::Incomplete => {
                notes.push(reader.incomplete());
                break;
            }
            NextText::End => break,
        }
    }
    if last.is_empty() {
        return Err(Fault::NothingYet(reader.path.to_path_buf()));
    }
    let fault = |what: &str| reader.fault_at(number, what);
    let line = match last.starts_with(FORMER) {
        true => {
            notes.push(format!("{} {}", reader.path.display(), former_profile::NOTE));
            former_profile::parse(&last)
        }
        false => parse(&last),
    };
    let Line::Profile(profile) = line.map_err(|what| fault(&what))? else {
        return Err(fault("it is not a profile"));
    };
    let mut profile = *profile;
    if profile.run != plan.run {
        return Err(fault("the profile belongs to another run"));
    }
    profile.validate().map_err(|what| fault(&what))?;
    profile.machine = Some(Box::new(machine));
    if !traced.is_empty() {
        match read_trace(&traced, &plan) {
            Ok(trace) => profile.trace = Some(trace),
            // The profile does not depend on the trace.
            Err(what) => notes.push(format!(
                "Line {trace_number} of {} (states of threads over time) is ignored: {what}.",
                reader.path.display()
            )),
        }
    }
    Ok(Profiled { plan, profile, notes })
}

fn read_trace(line: &[u8], plan: &Plan) -> Result<Box<Trace>, String> {
    if line.len() > Trace::MAX_BYTES {
        return Err("it is longer than any line that threadtoll writes".into());
    }
    let Line::Trace(trace) = parse(line)? else {
        return Err("it does not hold such states".into());
    };
    if trace.run != plan.run {
        return Err("it belongs to another run".into());
    }
    trace.validate()?;
    Ok(trace)
}
