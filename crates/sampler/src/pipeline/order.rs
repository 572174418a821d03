//! The seeds of an epoch: the order in which they come, and the seeds of each batch.

use tiergraph_core::{Error, ErrorKind, Result};

use crate::options::LoaderOptions;
use crate::pipeline::cut::{Cut, Rank, not_bounds};
use crate::sampling::batch::Seeds;
use crate::sampling::permutation::permutation;
use crate::sampling::philox::{EpochKey, Purpose};

/// The seeds of an epoch, as the caller lists them.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The seeds: vertices of the graph, or nodes of the input types.
    pub seeds: &'a [u32],
    /// A time for each seed; `None` where edges are not sampled by time.
    pub times: Option<&'a [i64]>,
    /// The rank that takes the batches.
    pub rank: Rank,
    /// Where each of the rank's batches begins among the seeds, and the last ends; `None` to cut by
    /// batch size and rank.
    pub bounds: Option<&'a [usize]>,
}

impl<'a, T: AsRef<[u32]> + ?Sized> From<&'a T> for Inputs<'a> {
    fn from(seeds: &'a T) -> Self {
        Self { seeds: seeds.as_ref(), times: None, rank: Rank::default(), bounds: None }
    }
}

impl<'a> Inputs<'a> {
    /// These inputs with `seeds` in place of the seeds, if given, which have no times.
    #[must_use]
    pub fn or(self, seeds: Option<&'a [u32]>, bounds: Option<&'a [usize]>) -> Self {
        seeds.map_or(self, |seeds| Self { seeds, times: None, rank: self.rank, bounds })
    }
}

/// The seeds of an epoch in its order.
#[derive(Debug)]
pub struct SeedOrder {
    /// The index of each in the caller's list; `None` if the order is the same and none comes twice.
    places: Option<Vec<u32>>,
    /// The seeds, in order.
    seeds: Vec<u32>,
    /// The times of the seeds; `None` if they have none.
    times: Option<Vec<i64>>,
    /// The cut of the seeds into batches.
    cut: Cut,
}

impl SeedOrder {
    /// The order of an epoch over seeds that are numbers below `vertices`.
    pub(crate) fn new(
        options: &LoaderOptions,
        vertices: usize,
        epoch: u64,
        inputs: Inputs<'_>,
    ) -> Result<Self> {
        let Inputs { seeds, times, rank, bounds } = inputs;
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} vertices")));
        }
        let count = u32::try_from(seeds.len()).map_err(|_| {
            Error::new(ErrorKind::Input, "load batches").expected("fewer than 2^32 seeds")
        })?;
        let cut = match bounds {
            Some(_) if options.shuffle => return Err(not_bounds()),
            Some(bounds) => Cut::bounded(bounds, seeds.len(), rank)?,
            None => Cut::new(seeds.len(), options.batch_size, options.drop_last, rank),
        };
        let count_places = cut.places();
        if !options.shuffle && count_places <= seeds.len() {
            let times = times.map(<[i64]>::to_vec);
            return Ok(Self { places: None, seeds: seeds.to_vec(), times, cut });
        }
        let mut places = match options.shuffle {
            true => permutation(EpochKey::new(options.seed, epoch, Purpose::Shuffle), count),
            false => (0..count).collect(),
        };
        for place in seeds.len()..count_places {
            places.push(places[place % seeds.len()]);
        }
        let seeds = places.iter().map(|&place| seeds[place as usize]).collect();
        let times = times.map(|all| places.iter().map(|&place| all[place as usize]).collect());
        Ok(Self { places: Some(places), seeds, times, cut })
    }

    /// The number of batches that the rank has.
    pub(crate) fn batches(&self) -> usize {
        self.cut.batches()
    }

    /// The seeds of the rank's batch `batch`.
    pub(crate) fn seeds_of(&self, batch: usize) -> Seeds<'_> {
        let range = self.cut.range(batch);
        let times = self.times.as_ref().map_or(&[][..], |times| &times[range.clone()]);
        Seeds { number: self.cut.number(batch) as u32, vertices: &self.seeds[range], times }
    }

    /// The places of a batch's seeds in the caller's list.
    pub(crate) fn input_id(&self, batch: usize) -> Vec<u32> {
        let range = self.cut.range(batch);
        match &self.places {
            Some(places) => places[range].to_vec(),
            None => (range.start as u32..range.end as u32).collect(),
        }
    }
}
