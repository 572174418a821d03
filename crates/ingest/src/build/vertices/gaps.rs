//! Ids that no edge has, and the graph without them.
//!
//! What a scan of dense ids has counted says which ids occur. Where many do not, those that do become
//! the vertices, in their order. The next pass looks up the place of an id (4 bytes) instead of the place
//! of a vertex, so that no further pass over the edges is needed, and no more memory than all ids would
//! take as vertices.

use tiergraph_core::Result;
use tiergraph_mem::{Budget, Reservation};

use super::scan::Scanned;
use crate::build::array::Array;

/// So few ids without an edge are never many.
const FEW: u64 = 64;
/// More than one id in so many without an edge are.
const MANY_IN: u64 = 32;

/// Ids 0 to `ids` - 1, `unused` of which have no edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) ids: u64,
    pub(crate) unused: u64,
}

impl Gaps {
    /// Whether ids without an edge are so many that they are no vertices, unless the user says so.
    pub(crate) fn are_large(self) -> bool {
        self.unused > FEW && self.unused > self.ids / MANY_IN
    }

    /// What is said where only ids with an edge are vertices.
    pub(crate) fn left_out(self) -> String {
        let last = self.ids - 1;
        format!(
            "{} of the ids 0 to {last} have no edge and are no vertices; `--ids dense` makes them some",
            self.unused
        )
    }

    /// What is said where all ids are vertices.
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

/// Which of the ids 0 to n - 1 occur: a bit each, and how many do before each 64.
#[derive(Debug)]
pub(crate) struct Occurring {
    bits: Vec<u64>,
    before: Vec<u32>,
    ids: usize,
    _held: Reservation,
}

impl Occurring {
    /// The ids that have an edge in `scanned`, and `others`.
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

    /// How many ids do not occur.
    pub(crate) fn gaps(&self) -> Gaps {
        let used: u64 = self.bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Gaps { ids: self.ids as u64, unused: self.ids as u64 - used }
    }

    /// How many of the ids below `id` occur.
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

    /// Hands the ids that occur to `take`, a few thousand at a time.
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

    /// Makes the ids that occur the vertices of `scanned`.
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

    /// The place of each id, where vertices have the order that `ranks` gives; of ids that do not
    /// occur, 0.
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
