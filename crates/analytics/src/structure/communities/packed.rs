//! Lists in few bytes: an arc is the gap to the target before it and a weight, which is a byte where it is a small whole
//! number. Most of those between communities of a graph without weights are.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_io::temporary::TemporaryFile;
use tiergraph_mem::{AlignedBuf, Array, PAGE_BYTES};

use super::lists::{ARC_BYTES, WeightedArc, groups, split};

/// Bytes that are read at a time.
pub(super) const CHUNK_BYTES: usize = 256 << 10;
/// The most bytes of an arc: a gap, a byte for the weight's kind, and a float64.
const MOST_BYTES: usize = 5 + 1 + 8;
/// What stands for a weight that is no small whole number: a float64 follows.
const FLOAT: u8 = 0;
/// The same: a whole number of 32 bits follows.
const WHOLE: u8 = u8::MAX;

/// The lists of some vertices.
pub(super) struct Packed {
    /// The byte at which each list begins; a last entry says where the last list ends.
    pub(super) starts: Vec<u32>,
    pub(super) bytes: Bytes,
}

pub(super) enum Bytes {
    Memory(Array<u8>),
    /// At this byte of the file.
    File(u64),
}

/// Vertices whose lists a thread packs at a time.
const TOGETHER: u32 = 1 << 12;

/// The bytes at which lists begin when they are packed, of which `starts` says the same in arcs, if packing is worth it: if it
/// takes at most three quarters of their bytes, and can be done in place.
///
/// # Errors
/// A system without threads.
pub(super) fn starts(
    graph: &Graph,
    starts: &[u32],
    arcs: &[WeightedArc],
) -> Result<Option<Vec<u32>>> {
    let groups = groups(0..starts.len() as u32 - 1, TOGETHER);
    let mut packed = vec![0u32; starts.len()];
    // The bytes of each list are where the next one begins.
    let of_lists = split(&mut packed[1..], &groups, |group| group.len());
    let fits = graph.thread_pool().share(of_lists, |_, groups| {
        for (group, bytes) in groups {
            let lists = &starts[group.start as usize..=group.end as usize];
            if !bytes_of_lists(lists, arcs, bytes) {
                return false;
            }
        }
        true
    })?;
    let mut end = 0u64;
    for start in &mut packed {
        end += u64::from(*start);
        match u32::try_from(end) {
            Ok(end) => *start = end,
            Err(_) => return Ok(None),
        }
    }
    let unpacked = starts.last().map_or(0, |&end| u64::from(end) * ARC_BYTES);
    let is_worth_it = fits.into_iter().all(|fits| fits) && end <= unpacked / 4 * 3;
    Ok(is_worth_it.then_some(packed))
}

/// Writes to `bytes` those of each list; whether what is written in place would never be ahead of what is read.
fn bytes_of_lists(lists: &[u32], arcs: &[WeightedArc], bytes: &mut [u32]) -> bool {
    let (mut end, mut read) = (0, 0);
    for (list, bytes) in lists.windows(2).zip(bytes) {
        let (mut before, begin) = (0, end);
        for arc in &arcs[list[0] as usize..list[1] as usize] {
            end += bytes_of(arc.target.wrapping_sub(before), arc.weight()) as u64;
            read += ARC_BYTES;
            before = arc.target;
            if end > read {
                return false;
            }
        }
        match u32::try_from(end - begin) {
            Ok(own) => *bytes = own,
            Err(_) => return false,
        }
    }
    true
}

/// Packs lists in place, for which [`starts`] found where each begins in `packed` then.
///
/// # Errors
/// A system without threads.
pub(super) fn pack(
    graph: &Graph,
    starts: &[u32],
    packed: &[u32],
    arcs: &mut [WeightedArc],
) -> Result<()> {
    let groups = groups(0..starts.len() as u32 - 1, TOGETHER);
    let arcs_of =
        |group: &Range<u32>| (starts[group.end as usize] - starts[group.start as usize]) as usize;
    graph.thread_pool().share(split(arcs, &groups, arcs_of), |_, groups| {
        for (group, arcs) in groups {
            pack_lists(&starts[group.start as usize..=group.end as usize], arcs);
        }
    })?;
    // Each group's lists are where its arcs were.
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(arcs);
    for group in groups {
        let [from, to] = [group.start as usize, group.end as usize];
        let (begin, end) = (packed[from] as usize, packed[to] as usize);
        let there = starts[from] as usize * ARC_BYTES as usize;
        bytes.copy_within(there..there + (end - begin), begin);
    }
    Ok(())
}

