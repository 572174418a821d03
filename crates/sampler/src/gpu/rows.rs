//! Feature rows by tier: in device memory, in pinned host memory, or on storage.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Gather, MissingRow, MissingRows, Rows, Sampler};
use tiergraph_gpu::{DeviceBuf, DeviceView, Stream};
use tiergraph_graph::Graph;
use tiergraph_io::gpu_reads::ReadStreams;
use tiergraph_io::{DrivesOfGpus, StartedBy};
use tiergraph_mem::Reservation;

use super::drive_rows::DriveRows;
use super::row_reads::{LateRows, RowReads};
use super::storage::Storage;
use super::trial::ReadRates;
use super::{GpuTiers, STORAGE_AHEAD, tiers};

/// What reads rows that are on storage.
pub(super) struct RowReading {
    pub reads: RowReads,
    /// A list for the rows that a batch misses.
    pub missing: MissingRows,
    /// Bytes of device memory that it takes.
    pub device_bytes: u64,
    /// Rows a second of the GPU and of the host in a trial; `None` without one.
    pub rates: Option<ReadRates>,
}

impl RowReading {
    /// What reads the features `name`: kernels, if the graph has drives for them, and else `threads` threads of
    /// the host; or the faster one, where that is asked for.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        tiers: &GpuTiers,
        stream: &Stream,
        sampler: &Sampler,
        threads: usize,
    ) -> Result<Self> {
        let finding = (sampler.n_id().len() * size_of::<MissingRow>()) as u64;
        let device = stream.device();
        let row = tiers::row_type(graph.features().get(name)?.dtype());
        let by_host = || {
            let reads = RowReads::Host(Storage::new(
                graph,
                name,
                stream.another()?,
                Gather::new(device, row)?,
                threads,
            )?);
            let missing = reads.list(device, sampler)?;
            Ok(Self { reads, missing, device_bytes: finding, rates: None })
        };
        let Some(DrivesOfGpus { drives, started_by }) = graph.engines().drives_of_gpus()? else {
            return by_host();
        };
        let streams = ReadStreams { submitting: stream.another()?, completing: stream.another()? };
        let gather = Gather::new(device, row)?;
        let drives = DriveRows::new(graph, name, &drives, streams, gather, started_by)?;
        // A list for each batch that is begun, and one that is being made.
        let lists = tiers.prefetch.unwrap_or(STORAGE_AHEAD) as u64 + 2;
        let device_bytes = lists * finding + drives.device_bytes();
        let missing = drives.list(device, sampler)?;
        let by_gpu = Self { reads: RowReads::Gpu(drives), missing, device_bytes, rates: None };
        match started_by {
            StartedBy::Gpu | StartedBy::WaitingWarps | StartedBy::CachingWarps => Ok(by_gpu),
            StartedBy::Faster => {
                let (mut by_gpu, mut by_host) = (by_gpu, by_host()?);
                let both = [&mut by_gpu.reads, &mut by_host.reads];
                let rates = ReadRates::tried(graph, name, (stream, sampler), both)?;
                let faster = if rates.by_gpu >= rates.by_host { by_gpu } else { by_host };
                Ok(Self { rates: Some(rates), ..faster })
            }
        }
    }
}

/// The memory that rows may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRoom {
    /// Bytes of device memory.
    pub device: u64,
    /// The most rows in host memory, whatever is left of that.
    pub most_on_host: u64,
    /// The most nodes of a batch.
    pub nodes: usize,
}

/// The rows that are on storage, and a list of those that the last batch misses.
struct OnStorage {
    late: Arc<LateRows>,
    missing: MissingRows,
}

/// The tiers of feature rows, and the kernels that gather rows from them.
pub(super) struct RowTiers {
    gather: Gather,
    /// The rows in device memory and in pinned host memory.
    pub rows: Rows,
    /// The number of rows in pinned host memory.
    pub host_rows: u64,
    /// The number of rows that a page cache of what reads from storage has room for; `None` without one.
    pub cached_rows: Option<u64>,
    /// What reads the others from storage; `None` if all are in memory.
    storage: Option<OnStorage>,
    /// Rows a second of the GPU and of the host in a trial; `None` without one.
    pub rates: Option<ReadRates>,
    _held: Reservation,
}

