//! Unused ids (those that no edge has), and graphs without them as vertices.
//!
//! A scan of dense ids counts which ids occur. Where many do not, those that do become the vertices, in
//! their order. The next pass then looks up the place of an id (4 bytes) instead of the place of a
//! vertex, so that no further pass over the edges is needed, and no more memory than all ids would take
//! as vertices.

use tiergraph_core::Result;
use tiergraph_mem::{Budget, Reservation};

use super::scan::Scanned;
use crate::build::array::Array;

/// The most unused ids that are never many.
const FEW: u64 = 64;
/// Unused ids are many if they are more than one in so many.
const MANY_IN: u64 = 32;

/// Counts of the ids 0 to `ids` - 1, of which `unused` have no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) ids: u64,
    pub(crate) unused: u64,
}

impl Gaps {
    /// Whether unused ids are so many that they become no vertices, unless the user asks for that.
    pub(crate) fn are_large(self) -> bool {
        self.unused > FEW && self.unused > self.ids / MANY_IN
    }

    /// The note for the user where only ids with an edge are vertices.
    pub(crate) fn left_out(self) -> String {
        let last = self.ids - 1;
        format!(
            "{} of the ids 0 to {last} have no edge and are no vertices; `--ids dense` makes them some",
            self.unused
        )
    }

    /// The note for the user where all ids are vertices; `None` if all of them have an edge.
    pub(crate) fn kept(self) -> Option<String> {
        let last = self.ids.checked_sub(1)?;
        let have = if self.unused == 1 { "has" } else { "have" };
        (self.unused > 0).then(|| {
            format!(
                "{} of the ids 0 to {last} {have} no edge; `--ids map` leaves out such vertices",
                self.unused
            )
        })
    }
}

/// The set of the ids 0 to n - 1 that occur: a bitmap, with the number of set bits before each 64.
#[derive(Debug)]
pub(crate) struct Occurring {
    bits: Vec<u64>,
    before: Vec<u32>,
    ids: usize,
    _held: Reservation,
}

impl Occurring {
    /// The set of the ids that have an edge in `scanned`, or are among `others`.
    pub(crate) fn new(scanned: &Scanned, others: &[u64], budget: &Budget) -> Self {
        let ids = scanned.vertices;
        let words = ids.div_ceil(64);
        // Where this does not fit, neither does what comes next, whose refusal says what does.
        let held = budget.count(12 * words as u64);
        let mut bits = vec![0u64; words];
        let counts = scanned.sources.chunks(64).zip(scanned.targets.chunks(64));
        for (word, (sources, targets)) in bits.iter_mut().zip(counts) {
            for (bit, (source, target)) in sources.iter().zip(targets).enumerate() {
                *word |= u64::from(source | target != 0) << bit;
            }
        }
        for &id in others {
            bits[id as usize / 64] |= 1 << (id % 64);
        }
        let mut sum = 0;
        let before = bits.iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        let before = before.collect();
        Self { bits, before, ids, _held: held }
    }

    /// The number of ids, and how many of them do not occur, as [`Gaps`].
    pub(crate) fn gaps(&self) -> Gaps {
        let used: u64 = self.bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Gaps { ids: self.ids as u64, unused: self.ids as u64 - used }
    }

    /// The number of ids below `id` that occur: its vertex.
    fn rank(&self, id: u32) -> u32 {
        let (word, bit) = (id as usize / 64, id % 64);
        self.before[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones()
    }

    /// The ids that occur, ascending.
    fn iter(&self) -> impl Iterator<Item = usize> {
        self.bits.iter().enumerate().flat_map(|(word, &bits)| {
            let next = |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
            let each = std::iter::successors(Some(bits).filter(|bits| *bits != 0), next);
            each.map(move |bits| 64 * word + bits.trailing_zeros() as usize)
        })
    }

    /// Calls `take` with the ids that occur, a few thousand at a time, ascending.
    pub(crate) fn each_chunk(&self, mut take: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        let mut chunk = Vec::with_capacity(1 << 12);
        for id in self.iter() {
            chunk.push(id as u64);
            if chunk.len() == chunk.capacity() {
                take(&chunk)?;
                chunk.clear();
            }
        }
        take(&chunk)
    }

    /// Makes the ids that occur the vertices of `scanned`, in their order.
    pub(crate) fn compact(&self, scanned: &mut Scanned) {
        let mut vertices = 0;
        for id in self.iter() {
            scanned.sources[vertices] = scanned.sources[id];
            scanned.targets[vertices] = scanned.targets[id];
            vertices += 1;
        }
        scanned.vertices = vertices;
        scanned.sample.rename(|id| self.rank(id));
    }

    /// The place of each id in the order of vertices that `ranks` gives (`None`: ascending); 0 for ids
    /// that do not occur.
    pub(crate) fn places(&self, ranks: Option<&Array<u32>>, budget: &Budget) -> Result<Array<u32>> {
        let mut places = Array::zeroed(self.ids, budget, "the places of ids")?;
        for (vertex, id) in self.iter().enumerate() {
            places[id] = ranks.map_or(vertex as u32, |ranks| ranks[vertex]);
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_large_where_more_than_64_and_3_percent_of_the_ids_are_unused() {
        let large = |ids, unused| Gaps { ids, unused }.are_large();
        assert!(!large(100, 64));
        assert!(large(100, 65));
        assert!(!large(1 << 20, 1 << 15));
        assert!(large(1 << 20, (1 << 15) + 1));
        // wiki-Vote.
        assert!(large(8298, 1183));
    }
}
