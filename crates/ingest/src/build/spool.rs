//! A spool: edges written to a temporary file during one pass, for the next one to read.
//!
//! The file is made of pieces of one size: a column of sources, one of targets and one of weights.
//! A thread writes them behind the pass that fills them, another reads them ahead of the pass that
//! uses them, so both cost the disk's time and a copy.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result, threads};
use tiergraph_mem::AlignedBuf;

use super::ahead::{Ahead, Spares};
use crate::source::{EdgeBatch, Endpoints};
use tiergraph_io::temporary::TemporaryFile;

/// Pieces in memory while a spool is written: one being filled, one waiting, one being written.
const WRITE_PIECES: usize = 3;
/// Pieces' worth of memory while a spool is read: batches, and the piece that they are read from.
const READ_PIECES: usize = 4;
/// Pieces in memory at most, while one spool is read and another written.
pub(super) const PIECES: usize = WRITE_PIECES + READ_PIECES;
/// The most bytes of an edge in memory: two ids and a weight.
pub(super) const EDGE_BYTES: usize = 24;

/// One piece of the file: where it lies and what it holds.
#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: u64,
    edges: usize,
    /// Whether ids have 8 bytes, not 4.
    wide: bool,
}

/// A complete spool.
#[derive(Debug)]
pub(super) struct Spool {
    file: Arc<TemporaryFile>,
    pieces: Arc<Vec<Piece>>,
    piece_edges: usize,
    weighted: bool,
}

/// A writer of a spool.
#[derive(Debug)]
pub(super) struct SpoolWriter {
    buffer: AlignedBuf,
    open: Piece,
    piece_edges: usize,
    weighted: bool,
    file: Arc<TemporaryFile>,
    full: Sender<(AlignedBuf, Piece)>,
    empty: Receiver<AlignedBuf>,
    thread: Option<JoinHandle<Result<Vec<Piece>>>>,
}

impl SpoolWriter {
    /// Makes a writer of a spool in `file`, of pieces of `piece_edges` edges (a multiple of 1024).
    pub(super) fn new(
        file: Arc<TemporaryFile>,
        piece_edges: usize,
        weighted: bool,
    ) -> Result<Self> {
        let bytes = piece_edges * EDGE_BYTES;
        let (full, filled) = bounded::<(AlignedBuf, Piece)>(1);
        let (give, empty) = bounded(WRITE_PIECES);
        for _ in 1..WRITE_PIECES {
            let _ = give.send(AlignedBuf::zeroed(bytes)?);
        }
        let target = Arc::clone(&file);
        let body = move || {
            let mut pieces = Vec::new();
            for (buffer, mut piece) in filled {
                let used = piece_edges * edge_bytes(piece.wide, weighted);
                piece.offset = target.append(&buffer[..used])?;
                pieces.push(piece);
                let _ = give.send(buffer);
            }
            Ok(pieces)
        };
        let thread = Some(threads::start("write-spool", body)?);
        let open = Piece { offset: 0, edges: 0, wide: false };
        let buffer = AlignedBuf::zeroed(bytes)?;
        Ok(Self { buffer, open, piece_edges, weighted, file, full, empty, thread })
    }

    /// Appends the edges of `batch`.
    pub(super) fn push(&mut self, batch: &EdgeBatch) -> Result<()> {
        let wide = matches!(batch.ends, Endpoints::U64 { .. });
        let mut done = 0;
        while done < batch.len() {
            if self.open.edges == self.piece_edges || (self.open.wide != wide) {
                self.flush()?;
                self.open.wide = wide;
            }
            let n = (self.piece_edges - self.open.edges).min(batch.len() - done);
            let range = done..done + n;
            match &batch.ends {
                Endpoints::U32 { src, dst } => {
                    self.copy(0, 4, bytemuck::cast_slice(&src[range.clone()]));
                    self.copy(4, 4, bytemuck::cast_slice(&dst[range.clone()]));
                }
                Endpoints::U64 { src, dst } => {
                    self.copy(0, 8, bytemuck::cast_slice(&src[range.clone()]));
                    self.copy(8, 8, bytemuck::cast_slice(&dst[range.clone()]));
                }
            }
            if let (true, Some(weights)) = (self.weighted, &batch.weights) {
                let before = if wide { 16 } else { 8 };
                self.copy(before, 8, bytemuck::cast_slice(&weights[range]));
            }
            self.open.edges += n;
            done += n;
        }
        Ok(())
    }

