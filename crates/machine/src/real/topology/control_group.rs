//! The processor time that control groups grant this process, versions 1 and 2.
//!
//! ```text
//! /proc/self/cgroup     the group in each hierarchy         0::/user.slice/job
//! /proc/self/mountinfo  the mount of each hierarchy         ... / /sys/fs/cgroup rw - cgroup2 ...
//! <mount>/user.slice/job/cpu.max, .../user.slice/cpu.max    150000 100000    or    max 100000
//! ```
//!
//! A group's limit binds all groups below it, so the smallest on the way to the root counts. In a
//! container the mount usually shows only the group's own part of the tree. The mount's *root*
//! (fourth field) must then be removed from the path. Paths that lead out of the visible part
//! (`/../..`) or are not below the root are taken as the mount point itself.
//!
//! The files are read as bytes. A path need not be UTF-8, and one such path, of whatever mount,
//! must not hide the others.

use crate::topology::Quota;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::vec::Vec;

pub(crate) fn quota() -> Option<Quota> {
    let groups = std::fs::read("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    least(&groups, &mounts, |path| std::fs::read(path).ok())
}

/// Returns the least quota of all that bind, given the two files and a way to read others.
fn least(groups: &[u8], mounts: &[u8], read: impl Fn(&Path) -> Option<Vec<u8>>) -> Option<Quota> {
    let mut quotas = Vec::new();
    for hierarchy in hierarchies(groups, mounts) {
        for directory in hierarchy.directories() {
            quotas.extend(match hierarchy.version {
                Version::One => {
                    let file = |name| read(&directory.join(name));
                    version_one(file("cpu.cfs_quota_us"), file("cpu.cfs_period_us"))
                }
                Version::Two => read(&directory.join("cpu.max")).as_deref().and_then(version_two),
            });
        }
    }
    quotas.into_iter().min_by(|a, b| a.processors().total_cmp(&b.processors()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted hierarchy with a processor controller, and this process's place in it.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    /// The version of the interface.
    version: Version,
    /// The directory where it is mounted.
    mount: PathBuf,
    /// Below the mount.
    group: PathBuf,
}

impl Hierarchy {
    /// The group's directory and all above it, down to the mount.
    fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.group.ancestors().map(|group| self.mount.join(group))
    }
}

fn hierarchies(groups: &[u8], mounts: &[u8]) -> Vec<Hierarchy> {
    lines(mounts).filter_map(mount).filter_map(|mount| mount.place(groups)).collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Returns what is before and what is behind the first `separator`.
fn split_once<'t>(text: &'t [u8], separator: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

/// Returns whether a list with commas names `wanted`.
fn names(list: &[u8], wanted: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|name| name == wanted)
}

/// A line of `mountinfo` about control groups.
#[derive(Debug)]
struct Mount {
    /// The version of the interface.
    version: Version,
    /// The root of the visible part.
    root: PathBuf,
    /// The directory where it is mounted.
    point: PathBuf,
}

/// `id parent major:minor root point options optional* - type source super-options`.
fn mount(line: &[u8]) -> Option<Mount> {
    let (before, after) = split_once(line, b" - ")?;
    let mut before = before.split(|byte| *byte == b' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(|byte| *byte == b' ');
    let version = match after.next()? {
        b"cgroup2" => Version::Two,
        b"cgroup" if names(after.nth(1)?, b"cpu") => Version::One,
        _ => return None,
    };
    Some(Mount { version, root: unescaped(root), point: unescaped(point) })
}

impl Mount {
    /// Finds the group in `/proc/self/cgroup`. Its lines are `number:controllers:path`. Version 2
    /// has the number 0 and no controllers.
    fn place(self, groups: &[u8]) -> Option<Hierarchy> {
        let path = lines(groups).find_map(|line| {
            let mut fields = line.splitn(3, |byte| *byte == b':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match self.version {
                Version::One => names(controllers, b"cpu"),
                Version::Two => number == b"0" && controllers.is_empty(),
            };
            ours.then_some(path)
        })?;
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let below = Path::new(OsStr::from_bytes(path)).strip_prefix(&self.root).ok();
        let visible = below.filter(|path| path.components().all(|part| part.as_os_str() != ".."));
        let group = visible.map(Path::to_path_buf).unwrap_or_default();
        Some(Hierarchy { version: self.version, mount: self.point, group })
    }
}

/// The kernel writes blanks and backslashes in paths as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        match octal(part) {
            Some((byte, rest)) => {
                path.push(byte);
                path.extend(rest);
            }
            None => {
                path.push(b'\\');
                path.extend(part);
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&path))
}

/// The byte that three octal digits stand for, and what follows them.
fn octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(3)?;
    let digits = core::str::from_utf8(digits).ok()?;
    Some((u8::from_str_radix(digits, 8).ok()?, rest))
}

/// A number, with blanks around it.
fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// `cpu.cfs_quota_us` is -1 where there is no limit.
fn version_one(quota: Option<Vec<u8>>, period: Option<Vec<u8>>) -> Option<Quota> {
    Quota::checked(number(&quota?)?, number(&period?)?)
}

/// `cpu.max` is `max` or a number, then the period.
fn version_two(text: &[u8]) -> Option<Quota> {
    let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    Quota::checked(number(fields.next()?)?, number(fields.next()?)?)
}

