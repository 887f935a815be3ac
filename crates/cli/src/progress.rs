//! Shows progress on standard error: the current cell, and the time left.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use threadtoll_lab::Observer;
use threadtoll_record::{Plan, PlannedCell, Record, Strike};
use threadtoll_report::clean;

use crate::console;

pub(crate) struct Progress {
    bar: ProgressBar,
    processes: u32,
    total_ms: u64,
    group_start_ms: u64,
    group_ms: u64,
    on_record: Box<dyn FnMut(&Record)>,
}

impl Progress {
    /// Shows a bar if standard error is a terminal, unless `quiet`. `on_record` is called with each
    /// complete record.
    pub(crate) fn new(quiet: bool, processes: u32, on_record: Box<dyn FnMut(&Record)>) -> Self {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {percent:>3}%  {prefix:>6} left  {wide_msg}")
        {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Progress { bar, processes, total_ms: 0, group_start_ms: 0, group_ms: 0, on_record }
    }

    fn show(&self, position_ms: u64) {
        self.bar.set_position(position_ms);
        let left = Duration::from_millis(self.total_ms.saturating_sub(position_ms));
        self.bar.set_prefix(format!("{} s", left.as_secs() + 1));
    }

    /// Shows the remaining time. The first call sets the length of the bar. Returns the bar's
    /// position in milliseconds.
    fn show_remaining(&mut self, remaining_ns: u64) -> u64 {
        let remaining_ms = remaining_ns / 1_000_000;
        if self.total_ms == 0 {
            self.total_ms = remaining_ms.max(1);
            self.bar.set_length(self.total_ms);
        }
        let position_ms = self.total_ms.saturating_sub(remaining_ms);
        self.show(position_ms);
        position_ms
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn group(&mut self, _: usize, _: usize, cells: &[PlannedCell], remaining_ns: u64) {
        self.group_start_ms = self.show_remaining(remaining_ns);
        self.group_ms = threadtoll_lab::plan::estimate_ns([cells], self.processes) / 1_000_000;
    }

    fn waits(&mut self, left_ns: u64, remaining_ns: u64) {
        self.show_remaining(remaining_ns);
        let left_s = left_ns.div_ceil(1_000_000_000);
        self.bar.set_message(format!("waiting {left_s} s before repeating the first measurements"));
    }

    fn block(&mut self, cell: &PlannedCell, done: u64, of: u64) {
        self.show(self.group_start_ms + self.group_ms * done / of.max(1));
        self.bar.set_message(format!("{} {}", cell.cell.label(), cell.cell.placement));
    }

    fn struck(&mut self, plan: &Plan, strike: &Strike) {
        let (name, what) = (strike.name(plan), &strike.what);
        let text = format!("warning: {name} was left out: {what}; continuing with the other rows.");
        self.bar.suspend(|| console::err_text(&clean(&text)));
    }

    fn record(&mut self, record: &Record) {
        (self.on_record)(record);
    }
}
