//! CPU quotas of the control groups of this process.
//!
//! A quota of any group between the process and the root applies, so all of them are read
//! (`Documentation/admin-guide/cgroup-v2.rst`, `scheduler/sched-bwc.rst` for version 1). A
//! container sees only the mounted part of that path.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::sysfs::text;

/// Directories of the groups that limit CPU time, innermost first.
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

    /// The tightest quota, in CPUs; `None` without a limit.
    pub(crate) fn quota_cpus(&self) -> Option<f64> {
        self.directories.iter().filter_map(|directory| quota(directory)).min_by(f64::total_cmp)
    }

    pub(crate) fn accounts(&self) -> Vec<File> {
        self.directories
            .iter()
            .filter_map(|directory| File::open(directory.join("cpu.stat")).ok())
            .collect()
    }
}

/// Number of times that a group was throttled, from its `cpu.stat`, which both versions write
/// alike.
pub(crate) fn throttled(stat: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(stat).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

fn quota(directory: &Path) -> Option<f64> {
    // Version 2: "max 100000" or "50000 100000". Version 1: -1 or microseconds, and the period in
    // another file.
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

/// The mounted directories from the groups of this process up to the root, for both versions.
fn directories(memberships: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in memberships.lines() {
        // hierarchy:controllers:path; the unified hierarchy is 0 and names no controllers.
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
    /// A line of mountinfo: `id parent dev root point options [tags] - type source super-options`
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

    /// Directories of a group and its ancestors, as far as this mount shows them.
    fn way_up(&self, group: &Path) -> Vec<PathBuf> {
        // A path out of the visible part ("/../..") does not say where the group is. A group
        // outside the mount's root appears, if at all, as the mount itself (containers without a
        // cgroup namespace).
        let climbs = group.components().any(|component| component == Component::ParentDir);
        let below =
            group.strip_prefix(&self.root).ok().filter(|_| !climbs).unwrap_or(Path::new(""));
        below.ancestors().map(|part| self.point.join(part)).collect()
    }
}

/// mountinfo writes blanks and backslashes as octal numbers.
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

    use tempfile::TempDir;

    use super::*;

    /// A `/proc` and its mounts in one directory, for which `@` stands in the texts.
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
                    "usage_usec 5\nnr_periods 9\nnr_throttled 3\n",
                ),
                ("cgroup/user.slice/cpu.max", "150000 100000\n"),
                ("cgroup/user.slice/cpu.stat", "nr_throttled 4\n"),
                ("cgroup/cpu.stat", "usage_usec 5\n"),
                ("cgroup/other.slice/cpu.max", "1000 100000\n"),
            ],
        );
        assert_eq!(groups.quota_cpus(), Some(1.5));
        let counts = groups.accounts().into_iter().map(|mut file| {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut text).unwrap();
            throttled(&text)
        });
        assert_eq!(counts.collect::<Vec<_>>(), [Some(3), Some(4), None]);
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
        // Without a cgroup namespace the path is the host's, and the mount shows only the
        // container's group.
        let mount = "29 23 0:26 /docker/abc @/cgroup rw - cgroup2 cgroup rw\n";
        let (_root, groups) = machine(
            "0::/docker/abc/inner\n",
            mount,
            &[("cgroup/inner/cpu.max", "200000 100000\n")],
        );
        assert_eq!(groups.quota_cpus(), Some(2.0));
        // A path out of the namespace or of another mount: only the mount itself is seen.
        for path in ["/../../elsewhere", "/elsewhere"] {
            let (_root, groups) =
                machine(&format!("0::{path}\n"), mount, &[("cgroup/cpu.max", "300000 100000\n")]);
            assert_eq!(groups.quota_cpus(), Some(3.0), "{path}");
        }
        // Mount points with blanks are escaped.
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
