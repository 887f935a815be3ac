//! Promises of the models.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod agreement;
mod article;
mod choice;
mod golden;
mod limits;
mod overload;
mod pool;
mod simulator;

use threadtoll_model::Load;

/// A load with this hold share and a cycle of one.
fn share(hold_share: f64) -> Load {
    Load::new(hold_share, 1.0 - hold_share).unwrap()
}

/// Returns `true` if `value` rounds to a figure printed with these digits after the point.
#[track_caller]
fn rounds_to(value: f64, printed: f64, digits: i32) {
    let half = 0.5 * 10f64.powi(-digits);
    assert!((value - printed).abs() <= half * (1.0 + 1e-9), "{value} is printed as {printed}");
}
