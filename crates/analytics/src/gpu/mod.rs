//! The same algorithms on a GPU: vertex state in its memory, blocks streaming in beside those that
//! are resident there.
//!
//! A run prepares passes of its program, reserves its state, and gives the rest of the device's memory
//! to blocks; a graph that fits stays there for the next run. Every pass computes over the resident
//! blocks while the workers bring the others: a slot's read, copy and kernels follow each other on a
//! stream of its own, and no slot waits for another (RealGraphGPU++, "asynchronous CPU threads").

mod bfs;
mod blocks;
mod components;
mod kept;
mod pagerank;
mod pass;
mod propagate;
mod results;
mod sssp;
mod staging;
mod timeline;
mod vertices;

pub use bfs::bfs;
pub use components::wcc;
pub use pagerank::pagerank;
pub use propagate::{propagate, propagate_on_device};
pub use sssp::sssp;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::Serialize;
use tiergraph_core::trace::{Trace, Track};
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_gpu::kernels::ValueKernels;
use tiergraph_gpu::{CuFile, Device, Stream};
use tiergraph_graph::Graph;

pub(crate) use blocks::LockedBlocks;
use kept::Kept;
use staging::Staging;

/// How blocks reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Transfers {
    /// Reading, copying and computing of different blocks overlap (RealGraphGPU's RG-opt).
    #[default]
    #[serde(rename = "async")]
    Asynchronous,
    /// A worker reads a block, copies it, computes on it, and then takes the next (RG-no).
    #[serde(rename = "sync")]
    Synchronous,
    /// cuFile reads them into device memory, past this process's (RealGraphGPU++).
    #[serde(rename = "direct")]
    Direct,
}

/// What a run on a GPU says beside what every run does.
#[derive(Debug, Clone, Serialize)]
pub struct GpuReport {
    /// The product's name.
    #[serde(skip)]
    pub name: String,
    /// How blocks reached the device.
    pub transfers: Transfers,
    /// Which way cuFile reads, where it does; then it is the run's `io_engine`.
    #[serde(skip)]
    pub direct: Option<String>,
    /// Bytes of device memory that blocks were to have, after state and buffers.
    pub device_blocks_planned_bytes: u64,
    /// Bytes of blocks that stayed in device memory.
    pub device_resident_bytes: u64,
    /// Why those and not more.
    pub device_resident_why: String,
    /// Bytes of blocks that stay in locked host memory, and go to the device in each pass.
    pub host_resident_bytes: u64,
    /// Why so many.
    pub host_resident_why: String,
    /// The memory of those blocks, which they fill while the run goes on.
    #[serde(skip)]
    pub(crate) locked: Option<Arc<LockedBlocks>>,
    /// Bytes of blocks that were brought there before the first iteration; none of those that an
    /// earlier run left on the device.
    pub loaded_bytes: u64,
    /// How long that took: of the run's seconds those before its first iteration's.
    pub load_seconds: f64,
    /// Where the time went; in a run that is traced.
    #[serde(flatten)]
    pub busy: Option<Busy>,
}

/// Seconds of a run in which something was going on in each of its stages, at once or not.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Busy {
    /// Reads were in flight from storage to host memory.
    pub storage_to_host_seconds: f64,
    /// Blocks were being copied to the device.
    pub host_to_device_seconds: f64,
    /// Reads were in flight from storage to the device, by cuFile.
    pub storage_to_device_seconds: f64,
    /// The device was checking blocks or computing on them.
    pub device_seconds: f64,
}

impl GpuReport {
    /// The report at the end of a run over `graph`.
    pub(crate) fn at_end(self, graph: &Graph, busy: Option<Busy>) -> Self {
        match &self.locked {
            None => Self { busy, ..self },
            Some(locked) => Self {
                host_resident_bytes: graph.resident_bytes(),
                host_resident_why: locked.why(),
                busy,
                ..self
            },
        }
    }
}

impl Busy {
    /// Since `begin`; none if `trace` is off.
    pub(crate) fn since(begin: Instant, trace: &Trace) -> Option<Self> {
        Some(Self {
            storage_to_host_seconds: trace.busy_seconds(Track::Storage, begin)?,
            host_to_device_seconds: trace.busy_seconds(Track::Link, begin)?,
            storage_to_device_seconds: trace.busy_seconds(Track::Direct, begin)?,
            device_seconds: trace.busy_seconds(Track::Device, begin)?,
        })
    }
}

/// How to use a GPU.
#[derive(Debug, Clone)]
pub struct GpuOptions {
    /// Which GPU.
    pub ordinal: usize,
    /// Bytes of device memory to use; nine tenths of what is free if not set.
    pub memory: Option<u64>,
    /// How blocks reach the device.
    pub transfers: Transfers,
    /// Whether blocks may stay on the device from pass to pass.
    pub residency: bool,
    /// Whether blocks are checked against their checksums, on the device, when they arrived.
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
    kept: Kept,
    /// Once a run wants it.
    staging: Arc<OnceLock<Staging>>,
}

impl Gpu {
    /// Opens it.
    ///
    /// # Errors
    /// No driver, an old one, no such GPU, no cuFile where it is to read.
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
        Ok(Self { device, memory, options, kept: Kept::default(), staging: Arc::default() })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The graph's vertex that the user calls `id`: on the device, if it has the user's order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none, any error of the driver.
    pub fn find(&self, graph: &Graph, id: u64) -> Result<u32> {
        if let Some(positions) = self.kept.positions(graph) {
            let stream = Stream::new(&self.device)?;
            let position = graph.positions_of(&[id])?[0] as u32;
            let found = ValueKernels::new(&self.device)?.find(&stream, &positions, position)?;
            if let Some(vertex) = found {
                return Ok(vertex);
            }
        }
        Ok(graph.find(&[id])?[0])
    }

    /// Pinned buffers for the threads of the first graph that a run is over.
    fn staging(&self, graph: &Graph) -> Result<&Staging> {
        if let Some(staging) = self.staging.get() {
            return Ok(staging);
        }
        let staging = Staging::new(graph, &self.device)?;
        Ok(self.staging.get_or_init(|| staging))
    }
}
