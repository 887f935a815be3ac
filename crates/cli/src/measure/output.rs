//! The files of a run: its results, and the page next to them.

use std::path::{Path, PathBuf};

use threadtoll_lab::Outcome;
use threadtoll_record::file::{Appender, Results};

use super::MeasureCommand;
use crate::failure::Failure;
use crate::{console, page};

/// The page that a command makes at its end.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    None,
    /// Named after the file of results, if there is one.
    BesideResults,
    At(PathBuf),
}

impl Page {
    /// Refuses a place where a page must not be written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self {
            Page::At(path) => page::check(path),
            _ => Ok(()),
        }
    }

    /// Decides on the place and makes sure that it can be written.
    fn prepare(&self, results: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let page = match self {
            Page::None => None,
            Page::BesideResults => results.map(|path| path.with_extension("html")),
            Page::At(path) => Some(path.clone()),
        };
        let Some(page) = page else { return Ok(None) };
        if results == Some(page.as_path()) {
            return Err(Failure::usage(format!(
                "{} cannot hold the results and their page",
                page.display()
            ))
            .hint("name another file for the page with --html, or for the results"));
        }
        page::prepare(&page)?;
        Ok(Some(page))
    }
}

pub(super) struct Output {
    pub(super) appender: Option<Appender>,
    page: Option<PathBuf>,
}

impl Output {
    /// Begins a new file, if there is to be one.
    pub(super) fn create(
        path: Option<&Path>,
        page: &Page,
        results: &Results,
    ) -> Result<Self, Failure> {
        let page = page.prepare(path)?;
        let appender =
            path.map(|path| Appender::create(path, &results.machine, &results.plan)).transpose()?;
        Ok(Output { appender, page })
    }

    /// Continues the file that was read.
    pub(super) fn resume(path: &Path, page: &Page, results: &Results) -> Result<Self, Failure> {
        let page = page.prepare(Some(path))?;
        let appender = Some(Appender::resume(path, results.length, results.read_length)?);
        Ok(Output { appender, page })
    }

    /// Writes the page and prints where everything is.
    pub(super) fn close<C: MeasureCommand>(
        &self,
        results: &Results,
        outcome: Outcome,
        quiet: bool,
    ) -> Result<(), Failure> {
        if let Some(page) = &self.page {
            page::write(page, std::slice::from_ref(results))?;
        }
        let interrupted = outcome == Outcome::Interrupted;
        if quiet && !interrupted {
            return Ok(());
        }
        let mut lines = Vec::new();
        if let Some(appender) = &self.appender {
            lines.push(format!("results  {}", appender.path().display()));
        }
        if let Some(page) = &self.page {
            lines.push(format!("page     {}", page.display()));
        }
        match (interrupted, &self.appender) {
            (true, Some(appender)) => lines.push(format!(
                "next     threadtoll {} --resume {}   (completes the interrupted run)",
                C::NAME,
                appender.path().display()
            )),
            (true, None) => lines.push(
                "interrupted; no file was asked for, so only the tables above are left".into(),
            ),
            (false, _) => {
                lines.extend(C::NEXT.map(|(command, why)| format!("next     {command}   ({why})")));
            }
        }
        if !lines.is_empty() {
            console::err("");
            console::err(&lines.join("\n"));
        }
        Ok(())
    }
}
