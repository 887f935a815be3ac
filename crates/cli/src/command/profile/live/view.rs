//! Contents of the screen: the locks, sorted and filtered, or one of them in detail.

use std::cmp::Ordering;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use threadtoll_record::Profile;
use threadtoll_record::profile::{Lock, Process};
use threadtoll_report::{clean, text};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const BOLD: &str = "\u{1b}[1m";
const REVERSE: &str = "\u{1b}[7m";
const DIM: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// Lines of the list beside its rows: title, answer, time, blank, headings, two of the selected
/// lock, keys.
const FRAME: usize = 8;
const MAX_FILTER: usize = 200;

#[derive(Debug, Default)]
pub(super) struct View {
    /// The command that shows more than one screen.
    more: String,
    profile: Option<Profile>,
    frozen: bool,
    sort: Sort,
    filter: String,
    editing: bool,
    selected: Option<Key>,
    /// Number of lines scrolled in the detail; `None` shows the list.
    detail: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Stay,
    /// End the profile; the program runs on.
    Quit,
    /// As Ctrl-C: end the profile, and interrupt a launched program.
    Interrupt,
}

/// Process, image and lock.
type Key = (u32, u32, u32);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Gain,
    Held,
    Queue,
    Threads,
    Name,
}

impl Sort {
    const ALL: [Sort; 5] = [Sort::Gain, Sort::Held, Sort::Queue, Sort::Threads, Sort::Name];

    fn name(self) -> &'static str {
        match self {
            Sort::Gain => "gain",
            Sort::Held => "held",
            Sort::Queue => "queue",
            Sort::Threads => "threads",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }

    fn order(self, a: &Lock, b: &Lock) -> Ordering {
        match self {
            Sort::Gain => largest_first(a.gain, b.gain),
            Sort::Held => largest_first(a.held_share, b.held_share),
            Sort::Queue => largest_first(a.queue_mean, b.queue_mean),
            Sort::Threads => b.threads.cmp(&a.threads),
            Sort::Name => a.name.cmp(&b.name),
        }
    }
}

/// Unknown ones come last.
fn largest_first(a: Option<impl Into<f64>>, b: Option<impl Into<f64>>) -> Ordering {
    let value = |figure: Option<f64>| figure.unwrap_or(-1.0);
    value(b.map(Into::into)).total_cmp(&value(a.map(Into::into)))
}

impl View {
    pub(super) fn new(more: String) -> Self {
        View { more, ..View::default() }
    }

