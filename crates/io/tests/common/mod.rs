//! Files whose every byte is known, in temporary directories, and engines over them.
// Each test crate uses a part of this, and a helper that fails must fail the test.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tiergraph_io::engine::{Null, Nvme, Posix, ReaderThreads, Uring, uring};
use tiergraph_io::{Done, FileId, FileSet, NvmeDrives, Opening, Read, ReadEngine, Wait};
use tiergraph_mem::AlignedBuf;
use tiergraph_nvme::{SoftwareOptions, Timing};

pub const PAGE: usize = 4096;

/// The byte at `offset` of every test file: as the null engine generates them, each 8-byte word
/// holds its own offset.
pub fn byte_at(offset: u64) -> u8 {
    (offset & !7).to_le_bytes()[(offset & 7) as usize]
}

/// A file of `len` bytes on `stripes` stripes of `unit` bytes.
pub struct TestFile {
    pub directory: TempDir,
    pub paths: Vec<PathBuf>,
    pub files: Arc<FileSet>,
    pub file: FileId,
    pub len: usize,
    pub unit: usize,
}

impl TestFile {
    pub fn new(len: usize, stripes: usize, unit: usize) -> Self {
        Self::opened(len, stripes, unit, Opening::Direct)
    }

    pub fn opened(len: usize, stripes: usize, unit: usize, opening: Opening) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..len as u64).map(byte_at).collect();
        let mut contents = vec![Vec::new(); stripes];
        for (number, chunk) in bytes.chunks(unit).enumerate() {
            contents[number % stripes].extend_from_slice(chunk);
        }
        let paths: Vec<PathBuf> =
            (0..stripes).map(|s| directory.path().join(format!("stripe{s}.blocks"))).collect();
        for (path, content) in paths.iter().zip(&contents) {
            fs::write(path, content).unwrap();
        }
        let mut files = FileSet::with_opening(opening);
        let file = files.open_striped(&paths, unit as u64).unwrap();
        Self { directory, paths, files: Arc::new(files), file, len, unit }
    }

    pub fn read(&self, offset: usize, len: usize, tag: u64) -> Read {
        let mut buffer = AlignedBuf::zeroed(len).unwrap();
        buffer.fill(0x55);
        Read { file: self.file, offset: offset as u64, len, to: buffer.into(), at: 0, tag }
    }

    /// How many bytes a read gets.
    pub fn available(&self, offset: usize, len: usize) -> usize {
        self.len.saturating_sub(offset).min(len)
    }

    /// Two software controllers that hold the stripes.
    pub fn drives(&self, options: SoftwareOptions) -> Arc<NvmeDrives> {
        NvmeDrives::software(&self.files, 2, &options, Timing::default()).unwrap()
    }

    /// Every base engine of this system.
    pub fn engines(&self, depth: usize) -> Vec<Box<dyn ReadEngine>> {
        let files = || Arc::clone(&self.files);
        let mut engines: Vec<Box<dyn ReadEngine>> = vec![
            Box::new(Posix::new(files(), depth)),
            Box::new(ReaderThreads::posix(&files(), depth).unwrap()),
            Box::new(Null::new(files(), depth)),
            Box::new(Nvme::new(&self.drives(SoftwareOptions::default()), depth).unwrap()),
        ];
        match uring::probe() {
            Ok(()) => engines.push(Box::new(Uring::new(files(), depth).unwrap())),
            Err(reason) => println!("skipped uring: {reason}"),
        }
        engines
    }
}

/// Whether a completion of a whole-reading engine holds what the file has at `offset`.
pub fn check(test: &TestFile, offset: usize, len: usize, done: &Done) {
    let count = *done.result.as_ref().unwrap();
    assert_eq!(count, test.available(offset, len), "bytes at {offset}");
    check_bytes(offset, &done.to.bytes()[..count]);
}

pub fn check_bytes(offset: usize, bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        assert_eq!(byte, byte_at((offset + i) as u64), "byte {i} of the read at {offset}");
    }
}

/// Submits every read as room comes and returns all completions.
pub fn run(engine: &mut dyn ReadEngine, reads: Vec<Read>, wait: Wait) -> Vec<Done> {
    let (count, mut done) = (reads.len(), Vec::new());
    let mut reads = VecDeque::from(reads);
    while done.len() < count {
        engine.submit(&mut reads);
        engine.poll(&mut done, wait).unwrap();
    }
    assert_eq!(engine.in_flight(), 0);
    done
}
