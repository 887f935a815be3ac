//! Judges locks: from counted samples to verdicts, causes, mends and predictions.
//!
//! Pure functions of numbers and small observations.
//!
//! | module | contents |
//! |---|---|
//! | [`samples`] | held share, queue and hand-offs of a lock, with the bias of late samples |
//! | [`interval`] | estimates and their 95% intervals |
//! | [`verdict`] | comfortable, crowded or saturated; efficiency |
//! | [`gain`] | time that the program would save without a lock's queue |
//! | [`prediction`] | speed-ups with other numbers of threads; effects of changes |
//! | [`places`] | the holder of a lock whose word names no owner |
//! | [`cause`] | causes of waiting |
//! | [`mend`] | a sentence for each cause |

pub mod cause;
pub mod gain;
pub mod interval;
pub mod mend;
pub mod places;
pub mod prediction;
pub mod samples;
#[cfg(test)]
mod simulated;
pub mod verdict;
