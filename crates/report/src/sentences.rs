//! Registry of all printed sentences about figures.
//!
//! Each entry is a function that fills in a template, with the condition under which it is called.
//! There is no other way to create a [`Sentence`]. Therefore [`sentences()`] lists every printed
//! sentence, except warnings from records.

use std::fmt::{self, Display};

use threadtoll_record::{Verdict, WarningForm, fold};

/// A sentence from the registry, filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence(String);

impl Sentence {
    /// Appends a sentence that only makes sense after this one.
    pub(crate) fn and(self, more: Option<Sentence>) -> Self {
        match more {
            Some(Sentence(more)) => Sentence(format!("{self} {more}")),
            None => self,
        }
    }
}

impl Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct Form {
    when: &'static str,
    text: &'static str,
}

struct Chapter {
    heading: &'static str,
    forms: &'static [Form],
}

/// Declares chapters of sentences. Each sentence has a condition, a name with placeholders, and a
/// template.
macro_rules! sentences {
    ($($heading:literal: { $($when:literal $name:ident($($part:ident),*) = $text:literal;)+ })+) => {
        $($(
            pub(crate) fn $name($($part: impl Display),*) -> Sentence {
                Sentence(format!($text))
            }
        )+)+

        const CHAPTERS: &[Chapter] = &[
            $(Chapter {
                heading: $heading,
                forms: &[$(Form { when: $when, text: $text }),+],
            }),+
        ];
    };
}

