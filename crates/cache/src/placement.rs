//! What a memory tier holds: Hyperion's unified placement of topology and features.
//!
//! Hyperion, §III-B2: presampling counts how often each vertex's neighbours (T) and features (F)
//! are used. Vertices are put in order of that hotness and cut into chunks of Z bytes. A chunk is
//! worth the transfers that it saves if it is resident, and the chunks of a tier are chosen so that
//! the transfers that remain are fewest. The tiers are filled from the fastest down.
//!
//! The paper chooses by dynamic programming. With chunks of one size the best choice is simply
//! those worth most; the tests compare the two.

use std::cmp::Reverse;

/// A kind of memory that can hold chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// GPU memory: what is not resident there crosses PCIe.
    Gpu,
    /// Host memory: what is not resident there is read from storage.
    Host,
}

/// A kind of data that a memory tier holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Neighbour lists, or pages of them.
    Topology,
    /// Rows of features.
    Features,
}

/// The units in which bytes reach a GPU and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granularity {
    /// CLS: bytes of a cache line over PCIe.
    pub line_bytes: u64,
    /// SSDS: the smallest read from storage in bytes, a multiple of the line.
    pub read_bytes: u64,
}

impl Default for Granularity {
    /// 64-byte lines and 4 KiB reads, which are what this engine does. The paper's drives read 512.
    fn default() -> Self {
        Self { line_bytes: 64, read_bytes: 4096 }
    }
}

impl Granularity {
    /// How many transactions it saves to hold an item of `bytes`, used `hotness` times, in `tier`.
    ///
    /// GPU: ⌈H × N / CLS⌉. Host: ⌈H × N / SSDS⌉ × SSDS / CLS (Hyperion, §III-B2).
    ///
    /// The paper joins all uses of an item before it rounds up; [`read`](Self::read) rounds up each use.
    pub fn transactions(&self, tier: Tier, hotness: u64, bytes: u64) -> u64 {
        let used = hotness.saturating_mul(bytes);
        match tier {
            Tier::Gpu => used.div_ceil(self.line_bytes),
            Tier::Host => used.div_ceil(self.read_bytes) * (self.read_bytes / self.line_bytes),
        }
    }
}

impl Granularity {
    /// The transactions of one coalesced load of `bytes` that are not resident in `tier`: whole lines over
    /// PCIe, or whole reads from storage in lines.
    pub fn read(&self, tier: Tier, bytes: u64) -> u64 {
        self.transactions(tier, 1, bytes)
    }
}

/// Items of one kind, side by side in the order of their hotness, that a tier holds all or none of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The kind of the items.
    pub kind: Kind,
    /// The items' ranks in their kind's order of hotness, 0 for the hottest.
    pub items: std::ops::Range<usize>,
    /// Bytes of all items; only the last chunk of a kind has less than Z.
    pub bytes: u64,
    /// Transactions that it saves to hold the items.
    pub saves: u64,
}

/// One item that [`chunks`] cuts: how much memory it takes to hold it, and what that saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Bytes that the item takes in memory.
    pub bytes: u64,
    /// Transactions that it saves to hold the item.
    pub saves: u64,
}

/// Cuts items, in descending order of hotness, into chunks of at most `chunk_bytes` (one item at
/// least).
pub fn chunks(kind: Kind, items: impl Iterator<Item = Item>, chunk_bytes: u64) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (i, item) in items.enumerate() {
        match chunks.last_mut() {
            Some(chunk) if chunk.bytes + item.bytes <= chunk_bytes => {
                chunk.items.end = i + 1;
                chunk.bytes += item.bytes;
                chunk.saves += item.saves;
            }
            _ => {
                let Item { bytes, saves } = item;
                chunks.push(Chunk { kind, items: i..i + 1, bytes, saves });
            }
        }
    }
    chunks
}

/// How a tier is divided between topology and features; the paper compares all of them (Figure 7).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Placement {
    /// The choice that leaves the fewest transactions, whichever kind that favours.
    #[default]
    Unified,
    /// The hottest items of one kind, then the other kind in the room that is left. The paper's names
    /// have both tiers: GTCF is topology first in GPU memory, and features first in the host's.
    First {
        /// The kind that GPU memory takes first.
        gpu: Kind,
        /// The kind that host memory takes first.
        host: Kind,
    },
    /// The hottest features in this share (0 to 1) of the tier, and the hottest topology in the rest.
    Hybrid(f64),
}

impl Placement {
    /// The hottest topology first, in both tiers (GTCT).
    pub const TOPOLOGY_FIRST: Self = Self::First { gpu: Kind::Topology, host: Kind::Topology };
    /// The hottest features first, in both tiers (GFCF).
    pub const FEATURES_FIRST: Self = Self::First { gpu: Kind::Features, host: Kind::Features };
}

