//! Sampling a window of batches together, from pages that are read for them.
//!
//! All batches of a window take a hop together. The pages that their nodes need and that are not
//! in memory are put in order, each is read once, and whatever any batch wants from a page is looked
//! up while it is there (AGNES reads blocks for a window the same way). Nodes on kept pages are
//! looked up while reads are in flight. Pages of all hops but the last may be wanted again by the
//! next and are kept until the window ends, as far as `retain_bytes` goes. Weights and times that
//! are not in memory are read the same way, before arcs are chosen ([`stored`](crate::sampling::paged)).

use std::cell::RefCell;

use tiergraph_core::Result;
use tiergraph_graph::{PageReader, PagesRead};
use tiergraph_mem::PAGE_BYTES;

use crate::gathering::edges::EdgeValues;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::paged::{HopOf, StoredReads};
use crate::sampling::philox::EpochKey;
use crate::sampling::retained::Retained;
use crate::sampling::sampler::Sampler;
use crate::sampling::steps::Taken;

/// Nodes that are looked up between two polls.
const PIECE: usize = 32;

/// Pages that a window's sampling read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleReads {
    /// What was read of neighbours.
    pub read: PagesRead,
    /// What was read of weights and times.
    pub values: PagesRead,
    /// Different pages among both: all, unless pages could not be kept to the window's end.
    pub distinct_pages: u64,
    /// Bytes of the pages in memory that nodes were looked up on.
    pub bytes_host: u64,
}

/// A node of a batch that wants some of its arcs looked up on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    page: u64,
    batch: u32,
    /// The first of the node's edges among those of this hop; they are as many as have its place
    /// in `col`.
    edge: usize,
}

/// Edges of the hop that is being taken, and whom they lead to.
struct Hop<'a> {
    topology: &'a Topology,
    /// Of each batch, its edges of this hop.
    taken: &'a [Taken<'a>],
    /// Of each batch, the neighbours that they lead to.
    found: Vec<Vec<u32>>,
    list: Vec<u64>,
}

impl Hop<'_> {
    /// Looks up what `wish` wants on `page`.
    fn grant(&mut self, wish: Wish, page: &[u8]) -> Result<()> {
        let taken = &self.taken[wish.batch as usize];
        let node = taken.col[wish.edge];
        let edges = taken.col[wish.edge..].iter().take_while(|&&col| col == node).count();
        let edges = wish.edge..wish.edge + edges;
        let arcs = &taken.e_id[edges.clone()];
        let out = &mut self.found[wish.batch as usize][edges];
        self.topology.resolve(page, taken.n_id[node as usize], arcs, out, &mut self.list)
    }
}

