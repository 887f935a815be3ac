//! Output formats: types that render reports, each in its own file.

use crate::report::Report;

/// An output format.
///
/// A new one is a file with a type that implements this, and an entry of
/// [`FORMATS`](crate::FORMATS).
pub trait Format: Sync {
    /// Name of the format.
    fn name(&self) -> &'static str;

    /// Renders the reports of one run or several.
    fn render(&self, reports: &[Report<'_>]) -> String;
}
