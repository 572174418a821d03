//! Arcs in a bucket for each of several ranges of vertices, in a temporary file.
//!
//! Where the arcs that leave a range come from everywhere, and not all fit the memory, they are written once, each to the
//! bucket of its range, and each bucket is read once: it takes no sweep over everything for each range.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use tiergraph_core::{Error, Result};
use tiergraph_graph::Graph;
use tiergraph_io::temporary::TemporaryFile;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

/// The fewest bytes that are written and read at a time, and the most: more are no faster.
const CHUNK_BYTES: Range<u64> = 16 << 10..1 << 20;

/// An unlinked file in the graph's folder.
///
/// # Errors
/// A folder in which the system lets no file be made.
pub(super) fn temporary_file(graph: &Graph) -> Result<TemporaryFile> {
    let hint = "give more memory, or a graph in a folder that temporary files may be in";
    let file = TemporaryFile::create_in(graph.dir().path()).map_err(|e| e.or_hint(hint))?;
    Ok(file.counted(Arc::clone(graph.scratch())))
}

/// The bytes of a chunk where so many buckets are written in `room` bytes of memory. There may be memory for fewer.
pub(super) fn chunk_bytes(room: u64, buckets: usize) -> u64 {
    let bytes = (room / buckets as u64).clamp(CHUNK_BYTES.start, CHUNK_BYTES.end);
    bytes / PAGE_BYTES as u64 * PAGE_BYTES as u64
}

/// Arcs in buckets.
pub(super) struct Scattered<S> {
    file: Arc<TemporaryFile>,
    buckets: Buckets,
    /// Chunks are read to it.
    buffer: AlignedBuf,
    arcs: PhantomData<S>,
}

/// Chunks by bucket.
type Buckets = Vec<Vec<Chunk>>;

/// Runs of arcs in the file. A run is the vertex that its arcs leave, their number, and the arcs.
pub(super) struct Chunk {
    offset: u64,
    words: usize,
}

impl Chunk {
    fn bytes(&self) -> usize {
        (self.words * 4).next_multiple_of(PAGE_BYTES)
    }
}

impl<S: Pod> Scattered<S> {
    /// What writers to the file have [`finish`](Writer::finish)ed, that of one writer after that of the one before.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn of(file: Arc<TemporaryFile>, written: Vec<Buckets>) -> Result<Self> {
        let (mut buckets, mut most) = (Vec::new(), 0);
        for written in written {
            buckets.resize_with(written.len(), Vec::new);
            for (bucket, written) in buckets.iter_mut().zip(written) {
                most = written.iter().map(Chunk::bytes).fold(most, usize::max);
                bucket.extend(written);
            }
        }
        Ok(Self { file, buckets, buffer: AlignedBuf::zeroed(most)?, arcs: PhantomData })
    }

    /// Calls `visit` with the vertices of a bucket and some of the arcs that leave each, in the order in which they were
    /// written. The bucket is empty then.
    ///
    /// # Errors
    /// Any error of the file.
    pub(super) fn empty(&mut self, bucket: usize, mut visit: impl FnMut(u32, &[S])) -> Result<()> {
        for chunk in std::mem::take(&mut self.buckets[bucket]) {
            let bytes = &mut self.buffer[..chunk.bytes()];
            self.file.read(bytes, chunk.offset)?;
            let mut words: &[u32] = &bytemuck::cast_slice(bytes)[..chunk.words];
            while let [vertex, count, after @ ..] = words {
                let (arcs, after) = after.split_at(*count as usize * (size_of::<S>() / 4));
                visit(*vertex, bytemuck::cast_slice(arcs));
                words = after;
            }
            self.file.release(chunk.offset..chunk.offset + chunk.bytes() as u64);
        }
        Ok(())
    }
}

/// A thread's writer of arcs to buckets.
pub(super) struct Writer<'a, S> {
    file: Arc<TemporaryFile>,
    /// The ranges of the buckets, one after the other.
    ranges: &'a [Range<u32>],
    open: Vec<Open>,
    /// The vertex of the present run, and its bucket.
    present: Option<(u32, usize)>,
    failed: Option<Error>,
    arcs: PhantomData<S>,
}

/// A bucket while it is written.
struct Open {
    buffer: AlignedBuf,
    /// Words that are used.
    words: usize,
    /// The place of the present run's number of arcs.
    count: usize,
    full: Vec<Chunk>,
}

