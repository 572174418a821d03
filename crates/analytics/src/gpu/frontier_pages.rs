//! A level of a search of few vertices: where blocks stream to the device, it reads the pages that have their
//! lists, and no blocks.
//!
//! ```text
//! frontier ─ want ─ pages ─ (drives) ─ push ─ the next level's depths
//! ```
//! Kernels say which pages are wanted. With `--io gpu` they ask the drives for them, too, and the host only
//! starts kernels (Hyperion, §III-A); with other engines the host reads them.

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_gpu::Stream;
use tiergraph_gpu::kernels::{Frontier, FrontierKernels, LIST_PAGE_BYTES, StoredLists};
use tiergraph_graph::{Direction, Graph, ListReading, ListsOnStorage, ListsReadBy};
use tiergraph_io::gpu_reads::WhoWaits;

use super::Gpu;

/// How many times as much a byte pages cost as whole blocks, about: read by kernels, and by the host. Measured on
/// one and four modelled drives (bench/gpu/drives/frontier.py).
const COST_BY_GPU: u64 = 2;
const COST_BY_HOST: u64 = 5;
/// How many times as many bytes of blocks a vertex a level has that is not like another.
const OTHERWISE: f64 = 1.25;
/// The fewest bytes that a list has.
const LEAST_LIST: u64 = 2;
/// The share of device memory, one part in so many, that pages and their index may take.
const SHARE: u64 = 16;

/// Who reads the pages of frontiers, and how many were read.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FrontierReads {
    /// Who starts the reads of pages: `gpu` or `host`.
    #[serde(rename = "frontier_reads_by")]
    pub started_by: ListsReadBy,
    /// Pages of neighbour lists, of 4 KiB, that were read for small frontiers.
    #[serde(rename = "frontier_pages")]
    pub pages: u64,
}

/// The pages of out-neighbours, of which levels with few vertices read their own.
pub(super) struct FrontierPages<'a> {
    graph: &'a Graph,
    kernels: FrontierKernels,
    stored: StoredLists<'a>,
    reads: FrontierReads,
    /// Bytes of blocks a vertex of the last level whose pages cost more than those.
    refused: f64,
}

impl<'a> FrontierPages<'a> {
    /// Bytes of device memory that pages of frontiers take; 0 where there are none, where they would take too
    /// large a share, or where `all_fits`: no block is read in a level then.
    pub fn device_bytes(graph: &Graph, gpu: &Gpu, all_fits: bool) -> u64 {
        let pages = graph.rows(Direction::Out).pages().filter(|_| graph.tiles().is_stored());
        let Some(pages) = pages.filter(|_| !all_fits) else { return 0 };
        let least = ListsOnStorage::least_bytes(pages.index.len());
        if least <= gpu.memory / SHARE { gpu.memory / SHARE } else { 0 }
    }

    /// The pages of `graph`, which take at most `device_bytes`, as kernels of `stream` use them; `None` if that
    /// is not enough, or the host's memory does not hold what is read.
    ///
    /// # Errors
    /// No compiler of kernels, any error of the driver or a drive.
    pub fn new(graph: &'a Graph, stream: &Stream, device_bytes: u64) -> Result<Option<Self>> {
        let reading = ListReading {
            who_waits: WhoWaits::Kernel,
            threads: graph.thread_pool().size(),
            pages_bytes: device_bytes,
            most_bytes: device_bytes,
        };
        let stored = ListsOnStorage::new(graph, Direction::Out, stream, reading)?;
        let Some(ListsOnStorage { lists: stored, read_by, .. }) = stored else { return Ok(None) };
        let kernels = FrontierKernels::new(stream.device())?;
        let reads = FrontierReads { started_by: read_by, pages: 0 };
        Ok(Some(Self { graph, kernels, stored, reads, refused: 0.0 }))
    }

    /// Who reads the pages of frontiers, and how many were read.
    pub fn reads(&self) -> FrontierReads {
        self.reads
    }

    /// Whether the lists of `vertices` vertices could be on pages that cost less than `bytes` of blocks; false,
    /// too, for a level like the last one of which they did not.
    fn may_pay(&self, vertices: u64, bytes: u64) -> bool {
        self.cost(vertices.saturating_mul(LEAST_LIST)) < bytes
            && bytes as f64 / vertices as f64 > self.refused * OTHERWISE
    }

    /// What `bytes` of pages cost, in bytes of blocks: finding and bringing any takes as long as a block does.
    fn cost(&self, bytes: u64) -> u64 {
        let each = match self.reads.started_by {
            ListsReadBy::Gpu => COST_BY_GPU,
            ListsReadBy::Host => COST_BY_HOST,
        };
        bytes.saturating_mul(each).saturating_add(self.graph.block_bytes() as u64)
    }

    /// Gives the next depth to the neighbours of the frontier, `found` vertices, that were not reached, if its
    /// pages cost less than `bytes` of blocks; returns whether they do.
    ///
    /// # Errors
    /// A page that cannot be read or is damaged, any error of the driver.
    pub fn push(
        &mut self,
        stream: &Stream,
        frontier: Frontier<'_>,
        found: u64,
        bytes: u64,
    ) -> Result<bool> {
        if !self.may_pay(found, bytes) {
            return Ok(false);
        }
        let count = self.kernels.want(stream, &self.stored, frontier)?;
        let page_bytes = (count * LIST_PAGE_BYTES) as u64;
        if self.cost(page_bytes) >= bytes {
            self.stored.forget(stream, count)?;
            self.refused = bytes as f64 / found as f64;
            return Ok(false);
        }
        self.kernels.push(stream, &mut self.stored, frontier, count)?;
        stream.synchronize()?;
        self.stored.check(stream)?;
        self.reads.pages += count as u64;
        if self.reads.started_by == ListsReadBy::Gpu {
            self.graph.totals().read_pages(page_bytes, count as u64);
        }
        Ok(true)
    }
}