sentences! {
    "Mechanisms": {
        "The first screen: a rung of a cache line and one of a sleeper were measured, and the second \
         takes longer. The ratio is that of the two figures."
        line_and_wake(line, sleep, times) =
            "Passing a cache line takes {line}, waking a sleeper {sleep}: {times}× as long.";

        "The first screen, with a cache line, and no sleeper that takes longer."
        line(line) = "Passing a cache line takes {line}.";

        "The first screen, with a sleeper, and no cache line that takes less time."
        wake(sleep) = "Waking a sleeper takes {sleep}.";

        "The first screen, with neither: the mechanisms with the least and the largest time."
        cheapest(cheapest, low, dearest, high) =
            "The cheapest mechanism is {cheapest}, {low}; the most expensive is {dearest}, {high}.";

        "The same, of one mechanism."
        one_mechanism(mechanism, time) = "One hand-off through {mechanism} takes {time}.";

        "The first screen: the sleeper has CPU times, which have no interval."
        spin_or_sleep(cpu) =
            "Spin if you expect to wait less than {cpu}: a wake-up costs the two threads that much CPU \
             time. Sleep if longer.";

        "The first screen: with the CPUs kept awake, the wake-up surely takes less time."
        part_is_idle(share) = "At least {share} of the wake-up time is the CPU leaving its idle state.";

        "The first screen: the sleeper was measured with both threads on one CPU."
        on_one_cpu(time) = "With both threads on one CPU, a wake-up takes {time}.";
    }

    "Pairs of CPUs": {
        "The first screen: medians of the pairs of the nearest and of the farthest relation. The ratio \
         is that of the two figures."
        near_and_far(near, low, far, high, times) =
            "Between {near} a hand-off takes {low}, between {far} {high}: {times}× as long.";

        "The same, of the relations between those two."
        pairs_between(kind, time) = "Between {kind}: {time}.";

        "The first screen: all pairs are of one relation."
        pairs_of_one_kind(kind, time, within, pairs) =
            "Between {kind} a hand-off takes {time}; the {pairs} pairs lie within {within}.";

        "The first screen: one pair was measured."
        one_pair(kind, time) = "Between {kind} a hand-off takes {time}.";

        "The first screen: every pair of CPUs that share a cache is faster, by the 95% intervals, than \
         every pair that shares none. Names the groups of CPUs that share a cache."
        keep_near(groups) =
            "Keep threads that talk on CPUs that share a cache: {groups}.";
    }

    "Queues": {
        "The first screen: the queue with the best figure of those whose receiver may sleep; of several \
         loads, the one that no other beats in most of them."
        best_that_sleeps(queue, figure) =
            "If the receiver may sleep, take {queue}: {figure}.";

        "The same, of those whose receiver spins."
        best_that_spins(queue, figure) = "If the receiver may burn a CPU, take {queue}: {figure}.";

        "After either of these: the intervals of others allow the first place, too."
        level(others) = "{others} cannot be distinguished from it.";

        "The first screen of `for-me`: of the rows below, those whose intervals of p99 reach within 10% of the \
         first place and are no wider than a factor of ten; of these the one that takes least CPU time."
        take(queue, figures) = "Take {queue}: {figures}.";

        "After it: the number of the other rows of which it was chosen."
        level_for_me(others) = "{others} are level with it.";

        "After it: of the rows over the CPU budget with a lower p99, the one with the lowest."
        with_more_cpu(queue, figures) = "With more CPU to spend, take {queue}: {figures}.";

        "The first screen of `open-loop`: the queue that keeps up to the highest rate."
        saturated_last(queue, rate) = "As the rate rises, {queue} is the last to be saturated, at {rate}.";

        "The same, where some are not saturated at any rate: one or two by name; of more, the first."
        kept_up_with_all(queues, rate) = "{queues} kept up with every rate, up to {rate}/s.";

        "The first screen of `burst`: at the shortest gap, the queue that takes the largest bursts, \
         and the size from which most bursts find messages of the previous one."
        jammed_from(gap, size, queue) =
            "With {gap} between bursts, {queue} copes with the largest bursts: only from {size} messages on, most bursts find some of the previous one still queued.";

        "The same, where it takes all sizes."
        never_jammed(gap, queue) =
            "With {gap} between bursts, {queue} copes with every burst size measured: most bursts find the queue empty.";

        "The first screen of `night-watch`: the gap at which a message takes as much CPU time by a \
         receiver that spins as by one asleep, of the first queue by name; and between which gaps it may \
         lie with both CPU times at the ends of their 95% intervals."
        stay_awake_below(queue, gap, within) =
            "With {queue}, staying awake takes less CPU than sleeping if a message comes every {gap} or more often{within}.";

        "The same, where sleeping takes less at every gap that was measured."
        sleep_at_all_gaps(queue, gap, within) =
            "With {queue}, sleeping takes less CPU than staying awake at every measured gap between messages, {gap} and longer{within}.";

        "The same, where it takes more at every gap."
        stay_awake_at_all_gaps(queue, gap, within) =
            "With {queue}, staying awake takes less CPU than sleeping at every measured gap between messages, {gap} and shorter{within}.";

        "After any of these: median deliveries at the longest gap that was measured."
        woken_later(gap, asleep, awake) =
            "With {gap} between messages, the median delivery takes {asleep} if the receiver sleeps, {awake} if it stays awake.";

        "No row keeps up with that traffic within the CPU budget, or no p99 of those that may be the best is known \
         within a factor of ten."
        for_me_none(traffic, why) = "For your traffic ({traffic}), no queue can be recommended: {why}.";
    }

    "Published claims": {
        "An article says something about cells that were measured: mechanisms or queues between two \
         pinned threads with messages of 8 bytes, or locks that admit one thread at a time. yes: the \
         whole 95% interval of the figure or ratio is within the limits in parentheses; no: the whole \
         interval is outside; otherwise undecided. A ratio is paired where both cells stand in one \
         group; the far ends of two intervals bound any other. Of several cells, the number \
         of each answer and an example of each. Messages that take abnormally long: yes if the interval \
         of the 99% quantile is at most ten times the median, and that of the 99.9% quantile above it. \
         C++ and Java: `atomic-rmw` on a shared line does what the article’s C++ program did. N \
         messages: the time until the last one, compared with that of one message through the same \
         queue at the same gap. A billion messages a day: open loops at 5,000 to 25,000 messages per \
         second that are not saturated, of queues under a lock (flume, kanal) whose receiver slept, and \
         of all others whose receiver may sleep. J. Preshing: two to four threads that compute for \
         exponential times, each on a CPU of its own; in the sweep of hold shares, about 15,000 \
         acquisitions per second of work."
        claim(source, claim, answers) = "{source}, {claim}: {answers}.";
    }

    "Locks": {
        "The first screen: at the shortest hold at which the threads can hold the lock all the time, \
         the fewest threads that no larger number can surely beat by 5%."
        worth_having(lock, held, threads, speedup, most) =
            "{lock}, {held}: use up to {threads} ({speedup}); going beyond that, to {most}, adds less than 5%.";

        "The first screen: the longest hold at which the interval of two threads is above 1."
        two_threads_up_to(lock, held) =
            "{lock}: two threads do more work than one if one alone holds it for up to {held} of the time (the hold share); beyond that, it is not certain.";

        "The first screen: the shortest interval between acquisitions from which the interval of two \
         threads is above 1."
        two_threads_from(lock, interval) =
            "{lock}: two threads do more work than one if each takes the lock no more than once every {interval}; if more often, it is not certain.";

        "The first screen: intervals do not tell how many threads are worth having. The number with \
         the highest speed-up, at the hold that decides."
        did_most(lock, held, most, threads, speedup) =
            "{lock}, {held}: with up to {most} threads measured, {threads} did the most work: {speedup} that of one.";

        "A pool, or a sweep of threads alone: the fewest threads for which no larger number can \
         take less than 1/1.05 of their time, by the 95% intervals of both, nor have a speed-up \
         more than 1.05 times as high by theirs. No interval of a time is taken as narrower than the \
         median one of the sweep."
        enough_threads(lock, threads, time, most) =
            "{lock}: {threads} do all tasks in {time}; more threads (up to {most} were measured) gain less than 5%.";

        "Threads on several CPUs also computed at once without a lock, just after one that computed \
         alone: their work per second, divided by that of one. Of several groups, their median, least \
         and largest figure."
        without_lock(cpus, speedup, groups) =
            "{cpus} threads, one per CPU, together do {speedup} the work of one thread if they share nothing{groups}.";

        "The first screen: cells of several threads were predicted before they were measured; of those \
         that were not disturbed, if there are any. Of overloads: shares in time, mean queues of at \
         least one caller, and recoveries of at least ten hold times."
        predicted(mean, worst, figures) =
            "Before measuring, models predicted {figures}; they were off by {mean} on average, {worst} at worst.";
    }

    "Overload": {
        "The first screen: at the highest rate of arrivals, the shares of the callers who get the lock \
         within the deadline, under up to three rules."
        overloaded(lock, times, room, shares) =
            "{lock}, with {times} the callers it can serve: {shares}{room}.";

        "After it, where callers wait without a bound: the share of the work for callers who got the \
         lock too late, and the time from the end of the overload until nobody waited."
        wasted(wasted, lasted, recovery) =
            "Without a bound, {wasted} of the callers who get the lock get it too late, and after an overload of {lasted} the queue takes {recovery} to drain, though only half as many callers come as the lock can serve.";

        "The same, where in most blocks somebody waited to the end."
        never_recovered(wasted, lasted) =
            "Without a bound, {wasted} of the callers who get the lock get it too late, and after an overload of {lasted} the queue had not drained when the measurement ended.";

        "After either of these: the first bound that was measured."
        recovers(bound, recovery) = "With a bound of {bound} it takes {recovery}.";

        "The first screen: callers were refused beyond a bound that these locks do not have."
        counted_in_front(locks) =
            "{locks}: callers were counted in front of the lock, which has no bound of its own.";

        "The same, of a lock that has one."
        bound_of_lock(locks) = "{locks}: the lock itself keeps the bound.";
    }

    "The run": {
        "Blocks were disturbed."
        disturbed(disturbed, blocks, share, causes) =
            "{disturbed} of {blocks} blocks of measurements ({share}) were disturbed{causes}.";

        "Cells could not be measured."
        left_out(cells) = "Left out: {cells}.";

        "The process may use one CPU."
        one_cpu() = "Only one CPU is allowed here, so no hand-off between CPUs was measured.";

        "The control group has a quota of less than two CPUs."
        quota(cpus) =
            "The control group allows only {cpus} CPUs’ worth of time, so it throttles two spinning threads.";

        "`open-loop` without `--rate`: groups were left out because all their rows were saturated at \
         a lower rate. The rates are the highest at which the rows were measured."
        above_saturation(rates) = "Saturated at these rates, so not measured at higher ones: {rates}.";

        "The run was interrupted."
        unfinished(complete, groups) = "The run is not finished: {complete} of {groups} of rows are complete.";

        "The first group was measured again as the last one (`--repeat`): of its rows, the one whose \
         larger figure divided by the smaller one is largest. Figures are one-way medians, rates or \
         speed-ups; of several regimes in the run, of the one that most rows saw, unless not both saw \
         it."
        measured_again(later, when, rows, difference, row, first, again) =
            "Measured again {later} later{when}, the figures of {rows} differed by up to {difference} ({row}: {first} and {again}).";

        "After it, where ratios were paired in both."
        ratios_again(difference, rows, first, again) =
            "Their ratios to other rows differed by up to {difference} ({rows}: {first} and {again}).";

        "The first screen: the reference hand-off took times that are more than 1.3 times apart, so \
         the machine ran at several speeds."
        speeds(times, main) =
            "The machine ran at several speeds (the reference hand-off took {times}); figures are from the speed at which it took {main}.";

        "The first screen: the same, but more than half of the blocks are of no certain speed."
        restless(main, share) =
            "The machine’s speed was unclear in most measurements; figures are from the {share} of the time in which the reference hand-off took {main}.";

        "The first screen: more than a quarter of the blocks were disturbed."
        noisy(share) = "{share} of this run’s measurements were disturbed: measure again on a quieter machine.";

        "The first screen: the grade of the machine is C or D. Its warning that matters most."
        machine(warning, meaning) = "The machine: {warning}; {meaning}";

        "The first screen: rows are missing; `--details` names them."
        rows_left_out(rows) = "{rows} could not be measured: --details says why.";

        "The first screen: claims of articles are about cells that were measured, and answered as \
         below."
        claims(answers) = "Published claims: {answers} (--details).";
    }

    "Comparisons of two runs": {
        "A property of machine, tool or plan differs between the two files; none: not known, or not \
         given."
        differs(property, base, new) = "{property}: {base} → {new}";

        "No such property differs."
        no_difference() = "Machine, tool and options are the same in both runs.";

        "The first line: the number of rows with each verdict, and of those that are not compared."
        verdicts(rows, parts) = "Of {rows}, {parts}.";

        "The bounds of these rows are worse than the limit: exit code 4."
        regressions(limit, cells) = "Worse by more than {limit}: {cells}.";

        "The bounds exclude 1 in the bad direction, and contain the limit."
        worse(cells, limit) = "Worse, perhaps by less than {limit}: {cells}.";

        "The bounds are better than the limit in the other direction."
        improvements(limit, cells) = "Better by more than {limit}: {cells}.";

        "The bounds exclude 1 in the good direction, and contain the limit."
        better(cells, limit) = "Better, perhaps by less than {limit}: {cells}.";

        "The bounds of compared rows contain 1: twice their half-width. Of simulated changes of that \
         size, 98% or more are found."
        would_have_shown(change) = "In rows that show no change, a change of {change} would have been seen.";

        "The same, of several rows: the least and the largest."
        would_have_shown_in(least, most) =
            "In rows that show no change, a change of {least} (quietest row) to {most} (noisiest row) would have been seen.";

        "No regime of one run is a regime of the other: the reference’s times in both."
        other_regime(rows, base, new, names) =
            "{rows} not compared, because the machine ran at another speed (the reference hand-off between cores took {base} in BASE, {new} in NEW): {names}. Measure again.";

        "A row, other than of a lock, stands in one group of one of the files, measured by one \
         process."
        one_process(rows, names) =
            "{rows} not compared, because one of the files has figures of only one process, and figures depend on a process’s memory layout: {names}. Measure both with --relaunch 3.";

        "One of the two figures is of fewer than 21 blocks."
        few_blocks(rows, names) =
            "{rows} not compared, because measured too briefly: {names}. Measure both for longer, with --time.";

        "One median comes from stamps, the other from halves of round trips."
        other_method(rows, names) =
            "{rows} not compared, because the medians were obtained in different ways: {names}.";

        "The reference of each group."
        reference(rows, names) =
            "{rows} not compared, but used to see how the machine changed: {names}.";

        "Rows stand in one of the two files only."
        only_in(rows, file, names) = "{rows} found only in {file}, so not compared: {names}.";
    }

    "Predictions": {
        "The cores are the limit."
        limit_of_cores(most) =
            "All cores are busy at {most} the work of one thread: adding threads gains nothing.";

        "The lock is the limit, and hand-offs are free."
        limit(limit, most) =
            "However many threads there are, {limit} the limit: the threads do at most {most} the work of one, and more threads mostly make the queue longer.";

        "The lock is the limit, and hands itself over in order, which takes time."
        limit_with_hand_offs(limit, most) =
            "Once threads wait all the time, each hand-off takes time and {limit} the limit: the threads then do {most} the work of one, and more threads mostly make the queue longer.";

        "The lock is the limit, with barging and hand-offs that take time. They are left out, as the \
         time for which a lock is free while a thread wakes up is not known in advance."
        limit_at_most(limit, most) =
            "However many threads there are, {limit} the limit: hand-offs keep the threads below {most} the work of one, and more threads mostly make the queue longer.";

        "The hold time is zero."
        no_knee() = "The lock is never held, so it limits nothing.";

        "A second thread adds less than half a thread’s work."
        worth_one() =
            "1 thread is worth having: a second would add less than half a thread’s work.";

        "The largest number of threads of which the last adds at least half a thread’s work."
        worth(threads) =
            "{threads} are worth having: in the long run each adds at least half a thread’s work, and one more would not.";

        "That number is above what the models accept."
        worth_many() = "More threads are worth having than these models can predict.";

        "The times were taken from a file: its lock, the threads that used it, and what was measured, \
         with 95% intervals."
        taken(file, lock, threads, figures) = "From {file}: {lock}, {threads}, {figures}.";

        "After it, the predicted and the measured figure of those threads: their 95% intervals overlap, \
         or are apart by no more than the error of the models."
        as_measured(threads, what, predicted, measured) =
            "For {threads} this predicts {what} of {predicted}; {measured} was measured.";

        "The same, with intervals that are further apart."
        unlike_measured(threads, what, predicted, measured, why) =
            "For {threads} this predicts {what} of {predicted}, but {measured} was measured: {why}.";

        "The profile predicts no other numbers of threads for this lock."
        others_set_pace() =
            "The profile shows that more than this lock sets the pace of its threads: the rows tell what this lock alone would allow.";

        "The times were taken from a profile."
        only_shares() =
            "A profile tells shares of time, not durations: speed-ups and queues need no more, but throughput is unknown.";

        "A run of some tasks was asked for."
        rows_of_tasks(tasks) =
            "The rows predict {tasks}, not the long run: they include the start, where all threads want the lock, and the end, where some threads have no work left.";

        "Hand-offs are free, and the prediction is more than 5% above Amdahl’s law: the row where \
         they differ most."
        amdahl(threads, amdahl, speedup) =
            "For {threads}, Amdahl’s law gives {amdahl} instead of {speedup}: it assumes that all threads want the lock at the same moment.";

        "The same, with hand-offs that take time: predictions can be below the law, too."
        amdahl_without_hand_offs(threads, amdahl, speedup) =
            "For {threads}, Amdahl’s law gives {amdahl} instead of {speedup}: it leaves out hand-offs, and assumes that all threads want the lock at the same moment.";

        "A change to the lock was predicted to gain 1% or more; others are left out."
        changes(threads, hold, think) =
            "Changes that would help {threads} in the long run, one at a time. Everything else stays as it is: {threads}, each {hold} with the lock and {think} without it.";

        "The first screen: of the changes that gain 1% or more, the one that gains most."
        best_change(threads, change, gain) =
            "To get more out of {threads}, {change}: {gain} the throughput.";

        "Changes to the lock were predicted, and all of them to gain less than 1%."
        no_change_helps(threads, hold, think) =
            "No change to the lock would help {threads} ({hold} with the lock, {think} without it): halving the hold time or striping the lock gains less than 1%.";
    }

    "Pools": {
        "Everybody may wait: servers in use on average, the fewest that keep the p99 wait below the \
         target, and the most with which the queue grows without end."
        pool_and_too_few(busy, enough, target, few) =
            "{busy} busy on average; {enough} the p99 wait under {target}; {few} not enough: the queue grows without end.";

        "The same, with less than one server in use."
        pool(busy, enough, target) = "{busy} busy on average; {enough} the p99 wait under {target}.";

        "Callers may be refused or give up: the fewest servers with which at most 1% do, and which \
         keep the p99 wait below the target."
        pool_that_turns_away(busy, enough, target, turn) =
            "{busy} busy on average if nobody were turned away; {enough} the p99 wait under {target} and {turn} away at most 1% of the callers.";

        "The same, if nobody may wait."
        pool_of_losses(busy, enough) =
            "{busy} busy on average if nobody were turned away; {enough} away at most 1% of the callers.";

        "More than a million servers would be needed."
        pool_too_small(busy, target) =
            "{busy} busy on average; not even a million servers keep the p99 wait under {target}.";

        "So many callers that no number of servers could be simulated."
        pool_unknown(busy, target) =
            "{busy} busy on average; how many keep the p99 wait under {target} is not known, because so large a pool takes too long to simulate.";

        "After any of these: arrivals or hold times were measured, and have intervals; with both ends \
         of these, as many servers are enough."
        pool_at_both_ends() = "That holds at both ends of the measured intervals.";

        "The same, with other numbers of servers."
        pool_within(least, most) =
            "With the measured intervals, {least} to {most} servers may be what is needed.";

        "The same, where no number of servers is enough at one end."
        pool_unsure() =
            "At the far end of the measured intervals, no number of servers is known to be enough.";

        "After any of these: numbers so close to the load that they are not simulated."
        pool_with_fewer() =
            "Fewer servers may be enough: closer to the load, simulations would take too long.";

        "The row with the most servers that serve less than what arrives."
        pool_queue_grows(servers, growth) = "With {servers} the queue grows by {growth} a second.";
    }

    "Fits": {
        "The curve misses the points by a tenth or more on average."
        poor_fit(error) =
            "The curve misses the measured throughput by {error} on average: do not rely on it.";

        "The point with the most threads is beyond the curve’s peak, and lower by more than 1% and \
         by more than twice the standard error of a point."
        peak(threads) = "Throughput peaks at about {threads} threads; more threads reduce it.";

        "The same, with the peak at one thread."
        peak_at_one() = "Throughput is highest with one thread; more threads reduce it.";

        "The points show no such fall: the fewest threads whose throughput no other point exceeds by \
         more than 1%, unless they are the most that were measured."
        no_gain_beyond(threads, next, after) =
            "No gain was seen beyond {threads}: measure {next} and {after} to see whether throughput falls.";

        "Throughput rises up to the last point, which is beyond the curve’s peak."
        still_rises(threads, next, after) =
            "Throughput still rises at {threads}, the most that were measured: measure {next} and {after}.";

        "Throughput rises up to the last point, and the curve peaks beyond it."
        peak_beyond(threads, measured) =
            "The curve peaks at about {threads} threads, but at most {measured} were measured: measure near the peak before you rely on it.";

        "Throughput rises up to the last point, and the curve up to twice that number of threads."
        no_peak(threads) =
            "The curve does not clearly fall up to {threads}; it ends there, at twice the largest number measured.";

        "Numbers of threads were not given."
        threads_by_littles_law() =
            "Numbers of threads marked ~ are throughput × latency, by Little’s law.";
    }
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    word(verdict).0
}

