//! Lists of arcs with weights, a segment of vertices after the other: in memory; packed in memory, where they do not fit it;
//! and packed in a temporary file, where that does not, either.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_io::temporary::TemporaryFile;
use tiergraph_mem::{AlignedBuf, Array, PAGE_BYTES, Reservation};

use super::lists::{ARC_BYTES, BlockLists, List, WeightedArc, sort};
use super::packed::{self, Bytes, CHUNK_BYTES, Packed, Reader};
use super::scattered::temporary_file;
use crate::row_map::Wanted;

/// Bytes that are read though no list of them is wanted, where that spares another read.
const GAP_BYTES: usize = 16 << 10;
/// Arrays of so many arcs are whole pages.
const PAGES_ARCS: usize = PAGE_BYTES / 4;

/// The lists of all vertices.
#[derive(Default)]
pub(super) struct Segments {
    all: Vec<Segment>,
    file: Option<TemporaryFile>,
    /// Bytes of memory that lists leave, for networks to come.
    leave: u64,
    /// Whether lists do not all fit the memory as they are.
    overflows: bool,
    /// For bytes of packed lists that are read.
    chunks: Option<Reservation>,
}

/// The lists of some vertices.
struct Segment {
    vertices: Range<u32>,
    /// Where each list begins; a last entry says where the last list ends.
    starts: Vec<u32>,
    arcs: Arcs,
    held: Option<Reservation>,
}

enum Arcs {
    Memory(Array<WeightedArc>),
    /// Arcs as they are in memory, at this byte of the file.
    File(u64),
    Packed(Packed),
}

/// The memory of a reader for the lists of a block, and for packed bytes on their way.
#[derive(Default)]
pub(super) struct Buffer {
    arcs: AlignedBuf,
    chunk: AlignedBuf,
}

impl Segments {
    /// No lists; those to come leave so many bytes of memory.
    pub(super) fn that_leave(bytes: u64) -> Self {
        Self { leave: bytes, ..Self::default() }
    }

    /// Bytes of the lists of so many vertices and arcs in memory.
    pub(super) fn bytes(vertices: usize, arcs: u64) -> u64 {
        vertices as u64 * 8 + arcs * ARC_BYTES
    }

    /// All lists as one segment, which are put in order; `held` has reserved [`Segments::bytes`].
    ///
    /// # Errors
    /// A system without threads.
    pub(super) fn whole(
        graph: &Graph,
        starts: Vec<u32>,
        mut arcs: Array<WeightedArc>,
        held: Reservation,
    ) -> Result<Self> {
        sort(graph, &starts, &mut arcs)?;
        let vertices = 0..starts.len() as u32 - 1;
        let all = vec![Segment { vertices, starts, arcs: Arcs::Memory(arcs), held: Some(held) }];
        Ok(Self { all, ..Self::default() })
    }

    /// Adds the lists of the next vertices, of so many arcs each, which `fill` makes from where they begin. The caller has
    /// reserved their bytes for as long as this takes.
    ///
    /// # Errors
    /// Those of `fill`; where the memory has no room for them, those of a file in the graph's folder.
    pub(super) fn push(
        &mut self,
        graph: &Graph,
        lengths: &[u32],
        fill: impl FnOnce(&[u32], &mut [WeightedArc]) -> Result<()>,
    ) -> Result<()> {
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        starts.push(0u32);
        lengths.iter().for_each(|length| starts.push(starts[starts.len() - 1] + length));
        let end = lengths.iter().map(|&length| length as usize).sum::<usize>();
        let mut arcs = Array::<WeightedArc>::zeroed(end.next_multiple_of(PAGES_ARCS))?;
        fill(&starts, &mut arcs[..end])?;
        let first = self.all.last().map_or(0, |segment| segment.vertices.end);
        let vertices = first..first + lengths.len() as u32;
        let bytes = arcs.resident_bytes();
        if !self.overflows
            && let Some(held) = self.room(graph, self.leave, bytes)?
        {
            self.all.push(Segment { vertices, starts, arcs: Arcs::Memory(arcs), held: Some(held) });
            return Ok(());
        }
        if !std::mem::replace(&mut self.overflows, true) {
            // Those before are packed, too: more of them fit then.
            for mut segment in std::mem::take(&mut self.all) {
                if let Arcs::Memory(arcs) = segment.arcs {
                    (segment.arcs, segment.held) =
                        self.stored(graph, &segment.starts, arcs, segment.held)?;
                }
                self.all.push(segment);
            }
        }
        let (arcs, held) = self.stored(graph, &starts, arcs, None)?;
        self.all.push(Segment { vertices, starts, arcs, held });
        Ok(())
    }

