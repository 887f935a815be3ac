use std::path::{Path, PathBuf};

use threadtoll_lab::Outcome;
use threadtoll_record::file::{Appender, Results};

use super::command::MeasureCommand;
use crate::console::program;
use crate::failure::Failure;
use crate::{console, page};

#[derive(Clone, Debug)]
pub(super) enum Page {
    /// Next to the result file and named after it. Without a result file, there is no page.
    BesideResults,
    At(PathBuf),
}

impl Page {
    /// Rejects a path at which a page must not be written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self {
            Page::At(path) => page::check(path),
            Page::BesideResults => Ok(()),
        }
    }

    fn prepare(&self, results: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let page = match self {
            Page::BesideResults => results.map(|path| path.with_extension("html")),
            Page::At(path) => Some(path.clone()),
        };
        let Some(page) = page else { return Ok(None) };
        if results == Some(page.as_path()) {
            return Err(Failure::usage(format!(
                "{} cannot be both the results and the page",
                page.display()
            ))
            .hint("choose another file for one of them, with --html or --out"));
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

    pub(super) fn resume(path: &Path, page: &Page, results: &Results) -> Result<Self, Failure> {
        let page = page.prepare(Some(path))?;
        let appender = Some(Appender::resume(path, results.length, results.read_length)?);
        Ok(Output { appender, page })
    }

    pub(super) fn close<C: MeasureCommand>(
        &self,
        results: &Results,
        outcome: Outcome,
        quiet: bool,
    ) -> Result<(), Failure> {
        if let Some(page) = &self.page {
            page::write(page, std::slice::from_ref(results), &[])?;
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
                "next     {} {} --resume {}   (completes the interrupted run)",
                program(),
                C::NAME,
                appender.path().display()
            )),
            (true, None) => {
                lines.push("interrupted; with --out -, nothing is kept but the tables above".into())
            }
            (false, _) => {
                lines.extend(
                    C::NEXT.map(|(rest, why)| format!("next     {} {rest}   ({why})", program())),
                );
            }
        }
        if !lines.is_empty() {
            console::err("");
            console::err(&lines.join("\n"));
        }
        Ok(())
    }
}
