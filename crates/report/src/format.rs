//! An output format: a type that renders reports, in a file of its own.

use crate::report::Report;

/// A format in which reports are rendered.
///
/// A new one is a file with a type that implements this, and an entry of
/// [`FORMATS`](crate::FORMATS).
pub trait Format: Sync {
    /// Name of the format, as a user would ask for it.
    fn name(&self) -> &'static str;

    /// Renders the reports of one run or several.
    fn render(&self, reports: &[Report<'_>]) -> String;
}
