//! Batches that the CPU samples and the GPU gathers: by weight, by time, disjoint, with features of
//! edges, or of neighbours that lie on storage.
//!
//! A loader of the CPU makes the batches without their nodes' features, with its own threads and
//! look-ahead; each batch's nodes are then selected on the GPU, whose kernels gather their rows.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{HostRows, Lists, Neighbors, SELECTED, Sampler};
use tiergraph_gpu::{Device, DeviceBuf, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use super::arrays::RecentSizes;
use super::choice::Transactions;
use super::rows::RowRoom;
use super::{Gathering, GpuLoader, GpuTiers, Placed, no_counts, tiers};
use crate::options::LoaderOptions;
use crate::pipeline::loader::Loader;
use crate::pipeline::order::Inputs;
use crate::residency::hotness::Plan;
use crate::residency::memory_plan::MemoryPlan;

/// The share of the host's memory that rows get of what sampling would keep, where not all of them
/// are sure to fit the device.
const ROWS_SHARE: u64 = 4;

/// A CPU loader that samples for a loader on a GPU.
pub(super) struct CpuSampler {
    pub loader: Loader,
    plan: MemoryPlan,
    in_flight_bytes: u64,
}

impl CpuSampler {
    /// A sampler of the batches of `options` without features of nodes. It leaves the memory `held_back`
    /// to others.
    fn new(
        graph: &Arc<Graph>,
        options: &LoaderOptions,
        inputs: Inputs<'_>,
        plan: &Plan,
        presample: usize,
        held_back: Option<Reservation>,
    ) -> Result<Self> {
        let options = LoaderOptions { features: vec![None], ..options.clone() };
        let (loader, plan) = Loader::planned(graph, &options, inputs, plan, presample)?;
        let in_flight_bytes = plan.in_flight_bytes.min(graph.memory().budget().left());
        drop(held_back);
        Ok(Self { loader, plan, in_flight_bytes })
    }

    /// Reserves the memory of its batches in flight.
    pub fn reserve_batches(&self, graph: &Graph) -> Result<Reservation> {
        graph.memory().reserve(self.in_flight_bytes, "batches in flight")
    }

    /// All vertices, those first whose rows are expected to be wanted most, by the first `batches` of an epoch.
    pub fn hottest_rows(&self, inputs: Inputs<'_>, batches: usize) -> Result<Vec<u32>> {
        Ok(self.loader.presample(0, inputs, batches)?.hottest_rows(0))
    }
}

impl GpuLoader {
    /// A loader for epochs over `inputs`, whose batches the CPU samples and the GPU gathers; `plan`
    /// places neighbours in host memory. Other parameters are those of [`new`](Self::new).
    ///
    /// # Errors
    /// No GPU; too little device or host memory; those of [`Loader::planned`].
    pub fn of_cpus(
        graph: &Arc<Graph>,
        tiers: GpuTiers,
        options: &LoaderOptions,
        inputs: Inputs<'_>,
        positions: Option<&[u32]>,
        plan: &Plan,
        presample: usize,
    ) -> Result<Self> {
        let device = Device::open(tiers.ordinal)?;
        let (stream, multiprocessors_why) = tiers.stream(&device)?;
        let free = device.memory()?.free;
        let memory = tiers.device_memory.unwrap_or(free / 2).min(free);
        let (vertices, name) = (graph.vertices(), options.features[0].clone());
        let held_back = match &name {
            Some(name)
                if (vertices * graph.features().get(name)?.row_bytes()) as u64 > memory / 2 =>
            {
                Some(
                    graph
                        .memory()
                        .reserve(graph.memory().budget().left() / ROWS_SHARE, "feature rows")?,
                )
            }
            _ => None,
        };
        let cpu = CpuSampler::new(graph, options, inputs, plan, presample, held_back)?;
        let nodes = (cpu.plan.most_nodes as usize).max(vertices.min(SELECTED));
        // Two selections' nodes, each vertex's row and its place in the user's order.
        let working = 8 * nodes as u64 + 8 * vertices as u64;
        let left = memory.checked_sub(working).ok_or_else(|| tiers::too_small(working, memory))?;
        let stride = match &name {
            Some(name) => graph.features().get(name)?.row_bytes() as u64,
            None => 0,
        };
        // Rows that the device has no room for are listed for each batch.
        let listing = match vertices as u64 * stride <= left {
            true => 0,
            false => HostRows::device_bytes(nodes),
        };
        let (working, left) = match left.checked_sub(listing) {
            Some(left) => (working + listing, left),
            None => return Err(tiers::too_small(working + listing, memory)),
        };
        let sampler = Sampler::of_selections(&device, nodes)?;
        let neighbors = Neighbors::Device(DeviceBuf::new(&device, 0)?);
        let lists = Lists { offsets: DeviceBuf::new(&device, 0)?, neighbors, stored: None };
        let positions = positions.map(|p| stream.uploaded(p)).transpose()?;
        let multiprocessors = stream.multiprocessors();
        let mut loader = Self {
            counts: no_counts(&stream)?,
            transactions: Transactions::default(),
            made: 0,
            recent: RecentSizes::default(),
            gathering: Gathering { stream: stream.another()?, before: None },
            allocating: Stream::urgent(&device)?,
            handing: Arc::new(Stream::urgent(&device)?),
            stream,
            lists,
            sampler,
            cpu: Some(cpu),
            rows: None,
            positions,
            placed: Placed { multiprocessors, multiprocessors_why, ..Placed::default() },
            fanouts: Vec::new(),
            vertices,
            tiers,
            options: options.clone(),
            held: None,
        };
        if let (Some(name), Some(cpu)) = (name, &loader.cpu) {
            // Where all rows fit the device, nobody needs to know which are hot.
            let order = match vertices as u64 * stride <= left {
                true => (0..vertices as u32).collect(),
                false => cpu.hottest_rows(inputs, presample)?,
            };
            let room = RowRoom { device: left, most_on_host: u64::MAX, nodes };
            loader.place_rows(graph, &name, room, None, &order)?;
        }
        loader.count_bytes(working);
        Ok(loader)
    }

    /// The memory plan of the CPU loader; `None` where kernels sample.
    pub fn kept_to_sample(&self) -> Option<&MemoryPlan> {
        self.cpu.as_ref().map(|cpu| &cpu.plan)
    }

    /// The CPU loader that samples this loader's batches; `None` where kernels sample them.
    pub fn sampled_by(&self) -> Option<&Loader> {
        self.cpu.as_ref().map(|cpu| &cpu.loader)
    }
}
