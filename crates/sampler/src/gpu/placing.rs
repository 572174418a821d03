//! Where a loader on a GPU puts neighbour lists and feature rows, and what it predicts of that.

use std::sync::Arc;

use tiergraph_cache::placement::Tier;
use tiergraph_core::Result;
use tiergraph_gpu::kernels::{ListUse, Lists, MissingRow, Neighbors};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, ListReading, ListsOnStorage, ListsReadBy};
use tiergraph_io::gpu_reads::WhoWaits;
use tiergraph_mem::Reservation;

use super::choice::{Choice, LINES_OF_PAGE, Room, UNITS, Wanted};
use super::lists::{AllLists, Place};
use super::rows::{RowReading, RowRoom, RowTiers};
use super::storage::THREAD_BYTES;
use super::uses::Uses;
use super::{GpuLoader, Predicted, Transactions, no_counts, tiers};
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::residency::hotness::Plan;

/// The share of device memory, one part in so many, that pages of lists on their way may take.
const PAGES_SHARE: u64 = 16;
/// The share of host memory, one part in so many, that lists leave to others, if they are to lie there whole.
const LISTS_LEAVE: u64 = 4;
/// The share of host memory, one part in so many, that further threads which read rows may take.
const READING_SHARE: u64 = 4;
/// The share of host memory, one part in so many, that is left for what is read to be placed.
const PLACING_SHARE: u64 = 8;

/// A graph's neighbour lists as presampling draws from them.
pub(super) struct OpenedLists<'g> {
    /// The lists, from which they are placed.
    pub all: AllLists<'g>,
    /// Lists that kernels draw from.
    pub lists: Lists,
    /// The reservation for lists in pinned host memory.
    pub held: Option<Reservation>,
    /// Who reads lists that are on storage; `None` where none will be.
    pub read_by: Option<ListsReadBy>,
    /// Bytes of device memory that reads of lists take.
    pub taken: u64,
}

impl<'g> OpenedLists<'g> {
    /// The lists of a graph in one direction, beside rows of `stride` bytes, with `left` bytes of device memory
    /// and `threads` of the host: all there, or all in host memory, or all on storage.
    ///
    /// Some may stay on storage where kernels read them from drives, and where they fit neither memory.
    pub fn new(
        graph: &'g Arc<Graph>,
        direction: Direction,
        stream: &Stream,
        stride: u64,
        threads: usize,
        left: u64,
    ) -> Result<Self> {
        let all = AllLists::open(graph, direction)?;
        let everything = all.bytes() + graph.vertices() as u64 * stride;
        let host = graph.memory().budget().left();
        let fit = all.are_in_memory() || all.bytes() <= left.max(host - host / LISTS_LEAVE);
        let may_stay = everything > left && (!fit || graph.engines().drives_of_gpus()?.is_some());
        let stored = match may_stay {
            true => {
                let graph = Arc::clone(graph);
                let reading = ListReading {
                    who_waits: WhoWaits::Host,
                    threads,
                    pages_bytes: left / PAGES_SHARE,
                    most_bytes: left,
                };
                ListsOnStorage::new(graph, direction, stream, reading)?
            }
            false => None,
        };
        let (stored, read_by, taken) = match stored {
            Some(ListsOnStorage { lists, read_by, device_bytes }) => {
                (Some(lists), Some(read_by), device_bytes)
            }
            // Without the memory for pages on their way, lists are where they need none.
            None if fit => (None, None, 0),
            None => return Err(tiers::lists_too_large(all.bytes(), left, host)),
        };
        let (neighbors, held) = if all.bytes() <= left - taken {
            (all.on_device(stream)?, None)
        } else {
            let (neighbors, held) = match &stored {
                Some(_) if !all.are_in_memory() => {
                    all.split(stream, &vec![Place::Storage; graph.vertices()])?
                }
                _ => all.on_host(stream)?,
            };
            (neighbors, Some(held))
        };
        let lists = Lists { offsets: stream.uploaded(all.offsets())?, neighbors, stored };
        Ok(Self { all, lists, held, read_by, taken })
    }
}