    /// Reserves memory that lists stay in, if so much is left beside it.
    fn room(&self, graph: &Graph, leave: u64, bytes: u64) -> Result<Option<Reservation>> {
        let memory = graph.memory();
        match memory.budget().left() < leave.saturating_add(bytes) {
            true => Ok(None),
            false => memory.reserve_if_left(bytes, "the communities as a network"),
        }
    }

    /// Lists in memory, packed if that is worth it, if there is room for them; else in the file. What was `held` for them has
    /// room for them.
    fn stored(
        &mut self,
        graph: &Graph,
        starts: &[u32],
        mut arcs: Array<WeightedArc>,
        held: Option<Reservation>,
    ) -> Result<(Arcs, Option<Reservation>)> {
        // What was held for lists is more than they take when they are packed.
        let leave = if held.is_some() { 0 } else { self.leave };
        let chunks = match &self.chunks {
            Some(_) => None,
            None => self.room(graph, leave, 2 * CHUNK_BYTES as u64)?,
        };
        let of_starts = self.room(graph, leave, size_of_val(starts) as u64)?;
        let may_pack = self.chunks.is_some() || chunks.is_some();
        let packed = match may_pack && of_starts.is_some() {
            true => packed::starts(graph, starts, &arcs)?,
            false => None,
        };
        let Some(packed) = packed else {
            drop((chunks, of_starts));
            let held = match held {
                Some(held) => Some(held),
                None => self.room(graph, leave, arcs.resident_bytes())?,
            };
            return Ok(match held {
                Some(held) => (Arcs::Memory(arcs), Some(held)),
                None => (Arcs::File(self.file(graph)?.append(bytemuck::cast_slice(&arcs))?), None),
            });
        };
        self.chunks = self.chunks.take().or(chunks);
        packed::pack(graph, starts, &packed, &mut arcs)?;
        let end = packed.last().map_or(0, |&end| end as usize);
        let bytes: &[u8] = bytemuck::cast_slice(&arcs);
        let (bytes, of_bytes) = match self.room(graph, leave, end as u64)? {
            Some(room) => {
                let mut packed = Array::<u8>::zeroed(end)?;
                packed.copy_from_slice(&bytes[..end]);
                (Bytes::Memory(packed), Some(room))
            }
            None => {
                let pages = &bytes[..end.next_multiple_of(PAGE_BYTES)];
                (Bytes::File(self.file(graph)?.append(pages)?), None)
            }
        };
        let mut held = of_starts;
        if let (Some(held), Some(of_bytes)) = (&mut held, of_bytes) {
            held.join(of_bytes);
        }
        Ok((Arcs::Packed(Packed { starts: packed, bytes }), held))
    }

    fn file(&mut self, graph: &Graph) -> Result<&TemporaryFile> {
        let file = match self.file.take() {
            Some(file) => file,
            None => temporary_file(graph)?,
        };
        Ok(self.file.insert(file))
    }

    /// Whether all lists are in memory as they are visited.
    pub(super) fn are_in_memory(&self) -> bool {
        !self.overflows
    }

