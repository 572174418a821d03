//! The same algorithms on a GPU: vertex state in its memory, blocks streaming in beside those that
//! are resident there.
//!
//! A run prepares passes of its program, reserves its state, and leaves the rest of the device's memory
//! to blocks; a graph that fits stays there for the next run. Every pass computes over the resident
//! blocks while the workers stream in the others: a slot's copy and kernels follow each other on a
//! stream of its own, and no slot waits for another (RealGraphGPU++, "asynchronous CPU threads").

mod betweenness;
mod bfs;
mod blocks;
mod closeness;
mod components;
mod device_cache;
mod device_lists;
mod frontier_pages;
mod greedy;
mod lists;
mod pagerank;
mod pass;
mod propagate;
mod results;
mod similarity;
mod sssp;
mod staging;
mod timeline;
mod vertices;

pub use betweenness::betweenness;
pub use bfs::bfs;
pub use closeness::harmonic;
pub use components::wcc;
pub use device_lists::OnGpu;
pub use frontier_pages::FrontierReads;
pub use greedy::{coloring, independent_set};
pub use lists::{clustering, core_numbers, label_propagation, mutual, triangles};
pub use pagerank::pagerank;
pub use propagate::{propagate, propagate_on_device};
pub use similarity::in_common;
pub use sssp::sssp;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::Serialize;
use tiergraph_core::trace::{Trace, Track};
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_gpu::kernels::ValueKernels;
use tiergraph_gpu::{CuFile, Device, Stream};
use tiergraph_graph::Graph;

pub(crate) use blocks::PinnedTier;
use device_cache::DeviceCache;
use staging::Staging;

/// The way in which blocks reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Transfers {
    /// Reading, copying and computing of different blocks overlap (RealGraphGPU's RG-opt).
    #[default]
    #[serde(rename = "async")]
    Asynchronous,
    /// A worker reads a block, copies it, computes on it, and then takes the next (RG-no).
    #[serde(rename = "sync")]
    Synchronous,
    /// cuFile reads blocks into device memory, past this process's host memory (RealGraphGPU++).
    #[serde(rename = "direct")]
    Direct,
}

/// The part of a run's report that only a run on a GPU has.
#[derive(Debug, Clone, Serialize)]
pub struct GpuReport {
    /// The GPU's product name.
    #[serde(skip)]
    pub name: String,
    /// The way in which blocks reached the device.
    pub transfers: Transfers,
    /// How cuFile reads, in words; `None` where it is not the run's `io_engine`.
    #[serde(skip)]
    pub direct: Option<String>,
    /// Bytes of device memory that state and buffers left to blocks.
    pub device_blocks_planned_bytes: u64,
    /// Bytes of blocks that stay in device memory from pass to pass.
    pub device_resident_bytes: u64,
    /// Why the device holds so many bytes of blocks, and not more.
    pub device_resident_why: String,
    /// Bytes of blocks that stay in pinned host memory, and go to the device in each pass.
    pub host_resident_bytes: u64,
    /// Why pinned host memory holds so many bytes of blocks, and not more.
    pub host_resident_why: String,
    /// The pinned memory of those blocks, which fills while the run goes on.
    #[serde(skip)]
    pub(crate) pinned: Option<Arc<PinnedTier>>,
    /// Bytes of blocks that were loaded into device memory before the first iteration, without those
    /// that an earlier run left there.
    pub loaded_bytes: u64,
    /// Seconds that loading them took, before the run's first iteration.
    pub load_seconds: f64,
    /// Who read pages for small frontiers, and how many; `None` in a run that reads blocks alone.
    #[serde(flatten)]
    pub frontier: Option<FrontierReads>,
    /// Seconds in which each part of the machine was busy; `None` in a run that is not traced.
    #[serde(flatten)]
    pub busy: Option<Busy>,
}

/// Seconds of a run in which storage, link and device were each busy, at once or not.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Busy {
    /// Seconds in which reads from storage to host memory were in flight.
    pub storage_to_host_seconds: f64,
    /// Seconds in which blocks were being copied from host memory to the device.
    pub host_to_device_seconds: f64,
    /// Seconds in which cuFile's reads from storage to device memory were in flight.
    pub storage_to_device_seconds: f64,
    /// Seconds in which the device was checking blocks or computing on them.
    pub device_seconds: f64,
}

