//! How batches are made.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::Direction;

use crate::columns::Resident;
use crate::matrix::Delivery;
use crate::sample::SampleOptions;

/// What rows of features on one page have of its read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// A page is read once for all rows of a window that are on it.
    #[default]
    Pages,
    /// Every row is read for itself, as other systems do: to measure what sharing is worth.
    Nothing,
}

/// How batches are made.
#[derive(Debug, Clone, PartialEq)]
pub struct LoaderOptions {
    /// What is sampled.
    pub sample: SampleOptions,
    /// Which neighbours: `In` for messages along edges, as PyG samples.
    pub direction: Direction,
    /// Seeds a batch; the last one may have fewer.
    pub batch_size: usize,
    /// Whether a last batch with fewer seeds is left out.
    pub drop_last: bool,
    /// Whether each epoch shuffles its seeds.
    pub shuffle: bool,
    /// What everything random follows from.
    pub seed: u64,
    /// W: batches that are prepared together and share reads.
    pub window: usize,
    /// Threads that prepare windows.
    pub threads: usize,
    /// Batches that may be begun beyond a window, and not yet taken.
    pub prefetch: usize,
    /// Which features batches come with; none if not set.
    pub features: Option<String>,
    /// Which features of edges batches come with; none if not set.
    pub edge_features: Option<String>,
    /// Which values of edges stay in memory; the others are read.
    pub resident: Resident,
    /// Whether rows on one page share its read.
    pub sharing: Sharing,
    /// How the vertices' features are delivered.
    pub delivery: Delivery,
    /// Bytes of pages that a thread keeps from hop to hop of a window: of neighbours, and as many
    /// of values of edges.
    pub retain_bytes: usize,
}

impl LoaderOptions {
    /// Batches of 1,024 seeds in windows of four, prepared by two threads, without features.
    pub fn new(sample: SampleOptions) -> Self {
        Self {
            sample,
            direction: Direction::In,
            batch_size: 1024,
            drop_last: false,
            shuffle: true,
            seed: 0,
            window: 4,
            threads: 2,
            prefetch: 6,
            features: None,
            edge_features: None,
            resident: Resident::ALL,
            sharing: Sharing::default(),
            delivery: Delivery::default(),
            retain_bytes: 16 << 20,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let counts =
            [("batch_size", self.batch_size), ("window", self.window), ("threads", self.threads)];
        for (name, count) in counts {
            if count == 0 || u32::try_from(count).is_err() {
                return Err(Error::new(ErrorKind::Input, "load batches with")
                    .object(name)
                    .expected("1 or more, below 2^32")
                    .got(count));
            }
        }
        Ok(())
    }
}
