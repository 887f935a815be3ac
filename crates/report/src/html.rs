//! For the browser.
use threadtoll_record::file::Results;
/// stub
pub fn page(_: &[Results]) -> String { String::new() }