impl GpuReport {
    /// The report at the end of a run over `graph`.
    pub(crate) fn at_end(self, graph: &Graph, busy: Option<Busy>) -> Self {
        match &self.pinned {
            None => Self { busy, ..self },
            Some(pinned) => Self {
                host_resident_bytes: graph.memory().resident_bytes(),
                host_resident_why: pinned.why(),
                busy,
                ..self
            },
        }
    }
}

impl Busy {
    /// The seconds of each part since `begin`; `None` if `trace` is off.
    pub(crate) fn since(begin: Instant, trace: &Trace) -> Option<Self> {
        Some(Self {
            storage_to_host_seconds: trace.busy_seconds(Track::Storage, begin)?,
            host_to_device_seconds: trace.busy_seconds(Track::Link, begin)?,
            storage_to_device_seconds: trace.busy_seconds(Track::Direct, begin)?,
            device_seconds: trace.busy_seconds(Track::Device, begin)?,
        })
    }
}

/// Options of runs on a GPU.
#[derive(Debug, Clone)]
pub struct GpuOptions {
    /// The index of the GPU, from 0, as CUDA counts.
    pub ordinal: usize,
    /// The most bytes of device memory to use; by default, nine tenths of what is free.
    pub memory: Option<u64>,
    /// Whether reads, copies and computing overlap, or cuFile reads blocks straight into device memory.
    pub transfers: Transfers,
    /// Whether blocks may stay in device memory or pinned host memory from pass to pass.
    pub residency: bool,
    /// Whether the device compares each block that it receives with the block's stored checksum.
    pub checksums: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        let transfers = Transfers::default();
        Self { ordinal: 0, memory: None, transfers, residency: true, checksums: true }
    }
}

/// A GPU, opened for runs over graphs.
#[derive(Debug, Clone)]
pub struct Gpu {
    device: Device,
    memory: u64,
    options: GpuOptions,
    cache: DeviceCache,
    /// Pinned buffers, from the first run that needs them on.
    staging: Arc<OnceLock<Staging>>,
}

impl Gpu {
    /// Opens the GPU with the index that `options` names.
    ///
    /// # Errors
    /// No driver, or one that is too old; no such GPU; no cuFile where blocks are to be read with it;
    /// less free memory than `options` ask for.
    pub fn open(options: GpuOptions) -> Result<Self> {
        let device = Device::open(options.ordinal)?;
        if options.transfers == Transfers::Direct {
            CuFile::get(&device)?;
        }
        let free = device.memory()?.free;
        let memory = options.memory.unwrap_or(free / 10 * 9);
        if memory > free {
            return Err(Error::new(ErrorKind::Device, "use GPU memory")
                .expected(format!("at most the {} that are free", ByteSize(free)))
                .got(ByteSize(memory))
                .hint("run with a smaller `--device-memory`"));
        }
        Ok(Self { device, memory, options, cache: DeviceCache::default(), staging: Arc::default() })
    }

    /// The opened device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Finds the vertex with the user id `id`; the device searches, if it holds the user's order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if no vertex has that id, any error of the driver.
    pub fn find(&self, graph: &Graph, id: u64) -> Result<u32> {
        if let Some(positions) = self.cache.positions(graph) {
            let stream = Stream::new(&self.device)?;
            let position = graph.ids().positions(&[id])?[0] as u32;
            let found = ValueKernels::new(&self.device)?.find(&stream, &positions, position)?;
            if let Some(vertex) = found {
                return Ok(vertex);
            }
        }
        Ok(graph.ids().find(&[id])?[0])
    }

    /// Pinned buffers for as many threads as the graph of the first run has.
    fn staging(&self, graph: &Graph) -> Result<&Staging> {
        if let Some(staging) = self.staging.get() {
            return Ok(staging);
        }
        let staging = Staging::new(graph, &self.device)?;
        Ok(self.staging.get_or_init(|| staging))
    }
}
