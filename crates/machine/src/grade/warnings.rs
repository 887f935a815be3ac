threadtoll_record::warnings! {
    "The topology was read from another machine's tree."
    "synthetic-topology" synthetic_topology() =
        "The topology was read from a folder (--sysfs) and is that of another machine: nothing can be measured. Leave out --sysfs to measure this machine.";

    "The process may use one CPU."
    "one-cpu" one_cpu() =
        "This process may use only one CPU: no hand-off between two CPUs can be measured. Allow a second one (taskset, cpuset, the container's CPU limit).";

    "The control group's quota is below the CPUs that the process may use; two spinning threads are \
     throttled where it is below 2."
    "quota" quota(quota, cpus, threads) =
        "The control group's quota is the time of {quota:.2} CPUs, spread over {cpus} CPUs: {threads} are throttled for tens of milliseconds at a time. Lift the quota (cpu.max, docker --cpus), or restrict the process to CPUs instead (cpuset).";

    "In the noisier half of the watched CPUs, the time lost in gaps or the longest gap exceeds the \
     limit of grade A."
    "noise" noise(lost) =
        "Idle CPUs lost time to interruptions: {lost}. Stop other programs, move interrupts to other CPUs, or isolate CPUs (isolcpus, nohz_full); on a virtual machine, use dedicated CPUs.";

    "The hypervisor stole any time while the CPUs were watched."
    "steal" steal(share) =
        "The hypervisor stole {share} of the CPUs' time while they were watched, and may do so during measurements. For repeatable figures, use dedicated CPUs.";

    "The watching threads were queued behind others for more than 0.1% of the time."
    "busy" busy(share) =
        "The threads that watched the CPUs waited for them {share} of the time, because other programs or the kernel used them. Stop other programs, or measure on CPUs that they do not use (--cpus).";

    "Run-queue delay is not known, and the load average exceeds 0.5 per CPU."
    "busy" load(load) =
        "The load average of the last minute is {load:.1} per CPU. If other programs are still running, stop them, or measure on CPUs that they do not use (--cpus).";

    "The clock's smallest step exceeds 2 ns."
    "clock-step" clock_step(step) =
        "The clock's smallest step is {step:.1} ns, which limits the resolution of tails. Means and medians are not affected: they are taken over many round trips.";

    "Reading the clock takes more than 50 ns."
    "clock-cost" clock_cost(cost) =
        "Reading the clock takes {cost:.0} ns, which is part of every stamped round trip. If the CPU's own counter is reliable here, let the kernel use it (current_clocksource: tsc).";

    "The kernel does not show the CPUs' topology."
    "topology-unreadable" topology_unreadable() =
        "The kernel does not show which CPUs share a core (/sys/devices/system/cpu/cpu*/topology): a pair may be two hardware threads of one core. Make /sys readable in the container, or name CPUs of two cores (--cpus).";

    "A hypervisor was found."
    "virtual-machine" virtual_machine(hypervisor) =
        "This is a virtual machine ({hypervisor}): interrupts and wake-ups go through the hypervisor, and other load on the host is invisible. Compare figures only with those of such machines.";

    "The CPUs were not watched."
    "not-watched" not_watched() =
        "The noise of the CPUs was not measured. Run `threadtoll check` to measure it.";

    "The kernel does not show run-queue delay."
    "no-schedstat" no_schedstat() =
        "The kernel does not show run-queue delay (/proc/PID/schedstat): measurements that other threads disturb may go unmarked. Use a kernel with CONFIG_SCHED_INFO, and a /proc that shows it.";

    "The frequency governor is not `performance`."
    "governor" governor(governor) =
        "The frequency governor is {governor}: CPUs are slow after sleeping, so rare hand-offs cost more than frequent ones. To avoid that, run `cpupower frequency-set -g performance`.";

    "Frequency boost is on."
    "boost" boost() =
        "Frequency boost is on: a CPU's speed depends on temperature and on the load of other CPUs. For repeatable figures, turn it off (/sys/devices/system/cpu/cpufreq/boost, or intel_pstate/no_turbo).";

    "Two of the CPUs are hardware threads of one core."
    "smt" smt() =
        "Some CPUs are hardware threads of one core: work on one slows its sibling. Pairs of siblings are measured only on request; keep other programs off the siblings of measured CPUs.";

    "The process may not use all CPUs."
    "cpuset" cpuset(allowed, cpus) =
        "This process may use {allowed} of {cpus} CPUs (cpuset or affinity): programs on the others may share its caches. Their noise is not seen.";

    "The timer slack exceeds 50 us."
    "timer-slack" timer_slack(slack) =
        "The timer slack of this process is {slack}: sleeps with a timeout take that much longer. Start threadtoll from a shell with the default of 50 us (/proc/PID/timerslack_ns).";

    "The membarrier system call fails."
    "no-membarrier" no_membarrier() =
        "The membarrier system call does not work here (an old kernel, or a seccomp sandbox): waits that use it fall back to fences, which cost a few nanoseconds per message.";
}