    /// Takes a newer profile, unless the screen is frozen.
    pub(super) fn update(&mut self, profile: Profile) {
        if !self.frozen || self.profile.is_none() {
            self.profile = Some(profile);
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent, (_, lines): (u16, u16)) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Interrupt } else { Action::Stay };
        }
        if self.editing {
            self.edit(key.code);
            return Action::Stay;
        }
        let page = usize::from(lines).saturating_sub(FRAME).max(1) as isize;
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('f' | ' ') => self.frozen = !self.frozen,
            KeyCode::Char('/') => (self.editing, self.detail) = (true, None),
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::PageUp => self.go(-page),
            KeyCode::PageDown => self.go(page),
            KeyCode::Enter | KeyCode::Right if self.detail.is_none() => {
                self.select(0);
                self.detail = self.selected.map(|_| 0);
            }
            KeyCode::Enter | KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => {
                self.detail = None;
            }
            _ => {}
        }
        Action::Stay
    }

    fn edit(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(c) if self.filter.len() < MAX_FILTER => self.filter.push(c),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Esc => {
                self.filter.clear();
                self.editing = false;
            }
            KeyCode::Enter => self.editing = false,
            _ => {}
        }
    }

    fn go(&mut self, by: isize) {
        match &mut self.detail {
            Some(line) => *line = line.saturating_add_signed(by),
            None => self.select(by),
        }
    }

    /// Selects the lock that is `by` rows below the selected one.
    fn select(&mut self, by: isize) {
        let rows = self.rows();
        let at = self.selected_row(&rows).saturating_add_signed(by);
        self.selected = rows.get(at.min(rows.len().saturating_sub(1))).map(|row| row.key());
    }

    fn selected_row(&self, rows: &[Row<'_>]) -> usize {
        rows.iter().position(|row| Some(row.key()) == self.selected).unwrap_or(0)
    }

    /// The locks that pass the filter, in order.
    fn rows(&self) -> Vec<Row<'_>> {
        let filter = self.filter.to_lowercase();
        let processes = self.profile.iter().flat_map(|profile| &profile.processes);
        let mut rows: Vec<Row<'_>> = processes
            .flat_map(|process| process.locks.iter().map(move |lock| Row { process, lock }))
            .filter(|row| row.lock.name.to_lowercase().contains(&filter))
            .collect();
        rows.sort_by(|a, b| self.sort.order(a.lock, b.lock).then_with(|| a.key().cmp(&b.key())));
        rows
    }

    /// The lines of the screen, at most as many as it has.
    pub(super) fn frame(&self, (columns, lines): (u16, u16)) -> Vec<String> {
        let (width, height) = (usize::from(columns), usize::from(lines));
        let Some(profile) = &self.profile else {
            return vec![paint(DIM, "waiting for the first samples", width)];
        };
        let rows = self.rows();
        let selected = rows.get(self.selected_row(&rows));
        let mut frame = match (self.detail, selected) {
            (Some(line), Some(row)) => {
                let report = self.detail(profile, row, width);
                scroll(&report, line, height.saturating_sub(1))
            }
            _ => self.list(profile, &rows, width, height.saturating_sub(1)),
        };
        frame.resize(height.saturating_sub(1), String::new());
        frame.push(paint(DIM, &self.keys(), width));
        frame.truncate(height);
        frame
    }

    fn list(
        &self,
        profile: &Profile,
        rows: &[Row<'_>],
        width: usize,
        height: usize,
    ) -> Vec<String> {
        let at = self.selected_row(rows);
        let selected = rows.get(at);
        let mut frame = vec![paint(BOLD, &title(profile, self.frozen), width)];
        let time = text::thread_time(profile);
        frame.push(paint("", &text::answer(profile), width));
        frame.push(paint("", &time.map(text::time_line).unwrap_or_default(), width));
        frame.push(String::new());
        frame.push(paint(BOLD, &Row::headings(), width));
        let room = height.saturating_sub(FRAME - 1).max(1);
        let top = at.saturating_sub(room - 1);
        for (index, row) in rows.iter().enumerate().skip(top).take(room) {
            let several = profile.processes.len() > 1;
            frame.push(paint(if index == at { REVERSE } else { "" }, &row.text(several), width));
        }
        if rows.is_empty() {
            let why = if self.filter.is_empty() {
                "No thread has waited for a lock so far."
            } else {
                "No lock's name contains the filter."
            };
            frame.push(paint(DIM, why, width));
        }
        frame.resize(height.saturating_sub(2).max(frame.len()), String::new());
        if let Some(row) = selected {
            frame.push(paint("", &row.cause(), width));
            frame.push(paint("", &row.holder(), width));
        }
        frame.truncate(height);
        frame
    }

    /// The report on one lock alone.
    fn detail(&self, profile: &Profile, row: &Row<'_>, width: usize) -> String {
        let style = text::Style { color: true, width: Some(width) };
        text::lock_in_detail(profile, row.process, row.lock, &self.more, &style)
    }

    fn keys(&self) -> String {
        if self.editing {
            return format!("filter: {}_   Enter keep · Esc clear", clean(&self.filter));
        }
        let back = if self.detail.is_some() { "Esc back" } else { "Enter detail" };
        let filter = match self.filter.as_str() {
            "" => "filter".to_string(),
            filter => format!("filter “{}”", clean(filter)),
        };
        let freeze = if self.frozen { "unfreeze" } else { "freeze" };
        format!("q quit · {back} · s sort: {} · / {filter} · f {freeze}", self.sort.name())
    }
}

struct Row<'a> {
    process: &'a Process,
    lock: &'a Lock,
}

