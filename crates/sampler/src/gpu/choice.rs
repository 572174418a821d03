//! The choice of the neighbour lists that each memory holds, and of the room that rows get there.
//!
//! Hyperion, §III-B2: lists and rows compete for device memory by the transactions over PCIe that they
//! save, and then what is left of them for host memory by those that reads from storage would take more.
//! Presampling counts those of each list and row as kernels make them ([`ListUse`], whole lines of a
//! row, whole pages of storage); of what no batch met, as many are expected as [`Uses`] says. Lists come
//! in the order of what a byte of them saves, where the paper's come in the order of hotness: short lists
//! save more a byte.
//!
//! Where the GPU does not read from drives by itself, a hop waits for the host wherever a list is on storage:
//! host memory then holds every list that device memory does not, if it holds all, and rows have what is left
//! of it.

use serde::Serialize;
use tiergraph_cache::placement::{Granularity, Item, Kind, Placement, Tier, choose, chunks};
use tiergraph_gpu::kernels::{LINE_BYTES, ListUse};
use tiergraph_mem::PAGE_BYTES;

use super::lists::{AllLists, Place};
use super::uses::Uses;
use crate::residency::hotness::Plan;

/// A chunk is one part in so many of device memory, or smaller: whole chunks are placed.
const CHUNKS: u64 = 64;

/// The units of the transactions that loaders on a GPU count: lines of [`LINE_BYTES`], reads of pages.
pub(super) const UNITS: Granularity =
    Granularity { line_bytes: LINE_BYTES, read_bytes: PAGE_BYTES as u64 };

/// The transactions that reading a page takes.
pub(super) const LINES_OF_PAGE: u64 = PAGE_BYTES as u64 / LINE_BYTES;

/// Transactions over PCIe, by where the data was; each brings 128 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Transactions {
    /// Transactions of neighbour lists in pinned host memory.
    pub host_lists: u64,
    /// Transactions of neighbour lists on storage: the lines of the pages that their neighbours are on,
    /// whenever they are drawn, as if no two lists shared a read.
    pub storage_lists: u64,
    /// Transactions of feature rows in pinned host memory: the lines of each row, whenever it is wanted.
    pub host_rows: u64,
    /// Transactions of feature rows on storage: the lines of each row's pages, whenever it is wanted, as
    /// if no two rows shared a read.
    pub storage_rows: u64,
}

impl Transactions {
    /// The transactions of all tiers.
    pub fn total(&self) -> u64 {
        self.host_lists + self.storage_lists + self.host_rows + self.storage_rows
    }

    /// The transactions since those of `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            host_lists: self.host_lists - earlier.host_lists,
            storage_lists: self.storage_lists - earlier.storage_lists,
            host_rows: self.host_rows - earlier.host_rows,
            storage_rows: self.storage_rows - earlier.storage_rows,
        }
    }
}

/// How many more transactions there may be, one part in so many of the fewest, if no list is on storage then: a
/// hop that wants a page of one waits for a drive, which transactions do not tell.
const WAIT_SHARE: u64 = 128;

/// The memory that lists and rows compete for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes of device memory.
    pub device: u64,
    /// Bytes of device memory that lists leave for the rows of a batch that are found missing.
    pub finding: u64,
    /// Bytes of device memory that the locations of lists take, where they are not all in one memory.
    pub locations: u64,
    /// Bytes of host memory: for lists, and where these may be on storage, for rows too.
    pub host: u64,
    /// Whether lists may be on storage.
    pub has_storage: bool,
}

/// What wants the memory.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// All neighbour lists.
    pub lists: &'a AllLists<'a>,
    /// What presampling counted.
    pub uses: &'a Uses,
    /// All vertices, those whose rows were wanted most first.
    pub hottest: &'a [u32],
    /// Bytes of a row; 0 without features.
    pub stride: u64,
}

impl Wanted<'_> {
    /// What it saves to hold a list in a memory: parts of transactions that take its place one memory below.
    fn list_saves(&self, tier: Tier, vertex: u32) -> u64 {
        let ListUse { lines, pages, .. } = self.uses.list(vertex);
        match tier {
            Tier::Gpu => lines,
            Tier::Host => (pages * LINES_OF_PAGE).saturating_sub(lines),
        }
    }

    /// What it saves to hold a row in a memory.
    fn row_saves(&self, tier: Tier, vertex: u32) -> u64 {
        let [line, read] = [Tier::Gpu, Tier::Host].map(|tier| UNITS.read(tier, self.stride));
        let used = self.uses.row(vertex);
        match tier {
            Tier::Gpu => used * line,
            Tier::Host => used * read.saturating_sub(line),
        }
    }

    /// All lists that have neighbours, those that save most a byte in a memory first.
    fn by_worth(&self, tier: Tier) -> Vec<u32> {
        let bytes = |vertex| u128::from(self.lists.bytes_of(vertex));
        let vertices = 0..self.uses.lists.len() as u32;
        let mut order: Vec<u32> = vertices.filter(|&vertex| bytes(vertex) > 0).collect();
        order.sort_by(|&a, &b| {
            let worth = |a, b| u128::from(self.list_saves(tier, a)) * bytes(b);
            worth(b, a).cmp(&worth(a, b))
        });
        order
    }
}