const VERDICTS: [Verdict; 6] = [
    Verdict::Better,
    Verdict::Worse,
    Verdict::Same,
    Verdict::NoWorse,
    Verdict::NoBetter,
    Verdict::Open,
];

/// The word for a verdict on a ratio of times whose 95% interval is [low, high], and the condition
/// for that verdict.
fn word(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("better", "high < 1/1.05"),
        Verdict::Worse => ("worse", "low > 1.05"),
        Verdict::Same => ("within 5%", "low ≥ 1/1.05 and high ≤ 1.05"),
        Verdict::NoWorse => ("no worse", "high ≤ 1.05"),
        Verdict::NoBetter => ("no better", "low ≥ 1/1.05"),
        Verdict::Open => ("undecided", "otherwise, or with fewer than 21 pairs of blocks"),
    }
}

/// The registry as Markdown: every sentence with its condition, and the warnings about a machine.
pub fn sentences(about_the_machine: &[WarningForm]) -> String {
    let mut text = String::from(
        "# Sentences\n\n\
         Every sentence that threadtoll prints about figures, and when. Generated from\n\
         `crates/report/src/sentences.rs` and the warnings of `crates/record` and `crates/machine` by\n\
         `UPDATE_SENTENCES=1 cargo test -p threadtoll-cli --test command sentences`.\n\n\
         Words in braces are filled in; figures come with their 95% intervals in parentheses, unless\n\
         they round to the same digits. A ratio *surely* differs from 1 if its 95% interval does not\n\
         contain 1: the interval of the paired ratio or, if the two were not paired, the quotients of the\n\
         far ends of their intervals, those of their ratios to the reference; with fewer than 21 pairs,\n\
         the interval that contains both of these. Where it contains 1, the reason is named: fewer than\n\
         21 pairs, if those alone would decide; otherwise the ratio's interval itself. Nothing is said of two that were measured in\n\
         different regimes, where the reference's times are more than 1.3 times apart.\n",
    );
    for chapter in CHAPTERS {
        text.push_str(&format!("\n## {}\n\n| sentence | when |\n|---|---|\n", chapter.heading));
        for Form { when, text: form } in chapter.forms {
            text.push_str(&format!("| {form} | {when} |\n"));
        }
    }
    for (heading, forms) in [
        ("Warnings about the figures of a row", fold::WARNINGS),
        ("Warnings about the machine", about_the_machine),
    ] {
        text.push_str(&format!("\n## {heading}\n\n| warning | when | code |\n|---|---|---|\n"));
        for WarningForm { code, when, text: form } in forms {
            text.push_str(&format!("| {form} | {when} | `{code}` |\n"));
        }
    }
    text.push_str(
        "\n## Verdicts\n\n\
         Words on a paired ratio of times with the 95% interval [low, high]; the first that fits.\n\
         Rates are judged by their reciprocals.\n\n| word | when |\n|---|---|\n",
    );
    for (word, when) in VERDICTS.map(word) {
        text.push_str(&format!("| {word} | {when} |\n"));
    }
    text
}