impl Row<'_> {
    fn key(&self) -> Key {
        (self.process.pid, self.process.image, self.lock.id)
    }

    fn headings() -> String {
        format!(
            "{:>6} {:>5} {:>7} {:>4} {:>7}  {:<19} {}",
            "gain", "held", "queue", "most", "threads", "verdict", "lock"
        )
    }

    fn text(&self, several: bool) -> String {
        let lock = self.lock;
        let gain = lock.gain.map_or_else(dash, |gain| format!("+{}", percent(gain.get())));
        let held = lock.held_share.map_or_else(dash, |share| percent(share.get()));
        let bound = if lock.queue_is_lower_bound { "≥" } else { "" };
        let queue = lock.queue_mean.map_or_else(dash, |mean| format!("{bound}{:.2}", mean.get()));
        let most = lock.queue_max.map_or_else(dash, |most| most.to_string());
        let verdict = lock.verdict.map_or_else(dash, |verdict| verdict.name().replace("-or-", "/"));
        let name = clean(&lock.name);
        let of = if several { format!(" (PID {})", self.process.pid) } else { String::new() };
        let threads = lock.threads;
        format!("{gain:>6} {held:>5} {queue:>7} {most:>4} {threads:>7}  {verdict:<19} {name}{of}")
    }

    fn cause(&self) -> String {
        let Some(cause) = self.lock.causes.first() else {
            return "cause: unknown".into();
        };
        let mend = cause.mend.as_ref().map(|mend| format!(" → {mend}")).unwrap_or_default();
        clean(&format!("cause: {}{mend}", text::cause(cause)))
    }

    fn holder(&self) -> String {
        match self.lock.holders.first() {
            Some(holder) => clean(&format!(
                "holder: {} ({}) {}",
                holder.name,
                holder.tid,
                percent(holder.share.get())
            )),
            None => "holder: not seen".into(),
        }
    }
}

/// The lines of a text from line `from` on, or the last ones.
fn scroll(text: &str, from: usize, height: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let from = from.min(lines.len().saturating_sub(height));
    lines.into_iter().skip(from).take(height).map(str::to_string).collect()
}

fn title(profile: &Profile, frozen: bool) -> String {
    let program = profile.program.first().map(|name| clean(name)).unwrap_or_default();
    let pid = profile.processes.first().map(|process| process.pid);
    let pid = pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let rate = profile.rate_per_s.map(|rate| format!(" · {:.0} samples/s", rate.get()));
    let frozen = if frozen { " · frozen" } else { "" };
    let seconds = profile.seconds.get();
    format!("{program}{pid} · {seconds:.1} s so far{}{frozen}", rate.unwrap_or_default())
}

