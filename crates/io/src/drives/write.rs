//! Writing files to raw drives.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use tiergraph_core::{ByteSize, Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::drive::{CONTENTS_BYTES, DriveContents, DriveFile};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::{SharedMemory, Timing};

use super::placed::on_written;
use super::queues::{DriveQueues, read_all, span_bytes, wait};
use super::{Drive, RawDrives, UNIT_BYTES};
use crate::FileSet;
use crate::stripe::Layout;

/// Bytes at the end of a drive where others keep what they have on it: the copy of a partition table.
const END_BYTES: u64 = 1 << 20;

/// Writes all files of `files`, which are identified, to `drives`, from which [`NvmeDrives::open`] then
/// reads them. Whatever the drives held is lost; drives that hold something are written only if `force`.
/// Returns the bytes written. If it is interrupted or fails, the drives hold no graph.
///
/// [`NvmeDrives::open`]: super::NvmeDrives::open
///
/// # Errors
/// [`ErrorKind::Input`] for drives that hold something, unless it is forced, or that are too small;
/// [`ErrorKind::Io`] if a file cannot be read or a drive written; [`ErrorKind::Interrupted`] when cancelled.
pub fn write_drives(
    files: &FileSet,
    drives: impl Into<RawDrives>,
    force: bool,
    timing: Timing,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<u64> {
    let (drives, access) = drives.into().start(timing)?;
    let mut writer = Writer { drives: &drives, queues: access.queues()?, timing };
    let (listed, end) = list(files, drives.len() as u64);
    for drive in 0..drives.len() {
        writer.check_size(drive, end)?;
        if !force {
            writer.check_empty(drive)?;
        }
    }
    let id = format!("{:016x}", RandomState::new().build_hasher().finish());
    let contents =
        |drive| DriveContents::new(id.clone(), drive, drives.len(), UNIT_BYTES, listed.clone());
    let held: Vec<_> = (0..drives.len()).map(|drive| Some(contents(drive))).collect();
    let placed = on_written(files, &drives, &held)?;
    // Nothing that was there is found there again, whatever happens from here on.
    for drive in 0..drives.len() {
        writer.clear(drive, end)?;
    }
    let total = files.ids().map(|file| files.len(file)).sum();
    let most = |drive: usize| span_bytes(&drives[drive].namespace);
    let mut written = 0;
    for (number, file) in files.ids().enumerate() {
        let len = files.len(file);
        for begin in (0..len).step_by(UNIT_BYTES as usize) {
            cancel.check("write the drive")?;
            let bytes = (len - begin).min(UNIT_BYTES) as usize;
            let internal = || Error::new(ErrorKind::Internal, "place a file on drives");
            for piece in placed.pieces(number, begin, bytes, most).ok_or_else(internal)? {
                let from = begin + piece.begin as u64;
                writer.write(piece.drive, piece.offset, piece.len, |span| {
                    files.read_to(file, from, span, piece.len)
                })?;
            }
            written += bytes as u64;
            progress.update("write", written, total, "bytes");
        }
    }
    // The files are there before anything says so.
    for drive in 0..drives.len() {
        writer.flush(drive)?;
    }
    for (drive, contents) in held.iter().flatten().enumerate() {
        writer.write_bytes(drive, 0, &contents.to_bytes()?)?;
        writer.flush(drive)?;
    }
    Ok(written)
}

/// The files and their places, and the first byte of each drive behind them.
fn list(files: &FileSet, drives: u64) -> (Vec<DriveFile>, u64) {
    let mut end = 0;
    let listed = files.ids().map(|id| {
        let (start, bytes) = (end, files.len(id));
        end = (end + bytes).next_multiple_of(PAGE_BYTES as u64);
        DriveFile { file: files.identity(id).into(), bytes, start }
    });
    let listed = listed.collect();
    let layout = Layout { stripes: drives, unit_bytes: UNIT_BYTES };
    let most = (0..drives).map(|drive| layout.stripe_len(drive, end)).max().unwrap_or(0);
    (listed, CONTENTS_BYTES as u64 + most)
}

/// Drives that are written, with many commands in flight.
struct Writer<'a> {
    drives: &'a [Drive],
    queues: Box<dyn DriveQueues>,
    timing: Timing,
}