impl GpuLoader {
    /// Places the lists in device memory, of which `left` bytes are left, and in host memory, by `plan`;
    /// rows get the room that the choice says, of which `finding` bytes are for what reads them.
    pub(super) fn place_lists(
        &mut self,
        graph: &Graph,
        wanted: &Wanted<'_>,
        plan: &Plan,
        finding: Option<u64>,
        left: u64,
    ) -> Result<Choice> {
        let all = wanted.lists;
        let pinned = self.held.as_ref().map_or(0, Reservation::bytes);
        let (mut host, has_storage) =
            (graph.memory().budget().left() + pinned, self.lists.stored.is_some());
        // Rows on storage are listed for each batch, in memory that lists must leave.
        let finding = finding.unwrap_or_else(|| {
            let (vertices, left) = (self.vertices as u64, host.saturating_sub(all.bytes()));
            match wanted.stride {
                0 => 0,
                stride if tiers::host_rows(vertices, stride, left) >= vertices => 0,
                _ => (self.sampler.n_id().len() * size_of::<MissingRow>()) as u64,
            }
        });
        if has_storage {
            host = host.saturating_sub(all.reading_bytes().max(host / PLACING_SHARE));
        }
        let locations = location_bytes(self.vertices);
        let room = Room { device: left, finding, locations, host, has_storage };
        let too_large = || tiers::lists_too_large(all.bytes(), left, host);
        let choice = Choice::new(plan, wanted, room).ok_or_else(too_large)?;
        let (on_device, on_host) = (choice.list_bytes, choice.host_list_bytes);
        if on_device + on_host == all.bytes() {
            self.lists.stored = None;
        }
        match &self.lists.neighbors {
            Neighbors::Device(_) if on_device == all.bytes() => return Ok(choice),
            Neighbors::Host(_) if on_host == all.bytes() => return Ok(choice),
            _ => {}
        }
        // What presampling drew from goes before what batches draw from comes.
        self.lists.neighbors = Neighbors::Device(DeviceBuf::new(self.stream.device(), 0)?);
        self.held = None;
        let (neighbors, held) = match on_host == all.bytes() {
            true => all.on_host(&self.stream)?,
            false => all.split(&self.stream, &choice.places)?,
        };
        (self.lists.neighbors, self.held) = (neighbors, Some(held));
        Ok(choice)
    }

    /// What reads rows of the features `name` from storage.
    pub(super) fn row_reading(&self, graph: &Arc<Graph>, name: &str) -> Result<RowReading> {
        let left = graph.memory().budget().left();
        let threads = self.options.threads_within(THREAD_BYTES, left / READING_SHARE);
        RowReading::new(graph, name, &self.tiers, &self.stream, &self.sampler, threads)
    }

    /// Puts the rows of the features `name`, in this order, into device memory and host memory, of which there
    /// is `room`, or leaves them to storage, from which `reading`, or what is made for that, reads them.
    pub(super) fn place_rows(
        &mut self,
        graph: &Arc<Graph>,
        name: &str,
        room: RowRoom,
        reading: Option<RowReading>,
        order: &[u32],
    ) -> Result<()> {
        let vertices = graph.vertices();
        // What the CPU's batches will take is not there for rows.
        let _held = self.cpu.as_ref().map(|cpu| cpu.reserve_batches(graph)).transpose()?;
        let reading = || reading.map_or_else(|| self.row_reading(graph, name), Ok);
        let rows = RowTiers::new(graph, name, &self.stream, order, room, reading)?;
        let (device_rows, host_rows) = (u64::from(rows.rows.device_count), rows.host_rows);
        (self.placed.device_rows, self.placed.host_rows) = (device_rows, host_rows);
        self.placed.storage_rows = vertices as u64 - device_rows - host_rows;
        self.placed.cached_rows = rows.cached_rows;
        self.placed.storage_reads = rows.late().map(|late| late.way());
        self.placed.storage_rates = rows.rates;
        self.rows = Some(rows);
        Ok(())
    }