fn dash() -> String {
    "–".into()
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Paints a line that is cut to this width.
fn paint(style: &str, line: &str, width: usize) -> String {
    let line = cut(line, width);
    if style.is_empty() || line.is_empty() { line } else { format!("{style}{line}{RESET}") }
}

fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_string();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u16, u16) = (80, 24);

    /// Three locks: `cache_lock`, `jobs` and `log`.
    fn profile() -> Profile {
        let text = include_str!("../../../../../record/tests/record/profile.json");
        let mut profile: Profile = serde_json::from_str(text).unwrap();
        let process = &mut profile.processes[0];
        for (id, name, held, gain) in [(4, "jobs", 0.9, 0.1), (5, "log", 0.5, 0.3)] {
            let mut lock = process.locks[0].clone();
            (lock.id, lock.name) = (id, name.into());
            lock.held_share = Some(held.into());
            lock.gain = Some(gain.into());
            process.locks.push(lock);
        }
        profile
    }

    fn view() -> View {
        let mut view = View::default();
        view.update(profile());
        view
    }

    fn press(view: &mut View, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                key => KeyCode::Char(key),
            };
            assert_eq!(view.key(code.into(), SIZE), Action::Stay);
        }
    }

    /// The names of the locks, and the selected one.
    fn names(view: &View) -> (Vec<String>, String) {
        let frame = view.frame(SIZE);
        let name = |line: &&String| line.split_whitespace().last().unwrap().replace(RESET, "");
        let rows: Vec<&String> = frame.iter().filter(|line| line.contains("comfortable")).collect();
        let selected = rows.iter().find(|line| line.starts_with(REVERSE));
        (rows.iter().map(name).collect(), selected.map(name).unwrap_or_default())
    }

    #[test]
    fn locks_are_sorted_filtered_and_selected() {
        let mut view = view();
        assert_eq!(names(&view).0, ["log", "cache_lock", "jobs"], "by gain");
        press(&mut view, "↓");
        assert_eq!(names(&view).1, "cache_lock");
        press(&mut view, "s");
        let (locks, selected) = names(&view);
        assert_eq!(locks, ["jobs", "log", "cache_lock"], "by held share");
        assert_eq!(selected, "cache_lock", "it stays selected");
        press(&mut view, "sss");
        assert_eq!(names(&view).0, ["cache_lock", "jobs", "log"], "by name");
        press(&mut view, "/LO\n");
        assert_eq!(names(&view).0, ["cache_lock", "log"]);
        press(&mut view, "/zzz");
        assert!(view.frame(SIZE).iter().any(|line| line.contains("No lock's name")));
        press(&mut view, "\u{1b}");
        assert_eq!(names(&view).0.len(), 3);
        press(&mut view, "↓↓↓↓↓↓");
        assert_eq!(names(&view).1, "log", "the last");
    }

    #[test]
    fn causes_and_times_are_worded_as_in_the_report() {
        let mut view = view();
        press(&mut view, "↓");
        let frame = view.frame(SIZE).join("\n");
        assert!(frame.contains("cause: its holder sleeps in clock_nanosleep: 98%"), "{frame}");
        let profile = profile();
        let time = text::thread_time(&profile).unwrap();
        let time: String = text::time_line(time).chars().take(70).collect();
        assert!(frame.contains(&time), "{time}: {frame}");
    }

    #[test]
    fn a_frozen_screen_keeps_its_figures() {
        let mut view = view();
        press(&mut view, "f");
        let newer = Profile { seconds: 99.0.into(), ..profile() };
        view.update(newer.clone());
        assert!(view.frame(SIZE)[0].contains("12.0 s so far · 940 samples/s · frozen"));
        press(&mut view, "f");
        view.update(newer);
        assert!(view.frame(SIZE)[0].contains("99.0 s"));
    }

    #[test]
    fn one_lock_is_shown_in_detail() {
        let mut view = view();
        press(&mut view, "↓\n");
        let frame = view.frame(SIZE).join("\n");
        assert!(frame.contains("cache_lock") && !frame.contains("jobs_"), "{frame}");
        press(&mut view, &"↓".repeat(1000));
        assert!(view.frame(SIZE).len() == usize::from(SIZE.1));
        press(&mut view, "\u{1b}");
        assert_eq!(names(&view).0.len(), 3);
    }

    #[test]
    fn keys_end_it() {
        let mut view = view();
        assert_eq!(view.key(KeyCode::Char('q').into(), SIZE), Action::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.key(interrupt, SIZE), Action::Interrupt);
        press(&mut view, "/q");
        assert_eq!(view.key(interrupt, SIZE), Action::Interrupt, "even in a filter");
    }

    #[test]
    fn frames_fit_any_terminal_and_steer_nothing() {
        let mut hostile = profile();
        let lock = &mut hostile.processes[0].locks[0];
        lock.name = format!("\u{1b}[2J中文{}", "x".repeat(9000)).into();
        hostile.program = vec!["\u{1b}]0;title\u{7}".into()];
        let mut view = View::default();
        for size in [(80, 24), (1, 1), (10, 3), (400, 100), (40, 8)] {
            assert!(view.frame(size).len() <= usize::from(size.1));
        }
        view.update(hostile);
        for size in [(80, 24), (1, 1), (10, 3), (400, 100), (40, 8)] {
            let frame = view.frame(size);
            assert_eq!(frame.len(), usize::from(size.1), "{size:?}");
            for line in &frame {
                let plain = [BOLD, REVERSE, DIM, RESET]
                    .iter()
                    .fold(line.clone(), |line, code| line.replace(code, ""));
                assert!(!plain.contains('\u{1b}') && !plain.contains('\u{7}'), "{plain:?}");
                assert!(plain.width() <= usize::from(size.0), "{size:?}: {plain}");
            }
        }
    }
}