    /// Copies `bytes` into a column of the piece; the columns before it have `before` bytes an edge.
    fn copy(&mut self, before: usize, width: usize, bytes: &[u8]) {
        let at = before * self.piece_edges + width * self.open.edges;
        self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn flush(&mut self) -> Result<()> {
        if self.open.edges == 0 {
            return Ok(());
        }
        let Ok(next) = self.empty.recv() else { return Err(self.cause()) };
        let buffer = std::mem::replace(&mut self.buffer, next);
        if self.full.send((buffer, self.open)).is_err() {
            return Err(self.cause());
        }
        self.open.edges = 0;
        Ok(())
    }

    /// The error with which the writing thread has ended.
    fn cause(&mut self) -> Error {
        let ended = || Error::new(ErrorKind::Io, "write the edges aside").got("its thread ended");
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => error,
            _ => ended(),
        }
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> Result<Spool> {
        self.flush()?;
        // Without a sender the thread ends after what it has.
        self.full = bounded(0).0;
        let Some(Ok(pieces)) = self.thread.take().map(JoinHandle::join) else {
            return Err(self.cause());
        };
        let pieces = Arc::new(pieces?);
        let (piece_edges, weighted) = (self.piece_edges, self.weighted);
        Ok(Spool { file: self.file, pieces, piece_edges, weighted })
    }
}

fn edge_bytes(wide: bool, weighted: bool) -> usize {
    (if wide { 16 } else { 8 }) + if weighted { 8 } else { 0 }
}

impl Spool {
    /// Starts to read the edges from the first one on. What was read may be written over.
    pub(super) fn read(&self) -> Result<SpoolReader> {
        let spares = Spares::<EdgeBatch>::new(2);
        let (file, pieces, batches) =
            (Arc::clone(&self.file), Arc::clone(&self.pieces), spares.clone());
        let (piece_edges, weighted, count) = (self.piece_edges, self.weighted, self.pieces.len());
        let mut buffer = AlignedBuf::zeroed(piece_edges * EDGE_BYTES)?;
        let read = move |number: usize| {
            let piece: &Piece = &pieces[number];
            let bytes = &mut buffer[..piece_edges * edge_bytes(piece.wide, weighted)];
            file.read(bytes, piece.offset)?;
            file.release(piece.offset..piece.offset + bytes.len() as u64);
            let mut batch = batches.take().unwrap_or_default();
            unpack(bytes, piece, piece_edges, weighted, &mut batch);
            Ok(batch)
        };
        Ok(SpoolReader { batches: Ahead::start("read-spool", 1, count, read)?, spares })
    }
}

fn unpack(bytes: &[u8], piece: &Piece, piece_edges: usize, weighted: bool, batch: &mut EdgeBatch) {
    let n = piece.edges;
    if piece.wide {
        let (src, dst) = batch.as_u64_mut();
        src.extend_from_slice(&bytemuck::cast_slice(&bytes[..8 * piece_edges])[..n]);
        dst.extend_from_slice(
            &bytemuck::cast_slice(&bytes[8 * piece_edges..16 * piece_edges])[..n],
        );
    } else {
        let (src, dst) = batch.as_u32_mut();
        src.extend_from_slice(&bytemuck::cast_slice(&bytes[..4 * piece_edges])[..n]);
        dst.extend_from_slice(&bytemuck::cast_slice(&bytes[4 * piece_edges..8 * piece_edges])[..n]);
    }
    if weighted {
        let column = &bytes[edge_bytes(piece.wide, false) * piece_edges..];
        let weights = batch.weights.get_or_insert_default();
        weights.extend_from_slice(&bytemuck::cast_slice(column)[..n]);
    }
}

/// A reader of a spool.
#[derive(Debug)]
pub(super) struct SpoolReader {
    batches: Ahead<EdgeBatch>,
    spares: Spares<EdgeBatch>,
}

impl SpoolReader {
    /// Replaces the edges of `batch` by the next ones; false at the end.
    pub(super) fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        match self.batches.next() {
            Some(next) => {
                self.spares.give(std::mem::replace(batch, next?));
                Ok(true)
            }
            None => {
                batch.clear();
                Ok(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_both_widths_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = Arc::new(TemporaryFile::create(&dir.path().join("s")).unwrap());
        let mut writer = SpoolWriter::new(file, 1024, true).unwrap();
        let (mut pairs, mut weights) = (Vec::new(), Vec::new());
        for i in 0..40u64 {
            let n = 150 * (i % 3);
            let wide = i % 7 == 0;
            let edges = (0..n).map(|j| (i * 10 + j, if wide { 1 << 40 } else { 3 } + j));
            let edges: Vec<_> = edges.collect();
            let mut batch = EdgeBatch { weights: Some(Vec::new()), ..EdgeBatch::default() };
            if wide {
                let (src, dst) = batch.as_u64_mut();
                edges.iter().for_each(|e| (src.push(e.0), dst.push(e.1)).0);
            } else {
                let (src, dst) = batch.as_u32_mut();
                edges.iter().for_each(|e| (src.push(e.0 as u32), dst.push(e.1 as u32)).0);
            }
            batch.weights = Some((0..n).map(|j| (i + j) as f64).collect());
            writer.push(&batch).unwrap();
            weights.extend(batch.weights.iter().flatten().copied());
            pairs.extend(edges);
        }
        let spool = writer.finish().unwrap();
        for _ in 0..2 {
            let (mut reader, mut batch) = (spool.read().unwrap(), EdgeBatch::default());
            let (mut got, mut got_weights) = (Vec::new(), Vec::new());
            while reader.next(&mut batch).unwrap() {
                got.extend(batch.pairs());
                got_weights.extend(batch.weights.iter().flatten().copied());
            }
            assert_eq!((&got, &got_weights), (&pairs, &weights));
        }
    }
}