/// The chunks that a tier holds, by their indices among all chunks of their kind, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Indices of chunks of topology.
    pub topology: Vec<usize>,
    /// Indices of chunks of features.
    pub features: Vec<usize>,
}

/// Chooses the chunks that `tier`, of `capacity` bytes, holds.
///
/// `topology` and `features` are in descending order of hotness. Chunks that save nothing are not
/// chosen: their memory is better left to others.
pub fn choose(
    placement: Placement,
    tier: Tier,
    topology: &[Chunk],
    features: &[Chunk],
    capacity: u64,
) -> Chosen {
    match placement {
        Placement::Unified => unified(topology, features, capacity),
        Placement::First { gpu, host } => {
            let first = match tier {
                Tier::Gpu => gpu,
                Tier::Host => host,
            };
            match first {
                Kind::Topology => {
                    let (topology, used) = hottest(topology, capacity);
                    Chosen { topology, features: hottest(features, capacity - used).0 }
                }
                Kind::Features => {
                    let (features, used) = hottest(features, capacity);
                    Chosen { topology: hottest(topology, capacity - used).0, features }
                }
            }
        }
        Placement::Hybrid(share) => {
            let for_features = (capacity as f64 * share.clamp(0.0, 1.0)) as u64;
            let for_topology = capacity - for_features.min(capacity);
            let topology = hottest(topology, for_topology).0;
            Chosen { topology, features: hottest(features, for_features).0 }
        }
    }
}

/// The first of `chunks`, up to one that does not fit `capacity` bytes, and the bytes of all of them.
fn hottest(chunks: &[Chunk], capacity: u64) -> (Vec<usize>, u64) {
    let (mut chosen, mut used) = (Vec::new(), 0);
    for (i, chunk) in chunks.iter().enumerate().filter(|(_, chunk)| chunk.saves > 0) {
        if used + chunk.bytes > capacity {
            break;
        }
        used += chunk.bytes;
        chosen.push(i);
    }
    (chosen, used)
}

/// The chunks that save most: exact for chunks of one size; the smaller last chunk of a kind is
/// taken where it fits.
fn unified(topology: &[Chunk], features: &[Chunk], capacity: u64) -> Chosen {
    let all = topology.iter().enumerate().chain(features.iter().enumerate());
    let mut order: Vec<(usize, &Chunk)> = all.filter(|(_, chunk)| chunk.saves > 0).collect();
    // By saved transactions a byte, as fractions: equal chunks are compared by what they save.
    let worth = |chunk: &Chunk, other: &Chunk| u128::from(chunk.saves) * u128::from(other.bytes);
    order.sort_by(|(_, a), (_, b)| worth(b, a).cmp(&worth(a, b)));
    let (mut chosen, mut used) = (Chosen::default(), 0);
    for (i, chunk) in order {
        if used + chunk.bytes > capacity {
            continue;
        }
        used += chunk.bytes;
        match chunk.kind {
            Kind::Topology => chosen.topology.push(i),
            Kind::Features => chosen.features.push(i),
        }
    }
    chosen.topology.sort_unstable();
    chosen.features.sort_unstable();
    chosen
}

