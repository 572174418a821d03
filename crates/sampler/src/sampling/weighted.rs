//! Choosing a vertex's arcs by weights or times.
//!
//! By weight, without replacement: A-ES (Efraimidis and Spirakis, *Weighted random sampling with a
//! reservoir*, 2006). Each arc has a draw u of its own and the key u^(1/w); the k largest keys are
//! taken. Here the order-reversing −ln(u) / w is compared, whose k smallest are the same. The chances
//! are those of drawing one arc after the other, each by its share of the weight that is left.
//!
//! By time: arcs that are later than the seed do not exist; of the others k are taken evenly, by
//! weight, or the latest.

use std::cmp::Ordering;
use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::sampling::choose::Chooser;
use crate::sampling::philox::{EpochKey, MAX_DRAWS, Stream};

/// The rule by which arcs are taken of those that are not later than the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Any of them, evenly or by their weights.
    #[default]
    Uniform,
    /// The latest of them.
    Last,
}

/// The values of one vertex's arcs, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Values<'a> {
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) times: Option<&'a [i64]>,
    /// The rule by which arcs are taken of those that may be.
    pub(crate) strategy: Strategy,
}

/// A request to choose arcs of one vertex.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// The key of the draws.
    pub(crate) key: EpochKey,
    pub(crate) stream: Stream,
    /// The numbers of all its arcs.
    pub(crate) arcs: Range<u64>,
    /// The most arcs that are taken.
    pub(crate) most: u64,
    /// The latest time of an arc that may be taken; `None` without a bound.
    pub(crate) until: Option<i64>,
}

/// A chooser of arcs by weights and times, which keeps its memory from choice to choice.
#[derive(Debug, Default)]
pub(crate) struct Weighted {
    /// Arcs that may be taken, ascending.
    candidates: Vec<u64>,
    chosen: Vec<u64>,
    keys: Vec<(f64, u64)>,
    times: Vec<(i64, u64)>,
}

impl Weighted {
    /// Bytes in memory where no vertex has more than `longest` arcs: a candidate each, and a key.
    pub(crate) fn bytes_for(longest: u64) -> u64 {
        longest * (size_of::<u64>() + size_of::<(f64, u64)>()) as u64
    }

    /// Chooses arcs of one vertex and appends them to `out`.
    pub(crate) fn choose(
        &mut self,
        chooser: &mut Chooser,
        values: &Values<'_>,
        choice: Choice,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let Choice { key, stream, ref arcs, most, until } = choice;
        let Values { weights, times, strategy } = *values;
        let begin = arcs.start;
        let is_candidate = |&arc: &u64| {
            let at = (arc - begin) as usize;
            weights.is_none_or(|weights| weights[at] > 0.0)
                && until.is_none_or(|until| times.is_none_or(|times| times[at] <= until))
        };
        self.candidates.clear();
        // No more than is reserved for.
        self.candidates.reserve_exact((arcs.end - begin) as usize);
        self.candidates.extend(arcs.clone().filter(is_candidate));
        let count = most.min(self.candidates.len() as u64) as usize;
        if count == self.candidates.len() {
            out.extend_from_slice(&self.candidates);
        } else if let (Strategy::Last, Some(times)) = (strategy, times) {
            self.last(times, begin, count, out);
        } else if let Some(weights) = weights {
            self.heaviest(weights, &choice, count, out)?;
        } else {
            self.chosen.resize(count, 0);
            chooser.choose(key, stream, self.candidates.len() as u64, 0, &mut self.chosen);
            out.extend(self.chosen.iter().map(|&at| self.candidates[at as usize]));
        }
        Ok(())
    }

    /// The latest `count` candidates, latest first; of equal ones those further back.
    fn last(&mut self, times: &[i64], begin: u64, count: usize, out: &mut Vec<u64>) {
        let late = |&arc: &u64| (times[(arc - begin) as usize], arc);
        self.times.clear();
        self.times.reserve_exact(self.candidates.len());
        self.times.extend(self.candidates.iter().map(late));
        let descending = |a: &(i64, u64), b: &(i64, u64)| b.cmp(a);
        take_first(&mut self.times, count, descending);
        out.extend(self.times.iter().map(|&(_, arc)| arc));
    }

    /// The `count` candidates with the least −ln(u) / w, the least first.
    fn heaviest(
        &mut self,
        weights: &[f32],
        choice: &Choice,
        count: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        if weights.len() > MAX_DRAWS as usize {
            return Err(Error::new(ErrorKind::Input, "sample by weight from vertex")
                .object(choice.stream.vertex)
                .expected(format!("at most {MAX_DRAWS} neighbours"))
                .got(weights.len()));
        }
        self.keys.clear();
        self.keys.reserve_exact(self.candidates.len());
        let (mut block, mut draws) = (u32::MAX, [0; 2]);
        for &arc in &self.candidates {
            let at = (arc - choice.arcs.start) as usize;
            if block != at as u32 / 2 {
                block = at as u32 / 2;
                draws = choice.key.draws(choice.stream, block);
            }
            self.keys.push((-ln(unit(draws[at % 2])) / f64::from(weights[at]), arc));
        }
        let ascending = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        take_first(&mut self.keys, count, ascending);
        out.extend(self.keys.iter().map(|&(_, arc)| arc));
        Ok(())
    }
}

