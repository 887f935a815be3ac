use super::layout::{self, Part};
use super::table::draw;
use super::{BOLD, DIM, GOOD, MIDDLING, PLAIN, Style};
use crate::clean::clean;
use crate::label::plural;
use crate::profile::kinds::{self, Group};
use crate::profile::telling::telling;
use crate::profile::{self, Seen, locks, stack, stuck, time, waits};
use crate::table::Section;
use crate::units::percent;
use threadtoll_record::profile::{Lock, LockKind, Profile, Role, Site};

/// Maximum number of locks on the first screen or, without locks, of waits for other threads.
const TOP: usize = 3;
const IDLE: usize = 6;
/// Maximum number of threads that are named in the first standstill, and of further standstills.
const STUCK: usize = 4;
const OTHERS_STUCK: usize = 2;
/// Maximum number of locks, and of other waits, that are described in full.
const MAX_LOCKS: usize = 20;
const MAX_WAITS: usize = 20;
const MAX_PROCESSES: usize = 50;
const MAX_STUCK: usize = 16;
const MAX_SITES: usize = 6;
const MAX_FRAMES: usize = 64;

/// Renders the answer in at most 23 lines: whether locks are the problem, the three costliest
/// locks, their causes with advice, the stacks of the holder and the waiters, and changes that
/// would help. `more` is the command that shows more.
pub fn first_screen(profile: &Profile, more: &str, style: &Style) -> String {
    let style = layout::style(style);
    layout::fit(Screen { profile, more, style }.parts(&profile::by_cost(profile)), &style)
}

/// Renders the first screen, followed by the details.
pub fn profile(profile: &Profile, more: &str, style: &Style) -> String {
    first_screen(profile, more, style) + &details(profile, style)
}

struct Screen<'a> {
    profile: &'a Profile,
    more: &'a str,
    style: Style,
}

