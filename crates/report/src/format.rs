use crate::report::Report;

/// An output format.
///
/// To add one, write a file with a type that implements this trait, and add an entry to
/// [`FORMATS`](crate::FORMATS).
pub trait Format: Sync {
    /// Name of the format.
    fn name(&self) -> &'static str;

    /// Renders the reports of one or several runs.
    fn render(&self, reports: &[Report<'_>]) -> String;
}
