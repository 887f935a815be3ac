use std::sync::Arc;

/// A mechanism, queue or lock, as registered. Rows are equal if they have the same name.
pub trait Row: Clone + PartialEq {
    /// Name of the row on the command line and in files.
    fn name(&self) -> &str;

    /// The built-in rows, in the order in which they are listed.
    fn built_in() -> Vec<Self>;
}

macro_rules! row {
    ($row:ty, $built_in:expr) => {
        impl $crate::rows::Row for $row {
            fn name(&self) -> &str {
                &self.name
            }

            fn built_in() -> Vec<Self> {
                $built_in
            }
        }

        impl std::fmt::Debug for $row {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.name)
            }
        }

        impl PartialEq for $row {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name
            }
        }
    };
}
pub(crate) use row;

/// All known rows of a type: the built-in ones, then those that the caller adds.
#[derive(Clone, Debug)]
pub struct Rows<R> {
    all: Arc<[R]>,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self::with([])
    }
}

impl<R: Row> Rows<R> {
    /// The built-in rows, followed by `extra`.
    pub fn with(extra: impl IntoIterator<Item = R>) -> Self {
        Rows { all: R::built_in().into_iter().chain(extra).collect() }
    }

    /// All rows, the built-in ones first.
    pub fn all(&self) -> impl Iterator<Item = &R> + Clone {
        self.all.iter()
    }

    /// Returns the row with this name.
    pub fn find(&self, name: &str) -> Option<&R> {
        self.all().find(|row| row.name() == name)
    }
}
