//! Hotness: how often pages and rows are wanted, and the choice of those that a tier keeps.
//!
//! Presampling (Hyperion, §III-B; GNNLab before it): an epoch's batches are sampled without being
//! trained on, and what they want is counted. A static set chosen by these counts reaches nearly
//! the hit rate of the best possible one. Because a page or row is fetched once for all batches of a
//! window, it is counted once a window. Memory that is left holds what none wanted, as much as is
//! expected of it ([`unmet`](crate::residency::unmet)).

use tiergraph_cache::placement::{Chunk, Granularity, Item, Kind, Placement, Tier, choose, chunks};
use tiergraph_mem::PAGE_BYTES;

use crate::pipeline::types::Ends;
use crate::residency::neighbors::{Residency, Residents};
use crate::residency::offsets::Offsets;
use crate::residency::topology::Topology;
use crate::residency::unmet::{CLASSES, Classes, PARTS, class_of, hottest_first, others};
use crate::sampling::batch::MiniBatch;
use crate::sampling::window::pages_of;

/// Counts of how often each page, or each row, of one type was wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// For each item, the number of windows that wanted it.
    pub uses: Vec<u32>,
    /// The last window that each item was counted in.
    seen: Vec<u32>,
    /// The class of each item, by the number of its vertex's neighbours; empty where all are alike.
    classes: Vec<u8>,
}

impl Counts {
    fn new(items: usize) -> Self {
        Self { uses: vec![0; items], seen: vec![0; items], classes: Vec::new() }
    }

    fn class(&self, item: u32) -> u8 {
        self.classes.get(item as usize).copied().unwrap_or(0)
    }

    fn count(&mut self, item: usize, window: u32) {
        if std::mem::replace(&mut self.seen[item], window) != window {
            self.uses[item] += 1;
        }
    }
}

/// Counts of the pages and rows that batches wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hotness {
    /// Counts of pages of neighbours, by edge type.
    pub pages: Vec<Counts>,
    /// Counts of rows of features, by node type.
    pub rows: Vec<Counts>,
    ends: Vec<Ends>,
    windows: u32,
    /// The number of windows of the epoch.
    all: u32,
}

impl Hotness {
    /// Empty counts, for types with so many nodes.
    pub fn new(topologies: &[Topology], ends: &[Ends], nodes: &[usize]) -> Self {
        let pages = topologies.iter().map(|topology| Counts::new(topology.map().pages() as usize));
        let rows = nodes.iter().enumerate().map(|(of, &nodes)| {
            let here: Vec<&Offsets> = ends
                .iter()
                .zip(topologies)
                .filter(|(ends, _)| ends.destination == of)
                .map(|(_, topology)| topology.offsets())
                .collect();
            let class = |vertex| {
                let degrees = here.iter().map(|offsets| offsets.arcs(vertex));
                class_of(degrees.map(|arcs| arcs.end - arcs.start).sum())
            };
            Counts { classes: (0..nodes as u32).map(class).collect(), ..Counts::new(nodes) }
        });
        Self {
            pages: pages.collect(),
            rows: rows.collect(),
            ends: ends.to_vec(),
            windows: 0,
            all: 0,
        }
    }

    /// Empty counts, for a graph with one type.
    pub fn of_one(topology: &Topology) -> Self {
        let nodes = topology.offsets().vertices();
        Self::new(std::slice::from_ref(topology), &[Ends::SAME], &[nodes])
    }

    /// Bytes that counts of `pages` pages and `vertices` rows take.
    pub fn bytes_of(pages: u64, vertices: u64) -> u64 {
        8 * pages + 9 * vertices
    }

    /// Says how many windows the epoch has of which some are counted.
    pub fn of_windows(&mut self, all: u32) {
        self.all = all;
    }

    /// Counts the pages and rows that the batches of one window want.
    pub fn record(&mut self, topologies: &[Topology], batches: &[MiniBatch]) {
        self.windows += 1;
        for batch in batches {
            for (rows, nodes) in self.rows.iter_mut().zip(&batch.nodes) {
                nodes.n_id.iter().for_each(|&node| rows.count(node as usize, self.windows));
            }
            for (edge_type, topology) in topologies.iter().enumerate() {
                let edges = 0..batch.edges[edge_type].e_id.len();
                let taken = batch.taken(edge_type, self.ends[edge_type], edges);
                let (counts, mut edge) = (&mut self.pages[edge_type], 0);
                for run in taken.runs() {
                    let arcs = &taken.e_id[edge..edge + run.len()];
                    for page in pages_of(topology, taken.vertex(run), arcs) {
                        counts.count(page as usize, self.windows);
                    }
                    edge += run.len();
                }
            }
        }
    }

    /// All nodes of type `of`, those first whose rows are expected to be wanted most.
    pub fn hottest_rows(&self, of: usize) -> Vec<u32> {
        let counts = &self.rows[of];
        let others = others(self.windows.into(), self.all.into());
        Unmet::of(counts, others).order(counts, usize::MAX)
    }

