//! Bytes that are read together with a futex word, and the field in them that names the word's
//! owner.

use crate::primitive::{Identity, OwnerField, Window};

/// Address and number of bytes to read around a word.
pub type Span = (u64, usize);

/// Distance in bytes of the owner field from the word in a glibc mutex. Also used for unknown wait
/// targets, because most of them are such mutexes.
const OWNER: u64 = 8;

/// Bits of a futex word that hold a TID (`FUTEX_TID_MASK`).
const TID: u32 = 0x3fff_ffff;

/// Bytes to read with a futex word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The bytes to read.
    pub window: Span,
    owner: WatchedOwner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchedOwner {
    /// The wait target of the word is not known yet.
    Guessed,
    Known(OwnerField),
}

impl Watch {
    /// The bytes to read with a word of an unknown wait target.
    pub fn unknown(window: Span) -> Watch {
        Watch { window, owner: WatchedOwner::Guessed }
    }

    /// The bytes to read with a word of this wait target.
    pub fn of(identity: &Identity) -> Watch {
        Watch { window: identity.window(), owner: WatchedOwner::Known(identity.owner_field()) }
    }

    pub(super) fn owner(&self, word: u64, window: &Window<'_>) -> Option<u32> {
        let field = match self.owner {
            WatchedOwner::Guessed => word.wrapping_add(OWNER),
            WatchedOwner::Known(OwnerField::Tid(field)) => field,
            WatchedOwner::Known(OwnerField::Record | OwnerField::None) => return None,
        };
        window.u32(field).map(|owner| owner & TID).filter(|&owner| owner != 0)
    }

    pub(super) fn names_owner(&self) -> bool {
        self.owner != WatchedOwner::Known(OwnerField::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitive::declared;

    #[test]
    fn owners_are_where_the_lock_names_them() {
        let words = [1_u32, 2, 3, 4, 5, 6, 7, 8];
        let bytes = words.map(u32::to_ne_bytes).concat();
        let window = Window { address: 0x1000, bytes: &bytes };
        let of =
            |lock: &str, word| Watch::of(&declared(lock, 0x1000).unwrap()).owner(word, &window);
        assert_eq!(of("pthread_mutex_t", 0x1000), Some(3));
        // Writers and readers of a readers-writer lock wait on different words.
        assert_eq!([0x1008, 0x100c].map(|word| of("pthread_rwlock_t", word)), [Some(7); 2]);
        assert_eq!(of("std::sys::sync::mutex::futex::Mutex", 0x1000), None);
        let unknown = Watch::unknown((0x1000, 32));
        assert_eq!(unknown.owner(0x1004, &window), Some(4));
        assert_eq!(unknown.owner(0x1018, &window), None);
    }
}
