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
use tiergraph_gpu::kernels::{Frontier, FrontierKernels, LIST_PAGE_BYTES, ListReads, StoredLists};
use tiergraph_graph::{Direction, Graph, RowPages};
use tiergraph_io::gpu_reads::{PagedFile, PagesByGpu, ReadStreams, WhoWaits};

use super::Gpu;
use super::pages_by_host::PagesByHost;

/// Random pages cost about this many times as much a byte as whole blocks.
const RANDOM_COST: u64 = 2;
/// The fewest bytes that a list has.
const LEAST_LIST: u64 = 2;
/// The share of device memory, one part in so many, that pages and their index may take.
const SHARE: u64 = 16;

/// Who reads the pages of frontiers, and how many were read.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FrontierReads {
    /// Who starts the reads: `gpu` or `host`.
    #[serde(rename = "frontier_reads_by")]
    pub started_by: &'static str,
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
}

impl<'a> FrontierPages<'a> {
    /// Bytes of device memory that pages of frontiers take; 0 where there are none, where they would take too
    /// large a share, or where `all_fits`: no block is read in a level then.
    pub fn device_bytes(graph: &Graph, gpu: &Gpu, all_fits: bool) -> u64 {
        let pages = graph.rows(Direction::Out).pages().filter(|_| graph.tiles().is_stored());
        let Some(pages) = pages.filter(|_| !all_fits) else { return 0 };
        let count = pages.index.len();
        let least = StoredLists::device_bytes(count) + PagesByHost::device_bytes(count);
        if least <= gpu.memory / SHARE { gpu.memory / SHARE } else { 0 }
    }

    /// The pages of `graph`, which take at most `device_bytes`, as kernels of `stream` use them; `None` if that
    /// is not enough, or the host's memory does not hold what is read.
    ///
    /// # Errors
    /// No compiler of kernels, any error of the driver or a drive.
    pub fn new(graph: &'a Graph, stream: &Stream, device_bytes: u64) -> Result<Option<Self>> {
        let Some(pages) = graph.rows(Direction::Out).pages() else { return Ok(None) };
        let index = pages.index.to_words();
        let left = device_bytes.saturating_sub(StoredLists::device_bytes(pages.index.len()));
        let Some((started_by, reads)) = reader(graph, pages, stream, left)? else {
            return Ok(None);
        };
        let stored = StoredLists::new(stream, &index, graph.vertices(), reads)?;
        let kernels = FrontierKernels::new(stream.device())?;
        let reads = FrontierReads { started_by, pages: 0 };
        Ok(Some(Self { graph, kernels, stored, reads }))
    }

    /// Who reads pages, and how many were read.
    pub fn reads(&self) -> FrontierReads {
        self.reads
    }

    /// Whether the lists of `vertices` vertices could be on pages that cost less than `bytes` of blocks.
    pub fn may_pay(vertices: u64, bytes: u64) -> bool {
        vertices.saturating_mul(LEAST_LIST * RANDOM_COST) < bytes
    }

    /// Gives the next depth to the neighbours of the frontier that were not reached, if its pages cost less
    /// than `bytes` of blocks; returns whether they do.
    ///
    /// # Errors
    /// A page that cannot be read or is damaged, any error of the driver.
    pub fn push(&mut self, stream: &Stream, frontier: Frontier<'_>, bytes: u64) -> Result<bool> {
        let count = self.kernels.want(stream, &self.stored, frontier)?;
        let page_bytes = (count * LIST_PAGE_BYTES) as u64;
        if page_bytes * RANDOM_COST >= bytes {
            self.stored.forget(stream, count)?;
            return Ok(false);
        }
        self.kernels.push(stream, &mut self.stored, frontier, count)?;
        stream.synchronize()?;
        self.stored.check(stream)?;
        self.reads.pages += count as u64;
        if self.reads.started_by == BY_GPU {
            self.graph.totals().read_pages(page_bytes, count as u64);
        }
        Ok(true)
    }
}

const BY_GPU: &str = "gpu";

/// Who reads `pages`, with `left` bytes of device memory for those on their way; `None` if that is not enough,
/// or the host's memory is not.
fn reader<'a>(
    graph: &'a Graph,
    pages: RowPages<'a>,
    stream: &Stream,
    left: u64,
) -> Result<Option<(&'static str, Box<dyn ListReads + 'a>)>> {
    let Some(drives) = graph.engines().drives_of_gpus()? else {
        let reads = PagesByHost::new(graph, pages, stream.device())?;
        return Ok(reads.map(|reads| ("host", Box::new(reads) as _)));
    };
    let streams = ReadStreams { submitting: stream.another()?, completing: stream.another()? };
    let file = PagedFile { file: pages.file, name: pages.name, salt: pages.salt };
    let on_host = graph.memory().budget().left();
    let reads = PagesByGpu::new(file, &drives.drives, streams, WhoWaits::Kernel, on_host, left)?;
    if reads.device_bytes() > left {
        return Ok(None);
    }
    let held = graph.memory().reserve_if_left(reads.host_bytes(), "pages that the GPU reads")?;
    Ok(held.map(|held| (BY_GPU, Box::new(reads.holding(held)) as _)))
}