/// The items that were used, the hottest first; `hotness` counts each item's uses. Items that are
/// equally hot are in ascending order.
pub fn by_hotness(hotness: &[u32]) -> Vec<u32> {
    let used = |&i: &u32| hotness[i as usize] > 0;
    let mut order: Vec<u32> = (0..hotness.len() as u32).filter(used).collect();
    order.sort_by_key(|&i| Reverse(hotness[i as usize]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_formulas_of_the_paper() {
        let paper = Granularity { line_bytes: 64, read_bytes: 512 };
        assert_eq!(paper.transactions(Tier::Gpu, 3, 100), 5);
        assert_eq!(paper.transactions(Tier::Host, 3, 100), 8);
        assert_eq!(paper.transactions(Tier::Host, 6, 100), 16);
        assert_eq!(paper.transactions(Tier::Host, 0, 100), 0);
        assert!(paper.transactions(Tier::Host, u64::MAX, u64::MAX) > 0);
    }

    /// The largest sum of what chunks of one size save, by dynamic programming over both kinds.
    fn dynamic_programming(topology: &[u64], features: &[u64], slots: usize) -> u64 {
        let mut best = vec![0; slots + 1];
        for &saves in topology.iter().chain(features) {
            for slot in (1..=slots).rev() {
                best[slot] = best[slot].max(best[slot - 1] + saves);
            }
        }
        best[slots]
    }

    fn equal_chunks(kind: Kind, saves: &[u64]) -> Vec<Chunk> {
        chunks(kind, saves.iter().map(|&saves| Item { bytes: 100, saves }), 100)
    }

    #[test]
    fn the_unified_choice_is_that_of_dynamic_programming() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let mut list = |n: u64| (0..random(n)).map(|_| random(50)).collect::<Vec<u64>>();
            let (topology, features) = (list(12), list(12));
            let slots = random(20);
            let t = equal_chunks(Kind::Topology, &topology);
            let f = equal_chunks(Kind::Features, &features);
            let chosen = choose(Placement::Unified, Tier::Gpu, &t, &f, slots * 100 + random(100));
            let saved: u64 = chosen.topology.iter().map(|&i| topology[i]).sum::<u64>()
                + chosen.features.iter().map(|&i| features[i]).sum::<u64>();
            assert_eq!(saved, dynamic_programming(&topology, &features, slots as usize));
            assert!(chosen.topology.len() + chosen.features.len() <= slots as usize);
        }
    }

    #[test]
    fn each_placement_fills_in_its_order() {
        let t = equal_chunks(Kind::Topology, &[9, 5, 1]);
        let f = equal_chunks(Kind::Features, &[7, 6, 0]);
        let chosen = |placement| choose(placement, Tier::Host, &t, &f, 350);
        let these = |topology: &[usize], features: &[usize]| Chosen {
            topology: topology.to_vec(),
            features: features.to_vec(),
        };
        assert_eq!(chosen(Placement::Unified), these(&[0], &[0, 1]));
        assert_eq!(chosen(Placement::TOPOLOGY_FIRST), these(&[0, 1, 2], &[]));
        assert_eq!(chosen(Placement::FEATURES_FIRST), these(&[0], &[0, 1]));
        assert_eq!(chosen(Placement::Hybrid(0.3)), these(&[0, 1], &[0]));
        assert_eq!(chosen(Placement::Hybrid(7.0)), these(&[], &[0, 1]));
        assert_eq!(choose(Placement::Unified, Tier::Host, &[], &[], 1000), Chosen::default());
        // With more room, the one that saves nothing is still left out.
        let chosen = |placement| choose(placement, Tier::Host, &t, &f, 450);
        assert_eq!(chosen(Placement::TOPOLOGY_FIRST), these(&[0, 1, 2], &[0]));
        assert_eq!(chosen(Placement::FEATURES_FIRST), these(&[0, 1], &[0, 1]));
        for placement in [Placement::Unified, Placement::TOPOLOGY_FIRST, Placement::Hybrid(0.5)] {
            assert_eq!(choose(placement, Tier::Host, &t, &f, 1000), these(&[0, 1, 2], &[0, 1]));
        }
        assert_eq!(
            choose(Placement::TOPOLOGY_FIRST, Tier::Host, &t, &f, 300),
            these(&[0, 1, 2], &[])
        );
    }

    #[test]
    fn each_tier_has_a_kind_that_comes_first() {
        let t = equal_chunks(Kind::Topology, &[9]);
        let f = equal_chunks(Kind::Features, &[7]);
        let first = |placement, tier| {
            let Chosen { topology, features } = choose(placement, tier, &t, &f, 100);
            match (topology.len(), features.len()) {
                (1, 0) => Kind::Topology,
                (0, 1) => Kind::Features,
                both => panic!("one chunk fits, and not {both:?}"),
            }
        };
        for gpu in [Kind::Topology, Kind::Features] {
            for host in [Kind::Topology, Kind::Features] {
                let placement = Placement::First { gpu, host };
                assert_eq!(
                    (first(placement, Tier::Gpu), first(placement, Tier::Host)),
                    (gpu, host)
                );
            }
        }
    }

    #[test]
    fn chunks_of_different_sizes_are_compared_by_what_a_byte_saves() {
        // 10 and 5 transactions a byte, though the second chunk saves more, and 0.2 and 0.03.
        for (topology, features) in [((100, 1000), (1000, 5000)), ((100, 20), (1000, 30))] {
            let chunk =
                |kind, (bytes, saves)| chunks(kind, [Item { bytes, saves }].into_iter(), bytes);
            let (t, f) = (chunk(Kind::Topology, topology), chunk(Kind::Features, features));
            let chosen = |capacity| {
                let Chosen { topology, features } =
                    choose(Placement::Unified, Tier::Host, &t, &f, capacity);
                (topology.len(), features.len())
            };
            assert_eq!((chosen(1050), chosen(1100)), ((1, 0), (1, 1)));
        }
    }

    #[test]
    fn chunks_hold_as_many_items_as_fit() {
        let item = |bytes| Item { bytes, saves: 1 };
        let cut = chunks(Kind::Features, [60, 40, 1, 500, 2].map(item).into_iter(), 100);
        let found: Vec<_> = cut.iter().map(|c| (c.items.clone(), c.bytes, c.saves)).collect();
        assert_eq!(found, [(0..2, 100, 2), (2..3, 1, 1), (3..4, 500, 1), (4..5, 2, 1)]);
    }

    #[test]
    fn the_hottest_come_first_and_the_unused_not_at_all() {
        assert_eq!(by_hotness(&[0, 3, 9, 3, 0]), [2, 1, 3]);
    }
}
