//! Files whose every byte is known, in temporary directories, and engines over them.
// Each test crate uses a part of this, and a helper that fails must fail the test.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tiergraph_core::progress::Silent;
use tiergraph_core::{Cancel, Result};
use tiergraph_io::engine::{Null, Nvme, Posix, ReaderThreads, Uring, uring};
use tiergraph_io::{
    Done, FileId, FileSet, NvmeDrives, Opening, RawDrive, Read, ReadEngine, Wait, write_drives,
};
use tiergraph_mem::AlignedBuf;
use tiergraph_nvme::{
    DeviceUse, MemoryStorage, NamespaceDevice, SoftwareController, SoftwareOptions, Timing,
};

pub const PAGE: usize = 4096;

/// What a test file is called on drives.
pub const IDENTITY: &str = "00c0ffee/test.blocks";

/// The variable that names the devices of drives that tests may write, by commas.
const WRITABLE_DRIVES: &str = "TIERGRAPH_TEST_NVME_DRIVES";

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
        files.identify(file, IDENTITY.into());
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

    /// Drives of 32 MiB, of small blocks and commands, to which the file was written.
    pub fn written_drives(&self, count: usize) -> Arc<NvmeDrives> {
        let drives = MemoryDrives::new(count, 32 << 20);
        drives.write(&self.files, false).unwrap();
        NvmeDrives::open(&self.files, drives.start(), Timing::default()).unwrap()
    }

    /// Every base engine of this system, over the file itself.
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

    /// An engine of passthrough over drives of this machine that tests may write, to which the file was
    /// written; `None`, with the reason printed, where there are none.
    pub fn passthrough(&self, depth: usize) -> Option<Box<dyn ReadEngine>> {
        let Ok(devices) = std::env::var(WRITABLE_DRIVES) else {
            println!(
                "skipped passthrough: {WRITABLE_DRIVES} names no devices, as it does in `make nvme-test`"
            );
            return None;
        };
        let devices: Vec<PathBuf> = devices.split(',').map(PathBuf::from).collect();
        let open = |what_for| NamespaceDevice::open_all(&devices, what_for).unwrap();
        let (timing, cancel) = (Timing::default(), Cancel::default());
        write_drives(&self.files, open(DeviceUse::Writing), true, timing, &Silent, &cancel)
            .unwrap();
        let drives = NvmeDrives::open(&self.files, open(DeviceUse::Reading), timing).unwrap();
        Some(Box::new(Nvme::new(&drives, depth).unwrap()))
    }
}

impl TestFile {
    /// Every base engine of this system, those over a copy of the file included; only that of passthrough where
    /// there are drives for it, in a machine that is emulated for that and takes a minute for the others.
    pub fn all_engines(&self, depth: usize) -> Vec<Box<dyn ReadEngine>> {
        if let Some(engine) = self.passthrough(depth) {
            return vec![engine];
        }
        let mut engines = self.engines(depth);
        engines.push(Box::new(Nvme::new(&self.written_drives(3), depth).unwrap()));
        engines
    }
}

/// Drives of memory, which keep what was written to them when their controllers have ended.
pub struct MemoryDrives(pub Vec<Arc<MemoryStorage>>);

impl MemoryDrives {
    pub fn new(count: usize, bytes: usize) -> Self {
        let drive = |_| Arc::new(MemoryStorage::new(&vec![0; bytes]).unwrap());
        Self((0..count).map(drive).collect())
    }

    pub fn start(&self) -> Vec<RawDrive> {
        let start = |(number, storage): (usize, &Arc<MemoryStorage>)| {
            let options = SoftwareOptions {
                block_bytes: if number % 2 == 0 { 512 } else { 4096 },
                most_bytes: 8192 << number,
                ..SoftwareOptions::default()
            };
            let software = SoftwareController::start(Arc::clone(storage), options).unwrap();
            RawDrive::software(format!("drive{number}"), software)
        };
        self.0.iter().enumerate().map(start).collect()
    }

    pub fn write(&self, files: &FileSet, force: bool) -> Result<u64> {
        let cancel = Cancel::default();
        write_drives(files, self.start(), force, Timing::default(), &Silent, &cancel)
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