    /// The length of each list.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        let between = self.all.iter().flat_map(|segment| segment.starts.windows(2));
        between.map(|pair| u64::from(pair[1] - pair[0]))
    }

    /// Reads and unpacks the lists of the vertices of `block` that are `wanted`, but not in memory, to `buffer`.
    ///
    /// # Errors
    /// Any error of the file; no memory.
    pub(super) fn read_to(
        &self,
        buffer: &mut Buffer,
        block: &Range<u32>,
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        let segments = self.of(block);
        let len = segments.iter().map(|segment| segment.buffer_bytes(block)).sum::<usize>();
        if buffer.arcs.len() < len {
            buffer.arcs = AlignedBuf::default();
            buffer.arcs = AlignedBuf::zeroed(len)?;
        }
        let mut rest = &mut buffer.arcs[..];
        for segment in segments {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(segment.buffer_bytes(block));
            rest = after;
            match (&segment.arcs, &self.file) {
                (Arcs::File(offset), Some(file)) => {
                    let pages = segment.pages(block);
                    for run in segment.runs(block, wanted) {
                        let to = &mut own[run.start - pages.start..run.end - pages.start];
                        file.read(to, offset + run.start as u64)?;
                    }
                }
                (Arcs::Packed(packed), file) => {
                    let reader = Reader::new(packed, file.as_ref(), &mut buffer.chunk)?;
                    let own = &mut own[..segment.bytes(block).len()];
                    segment.unpack(reader, packed, block, wanted, bytemuck::cast_slice_mut(own))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The lists of the vertices of `block`, all in memory.
    pub(super) fn in_memory(&self, block: &Range<u32>) -> Pieces<'_> {
        Pieces(self.of(block).iter().map(|segment| segment.piece(block, &[])).collect())
    }

    /// The lists of the vertices of `block`, of which `buffer` has those that are not in memory.
    pub(super) fn pieces<'a>(&'a self, buffer: &'a Buffer, block: &Range<u32>) -> Pieces<'a> {
        let mut rest = &buffer.arcs[..];
        let pieces = self.of(block).iter().map(|segment| {
            let (own, after) = rest.split_at(segment.buffer_bytes(block));
            rest = after;
            segment.piece(block, own)
        });
        Pieces(pieces.collect())
    }

    /// The segments of the vertices of `block`.
    fn of(&self, block: &Range<u32>) -> &[Segment] {
        let from = self.all.partition_point(|segment| segment.vertices.end <= block.start);
        let to = self.all.partition_point(|segment| segment.vertices.start < block.end);
        // Segments without vertices may lie before a block without any.
        &self.all[from..to.max(from)]
    }
}

impl Segment {
    /// Its vertices that are in `block`, and where their lists begin, with the end of the last one.
    fn part(&self, block: &Range<u32>) -> (Range<u32>, &[u32]) {
        let own = block.start.max(self.vertices.start)..block.end.min(self.vertices.end);
        let at = |v: u32| (v - self.vertices.start) as usize;
        let starts = &self.starts[at(own.start)..=at(own.end)];
        (own, starts)
    }

    /// The bytes of the lists of `block` among those of the segment's arcs, as they are in memory.
    fn bytes(&self, block: &Range<u32>) -> Range<usize> {
        let (_, starts) = self.part(block);
        let arc_bytes = ARC_BYTES as usize;
        starts[0] as usize * arc_bytes..starts[starts.len() - 1] as usize * arc_bytes
    }

    /// The pages with the lists of `block`, where they are in a file; none for no arcs.
    fn pages(&self, block: &Range<u32>) -> Range<usize> {
        let bytes = match &self.arcs {
            Arcs::Packed(Packed { starts, .. }) => {
                let (own, first) = (self.part(block).0, self.vertices.start);
                let at = |v: u32| starts[(v - first) as usize] as usize;
                at(own.start)..at(own.end)
            }
            Arcs::Memory(_) | Arcs::File(_) => self.bytes(block),
        };
        match bytes.is_empty() {
            true => bytes,
            false => bytes.start / PAGE_BYTES * PAGE_BYTES..bytes.end.next_multiple_of(PAGE_BYTES),
        }
    }

    /// Bytes of the lists of `block` in a buffer: whole pages.
    fn buffer_bytes(&self, block: &Range<u32>) -> usize {
        match self.arcs {
            Arcs::Memory(_) => 0,
            Arcs::File(_) => self.pages(block).len(),
            Arcs::Packed(_) => self.bytes(block).len().next_multiple_of(PAGE_BYTES),
        }
    }

    /// Unpacks the lists of `block` that are `wanted` to where they are among `arcs`, those of the block.
    fn unpack(
        &self,
        mut reader: Reader<'_>,
        packed: &Packed,
        block: &Range<u32>,
        wanted: &Wanted<'_>,
        arcs: &mut [WeightedArc],
    ) -> Result<()> {
        let (vertices, starts) = self.part(block);
        let number = |v: u32| (v - self.vertices.start) as usize;
        // The last byte of those that are read together.
        let mut runs = match packed.bytes {
            Bytes::Memory(_) => Vec::new(),
            Bytes::File(_) => self.runs(block, wanted),
        }
        .into_iter()
        .peekable();
        for (v, list) in vertices.zip(starts.windows(2)) {
            if list[0] == list[1] || !wanted(v) {
                continue;
            }
            let end = packed.starts[number(v) + 1] as usize;
            while runs.next_if(|run| run.end < end).is_some() {}
            let until = runs.peek().map_or(end, |run| run.end);
            let own = (list[0] - starts[0]) as usize..(list[1] - starts[0]) as usize;
            reader.list(number(v), until, &mut arcs[own])?;
        }
        Ok(())
    }

    /// The pages with lists of the vertices of `block` that are `wanted`, in runs to be read together.
    fn runs(&self, block: &Range<u32>, wanted: &Wanted<'_>) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let (vertices, _) = self.part(block);
        for v in vertices.filter(|&v| wanted(v)) {
            let pages = self.pages(&(v..v + 1));
            match runs.last_mut() {
                _ if pages.is_empty() => (),
                Some(last) if pages.start <= last.end + GAP_BYTES => last.end = pages.end,
                _ => runs.push(pages),
            }
        }
        runs
    }

    /// The lists of its vertices that are in `block`; `buffer` has those that are not in memory.
    fn piece<'a>(&'a self, block: &Range<u32>, buffer: &'a [u8]) -> Piece<'a> {
        let ((vertices, starts), bytes) = (self.part(block), self.bytes(block));
        let arcs = match &self.arcs {
            Arcs::Memory(arcs) => &arcs[starts[0] as usize..starts[starts.len() - 1] as usize],
            Arcs::File(_) if bytes.is_empty() => &[],
            Arcs::File(_) => {
                let begin = bytes.start - self.pages(block).start;
                bytemuck::cast_slice(&buffer[begin..begin + bytes.len()])
            }
            Arcs::Packed(_) => bytemuck::cast_slice(&buffer[..bytes.len()]),
        };
        Piece { vertices, starts, arcs }
    }
}

/// Lists of a block, from one segment or from several side by side.
pub(super) struct Pieces<'a>(Vec<Piece<'a>>);

struct Piece<'a> {
    vertices: Range<u32>,
    starts: &'a [u32],
    arcs: &'a [WeightedArc],
}

