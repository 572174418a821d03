//! The cut of an epoch's seeds into batches, and the batches that each rank has.
//!
//! Batches are numbered through the epoch, and ranks take them by stride: rank r of w has the
//! batches r, r + w, r + 2 w …, so that a batch is the same whoever makes it. What is left after the
//! last round of whole batches is dealt out evenly, because ranks that train together must take
//! equally many steps. `docs/sampling.md` (*Ranks*) defines it.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

/// A rank: one of several processes that share the batches of each epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The number of this rank, from 0.
    pub rank: usize,
    /// The number of ranks.
    pub ranks: usize,
}

impl Default for Rank {
    /// The only rank.
    fn default() -> Self {
        Self { rank: 0, ranks: 1 }
    }
}

impl Rank {
    /// Rank `rank` of `ranks`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a rank that is not below `ranks`, and for `ranks` of 0.
    pub fn new(rank: usize, ranks: usize) -> Result<Self> {
        if rank >= ranks {
            return Err(Error::new(ErrorKind::Input, "load the batches of rank")
                .object(rank)
                .expected(format!("a rank below the {ranks} of `world_size`")));
        }
        Ok(Self { rank, ranks })
    }

    /// The number in the whole epoch of this rank's batch `batch`.
    pub fn number(self, batch: usize) -> usize {
        batch * self.ranks + self.rank
    }
}

/// The cut of an epoch into batches, as ranges of places in the order of its seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    batch_size: usize,
    rank: Rank,
    /// The number of rounds in which every rank gets `batch_size` seeds.
    whole: usize,
    /// The number of rounds after them, whose seeds are dealt out evenly.
    shared: usize,
    /// The number of places that batches are cut from.
    places: usize,
    /// Where each of the rank's batches begins, and the last ends; `None` if the caller cut none.
    bounds: Option<Vec<usize>>,
}

impl Cut {
    /// Cuts `seeds` seeds into batches of `batch_size`, of which `rank` has its share.
    pub fn new(seeds: usize, batch_size: usize, drop_last: bool, rank: Rank) -> Self {
        let round = batch_size.saturating_mul(rank.ranks);
        let (whole, rest) = (seeds / round, seeds % round);
        let (whole, shared, places) = if drop_last || rest == 0 {
            (whole, 0, whole * round)
        } else if rest >= rank.ranks {
            (whole, 1, seeds)
        } else if whole > 0 && batch_size > 1 {
            // Too few for all ranks: the round before shares its seeds.
            (whole - 1, 2, seeds)
        } else {
            // Fewer seeds than batches: the first come once more.
            (whole, 1, whole * round + rank.ranks)
        };
        Self { batch_size, rank, whole, shared, places, bounds: None }
    }

    /// Batches of any sizes: the rank's batch i has the seeds from `bounds[i]` to `bounds[i + 1]`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for bounds that do not cut all `seeds`.
    pub(crate) fn bounded(bounds: &[usize], seeds: usize, rank: Rank) -> Result<Self> {
        let (Some((0, ends)), true) = (bounds.split_first(), bounds.is_sorted()) else {
            return Err(not_bounds());
        };
        if bounds.last() != Some(&seeds) {
            return Err(not_bounds());
        }
        let (batch_size, whole, shared, places) = (0, ends.len(), 0, seeds);
        Ok(Self { batch_size, rank, whole, shared, places, bounds: Some(bounds.to_vec()) })
    }

    /// The number of batches that this rank has, as many as every other.
    pub fn batches(&self) -> usize {
        self.whole + self.shared
    }

    /// The number of places that all ranks' batches are cut from. Where they are more than the seeds,
    /// place i has the seed of place i modulo the number of seeds.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The number in the whole epoch of this rank's batch `batch`.
    pub fn number(&self, batch: usize) -> usize {
        self.rank.number(batch)
    }

    /// The range of places of this rank's batch `batch`.
    pub fn range(&self, batch: usize) -> Range<usize> {
        if let Some(bounds) = &self.bounds {
            return bounds[batch]..bounds[batch + 1];
        }
        let number = self.number(batch);
        if batch < self.whole {
            return number * self.batch_size..(number + 1) * self.batch_size;
        }
        let before = self.whole * self.rank.ranks;
        let begin = before * self.batch_size;
        let (parts, rest) = (self.shared * self.rank.ranks, self.places - begin);
        let bound = |part: usize| begin + part * (rest / parts) + part.min(rest % parts);
        bound(number - before)..bound(number - before + 1)
    }
}

/// The error of bounds that do not cut the seeds into batches.
pub(crate) fn not_bounds() -> Error {
    Error::new(ErrorKind::Input, "load batches of several sizes")
        .expected("unshuffled seeds, and where each batch begins among them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(seeds: usize, size: usize, drop_last: bool, ranks: usize) -> Vec<Vec<Range<usize>>> {
        let of = |rank| Cut::new(seeds, size, drop_last, Rank { rank, ranks });
        (0..ranks).map(|r| (0..of(r).batches()).map(|b| of(r).range(b)).collect()).collect()
    }

    #[test]
    fn every_rank_has_as_many_batches_and_every_seed_is_in_one() {
        for (seeds, size, ranks) in shapes(40, 7, 6) {
            let by_rank = ranges(seeds, size, false, ranks);
            let what = format!("{seeds} seeds by {size} over {ranks}");
            let count = by_rank[0].len();
            assert!(by_rank.iter().all(|batches| batches.len() == count), "{what}");
            assert_eq!(count, seeds.div_ceil(size * ranks), "{what}");
            let mut all: Vec<Range<usize>> = by_rank.concat();
            assert!(all.iter().all(|range| (1..=size).contains(&range.len())), "{what}");
            all.sort_by_key(|range| range.start);
            assert!(all.iter().zip(all.iter().skip(1)).all(|(a, b)| a.end == b.start), "{what}");
            let places = all.last().map_or(0, |range| range.end);
            // A seed comes twice only where there are fewer seeds than batches.
            assert_eq!(places, seeds.max(count * ranks * usize::from(seeds < count * ranks)));
        }
    }

    #[test]
    fn whole_batches_are_those_of_one_process() {
        for (seeds, size, ranks) in shapes(40, 7, 6) {
            let alone = &ranges(seeds, size, false, 1)[0];
            for (rank, batches) in ranges(seeds, size, false, ranks).into_iter().enumerate() {
                let whole = (seeds / (size * ranks)).saturating_sub(1);
                for (batch, range) in batches.into_iter().enumerate().take(whole) {
                    assert_eq!(range, alone[batch * ranks + rank]);
                }
            }
        }
    }

    #[test]
    fn what_is_dropped_last_is_a_round() {
        for (seeds, size, ranks) in shapes(40, 7, 6) {
            for batches in ranges(seeds, size, true, ranks) {
                assert_eq!(batches.len(), seeds / (size * ranks));
                assert!(batches.iter().all(|range| range.len() == size && range.end <= seeds));
            }
        }
    }

    #[test]
    fn a_rank_is_below_their_number() {
        assert!(Rank::new(1, 2).is_ok());
        assert!(Rank::new(2, 2).is_err());
        assert!(Rank::new(0, 0).is_err());
    }

    fn shapes(
        seeds: usize,
        size: usize,
        ranks: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..=seeds).flat_map(move |n| {
            (1..=size).flat_map(move |size| (1..=ranks).map(move |ranks| (n, size, ranks)))
        })
    }
}
