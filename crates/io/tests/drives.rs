//! Files that are written to raw drives, and read from there.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{IDENTITY, MemoryDrives, PAGE, TestFile, check, run};
use tiergraph_core::{Cancel, Error, ErrorKind, Progress};
use tiergraph_io::engine::Nvme;
use tiergraph_io::{FileSet, NvmeDrives, Wait, write_drives};
use tiergraph_nvme::{SharedMemory, Storage, Timing};

const LEN: usize = 300 * PAGE + 100;

fn open(test: &TestFile, drives: &MemoryDrives) -> Result<Arc<NvmeDrives>, Error> {
    NvmeDrives::open(&test.files, drives.start(), Timing::default())
}

fn refused(result: Result<Arc<NvmeDrives>, Error>, expected: &str) {
    let error = result.expect_err("the drives hold something else");
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert!(error.to_string().contains(expected), "{error}");
    assert!(error.to_string().contains("`tiergraph drive write`"), "{error}");
}

fn first_bytes(drives: &MemoryDrives, drive: usize) -> Vec<u8> {
    let (to, mut bytes) = (SharedMemory::zeroed(PAGE).unwrap(), vec![0; PAGE]);
    drives.0[drive].read(0, &to, 0, PAGE).unwrap();
    to.read_bytes(0, &mut bytes);
    bytes
}

fn fill(drives: &MemoryDrives, drive: usize, offset: u64, byte: u8) {
    let from = SharedMemory::zeroed(PAGE).unwrap();
    from.write_bytes(0, &[byte; 8]);
    drives.0[drive].write(offset, &from, 0, PAGE).unwrap();
}

#[test]
fn what_is_written_to_any_number_of_drives_is_read_from_them_in_any_order() {
    for (stripes, unit) in [(1, PAGE), (3, 8 * PAGE)] {
        let test = TestFile::new(LEN, stripes, unit);
        for count in [1, 2, 3] {
            let mut drives = MemoryDrives::new(count, 8 << 20);
            assert_eq!(drives.write(&test.files, false).unwrap(), LEN as u64);
            drives.0.reverse();
            let opened = open(&test, &drives).unwrap();
            let mut engine = Nvme::new(&opened, 5).unwrap();
            let size = if stripes == 1 { 70 * PAGE } else { 4 * PAGE };
            let offsets: Vec<usize> = (0..LEN).step_by(size).collect();
            let read = |(tag, &offset): (usize, &usize)| test.read(offset, size, tag as u64);
            let reads = offsets.iter().enumerate().map(read).collect();
            for done in run(&mut engine, reads, Wait::One) {
                check(&test, offsets[done.tag as usize], size, &done);
            }
        }
    }
}

#[test]
fn drives_that_hold_anything_are_written_only_by_force() {
    let test = TestFile::new(LEN, 1, PAGE);
    // Where file systems begin, where some are marked, and where the copy of a partition table is.
    for offset in [0, 64 << 10, (8 << 20) - 4096] {
        let drives = MemoryDrives::new(2, 8 << 20);
        fill(&drives, 1, offset, 1);
        let error = drives.write(&test.files, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let text = error.to_string();
        assert!(text.contains("`drive1`: expected an empty drive, got data that"), "{text}");
        assert!(text.contains("hint: `--force`"), "{text}");
        assert_eq!(first_bytes(&drives, 0), [0; PAGE], "no drive was written");
        drives.write(&test.files, true).unwrap();
        let error = drives.write(&test.files, false).unwrap_err().to_string();
        assert!(error.contains("`drive0`: expected an empty drive, got a graph"), "{error}");
        assert!(open(&test, &drives).is_ok());
    }
}

#[test]
fn drives_that_are_too_small_are_refused_before_anything_is_written() {
    let test = TestFile::new(LEN, 1, PAGE);
    let drives = MemoryDrives::new(1, 5 << 20);
    let error = drives.write(&test.files, false).unwrap_err().to_string();
    assert!(error.contains("expected `5.2 MiB`, got `5.0 MiB`"), "{error}");
    assert!(error.contains("hint: name several drives"), "{error}");
    assert_eq!(first_bytes(&drives, 0), [0; PAGE]);
    assert!(MemoryDrives::new(2, 5 << 20).write(&test.files, false).is_ok());
}

#[test]
fn drives_with_another_graph_or_none_or_a_part_are_refused() {
    let test = TestFile::new(LEN, 1, PAGE);
    let empty = MemoryDrives::new(1, 8 << 20);
    refused(open(&test, &empty), "`drive0`: expected a graph, got a drive that tiergraph has not");
    let drives = MemoryDrives::new(3, 8 << 20);
    drives.write(&test.files, false).unwrap();
    let some = |numbers: &[usize]| {
        MemoryDrives(numbers.iter().map(|&number| Arc::clone(&drives.0[number])).collect())
    };
    refused(open(&test, &some(&[0, 1])), "expected the drives that were written together, `3`");
    refused(open(&test, &some(&[0, 1, 1])), "got drive `1` of writing");
    let others = MemoryDrives::new(1, 8 << 20);
    others.write(&test.files, false).unwrap();
    let mixed = MemoryDrives([&drives.0[..2], &others.0[..]].concat());
    refused(open(&test, &mixed), "got drive `0` of writing");
    // The same name and another length, and the other way round.
    let mut longer = TestFile::new(LEN + 1, 1, PAGE);
    refused(open(&longer, &drives), &format!("expected `{IDENTITY}` of `{}` bytes", LEN + 1));
    let mut files = FileSet::new();
    longer.file = files.open(&longer.paths[0]).unwrap();
    files.identify(longer.file, "ffffffff/test.blocks".into());
    longer.files = Arc::new(files);
    refused(open(&longer, &drives), "got a drive with files of build 00c0ffee");
}

#[test]
fn damage_of_the_contents_is_told() {
    let test = TestFile::new(LEN, 1, PAGE);
    let drives = MemoryDrives::new(1, 8 << 20);
    drives.write(&test.files, false).unwrap();
    let from = SharedMemory::zeroed(PAGE).unwrap();
    let mut bytes = first_bytes(&drives, 0);
    bytes[200] ^= 4;
    from.write_bytes(0, &bytes);
    drives.0[0].write(0, &from, 0, PAGE).unwrap();
    let error = open(&test, &drives).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(error.to_string().contains("`drive0`"), "{error}");
}

/// Cancels the writing after some bytes.
struct Stopping(Cancel);

impl Progress for Stopping {
    fn update(&self, stage: &str, done: u64, total: u64, unit: &str) {
        assert_eq!((stage, total, unit), ("write", LEN as u64, "bytes"));
        if done > LEN as u64 / 2 {
            self.0.cancel();
        }
    }
}

#[test]
fn a_writing_that_is_interrupted_leaves_drives_without_a_graph() {
    let test = TestFile::new(LEN, 1, PAGE);
    let drives = MemoryDrives::new(2, 8 << 20);
    drives.write(&test.files, false).unwrap();
    let stopping = Stopping(Cancel::default());
    let cancel = stopping.0.clone();
    let timing = Timing::default();
    let stopped = write_drives(&test.files, drives.start(), true, timing, &stopping, &cancel);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    refused(open(&test, &drives), "expected a graph, got a drive that tiergraph has not");
}
