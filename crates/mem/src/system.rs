//! What the system says about memory: how much this process may take, how much it took.

use std::fs;
use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::cgroup;

/// The largest resident size that this process has had (`VmHWM`), in bytes.
///
/// `ru_maxrss` would be shorter to ask for, but a child starts with its parent's.
pub fn peak_rss_bytes() -> Result<u64> {
    field("/proc/self/status", "VmHWM")
}

/// Bytes that this process can take without swapping or being killed: what the kernel calls
/// available, or what the control group's limit leaves where that is less.
pub fn available_memory_bytes() -> Result<u64> {
    let machine = field("/proc/meminfo", "MemAvailable")?;
    // Without control groups there is no such file and no such limit.
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = cgroup::headroom_bytes(&membership, Path::new("/sys/fs/cgroup"));
    Ok(group.map_or(machine, |group| group.min(machine)))
}

/// Reads one `Name:   123 kB` line of a `/proc` file.
fn field(path: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    parse(&text, name).ok_or_else(|| {
        Error::new(ErrorKind::Io, "read").object(path).expected(format!("a line `{name}: … kB`"))
    })
}

fn parse(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuf;

    #[test]
    fn the_peak_grows_with_what_is_touched() {
        let before = peak_rss_bytes().unwrap();
        let mut buffer = AlignedBuf::zeroed(64 << 20).unwrap();
        buffer.fill(1);
        assert!(peak_rss_bytes().unwrap() >= before.max(64 << 20));
        assert!(buffer.iter().all(|&b| b == 1));
    }

    #[test]
    fn available_memory_is_less_than_the_machine_has() {
        let total = field("/proc/meminfo", "MemTotal").unwrap();
        let available = available_memory_bytes().unwrap();
        assert!((1..=total).contains(&available));
    }

    #[test]
    fn a_missing_line_and_a_missing_file_are_errors() {
        assert_eq!(parse("MemFree:  5 kB\nMemAvailable:  12 kB\n", "MemAvailable"), Some(12 << 10));
        let e = field("/proc/meminfo", "MemNone").unwrap_err();
        assert_eq!(e.to_string(), "cannot read `/proc/meminfo`: expected a line `MemNone: … kB`");
        let e = field("/proc/none", "VmHWM").unwrap_err();
        assert_eq!(
            e.to_string(),
            "cannot read `/proc/none`: No such file or directory (os error 2)"
        );
    }
}
