//! R-MAT graphs as Graph500 makes them: few vertices have most of the edges.
//!
//! D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a recursive model for graph mining" (2004), with
//! Graph500's quadrant probabilities 0.57, 0.19, 0.19, 0.05. An edge descends `scale` levels of a
//! quadtree over the adjacency matrix; each level gives one bit of the source and one of the
//! target. The ids are then permuted, so that they say nothing about the degree.
//!
//! Levels are independent, so four of them are drawn at once from their 256 joint outcomes with one
//! look into an alias table (M. Vose, "A linear algorithm for generating random numbers with a given
//! distribution", 1991). A draw takes 32 bits, 8 for the column and 24 for the coin, so an edge of
//! scale 24 costs three hashes and six lookups in a table of 1 KiB. `examples/source_speed.rs`
//! measures the speed.

use std::hint::select_unpredictable;

use tiergraph_core::{Error, ErrorKind, Result};

use super::hash::{Counter, Permutation, Word};
use super::model::{BLOCK, Model};

/// Levels that one draw decides.
const LEVELS: u32 = 4;
const OUTCOMES: usize = 1 << (2 * LEVELS);
const COIN_BITS: u32 = 32 - 2 * LEVELS;

/// One column of the alias table: the coin's threshold in the high 24 bits, and in the low 8 the
/// bits in which the alias differs from the column's own outcome, which is its index. An outcome is
/// four bits of the source and four of the target.
type Column = u32;

/// The R-MAT model.
#[derive(Debug, Clone)]
pub struct Rmat {
    scale: u32,
    edge_factor: u64,
    probabilities: [f64; 4],
    seed: u64,
    words: Counter,
    permutation: Permutation,
    table: [Column; OUTCOMES],
}

impl Rmat {
    /// Graph500's probabilities: a, b, c, d.
    pub const GRAPH500: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

    /// A graph of 2^`scale` vertices and `edge_factor` edges a vertex.
    ///
    /// # Errors
    /// An input error where `scale` is not 1 to 40, the number of edges does not fit 63 bits, or
    /// the probabilities do not add up to 1.
    pub fn new(scale: u32, edge_factor: u64, probabilities: [f64; 4], seed: u64) -> Result<Self> {
        let refuse = |expected: &str, got: String| {
            Err(Error::new(ErrorKind::Input, "generate an R-MAT graph").expected(expected).got(got))
        };
        if !(1..=40).contains(&scale) {
            return refuse("a scale from 1 to 40", format!("{scale}"));
        }
        if edge_factor > 1 << 22 {
            return refuse("an edge factor of at most 4194304", format!("{edge_factor}"));
        }
        let sum: f64 = probabilities.iter().sum();
        if probabilities.iter().any(|p| p.is_nan() || *p < 0.0) || (sum - 1.0).abs() > 1e-9 {
            return refuse("four probabilities that add up to 1", format!("{probabilities:?}"));
        }
        Ok(Self {
            scale,
            edge_factor,
            probabilities,
            seed,
            words: Counter::new(seed, 0x726d_6174),
            permutation: Permutation::new(seed, scale),
            table: alias_table(&joint(probabilities)),
        })
    }

    /// An edge before its ids are permuted: bit i is the quadrant at level `scale` − i.
    #[inline(always)]
    fn descend(&self, number: u64) -> (u64, u64) {
        let (draws, beyond) = self.draws();
        let words = draws.div_ceil(2);
        let at = number.wrapping_mul(words.into());
        let (mut src, mut dst) = (0u64, 0u64);
        for draw in 0..draws {
            let random = self.words.word(at.wrapping_add((draw / 2).into()));
            let outcome = u64::from(outcome(&self.table, (random >> (draw % 2 * 32)) as u32));
            src = src << LEVELS | (outcome >> LEVELS);
            dst = dst << LEVELS | (outcome & ((1 << LEVELS) - 1));
        }
        (src >> beyond, dst >> beyond)
    }

    /// [`Self::descend`] for [`BLOCK`] edges, a draw of all after the other.
    #[inline(always)]
    fn descend_block<W: Word>(&self, first: u64, src: &mut [W; BLOCK], dst: &mut [W; BLOCK]) {
        let (draws, beyond) = self.draws();
        let words = draws.div_ceil(2);
        (*src, *dst) = ([W::default(); BLOCK], [W::default(); BLOCK]);
        let mut random = [[0; BLOCK]; 2];
        for draw in 0..draws {
            if draw % 2 == 0 {
                let [low, high] = &mut random;
                for (number, (low, high)) in (first..).zip(low.iter_mut().zip(high)) {
                    let at = number.wrapping_mul(words.into()).wrapping_add((draw / 2).into());
                    let word = self.words.word(at);
                    (*low, *high) = (word as u32, (word >> 32) as u32);
                }
            }
            let random = &random[draw as usize % 2];
            for ((src, dst), &random) in src.iter_mut().zip(dst.iter_mut()).zip(random) {
                let outcome = outcome(&self.table, random);
                *src = *src << LEVELS | W::low((outcome >> LEVELS).into());
                *dst = *dst << LEVELS | W::low((outcome & ((1 << LEVELS) - 1)).into());
            }
        }
        src.iter_mut()
            .zip(dst)
            .for_each(|(src, dst)| (*src, *dst) = (*src >> beyond, *dst >> beyond));
    }

    /// The number of draws of an edge, and how many of the levels that they decide are beyond the scale: the
    /// last ones, so dropping them changes nothing.
    fn draws(&self) -> (u32, u32) {
        let draws = self.scale.div_ceil(LEVELS);
        (draws, draws * LEVELS - self.scale)
    }
}