impl<'a, S: Pod> Writer<'a, S> {
    /// A writer to buckets of the vertices of `ranges`, which has a chunk of memory for each.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(
        file: Arc<TemporaryFile>,
        ranges: &'a [Range<u32>],
        chunk_bytes: u64,
    ) -> Result<Self> {
        let buffers = AlignedBuf::batch(ranges.len(), chunk_bytes as usize)?;
        let open = buffers.into_iter();
        let open = open.map(|buffer| Open { buffer, words: 0, count: 0, full: Vec::new() });
        let open = open.collect();
        Ok(Self { file, ranges, open, present: None, failed: None, arcs: PhantomData })
    }

    /// Adds an arc that leaves `vertex`, which is in one of the ranges. Errors come when it is finished.
    #[inline(always)]
    pub(super) fn put(&mut self, vertex: u32, arc: S) {
        let words = size_of::<S>() / 4;
        let bucket = match self.present {
            Some((present, bucket)) if present == vertex => bucket,
            _ => self.begin(vertex),
        };
        if self.open[bucket].words + words > self.open[bucket].buffer.len() / 4 {
            self.write(bucket);
            self.begin(vertex);
        }
        let open = &mut self.open[bucket];
        let buffer: &mut [u32] = bytemuck::cast_slice_mut(&mut open.buffer);
        buffer[open.words..open.words + words].copy_from_slice(bytemuck::cast_slice(&[arc]));
        buffer[open.count] += 1;
        open.words += words;
    }

    /// Begins a run of `vertex`; returns its bucket.
    fn begin(&mut self, vertex: u32) -> usize {
        let bucket = self.ranges.partition_point(|range| range.end <= vertex);
        if self.open[bucket].words + 2 > self.open[bucket].buffer.len() / 4 {
            self.write(bucket);
        }
        let open = &mut self.open[bucket];
        let buffer: &mut [u32] = bytemuck::cast_slice_mut(&mut open.buffer);
        buffer[open.words..open.words + 2].copy_from_slice(&[vertex, 0]);
        open.count = open.words + 1;
        open.words += 2;
        self.present = Some((vertex, bucket));
        bucket
    }

    /// Writes a bucket's chunk.
    fn write(&mut self, bucket: usize) {
        let open = &mut self.open[bucket];
        let mut chunk = Chunk { offset: 0, words: std::mem::take(&mut open.words) };
        if self.failed.is_none() {
            match self.file.append(&open.buffer[..chunk.bytes()]) {
                Ok(offset) => chunk.offset = offset,
                Err(error) => self.failed = Some(error),
            }
            open.full.push(chunk);
        }
    }

    /// Writes what was not yet written.
    ///
    /// # Errors
    /// The first of the file.
    pub(super) fn finish(mut self) -> Result<Buckets> {
        for bucket in 0..self.open.len() {
            if self.open[bucket].words > 0 {
                self.write(bucket);
            }
        }
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.open.into_iter().map(|open| open.full).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use tiergraph_core::Draws;

    use super::super::lists::WeightedArc;
    use super::*;

    /// Each bucket has the arcs of its vertices, in the order in which each writer wrote them, whatever runs and chunks
    /// they are in.
    #[test]
    fn buckets_have_what_was_put_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut draws = Draws::new(11);
        for (chunk, arcs) in [(4096, 30_000), (16 << 10, 9), (8192, 0), (64 << 10, 100_000)] {
            let path = directory.path().join("arcs");
            let file = Arc::new(TemporaryFile::create(&path).unwrap());
            let ranges = [3..4u32, 4..900, 900..901, 901..2000];
            let mut expected = vec![Vec::new(); ranges.len()];
            let mut written = Vec::new();
            for _ in 0..2 {
                let mut writer = Writer::new(Arc::clone(&file), &ranges, chunk).unwrap();
                let mut vertex = 3;
                for i in 0..arcs {
                    if draws.below(3) == 0 {
                        vertex = 3 + draws.below(1997) as u32;
                    }
                    let weight = f64::from(i) / 7.0;
                    writer.put(vertex, WeightedArc::new(i, weight));
                    let bucket = ranges.iter().position(|range| range.contains(&vertex)).unwrap();
                    expected[bucket].push((vertex, i, weight));
                }
                written.push(writer.finish().unwrap());
            }
            let mut scattered = Scattered::<WeightedArc>::of(file, written).unwrap();
            for (bucket, expected) in expected.iter().enumerate() {
                let mut found = Vec::new();
                let visit = |vertex, arcs: &[WeightedArc]| {
                    found.extend(arcs.iter().map(|arc| (vertex, arc.target, arc.weight())));
                };
                scattered.empty(bucket, visit).unwrap();
                assert!(found == *expected, "bucket {bucket}, {arcs} arcs");
                scattered.empty(bucket, |_, _| panic!("it is empty")).unwrap();
            }
        }
    }
}
