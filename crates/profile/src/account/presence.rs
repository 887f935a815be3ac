//! Part of a stretch during which a process was observed: it may begin or end in the middle.

use std::borrow::Cow;

use super::StretchLooks;
use crate::circumstances::Circumstances;

/// Part of the current stretch during which a process was observed.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    state: State,
    /// The looks at it; `None` if those are all looks of the stretch.
    part: Option<StretchLooks>,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    Awaited,
    #[default]
    Lasting,
    Over,
}

impl Presence {
    /// The presence of a process that will be observed, but is not yet.
    pub(crate) fn awaited() -> Presence {
        Presence { state: State::Awaited, part: None }
    }

    /// Begins to observe the process; `is_first` says that this is the first look of the stretch.
    pub(super) fn begin(&mut self, is_first: bool) {
        if self.state == State::Awaited {
            self.state = State::Lasting;
            self.part = (!is_first).then(StretchLooks::default);
        }
    }

    /// Stops observing the process; `so_far` are the looks of the stretch up to now.
    pub(super) fn end(&mut self, so_far: &StretchLooks) {
        if self.state == State::Lasting {
            self.state = State::Over;
            self.part.get_or_insert_with(|| so_far.clone());
        }
    }

    pub(super) fn lasts(&self) -> bool {
        self.state == State::Lasting
    }

    /// Adds a look.
    pub(super) fn add(&mut self, times: u32, seen: &Circumstances<'_>) {
        if let Some(part) = &mut self.part {
            part.add(times, seen);
        }
    }

    /// Ends a stretch of these looks. Returns the share of its time in which the process was
    /// observed, and the looks in that time; `None` if there were none.
    pub(super) fn end_stretch<'a>(
        &mut self,
        all: &'a StretchLooks,
    ) -> Option<(f64, Cow<'a, StretchLooks>)> {
        match self.part.take() {
            Some(part) => Some((part.looks.share_of(&all.looks), Cow::Owned(part))),
            None if self.lasts() => Some((1.0, Cow::Borrowed(all))),
            None => None,
        }
    }
}