impl Writer<'_> {
    fn refused(&self, drive: usize) -> Error {
        Error::new(ErrorKind::Input, "write the NVMe drive").object(&self.drives[drive].name)
    }

    fn check_size(&self, drive: usize, end: u64) -> Result<()> {
        let bytes = self.drives[drive].namespace.bytes();
        if bytes >= end {
            return Ok(());
        }
        let (needed, there) = (ByteSize(end), ByteSize(bytes));
        let hint = "name several drives: the files are spread over them";
        Err(self
            .refused(drive)
            .expected(format!("`{needed}`"))
            .got(format!("`{there}`"))
            .hint(hint))
    }

    /// Refuses a drive that holds anything where file systems and partition tables have their marks.
    fn check_empty(&mut self, drive: usize) -> Result<()> {
        let bytes = self.drives[drive].namespace.bytes();
        let mut first = vec![0; bytes.min(CONTENTS_BYTES as u64) as usize];
        let mut last = vec![0; bytes.min(END_BYTES) as usize];
        self.read(drive, 0, &mut first)?;
        self.read(drive, bytes - last.len() as u64, &mut last)?;
        let holds = match DriveContents::from_bytes(&first, &self.drives[drive].name) {
            Ok(None) if first.iter().chain(&last).all(|&byte| byte == 0) => return Ok(()),
            Ok(None) => "data that tiergraph has not written: a file system, partitions, or others",
            Ok(Some(_)) => "a graph",
            Err(_) => "a graph that is damaged",
        };
        Err(self
            .refused(drive)
            .expected("an empty drive")
            .got(holds)
            .hint("`--force` writes it all the same, and what it holds is lost"))
    }

    fn read(&mut self, drive: usize, offset: u64, to: &mut [u8]) -> Result<()> {
        let most = self.timing.command;
        read_all(&mut *self.queues, drive, &self.drives[drive], offset, to, most)
    }

    /// Writes zeros where the contents will be, and at the drive's end as far as it is behind `end`.
    fn clear(&mut self, drive: usize, end: u64) -> Result<()> {
        let bytes = self.drives[drive].namespace.bytes();
        self.write_bytes(drive, 0, &vec![0; CONTENTS_BYTES])?;
        let last = end.max(bytes.saturating_sub(END_BYTES));
        self.write_bytes(drive, last, &vec![0; (bytes - last) as usize])?;
        self.flush(drive)
    }

    /// Writes whole blocks from `offset` on.
    fn write_bytes(&mut self, drive: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut offset = offset;
        for piece in bytes.chunks(span_bytes(&self.drives[drive].namespace)) {
            self.write(drive, offset, piece.len(), |span| {
                span.write_bytes(0, piece);
                Ok(())
            })?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes `len` bytes from `offset` on, which `fill` puts into memory, and zeros behind them up to the
    /// page's end.
    fn write(
        &mut self,
        drive: usize,
        offset: u64,
        len: usize,
        fill: impl FnOnce(&SharedMemory) -> Result<()>,
    ) -> Result<()> {
        while self.queues.next_slot(drive).is_none() {
            self.take_one(drive)?;
        }
        let Some(slot) = self.queues.next_slot(drive) else { return Ok(()) };
        let whole = len.next_multiple_of(PAGE_BYTES);
        let whole = whole.min((self.drives[drive].namespace.bytes() - offset) as usize);
        let span = self.queues.span(drive, slot);
        fill(&span)?;
        span.fill_zeros(len, whole - len);
        self.queues.write(drive, offset, whole)?;
        self.queues.ring_doorbells();
        Ok(())
    }

    /// Waits until everything that was written is durable.
    fn flush(&mut self, drive: usize) -> Result<()> {
        self.take_all(drive)?;
        self.queues.flush(drive)?;
        self.queues.ring_doorbells();
        self.take_all(drive)
    }

    fn take_all(&mut self, drive: usize) -> Result<()> {
        while self.queues.in_flight() > 0 {
            self.take_one(drive)?;
        }
        Ok(())
    }

    /// Waits for `drive`, at which something is in flight, until any of the drives has done something.
    fn take_one(&mut self, drive: usize) -> Result<()> {
        let drives = self.drives;
        let completed = wait(&mut *self.queues, &drives[drive], self.timing.command)?;
        let name = &drives[completed.drive].name;
        completed.result.map_err(|e| Error::io("write the NVMe drive", name, e))
    }
}
