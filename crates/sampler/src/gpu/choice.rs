//! The choice of the neighbour lists that device memory holds, and of the room that rows get there.
//!
//! Hyperion, §III-B2: lists and rows compete for device memory by the transactions over PCIe that they
//! save. Presampling counts those of each list and row as kernels make them ([`list_transactions`],
//! whole lines of a row). Lists come in the order of what a byte of them saves, where the paper's come
//! in the order of hotness: short lists save more a byte.
//!
//! Kernels read no list from storage, so host memory holds every list that device memory does not, and
//! rows have what is left of it. Lists that the host has no room for are in device memory first,
//! whatever the placement.

use serde::Serialize;
use tiergraph_cache::placement::{
    Granularity, Item, Kind, Placement, Tier, by_hotness, choose, chunks,
};
use tiergraph_gpu::kernels::{LINE_BYTES, list_transactions};
use tiergraph_mem::PAGE_BYTES;

use super::lists::DecodedLists;
use crate::residency::hotness::Plan;

/// A chunk is one part in so many of device memory, or smaller: whole chunks are placed.
const CHUNKS: u64 = 64;

/// The units of the transactions that loaders on a GPU count: lines of [`LINE_BYTES`], reads of pages.
pub(super) const UNITS: Granularity =
    Granularity { line_bytes: LINE_BYTES, read_bytes: PAGE_BYTES as u64 };

/// Transactions over PCIe, by where the data was; each brings 128 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Transactions {
    /// Transactions of neighbour lists in pinned host memory.
    pub host_lists: u64,
    /// Transactions of feature rows in pinned host memory: the lines of each row, whenever it is wanted.
    pub host_rows: u64,
    /// Transactions of feature rows on storage: the lines of each row's pages, whenever it is wanted, as
    /// if no two rows shared a read.
    pub storage_rows: u64,
}

impl Transactions {
    /// The transactions of all tiers.
    pub fn total(&self) -> u64 {
        self.host_lists + self.host_rows + self.storage_rows
    }

    /// The transactions since those of `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            host_lists: self.host_lists - earlier.host_lists,
            host_rows: self.host_rows - earlier.host_rows,
            storage_rows: self.storage_rows - earlier.storage_rows,
        }
    }
}

/// What presampling counted.
pub(super) struct Uses {
    /// The number of batches that were sampled.
    pub batches: usize,
    /// For each vertex, how often its row was wanted.
    pub rows: Vec<u32>,
    /// For each vertex, the transactions of its list, were it in host memory.
    pub lists: Vec<u64>,
}

impl Uses {
    /// Every row, and every list by a fanout, once: what is assumed where no batch was sampled.
    pub fn of_all(lists: &DecodedLists, fanout: u32) -> Self {
        let vertices = 0..lists.offsets().len() as u32 - 1;
        let transactions = vertices.map(|vertex| list_transactions(lists.degree(vertex), fanout));
        let lists: Vec<u64> = transactions.collect();
        Self { batches: 0, rows: vec![1; lists.len()], lists }
    }

    /// All vertices, those whose rows were wanted most first.
    pub fn hottest_rows(&self) -> Vec<u32> {
        hottest_first(&self.rows)
    }
}

/// All vertices by their uses, most first; those without uses last.
pub(super) fn hottest_first(uses: &[u32]) -> Vec<u32> {
    let mut order = by_hotness(uses);
    order.extend((0..uses.len() as u32).filter(|&v| uses[v as usize] == 0));
    order
}

/// The memory that lists and rows compete for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes of device memory.
    pub device: u64,
    /// Bytes of device memory that lists leave for the rows of a batch that are found missing.
    pub finding: u64,
    /// Bytes of device memory that the locations of lists take, where lists are in both memories.
    pub locations: u64,
    /// Bytes of host memory that lists may take.
    pub host: u64,
}

/// What wants the memory.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// All neighbour lists.
    pub lists: &'a DecodedLists,
    /// What presampling counted.
    pub uses: &'a Uses,
    /// All vertices, those whose rows were wanted most first.
    pub hottest: &'a [u32],
    /// Bytes of a row; 0 without features.
    pub stride: u64,
}

/// The lists that device memory holds, and the room that rows get beside them.
pub(super) struct Choice {
    /// For each vertex, whether its list is in device memory.
    pub is_on_device: Vec<bool>,
    /// Bytes of those lists.
    pub list_bytes: u64,
    /// The most bytes that rows, and the list of those that are missing, take of device memory.
    pub row_bytes: u64,
}

