#!/usr/bin/env bash
# Judges what is said of 200 simulated machines of each kind against the truth about them: intervals,
# verdicts and sentences of 8,400 runs. Prints for each kind of machine how many of each kind held.
# Fails if fewer than 92% of the intervals of one kind hold, or if more than 2.5% of the sentences
# or verdicts of one kind are false: over all these machines, and on each kind of machine by more than
# chance explains. About 45 minutes on two CPUs.
#
# usage: sentences.sh [NUMBER...]       numbers of kinds of machines, from 1 on (default: all)
set -euo pipefail
cd "$(dirname "$0")/../.."
export KINDS="$*"
exec cargo test --release --quiet -p threadtoll-cli --test command truth::sentences_and_intervals_of_many \
    -- --ignored --nocapture