/// Packs the lists of a group.
fn pack_lists(lists: &[u32], arcs: &mut [WeightedArc]) {
    let arc_bytes = ARC_BYTES as usize;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(arcs);
    let mut end = 0;
    for list in lists.windows(2) {
        let mut before = 0;
        for i in (list[0] - lists[0]) as usize..(list[1] - lists[0]) as usize {
            let arc: WeightedArc =
                bytemuck::pod_read_unaligned(&bytes[i * arc_bytes..(i + 1) * arc_bytes]);
            let (packed, len) = packed(arc.target.wrapping_sub(before), arc.weight());
            bytes[end..end + len].copy_from_slice(&packed[..len]);
            end += len;
            before = arc.target;
        }
    }
}

/// A weight of a byte.
#[inline(always)]
fn small(weight: f64) -> Option<u8> {
    let byte = weight as u8;
    (f64::from(byte) == weight && byte != FLOAT && byte != WHOLE).then_some(byte)
}

/// A weight that is a whole number of 32 bits.
#[inline(always)]
fn whole(weight: f64) -> Option<u32> {
    let whole = weight as u32;
    (f64::from(whole).to_bits() == weight.to_bits()).then_some(whole)
}

fn bytes_of(gap: u32, weight: f64) -> usize {
    let of_gap = (32 - gap.leading_zeros()).div_ceil(7).max(1) as usize;
    of_gap
        + match (small(weight), whole(weight)) {
            (Some(_), _) => 1,
            (None, Some(_)) => 5,
            (None, None) => 9,
        }
}

/// The bytes of an arc, and how many they are.
#[inline(always)]
fn packed(mut gap: u32, weight: f64) -> ([u8; MOST_BYTES], usize) {
    let (mut bytes, mut len) = ([0; MOST_BYTES], 0);
    while gap >= 0x80 {
        bytes[len] = gap as u8 | 0x80;
        gap >>= 7;
        len += 1;
    }
    bytes[len] = gap as u8;
    len += 1;
    if let Some(small) = small(weight) {
        bytes[len] = small;
        return (bytes, len + 1);
    }
    match whole(weight) {
        Some(whole) => {
            bytes[len] = WHOLE;
            bytes[len + 1..len + 5].copy_from_slice(&whole.to_le_bytes());
            (bytes, len + 5)
        }
        None => {
            bytes[len] = FLOAT;
            bytes[len + 1..len + 9].copy_from_slice(&weight.to_le_bytes());
            (bytes, len + 9)
        }
    }
}

/// Unpacks the list whose bytes begin at `bytes` to as many `arcs`; returns how many of them are there, and of how many bytes:
/// an arc that may not be there as a whole is not unpacked, and `before` is the target before it.
#[inline(always)]
fn unpack(
    bytes: &[u8],
    is_end: bool,
    before: &mut u32,
    arcs: &mut [WeightedArc],
) -> (usize, usize) {
    let (mut at, mut done) = (0, 0);
    for arc in arcs {
        if !is_end && at + MOST_BYTES > bytes.len() {
            break;
        }
        let (mut gap, mut shift) = (0, 0);
        loop {
            let byte = bytes[at];
            at += 1;
            gap |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let kind = bytes[at];
        at += 1;
        let weight = match kind {
            FLOAT => {
                let mut of = [0; 8];
                of.copy_from_slice(&bytes[at..at + 8]);
                at += 8;
                f64::from_le_bytes(of)
            }
            WHOLE => {
                let mut of = [0; 4];
                of.copy_from_slice(&bytes[at..at + 4]);
                at += 4;
                u32::from_le_bytes(of).into()
            }
            small => small.into(),
        };
        *before = before.wrapping_add(gap);
        *arc = WeightedArc::new(*before, weight);
        done += 1;
    }
    (done, at)
}

/// Reads packed lists, those of one segment after the other.
pub(super) struct Reader<'a> {
    packed: &'a Packed,
    file: Option<&'a TemporaryFile>,
    /// Bytes of the file.
    chunk: &'a mut AlignedBuf,
    /// Which of the packed bytes are there.
    has: Range<usize>,
}

