//! The part of a stretch during which a process was observed. Observation may begin or end in the
//! middle of a stretch.

use std::borrow::Cow;

use super::StretchSamples;
use crate::circumstances::Circumstances;

#[derive(Debug, Default)]
pub(crate) struct Presence {
    state: PresenceState,
    /// Samples taken while the process was observed; `None` stands for all samples of the stretch.
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
    pub(crate) fn awaited() -> Presence {
        Presence { state: PresenceState::Awaited, part: None }
    }

    /// Begins to observe the process. `is_first` is `true` at the first sample of a stretch.
    pub(super) fn begin(&mut self, is_first: bool) {
        if self.state == PresenceState::Awaited {
            self.state = PresenceState::Lasting;
            self.part = (!is_first).then(StretchSamples::default);
        }
    }

    pub(super) fn end(&mut self, so_far: &StretchSamples) {
        if self.state == PresenceState::Lasting {
            self.state = PresenceState::Over;
            self.part.get_or_insert_with(|| so_far.clone());
        }
    }

    pub(super) fn lasts(&self) -> bool {
        self.state == PresenceState::Lasting
    }

    pub(super) fn add(&mut self, times: u32, seen: &Circumstances<'_>) {
        if let Some(part) = &mut self.part {
            part.add(times, seen);
        }
    }

    /// Ends a stretch. Returns the share of the stretch in which the process was observed, and the
    /// samples from that time; `None` if the process was not observed.
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
