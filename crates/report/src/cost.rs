use threadtoll_record::Cost;

pub(crate) fn cpu_ns(cost: &Cost) -> Option<f64> {
    Some(cost.user_ns_per_op?.get() + cost.system_ns_per_op?.get())
}

pub(crate) fn switches(cost: &Cost) -> Option<f64> {
    Some(cost.voluntary_switches_per_op?.get() + cost.involuntary_switches_per_op?.get())
}