/// The lists that each memory holds, and the room that rows get beside them.
pub(super) struct Choice {
    /// For each vertex, the memory that its list is in.
    pub places: Vec<Place>,
    /// Bytes of the lists in device memory.
    pub list_bytes: u64,
    /// Bytes of the lists in host memory.
    pub host_list_bytes: u64,
    /// The most bytes that rows, and the list of those that are missing, take of device memory.
    pub row_bytes: u64,
    /// The most rows that host memory holds.
    pub host_rows: u64,
}

/// Lists in the orders in which memories take them.
struct Orders {
    device: Vec<u32>,
    host: Vec<u32>,
}

impl Choice {
    /// The choice by a plan; `None` if the lists do not fit the room.
    ///
    /// Lists in several memories need locations. Where those would save more as lists or rows, the unified
    /// choice has all lists in one memory. Since what one memory takes changes what another saves, it is
    /// one of the other placements where that leaves fewer transactions. And it has no list on storage where
    /// that costs next to none.
    pub fn new(plan: &Plan, wanted: &Wanted<'_>, room: Room) -> Option<Self> {
        let orders =
            Orders { device: wanted.by_worth(Tier::Gpu), host: wanted.by_worth(Tier::Host) };
        let stored = |placement, locations, may_store| {
            let plan = Plan { placement, ..*plan };
            Self::beside(&plan, wanted, &orders, room, locations, may_store)
        };
        let beside = |placement, locations| stored(placement, locations, room.has_storage);
        let unsplit = |placement| {
            beside(placement, 0).filter(|choice| {
                choice.list_bytes == wanted.lists.bytes()
                    || choice.host_list_bytes == wanted.lists.bytes()
            })
        };
        let split = |placement| beside(placement, room.locations);
        match plan.placement {
            Placement::Unified => {
                let others = Self::others().into_iter().filter(|_| room.has_storage);
                let firsts = [Placement::FEATURES_FIRST, Placement::TOPOLOGY_FIRST];
                let all = firsts.into_iter().filter_map(unsplit);
                let all = all.chain(others.filter_map(split)).chain(split(Placement::Unified));
                let transactions = |choice: &Self| choice.transactions(wanted, room.finding);
                let least = all.min_by_key(transactions)?;
                let most = transactions(&least) + transactions(&least) / WAIT_SHARE;
                let in_memory = || stored(Placement::Unified, room.locations, false);
                let in_memory = room.has_storage.then(in_memory).flatten();
                Some(in_memory.filter(|choice| transactions(choice) <= most).unwrap_or(least))
            }
            other => unsplit(other).or_else(|| split(other)),
        }
    }

    /// The placements by which each memory takes lists or rows first.
    fn others() -> [Placement; 4] {
        let [topology, features] = [Kind::Topology, Kind::Features];
        [(topology, topology), (topology, features), (features, topology), (features, features)]
            .map(|(gpu, host)| Placement::First { gpu, host })
    }

    /// The parts of transactions that are expected of lists and rows that are not in device memory, where
    /// `finding` bytes of it are for what reads rows, if not all are there.
    fn transactions(&self, wanted: &Wanted<'_>, finding: u64) -> u64 {
        let Wanted { uses, hottest, stride, .. } = *wanted;
        let lists = (0u32..).zip(&self.places).map(|(vertex, place)| match place {
            Place::Device => 0,
            Place::Host => uses.list(vertex).lines,
            Place::Storage => uses.list(vertex).pages * LINES_OF_PAGE,
        });
        let count = |bytes: u64| bytes.checked_div(stride).unwrap_or(0) as usize;
        let device = match count(self.row_bytes) {
            all if all >= hottest.len() => hottest.len(),
            _ => count(self.row_bytes.saturating_sub(finding)),
        };
        let host = (device as u64).saturating_add(self.host_rows).min(hottest.len() as u64);
        let rows = |of: &[u32], tier| -> u64 {
            let used: u64 = of.iter().map(|&vertex| uses.row(vertex)).sum();
            used * UNITS.read(tier, stride)
        };
        lists.sum::<u64>()
            + rows(&hottest[device..host as usize], Tier::Gpu)
            + rows(&hottest[host as usize..], Tier::Host)
    }

