//! Folds a file: keeps everything except the blocks, in about a tenth of the space.
//!
//! A folded file renders like the raw one but cannot be resumed. Incomplete groups have no records
//! and are left out.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::{Checksum, Folded, Line, Plan, Record};

use super::read::Results;
use super::source::regular;
use super::write::{WriteFault, create, to_text};

/// Reason why a file could not be folded.
#[derive(Debug, thiserror::Error)]
pub enum FoldFault {
    /// The raw file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The raw file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The raw file has grown since it was read.
    #[error("{} is still being written", .0.display())]
    Growing(PathBuf),
    /// The raw file has no complete group.
    #[error("{} has no complete group of measurements, so there is nothing to fold", .0.display())]
    Nothing(PathBuf),
    /// The folded file could not be written.
    #[error(transparent)]
    Write(#[from] WriteFault),
}

/// Writes `results` without blocks to the new file `to`, compressed if its name ends in `.gz`.
/// `raw` is the file from which the results were read. If `raw` is itself folded, the new file
/// refers to the original of `raw`.
///
/// # Errors
///
/// If no group is complete, `raw` has grown since it was read, `to` exists and is not empty, or an
/// I/O error occurs.
pub fn fold(raw: &Path, results: &Results, to: &Path) -> Result<(), FoldFault> {
    let records: Vec<&Record> =
        results.groups.iter().filter_map(|group| group.records.as_ref()).flatten().collect();
    if records.is_empty() {
        return Err(FoldFault::Nothing(raw.to_path_buf()));
    }
    let folded = match &results.plan.folded {
        Some(folded) => folded.clone(),
        None => {
            let (sha256, raw_bytes) = checksum(raw)
                .map_err(|error| FoldFault::Read { path: raw.to_path_buf(), error })?;
            if raw_bytes != results.read_length {
                return Err(FoldFault::Growing(raw.to_path_buf()));
            }
            let blocks: u64 =
                records.iter().map(|record| u64::from(record.disturbance.blocks)).sum();
            Folded { blocks: blocks.into(), sha256, raw_bytes: raw_bytes.into() }
        }
    };
    let plan = Plan { folded: Some(folded), ..results.plan.clone() };
    let mut lines =
        vec![Line::Machine(Box::new(results.machine.clone())), Line::Plan(Box::new(plan))];
    let strikes = results.strikes.iter().cloned();
    lines.extend(strikes.map(|strike| Line::Strike(Box::new(strike))));
    for group in &results.groups {
        let Some(records) = &group.records else { continue };
        let predicted = |record: &Record| record.figures.contention()?.predicted.clone();
        lines.extend(
            records.iter().filter_map(predicted).map(|it| Line::CellPrediction(Box::new(it))),
        );
        let timelines = group.timelines.iter().cloned();
        lines.extend(timelines.map(|timeline| Line::Timeline(Box::new(timeline))));
        lines.extend(records.iter().map(|record| Line::Record(Box::new(record.clone()))));
    }
    let packed = to.extension().is_some_and(|extension| extension == "gz");
    create(to, |file| write(file, &lines, packed))?;
    Ok(())
}

fn write(file: &mut File, lines: &[Line], packed: bool) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    if packed {
        // The time of writing is left out, so that equal input yields equal files.
        let mut packer = GzBuilder::new().mtime(0).write(&mut file, Compression::best());
        lines.iter().try_for_each(|line| packer.write_all(to_text(line).as_bytes()))?;
        packer.finish()?;
    } else {
        lines.iter().try_for_each(|line| file.write_all(to_text(line).as_bytes()))?;
    }
    file.flush()
}

fn checksum(path: &Path) -> io::Result<(Checksum, u64)> {
    let mut file = regular(path)?;
    let mut digest = Sha256::new();
    let mut length = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        length += read as u64;
    }
    Ok((Checksum::of(digest), length))
}
