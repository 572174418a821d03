//! Counts of edges by source and by target, with a thread for each.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_kernels::widest;
use tiergraph_mem::Budget;

use super::counts::Counts;
use super::scan::{too_many, too_many_edges};
use crate::build::array::Array;
use crate::build::needs::Seen;
use crate::source::{EdgeBatch, Endpoints};

/// Counts of edges by the vertex at one of their ends.
pub(crate) struct End<'a> {
    counts: Counts,
    /// One more than the largest id seen, or the number of vertices that were announced.
    pub(crate) vertices: u64,
    overflow: bool,
    budget: &'a Budget,
}

impl<'a> End<'a> {
    /// Counters for `vertices` vertices, which may become more.
    pub(crate) fn new(vertices: u64, budget: &'a Budget) -> Result<Self> {
        let capacity = usize::try_from(vertices).unwrap_or(usize::MAX);
        Ok(Self { counts: Counts::zeroed(capacity, budget)?, vertices, overflow: false, budget })
    }

    /// Counts the ids whose indices in `ids` satisfy `counted`.
    pub(crate) fn count(&mut self, ids: &[u32], counted: impl Fn(usize) -> bool) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.make_room(widest(|| ids.iter().fold(0, |most, id| most.max(*id))))?;
        self.overflow |= self.counts.count(ids, counted);
        Ok(())
    }

    fn count_sources(&mut self, batch: &EdgeBatch) -> Result<()> {
        match &batch.ends {
            Endpoints::U32 { src, .. } => self.count(src, |_| true),
            Endpoints::U64 { .. } => Ok(()),
        }
    }

    /// Adds counters until id `most` has one.
    fn make_room(&mut self, most: u32) -> Result<()> {
        if most == u32::MAX {
            return Err(too_many(most.into()));
        }
        let needed = u64::from(most) + 1;
        self.vertices = self.vertices.max(needed);
        if needed as usize > self.counts.len() {
            self.grow((needed as usize).next_power_of_two())?;
        }
        Ok(())
    }

    fn grow(&mut self, len: usize) -> Result<()> {
        self.counts.grow(len, self.budget)
    }

    /// Adds the counts so far to `seen`.
    pub(crate) fn tell(&self, seen: &mut Seen, end: usize) {
        seen.vertices = seen.vertices.max(self.vertices);
        self.counts.each(|vertex, count| seen.see(end, vertex, count));
    }

    /// The counts of the first `n` vertices, or more.
    pub(crate) fn finish(mut self, n: u64) -> Result<Array<u32>> {
        if self.overflow {
            return Err(too_many_edges());
        }
        if self.counts.len() < n as usize {
            self.grow(n as usize)?;
        }
        Ok(self.counts.finish())
    }
}

/// The thread that counts sources.
pub(crate) enum AtSources<'s, 'a> {
    /// The thread that counts targets.
    Here(&'s mut End<'a>),
    /// A thread of its own, which receives batches and reports when it has counted and released each.
    Apart { give: Sender<Arc<EdgeBatch>>, told: Receiver<Result<()>> },
}

impl<'s, 'a: 's> AtSources<'s, 'a> {
    /// Moves the counting of sources to a thread that `spawn` starts; it ends when this is dropped.
    pub(crate) fn apart(
        self,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send + 's>) -> Result<()>,
    ) -> Result<Self> {
        let Self::Here(sources) = self else { return Ok(self) };
        let (give, given) = bounded::<Arc<EdgeBatch>>(1);
        let (tell, told) = bounded(1);
        spawn(Box::new(move || {
            for batch in given {
                let counted = sources.count_sources(&batch);
                drop(batch);
                if tell.send(counted).is_err() {
                    return;
                }
            }
        }))?;
        Ok(Self::Apart { give, told })
    }

    /// Counts the sources of a batch, while `at_targets` counts the targets.
    pub(crate) fn count(
        &mut self,
        batch: &mut EdgeBatch,
        mut at_targets: impl FnMut(&[u32], &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut both = |batch: &EdgeBatch| match &batch.ends {
            Endpoints::U32 { src, dst } => at_targets(src, dst),
            Endpoints::U64 { .. } => Ok(()),
        };
        match self {
            Self::Here(sources) => {
                sources.count_sources(batch)?;
                both(batch)
            }
            Self::Apart { give, told } => {
                let shared = Arc::new(std::mem::take(batch));
                give.send(Arc::clone(&shared)).map_err(|_| ended())?;
                let counted = both(&shared);
                let counted = told.recv().map_err(|_| ended())?.and(counted);
                // The other thread has let go of it.
                *batch = Arc::try_unwrap(shared).unwrap_or_default();
                counted
            }
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "count the edges").got("the thread that counts sources ended")
}