/// Keeps the first `count` of `all` by `order`, sorted.
fn take_first<T>(all: &mut Vec<T>, count: usize, order: impl Fn(&T, &T) -> Ordering + Copy) {
    if count < all.len() {
        all.select_nth_unstable_by(count, order);
        all.truncate(count);
    }
    all.sort_unstable_by(order);
}

/// A number above 0 and not above 1: the upper 53 bits of a draw, plus one, by 2⁵³.
#[inline]
fn unit(draw: u64) -> f64 {
    ((draw >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The natural logarithm of a number above 0 and not above 1, by operations that every IEEE machine
/// does alike: a library's last bit differs from another's, and keys are compared.
///
/// With u = m × 2ᵉ, √½ < m ≤ √2, and z = (m − 1) / (m + 1): ln u = e ln 2 + 2 z (1 + z²/3 + z⁴/5 …),
/// eleven terms. Its error is below 10⁻¹⁵ of the larger of ln u and 1.
#[inline]
pub(crate) fn ln(u: f64) -> f64 {
    let bits = u.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let z = (m - 1.0) / (m + 1.0);
    let square = z * z;
    let mut sum = 0.0;
    for i in (0..=10).rev() {
        sum = sum * square + 1.0 / f64::from(2 * i + 1);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * z * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::philox::Purpose;

    #[test]
    fn the_logarithm_is_one() {
        for i in 1..100_000u32 {
            for u in [f64::from(i) / 100_000.0, (-f64::from(i) / 2000.0).exp()] {
                assert!((ln(u) - u.ln()).abs() <= 1e-15 * u.ln().abs().max(1.0), "{u}");
            }
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!((unit(0), unit(u64::MAX)), (2f64.powi(-53), 1.0));
        assert!(ln(unit(0)).is_finite());
    }

    fn by<'a>(
        weights: Option<&'a [f32]>,
        times: Option<&'a [i64]>,
        strategy: Strategy,
    ) -> Values<'a> {
        Values { weights, times, strategy }
    }

    fn choose(values: &Values<'_>, n: u64, most: u64, until: i64, vertex: u32) -> Vec<u64> {
        let key = EpochKey::new(11, 2, Purpose::Sample);
        let stream = Stream { vertex, ..Stream::default() };
        let (mut weighted, mut out) = (Weighted::default(), vec![77]);
        let mut chooser = Chooser::default();
        let until = values.times.map(|_| until);
        let choice = Choice { key, stream, arcs: 0..n, most, until };
        weighted.choose(&mut chooser, values, choice, &mut out).unwrap();
        assert_eq!(out.remove(0), 77, "what was there stays");
        out
    }

    /// The chance of every ordered pair that is drawn one after the other by weight.
    #[test]
    fn pairs_come_with_their_chances() {
        let weights = [1.0f32, 2.0, 0.0, 4.0, 0.5];
        let total: f32 = weights.iter().sum();
        let by_weight = by(Some(&weights), None, Strategy::Uniform);
        let rounds = 60_000;
        let mut counts = [[0u32; 5]; 5];
        for vertex in 0..rounds {
            let pair = choose(&by_weight, 5, 2, 0, vertex);
            counts[pair[0] as usize][pair[1] as usize] += 1;
        }
        let (mut square, mut cells) = (0.0, 0);
        for (a, row) in counts.iter().enumerate() {
            for (b, &count) in row.iter().enumerate() {
                let chance = weights[a] / total * weights[b] / (total - weights[a]);
                if a == b || chance == 0.0 {
                    assert_eq!(count, 0, "{a} {b}");
                    continue;
                }
                let expected = f64::from(chance) * f64::from(rounds);
                square += (f64::from(count) - expected).powi(2) / expected;
                cells += 1;
            }
        }
        // 31.3 is the 0.999 quantile of 11 degrees of freedom.
        assert_eq!(cells, 12);
        assert!(square < 31.3, "{square} {counts:?}");
    }

    #[test]
    fn times_bound_what_is_taken() {
        let times = [5i64, 1, 9, 5, 3, -2];
        let last = by(None, Some(&times), Strategy::Last);
        assert_eq!(choose(&last, 6, 2, 8, 0), [3, 0], "latest first, of equals the later arc");
        assert_eq!(choose(&last, 6, 9, 8, 0), [0, 1, 3, 4, 5], "all, in order");
        assert_eq!(choose(&last, 6, 3, 9, 0), [2, 3, 0]);
        assert_eq!(choose(&last, 6, 3, -3, 0), [0u64; 0]);
        let even = by(None, Some(&times), Strategy::Uniform);
        let mut counts = [0u32; 6];
        for vertex in 0..10_000 {
            let taken = choose(&even, 6, 2, 5, vertex);
            assert_eq!(taken.len(), 2);
            taken.iter().for_each(|&arc| counts[arc as usize] += 1);
        }
        assert_eq!(counts[2], 0);
        let square = |&c: &u32| (f64::from(c) - 4000.0).powi(2) / 4000.0;
        let others = [0, 1, 3, 4, 5].map(|at| counts[at]);
        // 18.5 is the 0.999 quantile of 4 degrees of freedom.
        assert!(others.iter().map(square).sum::<f64>() < 18.5, "{counts:?}");
        let weights = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        let both = by(Some(&weights), Some(&times), Strategy::Uniform);
        assert!(
            (0..100).all(|v| choose(&both, 6, 2, 5, v).iter().all(|&arc| arc != 1 && arc != 2))
        );
    }
}