/// The outcome that 32 random bits choose. The coin is unpredictable, so it must not be a branch.
#[inline]
fn outcome(table: &[Column; OUTCOMES], draw: u32) -> u32 {
    let own = draw >> COIN_BITS;
    let column = table[own as usize];
    let coin = draw & ((1 << COIN_BITS) - 1);
    let alias = own ^ (column & (OUTCOMES as u32 - 1));
    select_unpredictable(coin < column >> (2 * LEVELS), own, alias)
}

impl Model for Rmat {
    fn describe(&self) -> String {
        let [a, b, c, d] = self.probabilities;
        format!(
            "rmat(scale={}, edge_factor={}, a={a}, b={b}, c={c}, d={d}, seed={})",
            self.scale, self.edge_factor, self.seed
        )
    }

    fn vertices(&self) -> u64 {
        1 << self.scale
    }

    fn edges(&self) -> u64 {
        self.edge_factor << self.scale
    }

    #[inline(always)]
    fn edge(&self, number: u64) -> (u64, u64) {
        let (src, dst) = self.descend(number);
        (self.permutation.apply(src), self.permutation.apply(dst))
    }

    #[inline(always)]
    fn block<W: Word>(&self, first: u64, src: &mut [W; BLOCK], dst: &mut [W; BLOCK]) {
        self.descend_block(first, src, dst);
        for (src, dst) in src.iter_mut().zip(dst) {
            (*src, *dst) = (self.permutation.apply(*src), self.permutation.apply(*dst));
        }
    }
}

/// The probabilities of the joint outcomes of four levels.
fn joint(quadrants: [f64; 4]) -> [f64; OUTCOMES] {
    std::array::from_fn(|outcome| {
        (0..LEVELS)
            .map(|level| {
                let (src, dst) = (outcome >> (LEVELS + level) & 1, outcome >> level & 1);
                quadrants[2 * src + dst]
            })
            .product()
    })
}

/// Vose's alias table of a distribution.
fn alias_table(probabilities: &[f64; OUTCOMES]) -> [Column; OUTCOMES] {
    let mut share = probabilities.map(|p| p * OUTCOMES as f64);
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..OUTCOMES).partition(|&outcome| share[outcome] < 1.0);
    let full = (1u32 << COIN_BITS) as f64;
    // A column that is its own alias has any threshold.
    let mut table = [0; OUTCOMES];
    while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
        let threshold = (share[less] * full).round() as u32;
        table[less] = threshold.min((1 << COIN_BITS) - 1) << (2 * LEVELS) | (less ^ more) as u32;
        share[more] -= 1.0 - share[less];
        if share[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alias_table_has_the_joint_distribution() {
        let wanted = joint(Rmat::GRAPH500);
        let full = (1u32 << COIN_BITS) as f64;
        let mut got = [0.0; OUTCOMES];
        for (own, column) in alias_table(&wanted).into_iter().enumerate() {
            let share = f64::from(column >> (2 * LEVELS)) / full;
            let alias = own ^ (column as usize & (OUTCOMES - 1));
            got[own] += share / OUTCOMES as f64;
            got[alias] += (1.0 - share) / OUTCOMES as f64;
        }
        for (got, wanted) in got.iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-8, "{got} {wanted}");
        }
    }

    #[test]
    fn every_level_has_the_quadrants_probabilities() {
        // Scales that are and are not a multiple of the levels of a draw or of a word.
        for scale in [1, 6, 8, 13] {
            let model = Rmat::new(scale, 1, Rmat::GRAPH500, 3).unwrap();
            let edges = 40_000;
            let mut counts = vec![[0u32; 4]; scale as usize];
            for (src, dst) in (0..edges).map(|number| model.descend(number)) {
                for (level, counts) in counts.iter_mut().enumerate() {
                    counts[((src >> level & 1) << 1 | dst >> level & 1) as usize] += 1;
                }
            }
            for (level, counts) in counts.iter().enumerate() {
                for (count, p) in counts.iter().zip(Rmat::GRAPH500) {
                    let (mean, sd) = (p * edges as f64, (edges as f64 * p * (1.0 - p)).sqrt());
                    let off = (f64::from(*count) - mean).abs() / sd;
                    assert!(off < 5.0, "scale {scale} level {level}: {count}, {off} sd");
                }
            }
        }
    }

    #[test]
    fn a_block_has_the_edges_that_come_one_by_one() {
        for scale in [1, 7, 8, 13, 24, 27, 32, 33, 40] {
            let model = Rmat::new(scale, 1, Rmat::GRAPH500, 3).unwrap();
            for first in [0, 5, 1 << 30] {
                let (mut src, mut dst) = ([0u64; BLOCK], [0; BLOCK]);
                model.block(first, &mut src, &mut dst);
                for (number, ends) in (first..).zip(src.into_iter().zip(dst)) {
                    assert_eq!(ends, model.edge(number), "edge {number} of scale {scale}");
                }
                if scale <= u32::BITS {
                    let (mut low_src, mut low_dst) = ([0u32; BLOCK], [0; BLOCK]);
                    model.block(first, &mut low_src, &mut low_dst);
                    assert_eq!((low_src.map(u64::from), low_dst.map(u64::from)), (src, dst));
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        let message = |scale, p| Rmat::new(scale, 16, p, 0).unwrap_err().to_string();
        assert_eq!(
            message(0, Rmat::GRAPH500),
            "cannot generate an R-MAT graph: expected a scale from 1 to 40, got 0"
        );
        assert_eq!(
            message(4, [0.5, 0.5, 0.5, 0.5]),
            "cannot generate an R-MAT graph: expected four probabilities that add up to 1, got \
             [0.5, 0.5, 0.5, 0.5]"
        );
    }
}