    /// Chooses what host memory of `capacity` bytes keeps: pages of neighbours of all types, and rows of
    /// `row_bytes` by node type (0 without features).
    ///
    /// The bytes are those of pages and rows; what finds them takes two bits each beside them.
    pub fn place(&self, how: &Plan, row_bytes: &[usize], capacity: u64) -> Residents {
        let pages = self.pages.iter().map(|counts| (counts, PAGE_BYTES));
        let rows = self.rows.iter().zip(row_bytes).map(|(counts, &bytes)| (counts, bytes));
        let others = others(self.windows.into(), self.all.into());
        let pages = Candidates::new(how, Kind::Topology, (capacity, others), pages);
        let rows = Candidates::new(how, Kind::Features, (capacity, others), rows);
        let chosen = choose(how.placement, Tier::Host, &pages.chunks, &rows.chunks, capacity);
        let pages = pages.chosen(&chosen.topology).into_iter().map(Residency::Pages);
        Residents { neighbors: pages.collect(), rows: rows.chosen(&chosen.features) }
    }
}

/// The items of one kind (pages or rows) of all types, in one order of chunks.
struct Candidates {
    /// The items of each type in order of hotness.
    orders: Vec<Vec<u32>>,
    /// The type of each chunk.
    types: Vec<usize>,
    chunks: Vec<Chunk>,
}

impl Candidates {
    /// Items of so many bytes each; none of a type where there are no bytes. Those that were not met come
    /// behind the others, as many as `capacity` bytes have room for, where `others` parts of all windows were
    /// not counted.
    fn new<'a>(
        how: &Plan,
        kind: Kind,
        (capacity, others): (u64, u64),
        counts: impl Iterator<Item = (&'a Counts, usize)>,
    ) -> Self {
        let (mut orders, mut all) = (Vec::new(), Vec::new());
        for (of, (counts, bytes)) in counts.enumerate() {
            let unmet = Unmet::of(counts, others);
            let most = capacity.checked_div(bytes as u64);
            let order = most.map_or_else(Vec::new, |most| unmet.order(counts, most as usize));
            let item = |&i: &u32| {
                let saved = |uses| how.granularity.transactions(Tier::Host, uses, bytes as u64);
                let saves = match counts.uses[i as usize] {
                    0 => saved(1) * unmet.expected(counts, i),
                    uses => saved(uses.into()) * PARTS,
                };
                Item { bytes: bytes as u64, saves }
            };
            let chunks = chunks(kind, order.iter().map(item), how.chunk_bytes);
            all.extend(chunks.into_iter().map(|chunk| (of, chunk)));
            orders.push(order);
        }
        // By what is saved a byte, as fractions: the hottest first, whatever their type.
        let worth = |a: &Chunk, b: &Chunk| u128::from(a.saves) * u128::from(b.bytes);
        all.sort_by(|(_, a), (_, b)| worth(b, a).cmp(&worth(a, b)));
        let (types, chunks) = all.into_iter().unzip();
        Self { orders, types, chunks }
    }

    /// The items of the chunks at `places`, by type.
    fn chosen<T: From<u32>>(&self, places: &[usize]) -> Vec<Vec<T>> {
        let mut chosen: Vec<Vec<T>> = self.orders.iter().map(|_| Vec::new()).collect();
        for &chunk in places {
            let of = self.types[chunk];
            let items = &self.orders[of][self.chunks[chunk].items.clone()];
            chosen[of].extend(items.iter().map(|&item| T::from(item)));
        }
        chosen
    }
}

/// What is expected of items that were not met: the parts of a use, by class. It is one at least, so that
/// memory is filled: too few may have been met to tell of all classes.
struct Unmet([u64; CLASSES]);

impl Unmet {
    fn of(counts: &Counts, others: u64) -> Self {
        let classes = (0..counts.uses.len() as u32).map(|item| counts.class(item));
        let counted = Classes::counted(classes, counts.uses.iter().map(|&uses| uses.into()));
        Self(std::array::from_fn(|class| counted.expected(class, others).max(1)))
    }

    fn expected(&self, counts: &Counts, item: u32) -> u64 {
        self.0[usize::from(counts.class(item))]
    }

    /// The items in order of hotness, others than those that were met while there are not `most`.
    fn order(&self, counts: &Counts, most: usize) -> Vec<u32> {
        hottest_first(&counts.uses, most, |item| self.expected(counts, item))
    }
}

/// A plan of how a tier is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The placement: which kind of item comes first.
    pub placement: Placement,
    /// Z: bytes of a chunk, whose items are kept or not kept together.
    pub chunk_bytes: u64,
    /// Bytes of a line and of a read.
    pub granularity: Granularity,
}

impl Default for Plan {
    /// The plan with chunks of 64 KiB. The paper's 100 MB suit tiers of tens of gigabytes.
    fn default() -> Self {
        let (placement, granularity) = (Placement::default(), Granularity::default());
        Self { placement, chunk_bytes: 64 << 10, granularity }
    }
}
