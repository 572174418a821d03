//! Reads of files for a controller's thread, many at a time: by an io_uring, so that a drive of files has as
//! many reads in flight as its queues ask for; one after the other where the system has no io_uring.
//!
//! A batch is what a thread found in a queue at once. It waits for all of a batch, so that none of a queue's
//! reads is in flight when the queue is deleted or the controller reset.

use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, squeue, types};

use crate::SharedMemory;
use crate::completion::Status;

/// Entries of a ring.
const ENTRIES: u32 = 256;

/// A read of a file: bytes of a command's data.
#[derive(Debug)]
pub struct FileRead {
    /// The file, which is open until the read ends.
    pub file: RawFd,
    /// The byte of the file from which on is read.
    pub offset: u64,
    /// Where its bytes go.
    pub to: SharedMemory,
    /// The byte of `to` where they begin.
    pub at: usize,
    /// Bytes from there on: those that the file does not have become zeros.
    pub len: usize,
    /// The number of bytes that the file must have, `len` at most.
    pub there: usize,
}

/// The reads of one thread.
#[derive(Default)]
pub(super) struct FileReads {
    ring: Ring,
    /// Reads, each with the number of its command in the batch.
    batch: Vec<(usize, FileRead)>,
}

/// The ring of a thread.
#[derive(Default)]
enum Ring {
    /// Not tried yet.
    #[default]
    Untried,
    Open(Box<IoUring>),
    /// The system has none.
    None,
}

impl FileReads {
    /// Adds a read of command number `command` to the batch.
    pub fn push(&mut self, command: usize, read: FileRead) {
        self.batch.push((command, read));
    }

    /// The number of reads in the batch.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether the batch has no read.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Reads the batch, and calls `failed` with the number of each command that could not be read.
    pub fn read(&mut self, mut failed: impl FnMut(usize, Status)) {
        if matches!(self.ring, Ring::Untried) {
            self.ring = IoUring::new(ENTRIES).map_or(Ring::None, |ring| Ring::Open(Box::new(ring)));
        }
        let mut batch = std::mem::take(&mut self.batch);
        for part in batch.chunks(ENTRIES as usize) {
            let mut done = vec![None; part.len()];
            if let Ring::Open(ring) = &mut self.ring
                && submit(ring, part, &mut done).is_err()
            {
                // Whatever the kernel took has ended: see `submit`.
                self.ring = Ring::None;
            }
            for ((command, read), done) in part.iter().zip(done) {
                if read.finish(done.unwrap_or(0)).is_err() {
                    failed(*command, Status::UNRECOVERED_READ_ERROR);
                }
            }
        }
        batch.clear();
        self.batch = batch;
    }
}

/// Reads by the ring; `done` becomes how many bytes each read brought, of those that brought any.
///
/// # Errors
/// The kernel takes no reads; those that it took before have ended.
fn submit(
    ring: &mut IoUring,
    reads: &[(usize, FileRead)],
    done: &mut [Option<usize>],
) -> io::Result<()> {
    let entries: Vec<squeue::Entry> = (0..)
        .zip(reads)
        .map(|(number, (_, read))| {
            // Whole blocks, though the file may end before them: direct reads have no other lengths.
            let to = read.to.bytes(read.at, read.len);
            let entry = opcode::Read::new(types::Fd(read.file), to.as_ptr(), read.len as u32);
            entry.offset(read.offset).build().user_data(number)
        })
        .collect();
    // SAFETY: files are open, and the bytes are ours to write, until the reads end, for which this function
    // waits. The ring has an entry for each read of a part.
    unsafe { ring.submission().push_multiple(&entries) }.map_err(io::Error::other)?;
    let mut left = reads.len();
    while left > 0 {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                // Those that wait in the ring are never taken; those that were taken are waited for.
                let taken = reads.len() - ring.submission().len();
                let mut ended = reads.len() - left;
                while ended < taken {
                    ended += ring.completion().count();
                    std::thread::yield_now();
                }
                return Err(error);
            }
            _ => {}
        }
        for completion in ring.completion() {
            let read = usize::try_from(completion.result()).ok();
            done[completion.user_data() as usize] = read;
            left -= 1;
        }
    }
    Ok(())
}

impl FileRead {
    /// Reads what is left, where `done` bytes are there, and zeros behind the file.
    pub(super) fn finish(&self, mut done: usize) -> io::Result<()> {
        let Self { file, offset, to, at, len, there } = self;
        if done < *there {
            done += to.read_file(file, offset + done as u64, at + done, len - done)?;
        }
        if done < *there {
            // The file is shorter than it was: zeros would be none of its bytes.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.fill_zeros(at + there, len - there);
        Ok(())
    }
}