impl Sampler {
    /// Samples the batches of `seeds` into `batches`, one for each, reading what is not in memory
    /// through `reader`. The batches are those that [`sample`](Self::sample) gives.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and what reading gives.
    pub fn sample_window(
        &mut self,
        topology: &Topology,
        reader: &mut PageReader,
        key: EpochKey,
        seeds: &[Seeds<'_>],
        batches: &mut [MiniBatch],
        retain_bytes: usize,
    ) -> Result<SampleReads> {
        let mut reads = SampleReads::default();
        self.values.clear();
        if topology.is_resident() && topology.columns().choose_in_memory() {
            for (&seeds, batch) in seeds.iter().zip(&mut *batches) {
                self.sample(topology, key, seeds, batch)?;
            }
            return Ok(reads);
        }
        for (&seeds, batch) in seeds.iter().zip(&mut *batches) {
            self.begin(topology, seeds, batch)?;
        }
        let (mut retained, mut stored) = (Retained::default(), StoredReads::default());
        let mut values: Vec<EdgeValues> = Vec::new();
        values.resize_with(batches.len(), || EdgeValues::to_choose(topology.columns()));
        let hops = self.options().fanouts.len();
        for hop in 0..hops {
            let firsts: Vec<usize> = batches.iter().map(|batch| batch.e_id.len()).collect();
            let limit = if hop + 1 < hops { retain_bytes } else { 0 };
            if topology.columns().choose_in_memory() {
                for batch in &mut *batches {
                    self.choose(topology, key, hop, batch.frontier(), batch)?;
                }
            } else {
                let of = HopOf { topology, key, hop, retain_bytes: limit };
                self.choose_stored(of, reader, batches, &mut values, &mut stored)?;
            }
            if topology.is_resident() {
                self.resolve_window(topology, batches, &firsts)?;
                continue;
            }
            let taken = batches.iter().zip(&firsts).map(|(b, &first)| b.taken(first..b.e_id.len()));
            let taken: Vec<Taken<'_>> = taken.collect();
            let found = look_up(topology, reader, &taken, &mut retained, limit, &mut reads)?;
            for ((batch, first), neighbors) in batches.iter_mut().zip(firsts).zip(found) {
                self.label_nodes(batch)?;
                let nodes = batch.n_id.len();
                self.relabel_list(batch, first..first + neighbors.len(), &neighbors)?;
                batch.num_sampled_nodes.push(batch.n_id.len() - nodes);
                batch.num_sampled_edges.push(neighbors.len());
            }
        }
        if !topology.columns().choose_in_memory() {
            self.values = values;
        }
        reads.values = stored.read;
        reads.bytes_host += stored.bytes_host;
        reads.distinct_pages = retained.distinct_pages() + stored.distinct_pages();
        Ok(reads)
    }

    /// Finds whom the edges from `firsts` on lead to, in memory, and gives them their places.
    fn resolve_window(
        &mut self,
        topology: &Topology,
        batches: &mut [MiniBatch],
        firsts: &[usize],
    ) -> Result<()> {
        for (batch, &first) in batches.iter_mut().zip(firsts) {
            self.label_nodes(batch)?;
            let (nodes, arcs) = (batch.n_id.len(), first..batch.e_id.len());
            self.resolve(topology, batch, arcs.clone())?;
            batch.num_sampled_edges.push(arcs.len());
            self.relabel(batch, arcs)?;
            batch.num_sampled_nodes.push(batch.n_id.len() - nodes);
        }
        Ok(())
    }
}

/// Finds whom the edges of this hop lead to, for each batch, on pages. Pages that are read go to
/// `retained` up to `limit` bytes.
pub(crate) fn look_up(
    topology: &Topology,
    reader: &mut PageReader,
    taken: &[Taken<'_>],
    retained: &mut Retained,
    limit: usize,
    reads: &mut SampleReads,
) -> Result<Vec<Vec<u32>>> {
    let found = taken.iter().map(|taken| vec![0; taken.e_id.len()]).collect();
    let hop = Hop { topology, taken, found, list: Vec::new() };
    let here = |page| topology.is_kept(page) || retained.get(page).is_some();
    let (hits, mut misses): (Vec<Wish>, Vec<Wish>) =
        wishes(topology, taken).partition(|wish| here(wish.page));
    misses.sort_unstable();
    let mut pages: Vec<u64> = misses.iter().map(|wish| wish.page).collect();
    pages.dedup();
    reads.bytes_host += (hits.len() * PAGE_BYTES) as u64;
    let mut left = hits.as_slice();
    let hop = RefCell::new(hop);
    let retained = RefCell::new(retained);
    let mut grant_hits = |most: usize| -> Result<bool> {
        let (now, later) = left.split_at(most.min(left.len()));
        let (mut hop, retained) = (hop.borrow_mut(), retained.borrow());
        for &wish in now {
            if let Some(page) = topology.kept_page(wish.page).or_else(|| retained.get(wish.page)) {
                hop.grant(wish, page)?;
            }
        }
        left = later;
        Ok(!left.is_empty())
    };
    let arrived = |first: u64, bytes: &[u8]| -> Result<()> {
        for (page, number) in bytes.chunks_exact(PAGE_BYTES).zip(first..) {
            topology.check(number, page)?;
            let from = misses.partition_point(|wish| wish.page < number);
            for &wish in misses[from..].iter().take_while(|wish| wish.page == number) {
                hop.borrow_mut().grant(wish, page)?;
            }
            // `grant_hits` looks only at pages of earlier hops, which stay where they are.
            retained.borrow_mut().put(number, page, limit);
        }
        Ok(())
    };
    reads.read += reader.read(topology.file(), &pages, || grant_hits(PIECE), arrived)?;
    grant_hits(usize::MAX)?;
    Ok(hop.into_inner().found)
}

/// What the edges of all batches want, each page once for each node.
fn wishes<'a>(topology: &'a Topology, taken: &'a [Taken<'a>]) -> impl Iterator<Item = Wish> + 'a {
    (0..).zip(taken).flat_map(move |(batch, taken)| {
        let mut edge = 0;
        taken.runs().flat_map(move |run| {
            let arcs = &taken.e_id[edge..edge + run.len()];
            let wish = move |page| Wish { page, batch, edge };
            let pages = pages_of(topology, taken.vertex(run), arcs).into_iter().map(wish);
            edge += run.len();
            pages
        })
    })
}

/// The pages that hold some of `arcs`, arcs of `vertex`; ascending.
pub(crate) fn pages_of(topology: &Topology, vertex: u32, arcs: &[u64]) -> Vec<u64> {
    let (map, all) = (topology.map(), topology.offsets().arcs(vertex));
    let page = map.page(vertex, 0);
    if !map.goes_on(vertex, page) {
        return vec![page];
    }
    let mut pages: Vec<u64> =
        arcs.iter().map(|arc| map.page(vertex, (arc - all.start) as u32)).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}
