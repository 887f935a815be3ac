//! CPU quotas of control groups.
//!
//! Each group from a process's own up to the root may have a quota, and all of them apply
//! (`Documentation/admin-guide/cgroup-v2.rst`; `scheduler/sched-bwc.rst` for version 1). A
//! container sees only the groups that are mounted in it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use crate::sysfs::text;

/// Directories of the groups that limit CPU time, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuGroups {
    directories: Vec<PathBuf>,
}

impl CpuGroups {
    /// Finds the groups of this process. A group outside the visible part of the hierarchy is
    /// represented by the mount itself.
    pub(crate) fn of_this_process(proc: &Path) -> CpuGroups {
        CpuGroups::find(proc, "self/cgroup", Some(Path::new("")))
    }

    /// Finds the groups of another process; empty if its group is not visible here.
    fn of_process(proc: &Path, pid: u32) -> CpuGroups {
        CpuGroups::find(proc, &format!("{pid}/cgroup"), None)
    }

    fn find(proc: &Path, memberships: &str, outside: Option<&Path>) -> CpuGroups {
        let memberships = text(proc.join(memberships)).unwrap_or_default();
        let mounts = text(proc.join("self/mountinfo")).unwrap_or_default();
        CpuGroups { directories: directories(&memberships, &mounts, outside) }
    }

    /// The tightest quota, in CPUs; `None` if there is no limit.
    pub(crate) fn quota_cpus(&self) -> Option<f64> {
        self.directories.iter().filter_map(|directory| quota(directory)).min_by(f64::total_cmp)
    }
}

/// Time that CPU quotas have taken from a process's control groups since the groups were created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Number of periods in which a group used up its quota.
    pub times: u64,
    /// Throttled time in nanoseconds, summed over CPUs.
    pub ns: u64,
}

/// Counts how often CPU quotas throttle a process.
///
/// ```
/// use threadtoll_machine::ThrottleCounter;
///
/// let counter = ThrottleCounter::of_process(std::process::id());
/// if let Some(before) = counter.read() {
///     assert!(counter.read().is_some_and(|now| now.times >= before.times));
/// }
/// ```
#[derive(Debug)]
pub struct ThrottleCounter {
    accounts: Vec<File>,
}

impl ThrottleCounter {
    /// A counter for the groups to which the process belongs now.
    pub fn of_process(pid: u32) -> ThrottleCounter {
        ThrottleCounter::of(&CpuGroups::of_process(Path::new("/proc"), pid))
    }

    pub(crate) fn of(groups: &CpuGroups) -> ThrottleCounter {
        let account = |directory: &PathBuf| File::open(directory.join("cpu.stat")).ok();
        ThrottleCounter { accounts: groups.directories.iter().filter_map(account).collect() }
    }

    /// Reads the counts, summed over nested groups; `None` if no group has a count.
    pub fn read(&self) -> Option<Throttled> {
        let mut buffer = [0; 4096];
        let mut sum: Option<Throttled> = None;
        for account in &self.accounts {
            let length = account.read_at(&mut buffer, 0).unwrap_or(0);
            if let Some(more) = throttled(&buffer[..length]) {
                let sum = sum.get_or_insert_default();
                sum.times = sum.times.saturating_add(more.times);
                sum.ns = sum.ns.saturating_add(more.ns);
            }
        }
        sum
    }
}

/// Version 1 of control groups reports nanoseconds, version 2 microseconds.
fn throttled(stat: &[u8]) -> Option<Throttled> {
    let text = std::str::from_utf8(stat).ok()?;
    let count =
        |name| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
    let ns = count("throttled_time ")
        .or_else(|| Some(count("throttled_usec ")?.saturating_mul(1_000)))
        .unwrap_or(0);
    Some(Throttled { times: count("nr_throttled ")?, ns })
}

fn quota(directory: &Path) -> Option<f64> {
    // Version 2 has "max 100000" or "50000 100000", in microseconds. Version 1 has −1 or
    // microseconds, with the period in another file.
    let (quota, period) = match text(directory.join("cpu.max")) {
        Some(max) => {
            max.split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()))?
        }
        None => {
            (text(directory.join("cpu.cfs_quota_us"))?, text(directory.join("cpu.cfs_period_us"))?)
        }
    };
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0 && (quota / period).is_finite()).then_some(quota / period)
}

