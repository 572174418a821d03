//! Reads a whole file into memory: indexes, degrees, id maps.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::{Done, FileId, FileSet, Read, ReadEngine, Wait};

/// Bytes of one read.
const PIECE_BYTES: usize = 1 << 20;

/// Reads all of `file` with an idle engine of [`open_engine`](crate::open_engine).
///
/// The result is the file's length rounded up to whole pages, the rest zero. Beside it, up to
/// `engine.capacity()` pieces of 1 MiB are resident; every byte is copied once.
///
/// # Errors
/// [`ErrorKind::Io`] when a read fails (others may still be in flight then: drop the engine),
/// [`ErrorKind::Budget`] when there is no such memory.
///
/// # Panics
/// When `file` is not of `files`.
pub fn load(engine: &mut dyn ReadEngine, files: &FileSet, file: FileId) -> Result<AlignedBuf> {
    let len = usize::try_from(files.len(file))
        .map_err(|_| Error::new(ErrorKind::Budget, "hold a file in memory").got(files.len(file)))?;
    let mut whole = AlignedBuf::zeroed(len)?;
    let piece = files.piece_bytes(file, PIECE_BYTES);
    let mut spare = AlignedBuf::batch(engine.capacity().min(len.div_ceil(piece)), piece)?;
    let mut done: Vec<Done> = Vec::new();
    let mut next = 0;
    while next < len || engine.in_flight() > 0 {
        while next < len
            && let Some(buffer) = spare.pop()
        {
            let wanted = piece.min((len - next).next_multiple_of(PAGE_BYTES));
            let read = Read { file, offset: next as u64, len: wanted, buffer, tag: next as u64 };
            if let Err(refused) = engine.submit(read) {
                spare.push(refused.buffer);
                break;
            }
            next += wanted;
        }
        engine.poll(&mut done, Wait::One)?;
        for Done { tag, buffer, result } in done.drain(..) {
            let (start, count) = (tag as usize, result?);
            whole[start..start + count].copy_from_slice(&buffer[..count]);
            spare.push(buffer);
        }
    }
    Ok(whole)
}
