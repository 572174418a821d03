//! Flat array files: little-endian integers one after another, nothing else.
//!
//! They have no headers, so that a file is its array; the manifest holds a CRC-32C of every 1 MiB
//! chunk, and a reader can check one chunk or all.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use crate::manifest::{FileEntry, FileKind};

/// Bytes of a chunk, which has one checksum.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A type of integers or floats that flat arrays hold.
pub trait Element: Pod {}
impl Element for u8 {}
impl Element for u32 {}
impl Element for u64 {}
impl Element for i64 {}
impl Element for f32 {}
impl Element for f64 {}

/// A writer of a flat array, which checksums it on the way to its file.
#[derive(Debug)]
pub struct FlatWriter {
    out: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
    crc: u32,
    chunk_crc: u32,
    chunks: Vec<u32>,
}

impl FlatWriter {
    /// Creates the file at `path`, or empties the one there.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| Error::io("create", path.display(), e))?;
        let out = BufWriter::with_capacity(CHUNK_BYTES, file);
        let path = path.to_owned();
        Ok(Self { out, path, bytes: 0, crc: 0, chunk_crc: 0, chunks: Vec::new() })
    }

    /// Appends `values` to the array.
    pub fn extend<T: Element>(&mut self, values: &[T]) -> Result<()> {
        let mut bytes: &[u8] = bytemuck::cast_slice(values);
        self.out.write_all(bytes).map_err(|e| Error::io("write", self.path.display(), e))?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - (self.bytes % CHUNK_BYTES as u64) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.chunk_crc = crc32c::crc32c_append(self.chunk_crc, now);
            self.bytes += now.len() as u64;
            if now.len() == room {
                self.chunks.push(std::mem::take(&mut self.chunk_crc));
            }
            bytes = later;
        }
        Ok(())
    }

    /// Forces the file to the device (`fsync`) and returns its entry for the manifest.
    pub fn finish(mut self) -> Result<FileEntry> {
        if !self.bytes.is_multiple_of(CHUNK_BYTES as u64) {
            self.chunks.push(self.chunk_crc);
        }
        let io = |e| Error::io("write", self.path.display(), e);
        self.out.flush().and_then(|()| self.out.get_ref().sync_all()).map_err(io)?;
        Ok(FileEntry {
            kind: FileKind::Flat,
            bytes: self.bytes,
            blocks: self.chunks.len() as u64,
            crc32c: self.crc,
            chunks: self.chunks,
        })
    }
}

/// Reads a whole array and checks every chunk.
pub fn read<T: Element>(path: &Path, entry: &FileEntry) -> Result<Vec<T>> {
    let mut values = vec![T::zeroed(); elements::<T>(path, entry)?];
    let mut file = open(path, entry)?;
    let chunks = bytemuck::cast_slice_mut(&mut values).chunks_mut(CHUNK_BYTES);
    for (number, chunk) in chunks.enumerate() {
        file.read_exact(chunk).map_err(|e| Error::io("read", path.display(), e))?;
        check_chunk(chunk, path, entry, number as u64)?;
    }
    Ok(values)
}

/// Checks every chunk of an array, for readers that map its file.
///
/// # Errors
/// [`ErrorKind::Format`] for an array that is damaged, or another's.
pub fn check(path: &Path, entry: &FileEntry) -> Result<()> {
    (0..entry.blocks).try_for_each(|number| read_chunk::<u8>(path, entry, number).map(drop))
}

/// Reads chunk `number` of an array (elements from `number × 1 MiB / size of T`) and checks it.
pub fn read_chunk<T: Element>(path: &Path, entry: &FileEntry, number: u64) -> Result<Vec<T>> {
    let len = chunk_elements::<T>(path, entry, number)?;
    let mut values = vec![T::zeroed(); len];
    read_chunk_to(path, entry, number, &mut values)?;
    Ok(values)
}

/// As [`read_chunk`], to `values`.
///
/// # Panics
/// If the chunk has another number of elements.
pub fn read_chunk_to<T: Element>(
    path: &Path,
    entry: &FileEntry,
    number: u64,
    values: &mut [T],
) -> Result<()> {
    assert_eq!(values.len(), chunk_elements::<T>(path, entry, number)?, "elements to read to");
    let mut file = open(path, entry)?;
    let chunk: &mut [u8] = bytemuck::cast_slice_mut(values);
    file.seek(SeekFrom::Start(number * CHUNK_BYTES as u64))
        .and_then(|_| file.read_exact(chunk))
        .map_err(|e| Error::io("read", path.display(), e))?;
    check_chunk(chunk, path, entry, number)
}

fn chunk_elements<T: Element>(path: &Path, entry: &FileEntry, number: u64) -> Result<usize> {
    elements::<T>(path, entry)?;
    if number >= entry.blocks {
        return Err(Error::new(ErrorKind::Input, format!("read chunk {number} of"))
            .object(path.display())
            .expected(format!("one of {} chunks", entry.blocks)));
    }
    let bytes = (entry.bytes - number * CHUNK_BYTES as u64).min(CHUNK_BYTES as u64);
    Ok(bytes as usize / size_of::<T>())
}

/// Checks the bytes of chunk `number` against the manifest.
pub fn check_chunk(chunk: &[u8], path: &Path, entry: &FileEntry, number: u64) -> Result<()> {
    let stored = entry.chunks.get(number as usize).copied();
    let computed = crc32c::crc32c(chunk);
    if stored == Some(computed) {
        return Ok(());
    }
    let offset = number * CHUNK_BYTES as u64;
    Err(Error::new(ErrorKind::Format, format!("use chunk {number} (offset {offset}) of"))
        .object(path.display())
        .expected(stored.map_or("no such chunk".into(), |crc| format!("CRC-32C {crc:08x}")))
        .got(format!("{computed:08x}"))
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it"))
}

/// The number of elements of the array that `entry` describes.
///
/// # Errors
/// [`ErrorKind::Format`] if it is no flat array, or its bytes are no whole number of elements.
pub fn elements<T: Element>(path: &Path, entry: &FileEntry) -> Result<usize> {
    if entry.kind != FileKind::Flat || !entry.bytes.is_multiple_of(size_of::<T>() as u64) {
        return Err(Error::new(ErrorKind::Format, "read")
            .object(path.display())
            .expected(format!("an array of {}-byte elements", size_of::<T>()))
            .got(format!("{} bytes of kind {:?}", entry.bytes, entry.kind)));
    }
    Ok(entry.bytes as usize / size_of::<T>())
}

/// Opens an array whose length is what the manifest says.
fn open(path: &Path, entry: &FileEntry) -> Result<File> {
    let io = |e| Error::io("open", path.display(), e);
    let bytes = fs::metadata(path).map_err(io)?.len();
    if bytes != entry.bytes {
        return Err(Error::new(ErrorKind::Format, "open")
            .object(path.display())
            .expected(format!("{} bytes", entry.bytes))
            .got(format!("{bytes} bytes"))
            .hint("the file was cut or replaced: rebuild the graph"));
    }
    File::open(path).map_err(io)
}
