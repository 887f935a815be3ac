//! The control groups of this process, as far as they ration CPU time.
//!
//! A quota of any group on the way from this process's own up to the root holds it back, so all of them are asked
//! (`Documentation/admin-guide/cgroup-v2.rst`, `scheduler/sched-bwc.rst` for version 1). In a container only the part
//! of the way is visible that is mounted there.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::sysfs::text;

/// The directories of the groups that ration CPU time, own first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuGroups {
    directories: Vec<PathBuf>,
}

impl CpuGroups {
    /// Finds them by `self/cgroup` and `self/mountinfo` below `proc`.
    pub(crate) fn of_this_process(proc: &Path) -> CpuGroups {
        let memberships = text(proc.join("self/cgroup")).unwrap_or_default();
        let mounts = text(proc.join("self/mountinfo")).unwrap_or_default();
        CpuGroups { directories: directories(&memberships, &mounts) }
    }

    /// CPU time that the tightest group grants, in CPUs; nothing without a limit.
    pub(crate) fn quota_cpus(&self) -> Option<f64> {
        self.directories.iter().filter_map(|directory| quota(directory)).min_by(f64::total_cmp)
    }

    /// Their `cpu.stat` files, open.
    pub(crate) fn accounts(&self) -> Vec<File> {
        self.directories.iter().filter_map(|directory| File::open(directory.join("cpu.stat")).ok()).collect()
    }
}

/// How often a group was throttled, from its `cpu.stat`; both versions write it alike.
pub(crate) fn throttled(stat: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(stat).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

fn quota(directory: &Path) -> Option<f64> {
    // Version 2: "max 100000" or "50000 100000". Version 1: -1 or microseconds, the period in a file of its own.
    let (quota, period) = match text(directory.join("cpu.max")) {
        Some(max) => max.split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()))?,
        None => (text(directory.join("cpu.cfs_quota_us"))?, text(directory.join("cpu.cfs_period_us"))?),
    };
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0 && (quota / period).is_finite()).then_some(quota / period)
}

/// The mounted directories on the way from this process's groups up, for both versions.
fn directories(memberships: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in memberships.lines() {
        // hierarchy:controllers:path; the unified hierarchy is 0 and names no controllers.
        let mut fields = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
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
            found.extend(mount.way_up(Path::new(path)));
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
    /// A line of mountinfo: `id parent dev root point options [tags] - type source super-options` (proc_pid_mountinfo(5)).
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

    /// The directories of a group and of those above it, as far as this mount shows them.
    fn way_up(&self, group: &Path) -> Vec<PathBuf> {
        // A path that climbs out of what is visible ("/../..") says only that the group is elsewhere; and a group that is
        // not below the mount's root is seen, if at all, as the mount itself (containers without a group namespace).
        let climbs = group.components().any(|component| component == Component::ParentDir);
        let below = group.strip_prefix(&self.root).ok().filter(|_| !climbs).unwrap_or(Path::new(""));
        below.ancestors().map(|part| self.point.join(part)).collect()
    }
}

/// Blanks and backslashes stand in mountinfo as octal numbers.
fn unescape(text: &str) -> PathBuf {
    PathBuf::from(
        text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\"),
    )
}