/// Directories of a process's groups, up to the root of each mount, for both versions.
fn directories(memberships: &str, mounts: &str, outside: Option<&Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in memberships.lines() {
        // Fields are hierarchy:controllers:path. The unified hierarchy (version 2) is 0 and names
        // no controllers.
        let mut fields = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let unified = hierarchy == "0" && controllers.is_empty();
        if !unified && !controllers.split(',').any(|controller| controller == "cpu") {
            continue;
        }
        let mount = mounts.lines().filter_map(Mount::parse).find(|mount| {
            if unified {
                mount.kind == "cgroup2"
            } else {
                mount.kind == "cgroup" && mount.options.contains(&"cpu")
            }
        });
        if let Some(mount) = mount {
            found.extend(mount.way_up(Path::new(path), outside));
        }
    }
    found
}

struct Mount<'a> {
    root: PathBuf,
    point: PathBuf,
    kind: &'a str,
    options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    /// Format: `id parent dev root point options [tags] - type source super-options`
    /// (proc_pid_mountinfo(5)).
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (place, what) = line.split_once(" - ")?;
        let mut place = place.split(' ');
        let (root, point) = (place.nth(3)?, place.next()?);
        let mut what = what.split(' ');
        let (kind, options) = (what.next()?, what.nth(1)?);
        Some(Mount {
            root: unescape(root),
            point: unescape(point),
            kind,
            options: options.split(',').collect(),
        })
    }

    /// Directories of a group and its ancestors, below the mount point. If the mount does not show
    /// the group, `outside` replaces the group's path.
    fn way_up(&self, group: &Path, outside: Option<&Path>) -> Vec<PathBuf> {
        // A path with ".." leaves the visible part of the hierarchy.
        let climbs = group.components().any(|component| component == Component::ParentDir);
        let below = group.strip_prefix(&self.root).ok().filter(|_| !climbs).or(outside);
        let parts = below.into_iter().flat_map(Path::ancestors);
        parts.map(|part| self.point.join(part)).collect()
    }
}