impl Quota {
    fn checked(runtime_us: u64, period_us: u64) -> Option<Self> {
        (period_us > 0).then_some(Self { runtime_us, period_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

    /// The quota in a system with these files.
    fn quota(
        groups: impl AsRef<[u8]>,
        mounts: impl AsRef<[u8]>,
        files: &[(&str, &str)],
    ) -> Option<(u64, u64)> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        least(groups.as_ref(), mounts.as_ref(), read)
            .map(|quota| (quota.runtime_us, quota.period_us))
    }

    #[test]
    fn version_2_takes_the_least_on_the_way_to_the_root() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "800000 100000\n"),
        ];
        assert_eq!(quota("0::/a/b\n", V2, &files), Some((150_000, 100_000)));
        assert_eq!(quota("0::/\n", V2, &files), Some((800_000, 100_000)));
        assert_eq!(quota("0::/a/b\n", V2, &files[..1]), None, "max is no limit");
        assert_eq!(quota("0::/a/b (deleted)\n", V2, &files), Some((150_000, 100_000)));
    }

    #[test]
    fn quotas_compare_by_share_not_by_runtime() {
        let files = [
            ("/sys/fs/cgroup/a/cpu.max", "20000 10000"),
            ("/sys/fs/cgroup/cpu.max", "100000 100000"),
        ];
        assert_eq!(quota("0::/a\n", V2, &files), Some((100_000, 100_000)));
    }

    #[test]
    fn version_1_reads_two_files_and_minus_one_is_no_limit() {
        let groups = "4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/job\n1:name=systemd:/\n";
        let directory = "/sys/fs/cgroup/cpu,cpuacct/job/";
        let quota_file = std::format!("{directory}cpu.cfs_quota_us");
        let period_file = std::format!("{directory}cpu.cfs_period_us");
        let files = |quota| [(quota_file.as_str(), quota), (period_file.as_str(), "50000\n")];
        assert_eq!(quota(groups, V1, &files("25000\n")), Some((25_000, 50_000)));
        assert_eq!(quota(groups, V1, &files("-1\n")), None);
        assert_eq!(quota("3:cpuset:/job\n", V1, &files("25000\n")), None, "cpuset is not cpu");
    }

    #[test]
    fn both_versions_side_by_side_both_bind() {
        let mounts = std::format!("{V1}{}", V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"));
        let files = [
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
            ("/sys/fs/cgroup/unified/cpu.max", "200000 100000"),
        ];
        assert_eq!(quota("2:cpu,cpuacct:/\n0::/\n", &mounts, &files), Some((200_000, 100_000)));
        assert_eq!(
            quota("2:cpu,cpuacct:/\n0::/\n", &mounts, &files[..2]),
            Some((300_000, 100_000))
        );
    }

    #[test]
    fn a_container_sees_its_group_as_the_mounts_root() {
        // Docker with the host's namespace: the path is the host's, the mount shows only this
        // container's part.
        let mounts = "900 880 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let files = [
            ("/sys/fs/cgroup/cpu.max", "400000 100000"),
            ("/sys/fs/cgroup/inner/cpu.max", "100000 100000"),
        ];
        assert_eq!(quota("0::/docker/ab\n", mounts, &files), Some((400_000, 100_000)));
        assert_eq!(quota("0::/docker/ab/inner\n", mounts, &files), Some((100_000, 100_000)));
        assert_eq!(quota("0::/../other\n", mounts, &files), Some((400_000, 100_000)));
        assert_eq!(quota("0::/\n", mounts, &files), Some((400_000, 100_000)));
    }

    #[test]
    fn a_mount_point_with_blanks_is_found() {
        let mounts = r"41 31 0:38 / /my\040groups\134x rw - cgroup2 cgroup2 rw";
        let files = [(r"/my groups\x/cpu.max", "100000 100000")];
        assert_eq!(quota("0::/\n", mounts, &files), Some((100_000, 100_000)));
    }

    #[test]
    fn paths_need_not_be_utf_8() {
        // Another mount, which has nothing to do with it.
        let other = b"40 31 0:37 / /mnt/\xff\xfe rw - ext4 /dev/sda1 rw\n";
        let files = [("/sys/fs/cgroup/a/cpu.max", "150000 100000\n")];
        assert_eq!(
            quota("0::/a\n", [other, V2.as_bytes()].concat(), &files),
            Some((150_000, 100_000))
        );
        // A line of another hierarchy.
        let groups = b"1:name=systemd:/\xff\n0::/a\n";
        assert_eq!(quota(groups, V2, &files), Some((150_000, 100_000)));
        // The mount and the group themselves.
        let mounts = b"41 31 0:38 / /my\xff\\040groups rw - cgroup2 cgroup2 rw\n";
        let read = |path: &Path| {
            let wanted = OsStr::from_bytes(b"/my\xff groups/\xfe/cpu.max");
            (path.as_os_str() == wanted).then(|| b"50000 100000".to_vec())
        };
        let found = least(b"0::/\xfe\n", mounts, read);
        assert_eq!(found, Some(Quota { runtime_us: 50_000, period_us: 100_000 }));
    }

    #[test]
    fn nonsense_is_no_limit() {
        let at_root = |text| [("/sys/fs/cgroup/cpu.max", text)];
        for text in ["", "max", "5", "5 0", "-3 100", "x y", "99999999999999999999999 1", "\0"] {
            assert_eq!(quota("0::/\n", V2, &at_root(text)), None, "{text:?}");
        }
        for groups in ["", "0", "0:", "::", "0:cpu", "\n\n"] {
            assert_eq!(quota(groups, V2, &at_root("1 1")), None, "{groups:?}");
        }
        for mounts in ["", " - ", "a b c d e - cgroup", "- cgroup2", "1 2 3 / - cgroup2"] {
            assert_eq!(quota("0::/\n", mounts, &at_root("1 1")), None, "{mounts:?}");
        }
    }

    #[test]
    fn this_system_can_be_read() {
        if let Some(quota) = super::quota() {
            assert!(quota.period_us > 0);
        }
    }
}