impl<'a> Reader<'a> {
    /// A reader that has `chunk` for bytes of the file.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(
        packed: &'a Packed,
        file: Option<&'a TemporaryFile>,
        chunk: &'a mut AlignedBuf,
    ) -> Result<Self> {
        if chunk.is_empty() && matches!(packed.bytes, Bytes::File(_)) {
            *chunk = AlignedBuf::zeroed(CHUNK_BYTES)?;
        }
        Ok(Self { packed, file, chunk, has: 0..0 })
    }

    /// Unpacks the list of the vertex number `v` of the segment to as many arcs. The pages up to byte `until` of the segment
    /// are wanted, too.
    ///
    /// # Errors
    /// Any error of the file.
    pub(super) fn list(&mut self, v: usize, until: usize, arcs: &mut [WeightedArc]) -> Result<()> {
        let (mut at, end) = (self.packed.starts[v] as usize, self.packed.starts[v + 1] as usize);
        let (mut before, mut rest) = (0, arcs);
        while !rest.is_empty() {
            let bytes = self.bytes(at, end, until)?;
            let is_end = at + bytes.len() == end;
            let (done, len) = unpack(bytes, is_end, &mut before, rest);
            at += len;
            rest = &mut rest[done..];
        }
        Ok(())
    }

    /// The bytes from `at` on, up to `end` or as many as there is room for, an arc's at least.
    fn bytes(&mut self, at: usize, end: usize, until: usize) -> Result<&[u8]> {
        let offset = match &self.packed.bytes {
            Bytes::Memory(bytes) => return Ok(&bytes[at..end]),
            Bytes::File(offset) => *offset,
        };
        let is_there = self.has.contains(&at) && end.min(at + MOST_BYTES) <= self.has.end;
        if let Some(file) = self.file.filter(|_| !is_there) {
            let start = at / PAGE_BYTES * PAGE_BYTES;
            let len = until.next_multiple_of(PAGE_BYTES) - start;
            let len = len.min(self.chunk.len());
            file.read(&mut self.chunk[..len], offset + start as u64)?;
            self.has = start..start + len;
        }
        Ok(&self.chunk[at - self.has.start..end.min(self.has.end) - self.has.start])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use tiergraph_core::Draws;

    use super::super::segments::tests::small_graph;
    use super::*;

    /// Any arcs come back as they were, from memory and from a file whose chunks cut lists anywhere.
    #[test]
    fn lists_are_unpacked_as_they_were_packed() {
        let mut draws = Draws::new(21);
        let directory = tempfile::tempdir().unwrap();
        let graph = small_graph(directory.path());
        let mut packed_lists = 0;
        for (odd, most) in [(0, 40), (1, 40), (20, 40), (60, 40), (0, 300_000), (3, 300_000)] {
            let (mut places, mut arcs) = (vec![0u32], Vec::new());
            for _ in 0..30 {
                let mut target = draws.below(1 << 31) as u32;
                for _ in 0..draws.below(most) {
                    target = target.wrapping_add(1 << draws.below(10));
                    let is_odd = draws.below(100) < odd;
                    let target = if is_odd { draws.below(1 << 32) as u32 } else { target };
                    let weight = match (is_odd, draws.below(3)) {
                        (false, _) => (1 + draws.below(254)) as f64,
                        (true, 0) => draws.below(1 << 33) as f64,
                        (true, 1) => -0.0,
                        (true, _) => draws.below(1000) as f64 / 7.0 - 50.0,
                    };
                    arcs.push(WeightedArc::new(target, weight));
                }
                places.push(arcs.len() as u32);
            }
            let as_they_were = arcs.clone();
            let Some(starts) = starts(&graph, &places, &arcs).unwrap() else {
                assert!(odd >= 20, "small weights are worth it");
                continue;
            };
            packed_lists += 1;
            arcs.resize(arcs.len().next_multiple_of(PAGE_BYTES), WeightedArc::new(0, 0.0));
            pack(&graph, &places, &starts, &mut arcs).unwrap();
            let end = *starts.last().unwrap() as usize;
            let bytes: &[u8] = &bytemuck::cast_slice(&arcs)[..end];
            let file = TemporaryFile::create(&directory.path().join("packed")).unwrap();
            let mut pages = AlignedBuf::zeroed(end.next_multiple_of(PAGE_BYTES)).unwrap();
            pages[..end].copy_from_slice(bytes);
            file.append(&[0; 0]).unwrap();
            let offset = file.append(&pages).unwrap();
            let mut in_memory = Array::<u8>::zeroed(end).unwrap();
            in_memory.copy_from_slice(bytes);
            for bytes in [Bytes::Memory(in_memory), Bytes::File(offset)] {
                let packed = Packed { starts: starts.clone(), bytes };
                let mut chunk = AlignedBuf::default();
                let mut reader = Reader::new(&packed, Some(&file), &mut chunk).unwrap();
                for _ in 0..60 {
                    let v = draws.below(30) as usize;
                    let expected = &as_they_were[places[v] as usize..places[v + 1] as usize];
                    let mut found = vec![WeightedArc::new(1, 1.0); expected.len()];
                    reader.list(v, packed.starts[v + 1] as usize, &mut found).unwrap();
                    let bytes = |arcs: &[WeightedArc]| bytemuck::cast_slice::<_, u8>(arcs).to_vec();
                    assert!(bytes(&found) == bytes(expected), "{odd} in 100, list {v}");
                }
            }
        }
        assert!(packed_lists >= 4, "{packed_lists} were packed");
    }
}
