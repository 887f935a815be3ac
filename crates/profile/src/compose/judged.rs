//! Converts judgements to the types used in a recorded profile.

use threadtoll_judge::cause::Cause;
use threadtoll_judge::prediction::Change;
use threadtoll_judge::verdict::Verdict;
use threadtoll_record::profile;

pub(super) fn cause_kind(cause: Cause) -> profile::CauseKind {
    use profile::CauseKind;
    match cause {
        Cause::SleptHolding(_) => CauseKind::SleptHolding,
        Cause::WaitsForLock(_) => CauseKind::WaitsForLock,
        Cause::WaitsForThreads(..) => CauseKind::WaitsForThreads,
        Cause::Computing => CauseKind::Computing,
        Cause::OnCpu => CauseKind::OnCpu,
        Cause::Preempted => CauseKind::Preempted,
        Cause::Throttled => CauseKind::Throttled,
        Cause::Convoy => CauseKind::Convoy,
        Cause::Herd => CauseKind::Herd,
        Cause::Hog => CauseKind::Hog,
        Cause::StarvedWriter => CauseKind::StarvedWriter,
        Cause::HeldByReaders => CauseKind::HeldByReaders,
    }
}

pub(super) fn change(change: Change) -> profile::Change {
    match change {
        Change::HalveHold => profile::Change::HalveHold,
        Change::MoveOut(_) => profile::Change::MoveOut,
        Change::Stripe(locks) => profile::Change::Stripe(locks),
        Change::Threads(threads) => profile::Change::Threads(threads),
    }
}

pub(super) fn verdict(verdict: Verdict) -> profile::Verdict {
    use profile::Verdict;
    match (verdict.comfortable, verdict.crowded, verdict.saturated) {
        (true, false, false) => Verdict::Comfortable,
        (true, true, false) => Verdict::ComfortableOrCrowded,
        (true, false, true) => Verdict::ComfortableOrSaturated,
        (true, true, true) => Verdict::ComfortableOrCrowdedOrSaturated,
        (false, true, true) => Verdict::CrowdedOrSaturated,
        (false, _, false) => Verdict::Crowded,
        (false, false, true) => Verdict::Saturated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_all_words_that_its_samples_allow() {
        let name = |comfortable, crowded, saturated| {
            verdict(Verdict { comfortable, crowded, saturated }).name()
        };
        assert_eq!(name(true, false, false), "comfortable");
        assert_eq!(name(false, true, false), "crowded");
        assert_eq!(name(false, false, true), "saturated");
        assert_eq!(name(true, true, false), "comfortable-or-crowded");
        assert_eq!(name(false, true, true), "crowded-or-saturated");
    }
}