impl Screen<'_> {
    fn parts(&self, locks: &[Seen<'_>]) -> Vec<Part> {
        let answer = profile::answer(self.profile);
        let (mut told, mut left_out) = telling(locks);
        if !answer.locks && told.iter().all(Seen::is_seldom_waited_for) {
            left_out.leave_out(&told);
            told.clear();
        }
        let top = &told[..told.len().min(TOP)];
        let mut parts = vec![
            self.text(DIM, &profile::title(self.profile).join(" · "), 2, 7),
            self.text(
                if answer.locks || answer.doubtful { MIDDLING } else { GOOD },
                &answer.text,
                2,
                0,
            ),
        ];
        parts.extend(self.stuck());
        if stuck::is_stopped(self.profile) {
            parts.extend(self.end(&parts));
            return parts;
        }
        let background = profile::short::background(self.profile);
        parts.extend(background.map(|text| self.text(BOLD, &text, 2, 0)));
        parts.extend(self.time());
        // The row of a spinlock has the stack of its waiters.
        if !top.iter().any(|seen| seen.lock.kind == LockKind::Spinlock) {
            parts.extend(self.spinning());
        }
        let groups = kinds::groups(self.profile);
        // If some threads cannot go on, the waits of the others do not matter.
        if stuck::stand_stills(self.profile).is_empty() {
            parts.extend(self.kinds(&groups));
        }
        parts.push(Part::BLANK);
        if top.is_empty() {
            parts.extend(self.idle(&groups));
        } else {
            parts.extend(self.table(top));
        }
        parts.extend(left_out.sentence().map(|text| self.text(DIM, &text, 2, 8)));
        // Few samples allow no conclusions.
        let mut explained = top.iter().filter(|seen| !seen.is_seldom_waited_for()).peekable();
        if let Some(&first) = explained.peek()
            && profile::short::too_short(self.profile).is_none()
        {
            parts.push(Part::BLANK);
            explained.enumerate().for_each(|(nth, seen)| parts.extend(self.cause(seen, nth == 0)));
            parts.push(Part::BLANK);
            parts.extend(self.stacks(first));
            let best = profile::best_change(first.lock).filter(|_| profile::gains(first.lock));
            let best = best.or_else(|| profile::gain_not_told(first));
            parts.extend(best.map(|best| self.text(BOLD, &best, 2, 0)));
        }
        parts.extend(self.end(&parts));
        parts
    }

    /// What was not seen, and where the rest is. Explains the signs that `others` use.
    fn end(&self, others: &[Part]) -> Vec<Part> {
        let unseen = profile::unseen(self.profile).join(" ");
        let mut parts = vec![Part::BLANK];
        if !unseen.is_empty() {
            parts.push(self.text(DIM, &format!("Not seen: {unseen}"), 2, 4));
        }
        let has = |sign| others.iter().flat_map(|part| &part.lines).any(|it| it.contains(sign));
        let signs = [('←', "←: called by. "), ('±', "±: 95%. ")];
        let end: String = signs.iter().filter(|(it, _)| has(*it)).map(|(_, key)| *key).collect();
        let end = format!("{end}More: {}", clean(self.more));
        parts.push(Part { lines: self.command(&end), with: DIM, rank: 0 });
        parts
    }

    fn stuck(&self) -> Vec<Part> {
        let all = stuck::stand_stills(self.profile);
        let Some((&first, others)) = all.split_first() else { return Vec::new() };
        let threads = stuck::threads(first, STUCK).into_iter();
        let mut parts: Vec<Part> =
            threads.map(|line| self.text(PLAIN, &format!("  {line}"), 4, 5)).collect();
        let mend = first.stuck.mend.as_ref();
        parts.extend(mend.map(|mend| self.text(GOOD, &format!("  → {}", clean(mend)), 4, 1)));
        let others = others.iter().take(OTHERS_STUCK);
        parts.extend(
            others.map(|&other| self.text(MIDDLING, &stuck::sentences(other, self.profile), 2, 0)),
        );
        parts
    }

    /// Broken only at blanks, so that the command can be copied.
    fn command(&self, text: &str) -> Vec<String> {
        let width = self.style.width.unwrap_or(layout::WIDTH);
        let options = textwrap::Options::new(width)
            .subsequent_indent("  ")
            .break_words(false)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
    }

    fn text(&self, with: anstyle::Style, text: &str, indent: usize, rank: u8) -> Part {
        Part::text(&self.style, with, text, indent, rank)
    }

    fn time(&self) -> Option<Part> {
        let parts = time::parts(profile::thread_time(self.profile)?).into_iter();
        let parts = parts.filter(|part| part.share >= 0.005);
        let parts: Vec<String> = parts
            .map(|part| format!("{} {}", part.name(self.profile), percent(part.share)))
            .collect();
        Some(self.text(PLAIN, &parts.join(" · "), 2, 3))
    }

    fn spinning(&self) -> Option<Part> {
        let site = profile::spin(self.profile)?;
        Some(self.text(PLAIN, &format!("Spinning: {}", stack::line(site)), 2, 5))
    }

    /// Names are as long as the terminal allows without dropping columns.
    fn table(&self, locks: &[Seen<'_>]) -> Vec<Part> {
        let drawn = |max_name| draw(&locks::section(locks, max_name), &self.style);
        let widths = [30, 26, 22, 18, 14];
        let fitting = widths.into_iter().map(drawn).find(|(_, left_out)| left_out.len() <= 2);
        let (text, _) = fitting.unwrap_or_else(|| drawn(12));
        Part::lines(&text)
    }

    fn cause(&self, seen: &Seen<'_>, first: bool) -> Vec<Part> {
        if stuck::concerns(seen.process, seen.lock.id) {
            return Vec::new();
        }
        let name = locks::shortened(&seen.name(), 30);
        let Some((main, others)) = seen.lock.causes.split_first() else {
            let text = format!("{name}: cause unknown{}.", profile::no_cause(seen.lock));
            return if seen.waited() { vec![self.text(PLAIN, &text, 2, 6)] } else { Vec::new() };
        };
        let others = others.iter().filter(|cause| cause.share.get() >= 0.1);
        let others = others.map(profile::further_cause);
        let causes: Vec<String> = std::iter::once(profile::cause(main)).chain(others).collect();
        let text = format!("{name}: {}.", causes.join("; "));
        let mut parts = vec![self.text(if first { BOLD } else { PLAIN }, &text, 2, 6)];
        if let Some(mend) = &main.mend {
            let mend = format!("  → {}", clean(mend));
            parts.push(self.text(GOOD, &mend, 4, if first { 0 } else { 5 }));
        }
        parts
    }

    fn stacks(&self, seen: &Seen<'_>) -> Vec<Part> {
        let lock = seen.lock;
        if !seen.waited() || stuck::concerns(seen.process, lock.id) {
            return Vec::new();
        }
        let name = locks::shortened(&seen.name(), 30);
        let holders = match lock.holders.as_slice() {
            [] => format!("Holder of {name}: not seen"),
            _ => format!("{name} held by {}", locks::holders(lock, 2)),
        };
        let mut parts = vec![self.text(BOLD, &holders, 2, 4)];
        if let Some(chain) = locks::chain(seen) {
            parts.push(self.text(PLAIN, &format!("  in turn waiting for {chain}"), 4, 8));
        }
        // The stacks of threads in other processes are unknown.
        let is_own = lock.holders.first().is_none_or(|holder| holder.pid.is_none());
        match stack::main_site(lock, Role::Holder).filter(|_| is_own) {
            Some(site) => parts.push(self.stack(lock, site)),
            None => {
                parts.extend(candidates(lock).into_iter().take(2).map(|site| {
                    self.text(PLAIN, &format!("  one of: {}", stack::line(site)), 4, 5)
                }))
            }
        }
        let waiters = format!("Waiting: {}", locks::waiters(lock, 2));
        parts.push(match stack::main_site(lock, Role::Waiter) {
            Some(site) => {
                let at = stack::share_of_role(lock, site).filter(|at| *at < 0.995);
                let at = at.map_or_else(String::new, |at| format!(" {}", percent(at)));
                let text = format!("{waiters};{at} at {}", stack::line(site));
                self.text(PLAIN, &text, 2, 5)
            }
            None => self.text(PLAIN, &waiters, 2, 8),
        });
        parts
    }

    fn stack(&self, lock: &Lock, site: &Site) -> Part {
        let part = stack::share_of_role(lock, site).filter(|part| *part < 0.995);
        let part = part.map_or_else(String::new, |part| format!("{}: ", percent(part)));
        self.text(PLAIN, &format!("  {part}{}", stack::line(site)), 4, 5)
    }

    fn kinds(&self, groups: &[Group<'_>]) -> Vec<Part> {
        let time = profile::thread_time(self.profile);
        let lines = time.map_or_else(Vec::new, |time| kinds::lines(self.profile, time, groups));
        lines.iter().map(|line| self.text(PLAIN, line, 2, 6)).collect()
    }

    /// Waits for other threads, if no lock was seen.
    fn idle(&self, groups: &[Group<'_>]) -> Vec<Part> {
        let waits = kinds::not_on_lines(profile::thread_time(self.profile), groups);
        let mut parts = Vec::new();
        if !waits.is_empty() {
            let section = kinds::section(&waits[..waits.len().min(IDLE)], 30);
            parts.extend(Part::lines(&draw(&section, &self.style).0));
        }
        parts
    }
}

fn candidates(lock: &Lock) -> Vec<&Site> {
    let mut sites: Vec<&Site> =
        lock.sites.iter().filter(|site| site.role == Role::Candidate).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.samples));
    sites
}

fn details(profile: &Profile, style: &Style) -> String {
    let mut text = String::new();
    for stands in stuck::stand_stills(profile) {
        text.push_str(&heading(&stuck::sentences(stands, profile), style));
        for line in stuck::threads(stands, MAX_STUCK) {
            text.push_str(&item(&line, style));
        }
    }
    let locks = profile::by_cost(profile);
    if locks.len() > TOP {
        text.push_str(&heading("All locks", style));
        let shown = &locks[..locks.len().min(MAX_LOCKS)];
        text.push_str(&draw(&locks::section(shown, 40), style).0);
        let left_out: u64 =
            profile.processes.iter().map(|process| u64::from(process.locks_left_out)).sum();
        let left_out = left_out + (locks.len() - shown.len()) as u64;
        if left_out > 0 {
            let more = format!("Not shown: {left_out} that cost less.");
            text.push_str(&style.paragraph(DIM, &more));
        }
    }
    let waited = locks.iter().filter(|seen| seen.waited()).take(MAX_LOCKS);
    waited.for_each(|seen| text.push_str(&in_full(seen, style)));
    for process in profile.processes.iter().filter(|process| !process.spins.is_empty()) {
        text.push_str(&heading(&format!("Spinning for locks, PID {}", process.pid), style));
        for site in process.spins.iter().take(MAX_SITES) {
            let line = format!("{}: {}", plural(site.samples.get(), "sample"), stack::line(site));
            text.push_str(&item(&line, style));
        }
    }
    let waits = waits::waits(profile);
    if !waits.is_empty() {
        text.push_str(&heading("Waits that are not for a lock", style));
        text.push_str(&table(&waits::section(&waits[..waits.len().min(MAX_WAITS)], 40), style));
    }
    text.push_str(&time_table(profile, style));
    if profile.processes.len() > 1 {
        text.push_str(&heading("Processes", style));
        let mut section = waits::processes(profile);
        section.rows.truncate(MAX_PROCESSES);
        text.push_str(&table(&section, style));
    }
    text.push_str(&heading("Not seen", style));
    for sentence in profile::never_seen(profile) {
        text.push_str(&item(&sentence, style));
    }
    text.push_str(&heading("Method", style));
    for sentence in profile::method(profile) {
        text.push_str(&item(&sentence, style));
    }
    text
}

fn heading(text: &str, style: &Style) -> String {
    format!("\n{}", style.paragraph(BOLD, text))
}

fn item(text: &str, style: &Style) -> String {
    style.wrap(&format!("• {text}"), 2).join("\n") + "\n"
}

fn table(section: &Section, style: &Style) -> String {
    draw(section, style).0
}

fn in_full(seen: &Seen<'_>, style: &Style) -> String {
    let lock = seen.lock;
    let mut text = heading(&format!("{}: {}", seen.name(), locks::description(lock)), style);
    for (name, what) in locks::details(seen) {
        text.push_str(&style.wrap(&format!("{name}: {what}"), 2).join("\n"));
        text.push('\n');
    }
    if !lock.what_if.is_empty() {
        text.push('\n');
        text.push_str(&table(&locks::changes(lock), style));
    }
    if !lock.predicted.is_empty() {
        text.push('\n');
        text.push_str(&table(&locks::predictions(lock), style));
    }
    for site in locks::sites(lock, MAX_SITES) {
        text.push('\n');
        text.push_str(&frames(lock, site, style));
    }
    text
}

fn frames(lock: &Lock, site: &Site, style: &Style) -> String {
    let mut text = style.paint(DIM, &stack::caption(lock, site)) + "\n";
    for frame in site.frames.iter().take(MAX_FRAMES) {
        text.push_str(&format!("  {}\n", clean(frame)));
    }
    text
}

fn time_table(profile: &Profile, style: &Style) -> String {
    let Some(time) = profile::thread_time(profile) else { return String::new() };
    heading("Time of the threads", style) + &table(&time::section(time), style)
}
