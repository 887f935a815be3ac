//! Serializes registry entries as their names, with `#[serde(serialize_with = "by_name::one")]`.

use serde::{Serialize, Serializer};
use threadtoll_lab::mechanism::Mechanism;
use threadtoll_lab::plan::Depth;
use threadtoll_lab::{contention, queue};
use threadtoll_machine::topology::Level;

pub(crate) trait Named {
    fn name(&self) -> &str;
}

pub(crate) fn one<T: Named, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(Named::name).serialize(serializer)
}

pub(crate) fn list<'a, T: Named + 'a, S: Serializer>(
    values: impl IntoIterator<Item = &'a T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.into_iter().map(Named::name))
}

impl<T: Named> Named for &T {
    fn name(&self) -> &str {
        T::name(self)
    }
}

macro_rules! named {
    ($($entry:ty),+) => {
        $(impl Named for $entry {
            fn name(&self) -> &str {
                self.name.as_ref()
            }
        })+
    };
}

named!(Mechanism, queue::Queue, queue::Scenario, contention::Scenario);

impl Named for Level {
    fn name(&self) -> &str {
        Level::name(*self)
    }
}

impl Named for Depth {
    fn name(&self) -> &str {
        match self {
            Depth::Quick => "quick",
            Depth::Standard => "standard",
            Depth::Full => "full",
        }
    }
}
