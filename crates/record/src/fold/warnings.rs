crate::warnings! {
    "More than a quarter of the blocks were disturbed."
    "disturbed" disturbed(disturbed, blocks) = "{disturbed} of {blocks} blocks of measurements were disturbed.";

    "More threads that do not sleep than CPUs."
    "oversubscribed" oversubscribed() =
        "More threads than CPUs took part, so the figure includes the scheduler's time slices.";

    "The blocks of a cell form separate clusters, and those of the reference do not."
    "several-levels" several_levels(levels, apart) =
        "The measurements of this row form {levels} clusters, up to a factor of {apart:.2} apart, but those of the reference form one. The row's figures mix all clusters, and its intervals may span the gaps between them.";

    "A stamp on one CPU was earlier than the preceding stamp on the other CPU."
    "negative-one-way" negative_one_way(negative) =
        "{negative} one-way times were negative and are not counted: the clocks of the two CPUs disagree.";

    "The sender's lateness in an open loop is more than a quarter of the delivery time, at the median \
     or at the 99% quantile; or, of a saturated queue, a stamp takes more than a quarter of the time \
     per message."
    "generator-was-limit" generator_was_limit(which) =
        "{which}: the sender that generates the load, not the queue alone, was the limit.";

    "The clocks of the two CPUs of an open loop are known to agree only within more than 5% of the \
     median delivery time."
    "clocks-apart" clocks_apart(bound, median) =
        "The clocks of the two CPUs are known to agree only within {bound:.0} ns, more than 5% of the median of {median:.0} ns: the median may be off by that much.";

    "The 95% interval of the stretches is more than 10%, and more than the cost of four stamps, away \
     from both mean and median of the stamped round trips."
    "stretches-disagree" stretches_disagree(stretches, stamped) =
        "Round trips took {stretches:.0} ns when timed many at a time, but {stamped:.0} ns when timed one by one: they changed between measurements, so neither figure alone describes them.";
}
