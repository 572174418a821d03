//! What a control group leaves of its memory limit: containers and batch systems set one, and
//! `MemAvailable` knows nothing of it.
//!
//! Both hierarchies are read (v1: `memory.limit_in_bytes`; v2: `memory.max`; kernel documentation,
//! `admin-guide/cgroup-v1/memory.rst` and `cgroup-v2.rst`). A limit holds for everything below it,
//! so the tightest of the group and its ancestors counts. File pages that the kernel can drop
//! (`inactive_file`) are charged to the group but are not in anybody's way.

use std::fs;
use std::path::Path;

/// The names of one hierarchy's files.
struct Hierarchy {
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static str,
}

const V1: Hierarchy = Hierarchy {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};
const V2: Hierarchy =
    Hierarchy { limit: "memory.max", usage: "memory.current", reclaimable: "inactive_file" };

/// Bytes that the tightest memory limit leaves; `None` where no limit is set. `membership` is the text
/// of `/proc/self/cgroup`, `mount` where the hierarchies are mounted (`/sys/fs/cgroup`).
pub fn headroom_bytes(membership: &str, mount: &Path) -> Option<u64> {
    let mut tightest: Option<u64> = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (hierarchy, roots) = if controllers.is_empty() {
            (&V2, vec![mount.to_path_buf(), mount.join("unified")])
        } else if controllers.split(',').any(|c| c == "memory") {
            (&V1, vec![mount.join("memory"), mount.join(controllers)])
        } else {
            continue;
        };
        let here = roots.iter().filter_map(|root| tightest_above(hierarchy, root, group)).min();
        tightest = tightest.into_iter().chain(here).min();
    }
    tightest
}

/// The least headroom of `group` and its ancestors below `root`. In a container without a group
/// namespace the path names the host's groups, none of which is mounted here but the last: `root`.
fn tightest_above(hierarchy: &Hierarchy, root: &Path, group: &str) -> Option<u64> {
    Path::new(group.trim_start_matches('/'))
        .ancestors()
        .filter_map(|ancestor| headroom_of(hierarchy, &root.join(ancestor)))
        .min()
}

/// The headroom of one group; none where it has no limit (`max`, or 2⁶³ less a page in v1, which
/// any real size is below).
fn headroom_of(hierarchy: &Hierarchy, group: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse().ok();
    let limit: u64 = number(hierarchy.limit).filter(|&limit| limit < 1 << 62)?;
    let usage: u64 = number(hierarchy.usage)?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == hierarchy.reclaimable)
        .and_then(|(_, bytes)| bytes.trim().parse().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(root.join(path)).unwrap();
        for (name, text) in files {
            fs::write(root.join(path).join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_ancestor_of_v2_counts_and_cached_files_do_not() {
        let mount = tempfile::tempdir().unwrap();
        let job = [
            ("memory.max", "1000\n"),
            ("memory.current", "800\n"),
            ("memory.stat", "anon 300\ninactive_file 500\nslab 1\n"),
        ];
        group(mount.path(), "slice/job", &[("memory.max", "max\n"), ("memory.current", "800\n")]);
        group(mount.path(), "slice", &job);
        assert_eq!(headroom_bytes("0::/slice/job\n", mount.path()), Some(700));
    }

    #[test]
    fn v1_and_a_path_that_only_the_host_has() {
        let mount = tempfile::tempdir().unwrap();
        let root = [("memory.limit_in_bytes", "4096\n"), ("memory.usage_in_bytes", "96\n")];
        group(mount.path(), "memory", &root);
        let membership = "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n0::/\n";
        assert_eq!(headroom_bytes(membership, mount.path()), Some(4000));
    }

    #[test]
    fn no_limit_leaves_everything() {
        let mount = tempfile::tempdir().unwrap();
        let unlimited =
            [("memory.limit_in_bytes", "9223372036854771712\n"), ("memory.usage_in_bytes", "1\n")];
        group(mount.path(), "memory/a", &unlimited);
        assert_eq!(headroom_bytes("4:memory:/a\n0::/\n", mount.path()), None);
        assert_eq!(headroom_bytes("garbage", mount.path()), None);
    }
}
