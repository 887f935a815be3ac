use std::fs;
use std::path::Path;
use std::sync::Arc;

use threadtoll_record::Checksum;

/// File of a program in another language. The file may change after the program has described
/// itself, so the checksum from that time is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramFile {
    path: Arc<Path>,
    sha256: Checksum,
}

impl ProgramFile {
    pub(crate) fn new(path: &Path, sha256: Checksum) -> Self {
        ProgramFile { path: path.into(), sha256 }
    }

    pub(crate) fn unchanged(&self) -> Result<&Path, String> {
        let same =
            fs::read(&self.path).is_ok_and(|bytes| Checksum::of_bytes(&bytes) == self.sha256);
        if same { Ok(&self.path) } else { Err("its file has changed since the run began".into()) }
    }
}