    /// The transactions of the batches that were presampled, as lists and rows (in `order`) are placed.
    pub(super) fn predicted(&self, uses: &Uses, choice: &Choice, order: &[u32]) -> Predicted {
        let lists = || uses.lists.iter().zip(&choice.places);
        let lines = lists().filter(|(_, place)| **place == Place::Host).map(|(used, _)| used.lines);
        let pages =
            lists().filter(|(_, place)| **place == Place::Storage).map(|(used, _)| used.pages);
        let used = |vertices: &[u32]| {
            vertices.iter().map(|&vertex| u64::from(uses.rows[vertex as usize])).sum()
        };
        let rows = match self.rows {
            Some(_) => &order[self.placed.device_rows as usize..],
            None => &[],
        };
        let (host, storage) = rows.split_at(self.placed.host_rows as usize);
        let counts = [lines.sum(), pages.sum(), used(host), used(storage)];
        let transactions = self.transactions_of(counts);
        Predicted { batches: uses.batches as u64, transactions }
    }

    /// The transactions of such counts as kernels make: of transactions of lists, of their pages, of rows in
    /// host memory, and of rows on storage.
    pub(super) fn transactions_of(
        &self,
        [host_lists, pages, host, storage]: [u64; 4],
    ) -> Transactions {
        let stride = self.stride();
        Transactions {
            host_lists,
            storage_lists: pages * LINES_OF_PAGE,
            host_rows: host * UNITS.read(Tier::Gpu, stride),
            storage_rows: storage * UNITS.read(Tier::Host, stride),
        }
    }

    /// Bytes from a row of features to the next; 0 without features.
    pub(super) fn stride(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| u64::from(rows.rows.stride))
    }

    /// Counts the bytes that are placed: rows, and `working` bytes of device memory beside them.
    pub(super) fn count_bytes(&mut self, working: u64) {
        let stride = self.stride();
        let placed = &mut self.placed;
        let device_rows = placed.device_rows + placed.cached_rows.unwrap_or(0);
        placed.device_bytes = working + device_rows * stride;
        placed.host_bytes = placed.host_rows * stride;
    }

    /// What an epoch's first `batches` batches use: every row and list once, where that is no batch.
    pub(super) fn presampled(
        &mut self,
        all: &AllLists<'_>,
        inputs: Inputs<'_>,
        batches: usize,
    ) -> Result<Uses> {
        let order = SeedOrder::new(&self.options, self.vertices, 0, inputs)?;
        let batches = order.batches().min(batches);
        if batches == 0 {
            return Ok(Uses::of_all(all, self.fanouts.first().copied().unwrap_or(0)));
        }
        let device = self.stream.device();
        let mut rows: DeviceBuf<u32> = DeviceBuf::new(device, self.vertices)?;
        let mut lists: DeviceBuf<ListUse> = DeviceBuf::new(device, self.vertices)?;
        self.stream.fill_bytes(&mut rows, 0)?;
        self.stream.fill_bytes(&mut lists, 0)?;
        for number in 0..batches {
            self.draw(0, order.seeds_of(number), &[], Some(&lists))?;
            self.sampler.count_uses(&self.stream, &mut rows)?;
        }
        self.counts = no_counts(&self.stream)?;
        let (rows, lists) = (
            self.stream.download(&rows, self.vertices)?,
            self.stream.download(&lists, self.vertices)?,
        );
        Ok(Uses::new(batches, order.batches(), rows, lists, all.degrees()))
    }

    /// Counts the bytes of lists, of which so many are in device memory and in host memory.
    pub(super) fn count_lists(&mut self, on_device: u64, on_host: u64, all: u64) {
        let location = match self.lists.neighbors {
            Neighbors::Split(_) => location_bytes(self.vertices),
            Neighbors::Device(_) | Neighbors::Host(_) => 0,
        };
        let placed = &mut self.placed;
        placed.neighbors_on_device = matches!(self.lists.neighbors, Neighbors::Device(_));
        (placed.device_list_bytes, placed.host_list_bytes) = (on_device, on_host);
        placed.storage_list_bytes = all - on_device - on_host;
        placed.device_bytes += on_device + location;
        placed.host_bytes += on_host;
    }
}

/// Bytes of device memory that the locations of split lists take.
fn location_bytes(vertices: usize) -> u64 {
    (vertices * size_of::<u64>()) as u64
}
