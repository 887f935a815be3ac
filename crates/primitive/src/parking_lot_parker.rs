//! The word on which a thread of parking_lot sleeps, next to the address of its lock.
//!
//! | offset from the word | field |
//! |---|---|
//! | −32 | key: address of the lock, plus 1 for a writer that waits for readers to leave |
//! | −24 | next thread of the bucket |
//! | −16 | token from the thread that woke this one |
//! | −8 | token for the thread that will wake this one |
//! | 0 | 1 while the thread sleeps |
//!
//! Source: `ThreadData` in parking_lot_core 0.9 and 0.10, as Rust 1.95 lays it out. The compiler
//! guarantees no order of fields, so each sample is checked.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::user_address;
use super::{Family, Kind, Parked, Primitive, Window};
use crate::function::Part;
use crate::futex::Operation;

pub(super) static FAMILY: Family = Family {
    primitives: &[&ParkingLotParker],
    rust_functions: &[("parking_lot", Part::Wait)],
    ..Family::NONE
};

const KEY_BEFORE: u64 = 32;
const NEXT_BEFORE: u64 = 24;
const TOKEN_BEFORE: u64 = 8;

/// Tokens of parking_lot's own locks: none, a writer, a reader, an upgradable reader.
const TOKENS: [u64; 4] = [0, 0x8, 0x10, 0x14];

#[derive(Debug)]
struct ParkingLotParker;

impl Primitive for ParkingLotParker {
    fn name(&self) -> &'static str {
        "parking_lot parker"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        evidence.all_waits(|w| w.operation == Operation::Wait && w.private && w.value == 1)?;
        if evidence.shared() || !evidence.values_fit(|value| value <= 1) {
            return None;
        }
        let named = evidence.named(&[&["parking_lot_core", "park"], &["parking_lot::"]]);
        let fits = |window: &Window<'_>| parked_on(target, window).is_some();
        // A word that was only ever seen as 1 may belong to a long initialisation.
        let strength = Strength::certain_if(evidence.values().len() == 2);
        let strength = evidence.windows_fit(fits).then_some(strength);
        Some(Claim::new(target, named.or(strength)?))
    }

    fn extent(&self) -> (u64, usize) {
        (KEY_BEFORE, 8)
    }

    fn parked_on(&self, target: u64, window: &Window<'_>) -> Option<Parked> {
        parked_on(target, window)
    }
}

fn parked_on(parker: u64, window: &Window<'_>) -> Option<Parked> {
    let field = |before| window.u64(parker.checked_sub(before)?);
    let (key, next, token) = (field(KEY_BEFORE)?, field(NEXT_BEFORE)?, field(TOKEN_BEFORE)?);
    let next_fits = next == 0 || user_address(next) && next.is_multiple_of(8);
    let fits = user_address(key) && next_fits && TOKENS.contains(&token);
    // A writer that waits for readers to leave parks on the lock's address plus 1, which is odd and
    // so not the address of a lock.
    let lock = if token == 0x8 { key & !1 } else { key };
    fits.then_some(Parked { lock, token })
}