impl RowTiers {
    /// Places the first rows of `order` in the device memory of `room` and the next ones in the host
    /// memory that the graph has left; the others stay on storage. `reading` makes what reads those, and says
    /// how much device memory it takes; if it has a page cache, that takes the rest in place of rows.
    pub fn new(
        graph: &Graph,
        name: &str,
        stream: &Stream,
        order: &[u32],
        room: RowRoom,
        reading: impl FnOnce() -> Result<RowReading>,
    ) -> Result<Self> {
        let features = graph.features().get(name)?;
        let (all, stride) = (order.len() as u64, features.row_bytes() as u64);
        let counts = |left: u64| {
            let device = (left / stride).min(all);
            let host = tiers::host_rows(all, stride, graph.memory().budget().left());
            let host = host.min(room.most_on_host);
            (device, host.min(all - device))
        };
        let (mut device_rows, mut host_rows) = counts(room.device);
        let mut reading = match device_rows + host_rows < all {
            true => Some(reading()?),
            false => None,
        };
        let mut cached_rows = None;
        if let Some(RowReading { reads, device_bytes, .. }) = &mut reading {
            let left = room.device.saturating_sub(*device_bytes);
            cached_rows = reads.cache(left)?;
            (device_rows, host_rows) = counts(if cached_rows.is_some() { 0 } else { left });
        }
        let (hot, others) = order.split_at(device_rows as usize);
        let warm = &others[..host_rows as usize];
        let (rows, held) = tiers::rows(graph, stream, features, (hot, warm), room.nodes)?;
        let gather = Gather::new(stream.device(), tiers::row_type(features.dtype()))?;
        let rates = reading.as_ref().and_then(|reading| reading.rates);
        let storage = match reading {
            Some(RowReading { reads, missing, .. }) => {
                Some(OnStorage { late: Arc::new(LateRows::new(reads)?), missing })
            }
            None => None,
        };
        Ok(Self { gather, rows, host_rows, cached_rows, storage, rates, _held: held })
    }

    /// The rows that are on storage; `None` if all are in memory.
    pub fn late(&self) -> Option<&Arc<LateRows>> {
        self.storage.as_ref().map(|storage| &storage.late)
    }

    /// Starts finding the rows of a sampler's last batch that are on storage, and adds the numbers of its
    /// rows in host memory and on storage to `counts`.
    pub fn start_finding(
        &mut self,
        stream: &Stream,
        sampler: &Sampler,
        counts: DeviceView<u64>,
    ) -> Result<()> {
        if self.host_rows > 0 || self.storage.is_some() {
            self.gather.count_tiers(stream, &self.rows, sampler, counts)?;
        }
        match &mut self.storage {
            Some(OnStorage { missing, .. }) => {
                self.gather.start_finding(stream, &self.rows, sampler, missing)
            }
            None => Ok(()),
        }
    }

    /// Begins to read the rows that were found missing to the batch's rows at `x`; returns its ticket, or
    /// `None` if all rows are in memory.
    pub fn begin(&mut self, stream: &Stream, x: DeviceView<f32>) -> Result<Option<u64>> {
        let Some(OnStorage { late, missing }) = &mut self.storage else { return Ok(None) };
        late.begin(stream, missing, x).map(Some)
    }

    /// Gathers the rows that are in memory, of the first `nodes` of `n_id`.
    pub fn gather(
        &mut self,
        stream: &Stream,
        n_id: &DeviceBuf<u32>,
        nodes: usize,
        x: DeviceView<f32>,
    ) -> Result<()> {
        self.gather.gather(stream, &mut self.rows, n_id, nodes, x)
    }
}
