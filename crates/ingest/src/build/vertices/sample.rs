//! A sample of adjacency, by which orders of vertices are compared.
//!
//! Whole neighbour lists of a random set of vertices are kept: those whose hash is below a limit,
//! which halves whenever there are too many. How well a graph packs is decided by the gaps between
//! neighbours in a list, so the mean logarithm of the gap is what the orders are compared by.

use crate::build::array::Array;

/// The neighbour lists of a random sample of vertices.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    arcs: Vec<(u32, u32)>,
    most: usize,
    limit: u32,
}

/// The multiplier of Knuth's multiplicative hash: odd, with well-mixed bits.
const MULTIPLIER: u32 = 0x9E37_79B1;

impl Sample {
    /// A sample of at most `most` arcs.
    pub(crate) fn new(most: usize) -> Self {
        Self { arcs: Vec::new(), most, limit: u32::MAX }
    }

    /// Adds the arcs whose source is in the sample.
    #[inline(always)]
    pub(crate) fn extend(&mut self, src: &[u32], dst: &[u32]) {
        for (src, dst) in src.chunks(64).zip(dst.chunks(64)) {
            let mut limit = self.limit;
            // One test for all keeps the usual case, none of 64, without branches.
            if src.iter().fold(u32::MAX, |least, &s| least.min(hash(s))) >= limit {
                continue;
            }
            for (&s, &d) in src.iter().zip(dst) {
                if hash(s) < limit {
                    self.arcs.push((s, d));
                }
                if self.arcs.len() >= self.most {
                    limit /= 2;
                    self.arcs.retain(|arc| hash(arc.0) < limit);
                }
            }
            self.limit = limit;
        }
    }

    /// Replaces every vertex of the sample by `new` of it.
    pub(crate) fn rename(&mut self, new: impl Fn(u32) -> u32) {
        for (src, dst) in &mut self.arcs {
            (*src, *dst) = (new(*src), new(*dst));
        }
    }

    /// The mean of log₂(gap + 1) between neighbours in a list, in the user's order and in the one
    /// that `ranks` gives; `None` without two neighbours of one vertex.
    pub(crate) fn compare(mut self, ranks: &Array<u32>) -> Option<(f64, f64)> {
        let before = mean_log_gap(&mut self.arcs);
        for arc in &mut self.arcs {
            arc.1 = ranks[arc.1 as usize];
        }
        Some((before?, mean_log_gap(&mut self.arcs)?))
    }
}

#[inline(always)]
fn hash(vertex: u32) -> u32 {
    vertex.wrapping_mul(MULTIPLIER)
}

fn mean_log_gap(arcs: &mut [(u32, u32)]) -> Option<f64> {
    arcs.sort_unstable();
    let pairs = arcs.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let (mut sum, mut count) = (0.0, 0u64);
    for pair in pairs {
        sum += f64::from(pair[1].1 - pair[0].1 + 1).log2();
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}
