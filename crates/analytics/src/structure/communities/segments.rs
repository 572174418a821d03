//! Lists of arcs with weights, a segment of vertices after the other: in memory, or in a temporary file where they do not
//! fit it.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_io::temporary::TemporaryFile;
use tiergraph_mem::{AlignedBuf, Array, PAGE_BYTES, Reservation};

use super::network::{BlockLists, List, WeightedArc};
use super::scattered::temporary_file;
use crate::row_map::Wanted;

/// Bytes of an arc.
pub(super) const ARC_BYTES: u64 = size_of::<WeightedArc>() as u64;
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
}

/// The lists of some vertices.
struct Segment {
    vertices: Range<u32>,
    /// Where each list begins; a last entry says where the last list ends.
    starts: Vec<u32>,
    arcs: Arcs,
    _held: Option<Reservation>,
}

enum Arcs {
    Memory(Array<WeightedArc>),
    /// At this byte of the file.
    File(u64),
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
        let all = vec![Segment { vertices, starts, arcs: Arcs::Memory(arcs), _held: Some(held) }];
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
        let memory = graph.memory();
        let _held = match memory.budget().left() < self.leave.saturating_add(bytes) {
            true => None,
            false => memory.reserve_if_left(bytes, "the communities as a network")?,
        };
        let arcs = match _held {
            Some(_) => Arcs::Memory(arcs),
            None => Arcs::File(self.file(graph)?.append(bytemuck::cast_slice(&arcs))?),
        };
        self.all.push(Segment { vertices, starts, arcs, _held });
        Ok(())
    }

    fn file(&mut self, graph: &Graph) -> Result<&TemporaryFile> {
        let file = match self.file.take() {
            Some(file) => file,
            None => temporary_file(graph)?,
        };
        Ok(self.file.insert(file))
    }

    /// Whether no list is in a file.
    pub(super) fn are_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// The length of each list.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        let between = self.all.iter().flat_map(|segment| segment.starts.windows(2));
        between.map(|pair| u64::from(pair[1] - pair[0]))
    }

    /// Reads the lists of the vertices of `block` that are `wanted`, but not in memory, to `buffer`.
    ///
    /// # Errors
    /// Any error of the file; no memory.
    pub(super) fn read_to(
        &self,
        buffer: &mut AlignedBuf,
        block: &Range<u32>,
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        let segments = self.of(block);
        let len = segments.iter().map(|segment| segment.pages(block).len()).sum::<usize>();
        if buffer.len() < len {
            *buffer = AlignedBuf::default();
            *buffer = AlignedBuf::zeroed(len)?;
        }
        let mut rest = &mut buffer[..];
        for segment in segments {
            let pages = segment.pages(block);
            let (own, after) = std::mem::take(&mut rest).split_at_mut(pages.len());
            rest = after;
            let (Arcs::File(offset), Some(file)) = (&segment.arcs, &self.file) else { continue };
            for run in segment.runs(block, wanted) {
                let to = &mut own[run.start - pages.start..run.end - pages.start];
                file.read(to, offset + run.start as u64)?;
            }
        }
        Ok(())
    }

    /// The lists of the vertices of `block`, of which `buffer` has those that are not in memory.
    pub(super) fn pieces<'a>(&'a self, buffer: &'a [u8], block: &Range<u32>) -> Pieces<'a> {
        let mut rest = buffer;
        let pieces = self.of(block).iter().map(|segment| {
            let (own, after) = rest.split_at(segment.pages(block).len());
            rest = after;
            segment.piece(block, own)
        });
        Pieces(pieces.collect())
    }

    /// The segments of the vertices of `block`.
    fn of(&self, block: &Range<u32>) -> &[Segment] {
        let from = self.all.partition_point(|segment| segment.vertices.end <= block.start);
        let to = self.all.partition_point(|segment| segment.vertices.start < block.end);
        &self.all[from..to]
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

    /// The bytes of the lists of `block` among those of the segment's arcs.
    fn bytes(&self, block: &Range<u32>) -> Range<usize> {
        let (_, starts) = self.part(block);
        let arc_bytes = ARC_BYTES as usize;
        starts[0] as usize * arc_bytes..starts[starts.len() - 1] as usize * arc_bytes
    }

    /// The pages with these bytes; none where they are not in the file.
    fn pages(&self, block: &Range<u32>) -> Range<usize> {
        let bytes = self.bytes(block);
        match self.arcs {
            Arcs::File(_) if !bytes.is_empty() => {
                bytes.start / PAGE_BYTES * PAGE_BYTES..bytes.end.next_multiple_of(PAGE_BYTES)
            }
            _ => bytes.start..bytes.start,
        }
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

    /// The lists of its vertices that are in `block`; `pages` has those of the file.
    fn piece<'a>(&'a self, block: &Range<u32>, pages: &'a [u8]) -> Piece<'a> {
        let ((vertices, starts), bytes) = (self.part(block), self.bytes(block));
        let arcs = match &self.arcs {
            Arcs::Memory(arcs) => &arcs[starts[0] as usize..starts[starts.len() - 1] as usize],
            Arcs::File(_) if bytes.is_empty() => &[],
            Arcs::File(_) => {
                let begin = bytes.start - self.pages(block).start;
                bytemuck::cast_slice(&pages[begin..begin + bytes.len()])
            }
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

/// Puts lists, of which `starts` says where each begins and the last ends, in order: by target, then by weight.
///
/// # Errors
/// A system without threads.
pub(super) fn sort(graph: &Graph, starts: &[u32], arcs: &mut [WeightedArc]) -> Result<()> {
    let groups = groups(0..starts.len() as u32 - 1, 1 << 12);
    let arcs_of =
        |group: &Range<u32>| (starts[group.end as usize] - starts[group.start as usize]) as usize;
    graph.thread_pool().share(split(arcs, &groups, arcs_of), |_, groups| {
        for (group, arcs) in groups {
            let first = starts[group.start as usize];
            for v in group.start as usize..group.end as usize {
                let own = (starts[v] - first) as usize..(starts[v + 1] - first) as usize;
                arcs[own].sort_unstable_by_key(|arc| (arc.target, arc.weight().to_bits()));
            }
        }
    })?;
    Ok(())
}

/// `vertices` in groups of `each`.
pub(super) fn groups(vertices: Range<u32>, each: u32) -> Vec<Range<u32>> {
    let end = vertices.end;
    vertices.step_by(each as usize).map(|begin| begin..end.min(begin + each)).collect()
}

/// `values` cut into as many for each group as `len` says, with the group.
pub(super) fn split<'a, T: Send>(
    values: &'a mut [T],
    groups: &'a [Range<u32>],
    len: impl Fn(&Range<u32>) -> usize + Send + 'a,
) -> impl Iterator<Item = (Range<u32>, &'a mut [T])> + Send + 'a {
    let mut rest = values;
    groups.iter().map(move |group| {
        let (own, after) = std::mem::take(&mut rest).split_at_mut(len(group));
        rest = after;
        (group.clone(), own)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use tiergraph_core::{Cancel, Draws, Silent};
    use tiergraph_graph::OpenOptions;
    use tiergraph_ingest::build::{BuildOptions, build};
    use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat};

    use super::*;

    /// The lists of any range of vertices, from several segments, some without arcs, are those that were added.
    #[test]
    fn lists_in_a_file_are_those_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("g.tg");
        let model = Rmat::new(4, 2, Rmat::GRAPH500, 7).unwrap();
        let options = BuildOptions { memory: Some(64 << 20), threads: 1, ..Default::default() };
        let mut source = Generated::new(model, 7, GeneratorOptions::default());
        build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        let graph = Graph::open(&path, &OpenOptions::default()).unwrap();
        let files = || std::fs::read_dir(&path).unwrap().count();
        let before = files();

        let mut draws = Draws::new(3);
        let mut both = [Segments::default(), Segments::that_leave(u64::MAX)];
        let mut vertices = 0u32;
        for (count, most) in [(3, 900), (1, 5000), (40, 1), (700, 30)] {
            let lengths: Vec<u32> = (0..count).map(|_| draws.below(most) as u32).collect();
            for segments in &mut both {
                let fill = |_: &[u32], arcs: &mut [WeightedArc]| {
                    for (i, arc) in (0..).zip(arcs) {
                        *arc = WeightedArc::new(vertices * 10_000 + i, f64::from(i) / 3.0);
                    }
                    Ok(())
                };
                segments.push(&graph, &lengths, fill).unwrap();
            }
            vertices += lengths.len() as u32;
        }
        let [memory, file] = &both;
        assert!(memory.file.is_none() && file.file.is_some() && files() == before);
        assert!(memory.lengths().eq(file.lengths()));
        let mut buffer = AlignedBuf::default();
        for _ in 0..300 {
            let start = draws.below(vertices.into()) as u32;
            let block = start..start + 1 + draws.below((vertices - start).into()) as u32;
            let odd = draws.below(2) as u32;
            file.read_to(&mut buffer, &block, &|v| v % 2 == odd).unwrap();
            let (memory, file) = (memory.pieces(&[], &block), file.pieces(&buffer, &block));
            for v in block.filter(|v| v % 2 == odd) {
                let (List::Weighted(expected), List::Weighted(found)) =
                    (memory.list(v), file.list(v))
                else {
                    panic!("lists without weights");
                };
                let bytes = |arcs: &[WeightedArc]| bytemuck::cast_slice::<_, u8>(arcs).to_vec();
                assert_eq!(bytes(found), bytes(expected), "{v}");
            }
        }
    }
}