impl Choice {
    /// The choice by a plan; `None` if the lists do not fit the room.
    ///
    /// Lists in both memories need locations. Where those would save more as lists or rows, the unified
    /// choice has all lists in one memory.
    pub fn new(plan: &Plan, wanted: &Wanted<'_>, room: Room) -> Option<Self> {
        let unsplit = |placement| {
            let plan = Plan { placement, ..*plan };
            let choice = Self::beside(&plan, wanted, room, 0)?;
            let in_one = choice.list_bytes == 0 || choice.list_bytes == wanted.lists.bytes();
            in_one.then_some(choice)
        };
        let split = || Self::beside(plan, wanted, room, room.locations);
        match plan.placement {
            Placement::Unified => {
                let rest = [Placement::FEATURES_FIRST, Placement::TOPOLOGY_FIRST].map(unsplit);
                let all = [split()].into_iter().chain(rest).flatten();
                all.max_by_key(|choice| choice.saves(wanted))
            }
            other => unsplit(other).or_else(split),
        }
    }

    /// The transactions that lists and rows in device memory save.
    fn saves(&self, wanted: &Wanted<'_>) -> u64 {
        let Wanted { uses, hottest, stride, .. } = *wanted;
        let lists = uses.lists.iter().zip(&self.is_on_device);
        let lists: u64 = lists.filter(|&(_, &here)| here).map(|(&saves, _)| saves).sum();
        let rows = self.row_bytes.checked_div(stride).unwrap_or(0) as usize;
        let rows = hottest[..rows.min(hottest.len())].iter();
        let used: u64 = rows.map(|&vertex| u64::from(uses.rows[vertex as usize])).sum();
        lists + used * UNITS.read(Tier::Gpu, stride)
    }

    /// The choice beside so many bytes of locations.
    fn beside(plan: &Plan, wanted: &Wanted<'_>, room: Room, locations: u64) -> Option<Self> {
        let Wanted { lists, uses, hottest, stride } = *wanted;
        let device = room.device.saturating_sub(locations + room.finding);
        let bytes = |vertex: u32| lists.degree(vertex) * size_of::<u32>() as u64;
        let mut order: Vec<u32> = (0..uses.lists.len() as u32).filter(|&v| bytes(v) > 0).collect();
        let saves = |vertex: u32| uses.lists[vertex as usize];
        order.sort_by(|&a, &b| {
            let worth = |a, b| u128::from(saves(a)) * u128::from(bytes(b));
            worth(b, a).cmp(&worth(a, b))
        });
        let mut this =
            Self { is_on_device: vec![false; uses.lists.len()], list_bytes: 0, row_bytes: 0 };
        let needed = lists.bytes().saturating_sub(room.host);
        let mut must = 0;
        while this.list_bytes < needed {
            this.hold(order[must], bytes(order[must]));
            must += 1;
        }
        let others = order.split_off(must);
        let left = device.checked_sub(this.list_bytes)?;
        let chunk_bytes = plan.chunk_bytes.min(left / CHUNKS);
        let item = |&vertex: &u32| Item { bytes: bytes(vertex), saves: saves(vertex) };
        let topology = chunks(Kind::Topology, others.iter().map(item), chunk_bytes);
        let lines = if stride == 0 { 0 } else { UNITS.read(Tier::Gpu, stride) };
        let item = |&vertex: &u32| Item {
            bytes: stride,
            saves: u64::from(uses.rows[vertex as usize]) * lines,
        };
        let rows = if stride == 0 { &[] } else { hottest };
        let features = chunks(Kind::Features, rows.iter().map(item), chunk_bytes);
        let chosen = choose(plan.placement, Tier::Gpu, &topology, &features, left);
        let items = chosen.topology.iter().flat_map(|&i| topology[i].items.clone());
        items.for_each(|i| this.hold(others[i], bytes(others[i])));
        let all_rows = rows.len() as u64 * stride;
        let mut left = device - this.list_bytes;
        if let Placement::Hybrid(share) = plan.placement {
            left = left.min((device as f64 * share.clamp(0.0, 1.0)) as u64);
        }
        this.row_bytes = left.min(all_rows);
        // Of what rows do not take, lists take what is left.
        let mut left = device - this.list_bytes - this.row_bytes;
        if !matches!(plan.placement, Placement::Hybrid(_)) {
            for &vertex in &others {
                if !this.is_on_device[vertex as usize] && bytes(vertex) <= left {
                    left -= bytes(vertex);
                    this.hold(vertex, bytes(vertex));
                }
            }
        }
        if stride > 0 {
            let most = room.device.saturating_sub(locations + this.list_bytes);
            this.row_bytes = (this.row_bytes + room.finding).min(most);
        }
        Some(this)
    }

    fn hold(&mut self, vertex: u32, bytes: u64) {
        self.is_on_device[vertex as usize] = true;
        self.list_bytes += bytes;
    }
}