    /// The choice beside so many bytes of locations; some lists are on storage if it `may_store` them.
    fn beside(
        plan: &Plan,
        wanted: &Wanted<'_>,
        orders: &Orders,
        room: Room,
        locations: u64,
        may_store: bool,
    ) -> Option<Self> {
        let Wanted { lists, hottest, stride, .. } = *wanted;
        let rows = if stride == 0 { &[] } else { hottest };
        let others = if may_store { Place::Storage } else { Place::Host };
        let mut this = Self {
            places: vec![others; wanted.uses.lists.len()],
            list_bytes: 0,
            host_list_bytes: 0,
            row_bytes: 0,
            host_rows: u64::MAX,
        };
        let needed = match may_store {
            true => 0,
            false => lists.bytes().saturating_sub(room.host),
        };
        let mut must = 0;
        while this.list_bytes < needed {
            this.hold(Place::Device, orders.device[must], lists);
            must += 1;
        }
        let device = room.device.saturating_sub(locations + room.finding);
        let left = device.checked_sub(this.list_bytes)?;
        let of_device =
            Memory { tier: Tier::Gpu, capacity: left, lists: &orders.device[must..], rows };
        let held = of_device.filled(plan, wanted);
        held.lists.iter().for_each(|&vertex| this.hold(Place::Device, vertex, lists));
        this.row_bytes = held.row_bytes;
        if may_store {
            let others = orders.host.iter().copied();
            let others: Vec<u32> =
                others.filter(|&v| this.places[v as usize] != Place::Device).collect();
            let rows = &rows[(this.row_bytes.checked_div(stride).unwrap_or(0) as usize)..];
            let of_host = Memory { tier: Tier::Host, capacity: room.host, lists: &others, rows };
            let held = of_host.filled(plan, wanted);
            held.lists.iter().for_each(|&vertex| this.hold(Place::Host, vertex, lists));
            this.host_rows = held.row_bytes.checked_div(stride).unwrap_or(0);
        } else {
            this.host_list_bytes = lists.bytes() - this.list_bytes;
            if room.has_storage {
                let left = room.host.saturating_sub(this.host_list_bytes);
                this.host_rows = left.checked_div(stride).unwrap_or(0);
            }
        }
        if stride > 0 {
            let most = room.device.saturating_sub(locations + this.list_bytes);
            this.row_bytes = (this.row_bytes + room.finding).min(most);
        }
        Some(this)
    }

    fn hold(&mut self, place: Place, vertex: u32, lists: &AllLists<'_>) {
        self.places[vertex as usize] = place;
        match place {
            Place::Device => self.list_bytes += lists.bytes_of(vertex),
            Place::Host => self.host_list_bytes += lists.bytes_of(vertex),
            Place::Storage => {}
        }
    }
}

/// A memory that lists and rows compete for.
struct Memory<'a> {
    tier: Tier,
    /// Bytes of it.
    capacity: u64,
    /// The lists that it may hold, those that save most a byte first.
    lists: &'a [u32],
    /// The vertices of the rows that it may hold, those that were wanted most first.
    rows: &'a [u32],
}

/// What a memory holds.
struct Held {
    lists: Vec<u32>,
    row_bytes: u64,
}

impl Memory<'_> {
    /// What the memory holds by a plan. Rows have what chosen lists leave, and other lists what these
    /// leave, but where both have a share.
    fn filled(&self, plan: &Plan, wanted: &Wanted<'_>) -> Held {
        let Self { tier, capacity, lists, rows } = *self;
        let Wanted { stride, .. } = *wanted;
        let bytes = |vertex| wanted.lists.bytes_of(vertex);
        let chunk_bytes = plan.chunk_bytes.min(capacity / CHUNKS);
        let item = |&v: &u32| Item { bytes: bytes(v), saves: wanted.list_saves(tier, v) };
        let topology = chunks(Kind::Topology, lists.iter().map(item), chunk_bytes);
        let item = |&v: &u32| Item { bytes: stride, saves: wanted.row_saves(tier, v) };
        let features = chunks(Kind::Features, rows.iter().map(item), chunk_bytes);
        let chosen = choose(plan.placement, tier, &topology, &features, capacity);
        let mut is_held = vec![false; lists.len()];
        let items = chosen.topology.iter().flat_map(|&i| topology[i].items.clone());
        items.for_each(|i| is_held[i] = true);
        let held = lists.iter().zip(&is_held).filter(|(_, held)| **held);
        let mut left = capacity - held.map(|(&vertex, _)| bytes(vertex)).sum::<u64>();
        let share = match plan.placement {
            Placement::Hybrid(share) => (capacity as f64 * share.clamp(0.0, 1.0)) as u64,
            _ => u64::MAX,
        };
        let row_bytes = left.min(share).min(rows.len() as u64 * stride);
        left -= row_bytes;
        if !matches!(plan.placement, Placement::Hybrid(_)) {
            for (is_held, &vertex) in is_held.iter_mut().zip(lists) {
                if !*is_held && bytes(vertex) <= left {
                    left -= bytes(vertex);
                    *is_held = true;
                }
            }
        }
        let held = lists.iter().zip(&is_held).filter(|(_, held)| **held);
        Held { lists: held.map(|(&vertex, _)| vertex).collect(), row_bytes }
    }
}