/// mountinfo escapes blanks and backslashes as octal numbers.
fn unescape(text: &str) -> PathBuf {
    PathBuf::from(
        text.replace("\\040", " ")
            .replace("\\011", "\t")
            .replace("\\012", "\n")
            .replace("\\134", "\\"),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    /// Writes a `/proc` and its mounts into one directory, whose path replaces each `@`.
    fn machine(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> (TempDir, CpuGroups) {
        let root = tempfile::tempdir().unwrap();
        let name = root.path().to_str().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace('@', name)).unwrap();
        };
        put("proc/self/cgroup", cgroup);
        put("proc/self/mountinfo", mountinfo);
        for (path, text) in files {
            put(path, text);
        }
        let groups = CpuGroups::of_this_process(&root.path().join("proc"));
        (root, groups)
    }

    const UNIFIED: &str =
        "29 23 0:26 / @/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_tightest_quota_on_the_way_up_holds() {
        let (_root, groups) = machine(
            "0::/user.slice/app.scope\n",
            UNIFIED,
            &[
                ("cgroup/user.slice/app.scope/cpu.max", "400000 100000\n"),
                (
                    "cgroup/user.slice/app.scope/cpu.stat",
                    "usage_usec 5\nnr_throttled 3\nthrottled_usec 1500\n",
                ),
                ("cgroup/user.slice/cpu.max", "150000 100000\n"),
                ("cgroup/user.slice/cpu.stat", "nr_throttled 4\n"),
                ("cgroup/cpu.stat", "usage_usec 5\n"),
                ("cgroup/other.slice/cpu.max", "1000 100000\n"),
            ],
        );
        assert_eq!(groups.quota_cpus(), Some(1.5));
        let sum = ThrottleCounter::of(&groups).read();
        assert_eq!(sum, Some(Throttled { times: 7, ns: 1_500_000 }));
    }

    #[test]
    fn quotas_of_another_process() {
        let place = |cgroup: &str| {
            let (root, _) = machine(
                "0::/\n",
                UNIFIED,
                &[
                    ("cgroup/cpu.stat", "nr_throttled 1\n"),
                    ("cgroup/a/cpu.stat", "nr_throttled 2\nthrottled_time 5\n"),
                    ("proc/42/cgroup", cgroup),
                ],
            );
            let groups = CpuGroups::of_process(&root.path().join("proc"), 42);
            ThrottleCounter::of(&groups).read()
        };
        assert_eq!(place("0::/a\n"), Some(Throttled { times: 3, ns: 5 }));
        // The group is not visible. The counts of this process's own groups would be wrong.
        assert_eq!(place("0::/../a\n"), None);
        assert_eq!(place(""), None);
    }

    proptest! {
        #[test]
        fn any_account_is_read_or_refused(text in "(nr_throttled [0-9]{1,25}\n|.{0,20}\n){0,5}") {
            let _ = throttled(text.as_bytes());
        }
    }

    #[test]
    fn no_limit_is_none() {
        let (_root, groups) = machine("0::/\n", UNIFIED, &[("cgroup/cpu.max", "max 100000\n")]);
        assert_eq!(groups.quota_cpus(), None);
    }

    #[test]
    fn the_first_version_beside_the_second() {
        let mounts = "31 23 0:29 / @/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n\
                      32 23 0:30 / @/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 23 0:38 / @/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let (_root, groups) = machine(
            "4:memory:/m\n2:cpu,cpuacct:/jobs/one\n0::/\n",
            mounts,
            &[
                ("cgroup/cpu/jobs/one/cpu.cfs_quota_us", "50000\n"),
                ("cgroup/cpu/jobs/one/cpu.cfs_period_us", "100000\n"),
                ("cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n"),
                ("cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n"),
                ("cgroup/memory/m/cpu.max", "1 100000\n"),
            ],
        );
        assert_eq!(groups.quota_cpus(), Some(0.5));
    }

    #[test]
    fn containers_show_only_their_own_part() {
        // Without a cgroup namespace, the path is the host's. The mount shows only the container's
        // group.
        let mount = "29 23 0:26 /docker/abc @/cgroup rw - cgroup2 cgroup rw\n";
        let (_root, groups) = machine(
            "0::/docker/abc/inner\n",
            mount,
            &[("cgroup/inner/cpu.max", "200000 100000\n")],
        );
        assert_eq!(groups.quota_cpus(), Some(2.0));
        // The group is outside the namespace or the mount, so the mount itself represents it.
        for path in ["/../../elsewhere", "/elsewhere"] {
            let (_root, groups) =
                machine(&format!("0::{path}\n"), mount, &[("cgroup/cpu.max", "300000 100000\n")]);
            assert_eq!(groups.quota_cpus(), Some(3.0), "{path}");
        }
        // Blanks in mount points are escaped.
        let (_root, groups) = machine(
            "0::/\n",
            "29 23 0:26 / @/control\\040groups rw - cgroup2 cgroup rw\n",
            &[("control groups/cpu.max", "100000 100000\n")],
        );
        assert_eq!(groups.quota_cpus(), Some(1.0));
    }

    #[test]
    fn garbage_grants_nothing_and_takes_nothing() {
        for max in
            ["", "max", "100000", "0 0", "1 0", "-5 100000", "nan 100000", "inf 1", "a b", "\u{0}"]
        {
            let (_root, groups) = machine("0::/\n", UNIFIED, &[("cgroup/cpu.max", max)]);
            assert_eq!(groups.quota_cpus(), None, "{max:?}");
        }
        for (cgroup, mounts) in [
            ("", ""),
            ("0::", UNIFIED),
            ("x", "y - z"),
            ("0::/\n", "1 2 - cgroup2"),
            (":::", "- - -"),
        ] {
            let (_root, groups) = machine(cgroup, mounts, &[]);
            assert_eq!(groups.quota_cpus(), None);
        }
        let nowhere = CpuGroups::of_this_process(Path::new("/nonexistent"));
        assert_eq!(nowhere, CpuGroups::default());
        assert_eq!(throttled(b"nr_throttled x\n"), None);
    }
}