impl BlockLists for Pieces<'_> {
    #[inline(always)]
    fn list(&self, v: u32) -> List<'_> {
        let piece = &self.0[self.0.partition_point(|piece| piece.vertices.end <= v)];
        let at = (v - piece.vertices.start) as usize;
        let first = piece.starts[0];
        let places = (piece.starts[at] - first) as usize..(piece.starts[at + 1] - first) as usize;
        List::Weighted(&piece.arcs[places])
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use std::path::Path;

    use tiergraph_core::{Cancel, Draws, Silent};
    use tiergraph_graph::OpenOptions;
    use tiergraph_ingest::build::{BuildOptions, build};
    use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat};

    use super::*;

    /// A graph with memory and threads.
    pub(in super::super) fn small_graph(folder: &Path) -> Graph {
        let path = folder.join("g.tg");
        let model = Rmat::new(4, 2, Rmat::GRAPH500, 7).unwrap();
        let options = BuildOptions { memory: Some(64 << 20), threads: 1, ..Default::default() };
        let mut source = Generated::new(model, 7, GeneratorOptions::default());
        build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        Graph::open(&path, &OpenOptions::default()).unwrap()
    }

    /// The lists of any range of vertices, from several segments, some without arcs, are those that were added, whether they
    /// are packed in memory, packed in a file, or in a file as they are.
    #[test]
    fn lists_are_those_that_were_added_wherever_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let graph = small_graph(directory.path());
        let path = graph.dir().path().to_owned();
        let files = || std::fs::read_dir(&path).unwrap().count();
        let before = files();

        let mut draws = Draws::new(3);
        let added: Vec<(Vec<u32>, u32)> = [
            (3, 900, 1),
            (1, 5000, 1000),
            (40, 1, 3),
            (700, 60, 1),
            (1, 200_000, 1),
            (90, 200, 1000),
            (1, 400_000, 1),
        ]
        .map(|(count, most, shares)| {
            ((0..count).map(|_| draws.below(most) as u32).collect(), shares)
        })
        .into();
        let vertices: u32 = added.iter().map(|(lengths, _)| lengths.len() as u32).sum();
        let filled = |leave: u64| {
            let (mut segments, mut first) = (Segments::that_leave(leave), 0u32);
            for (lengths, shares) in &added {
                let fill = |_: &[u32], arcs: &mut [WeightedArc]| {
                    for (i, arc) in (0..).zip(arcs) {
                        let weight = f64::from(i % 300 + 1) / f64::from(*shares);
                        *arc = WeightedArc::new(first * 10_000 + i, weight);
                    }
                    Ok(())
                };
                segments.push(&graph, lengths, fill).unwrap();
                first += lengths.len() as u32;
            }
            segments
        };
        // There is room for the first segments as they are, and then for those and others that are packed.
        let some = graph.memory().budget().left() - (2 * CHUNK_BYTES as u64 + (400 << 10));
        let others = [filled(some), filled(u64::MAX)];
        let memory = &filled(0);
        assert!(memory.are_in_memory() && memory.file.is_none() && files() == before);
        let kinds = |segments: &Segments| {
            let mut kinds = [0; 4];
            for segment in &segments.all {
                kinds[match &segment.arcs {
                    Arcs::Memory(_) => 0,
                    Arcs::File(_) => 1,
                    Arcs::Packed(Packed { bytes: Bytes::Memory(_), .. }) => 2,
                    Arcs::Packed(Packed { bytes: Bytes::File(_), .. }) => 3,
                }] += 1;
            }
            kinds
        };
        let [memories, packed, files] = [memory, &others[0], &others[1]].map(kinds);
        // Without room for where packed lists begin, none is.
        assert!(memories == [7, 0, 0, 0] && files == [0, 7, 0, 0], "{memories:?}, {files:?}");
        assert!(packed[0] > 0 && packed[2] > 1 && packed[3] > 0, "{packed:?}");
        let mut buffer = Buffer::default();
        for turn in 0..600 {
            let other = &others[turn % 2];
            assert!(turn > 1 || memory.lengths().eq(other.lengths()));
            let start = draws.below(vertices.into()) as u32;
            let block = start..start + 1 + draws.below((vertices - start).into()) as u32;
            let odd = draws.below(2) as u32;
            other.read_to(&mut buffer, &block, &|v| v % 2 == odd).unwrap();
            let (memory, other) = (memory.in_memory(&block), other.pieces(&buffer, &block));
            for v in block.filter(|v| v % 2 == odd) {
                let (List::Weighted(expected), List::Weighted(found)) =
                    (memory.list(v), other.list(v))
                else {
                    panic!("lists without weights");
                };
                let bytes = |arcs: &[WeightedArc]| bytemuck::cast_slice::<_, u8>(arcs).to_vec();
                assert_eq!(bytes(found), bytes(expected), "{v}");
            }
        }
    }

    /// A network may have no vertices, and one segment of none.
    #[test]
    fn no_vertices_have_no_lists() {
        let directory = tempfile::tempdir().unwrap();
        let mut segments = Segments::that_leave(0);
        segments.push(&small_graph(directory.path()), &[], |_, _| Ok(())).unwrap();
        assert!(segments.in_memory(&(0..0)).0.is_empty());
    }
}
