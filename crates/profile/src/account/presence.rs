//! The part of a stretch during which a process was observed: observation may begin or end in the
//! middle of it.

use std::borrow::Cow;

use super::StretchSamples;
use crate::circumstances::Circumstances;

/// Part of the current stretch during which a process was observed.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    state: PresenceState,
    /// Samples taken while the process was observed; `None` if those are all samples of the
    /// stretch.
    part: Option<StretchSamples>,
}

#[derive(Debug, Default, PartialEq)]
enum PresenceState {
    Awaited,
    #[default]
    Lasting,
    Over,
}

impl Presence {
    /// State of a process whose observation has not begun yet.
    pub(crate) fn awaited() -> Presence {
        Presence { state: PresenceState::Awaited, part: None }
    }

    /// Begins to observe the process; `is_first` says that this is the first sample of the stretch.
    pub(super) fn begin(&mut self, is_first: bool) {
        if self.state == PresenceState::Awaited {
            self.state = PresenceState::Lasting;
            self.part = (!is_first).then(StretchSamples::default);
        }
    }

    /// Stops observing the process; `so_far` are the samples of the stretch up to now.
    pub(super) fn end(&mut self, so_far: &StretchSamples) {
        if self.state == PresenceState::Lasting {
            self.state = PresenceState::Over;
            self.part.get_or_insert_with(|| so_far.clone());
        }
    }

    pub(super) fn lasts(&self) -> bool {
        self.state == PresenceState::Lasting
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, times: u32, seen: &Circumstances<'_>) {
        if let Some(part) = &mut self.part {
            part.add(times, seen);
        }
    }

    /// Ends a stretch of samples. Returns the share of the stretch in which the process was
    /// observed, and the samples taken in that time; `None` if the process was not observed.
    pub(super) fn end_stretch<'a>(
        &mut self,
        all: &'a StretchSamples,
    ) -> Option<(f64, Cow<'a, StretchSamples>)> {
        match self.part.take() {
            Some(part) => Some((part.samples.share_of(&all.samples), Cow::Owned(part))),
            None if self.lasts() => Some((1.0, Cow::Borrowed(all))),
            None => None,
        }
    }
}
