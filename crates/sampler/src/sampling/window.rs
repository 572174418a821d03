//! Sampling a window of batches together, from pages that are read for them.
//!
//! All batches of a window take a hop together. The pages that their nodes need and that are not
//! in memory are put in order, each is read once, and whatever any batch wants from a page is looked
//! up while it is there (AGNES reads blocks for a window the same way). Nodes on kept pages are
//! looked up while reads are in flight. Pages of all hops but the last may be wanted again by the
//! next and are kept until the window ends, as far as `retain_bytes` goes. Weights and times that
//! are not in memory are read the same way, before arcs are chosen (module `paged`).

use std::cell::RefCell;

use tiergraph_core::Result;
use tiergraph_graph::{PageReader, PagesRead};
use tiergraph_mem::PAGE_BYTES;

use crate::gathering::edges::EdgeValues;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::paged::{Paged, PagedReads};
use crate::sampling::philox::EpochKey;
use crate::sampling::retained::Retained;
use crate::sampling::sampler::{Sampler, TypeHop};
use crate::sampling::steps::{Taken, resolve};

/// Nodes that are looked up between two polls.
const PIECE: usize = 32;

/// Counts of the pages that a window's sampling read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleReads {
    /// Reads of neighbours.
    pub read: PagesRead,
    /// Reads of weights and times.
    pub values: PagesRead,
    /// Different pages among both: all, unless pages could not be kept to the window's end.
    pub distinct_pages: u64,
    /// Bytes of the pages in memory that nodes were looked up on.
    pub bytes_host: u64,
}

/// A request of one node of a batch: some of its arcs are to be looked up on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    page: u64,
    batch: u32,
    /// The first of the node's edges among those of this hop; they are as many as have its place
    /// in `col`.
    edge: usize,
}

/// The edges of the hop that is being taken, and the neighbours that they lead to.
struct Hop<'a> {
    topology: &'a Topology,
    /// For each batch, its edges of this hop.
    taken: &'a [Taken<'a>],
    /// For each batch, the neighbours that these edges lead to.
    found: Vec<Vec<u32>>,
    list: Vec<u64>,
}

impl Hop<'_> {
    /// Looks up on `page` the arcs that `request` names.
    fn resolve(&mut self, request: Request, page: &[u8]) -> Result<()> {
        let taken = &self.taken[request.batch as usize];
        let node = taken.col[request.edge];
        let edges = taken.col[request.edge..].iter().take_while(|&&col| col == node).count();
        let edges = request.edge..request.edge + edges;
        let arcs = &taken.e_id[edges.clone()];
        let out = &mut self.found[request.batch as usize][edges];
        self.topology.resolve(page, taken.n_id[node as usize], arcs, out, &mut self.list)
    }
}

/// The neighbours and keys that a window of batches is sampled with.
#[derive(Clone, Copy)]
pub struct WindowSource<'a> {
    /// The neighbours by edge type.
    pub topologies: &'a [Topology],
    /// The epoch's keys by edge type.
    pub keys: &'a [EpochKey],
    /// The most bytes of pages of neighbours that are kept from hop to hop, and as many of values.
    pub retain_bytes: usize,
}

/// Pages that are kept from hop to hop of a window, and what was read so far.
#[derive(Default)]
struct WindowPages {
    /// Pages of neighbours, by edge type.
    neighbors: Vec<Retained>,
    /// Pages of weights and times, by edge type.
    values: Vec<PagedReads>,
    reads: SampleReads,
}

impl WindowPages {
    fn new(edge_types: usize) -> Self {
        let mut this = Self::default();
        this.neighbors.resize_with(edge_types, Retained::default);
        this.values.resize_with(edge_types, PagedReads::default);
        this
    }

    fn into_reads(self) -> SampleReads {
        let mut reads = self.reads;
        reads.distinct_pages = self.neighbors.iter().map(Retained::distinct_pages).sum();
        for values in self.values {
            reads.values += values.read;
            reads.bytes_host += values.bytes_host;
            reads.distinct_pages += values.distinct_pages();
        }
        reads
    }
}

impl Sampler {
    /// Samples the batches of `seeds` into `batches`, one for each, reading what is not in memory
    /// through `reader`. The batches are those that [`sample`](Self::sample) gives.
    ///
    /// # Errors
    /// Those of [`sample`](Self::sample), and errors of reading.
    pub fn sample_window(
        &mut self,
        source: WindowSource<'_>,
        reader: &mut PageReader,
        seeds: &[Seeds<'_>],
        batches: &mut [MiniBatch],
    ) -> Result<SampleReads> {
        let values = || source.topologies.iter().map(|all| EdgeValues::to_choose(all.columns()));
        self.values = seeds.iter().map(|_| values().collect()).collect();
        if source.topologies.iter().all(Topology::samples_in_memory) {
            for (&seeds, batch) in seeds.iter().zip(&mut *batches) {
                self.sample(source.topologies, source.keys, seeds, batch)?;
            }
            return Ok(SampleReads::default());
        }
        for (&seeds, batch) in seeds.iter().zip(&mut *batches) {
            self.begin(source.topologies, seeds, batch)?;
        }
        let mut pages = WindowPages::new(source.topologies.len());
        for hop in 0..self.hops() {
            let found = self.take_hop(source, reader, hop, batches, &mut pages)?;
            self.relabel_hop(batches, &found)?;
        }
        Ok(pages.into_reads())
    }

    /// Chooses the edges of a hop for all batches; returns the neighbours that they lead to, by edge
    /// type, then by batch.
    fn take_hop(
        &mut self,
        source: WindowSource<'_>,
        reader: &mut PageReader,
        hop: usize,
        batches: &mut [MiniBatch],
        pages: &mut WindowPages,
    ) -> Result<Vec<Vec<Vec<u32>>>> {
        let limit = source.limit(hop + 1 < self.hops());
        let mut found = Vec::new();
        for (edge_type, (topology, &key)) in source.topologies.iter().zip(source.keys).enumerate() {
            let of = TypeHop { topology, key, edge_type, hop };
            let firsts: Vec<usize> =
                batches.iter().map(|batch| batch.edges[edge_type].e_id.len()).collect();
            if topology.columns().choose_in_memory() {
                let destination = self.ends(edge_type).destination;
                for batch in &mut *batches {
                    self.choose(of, batch.nodes[destination].frontier(), batch)?;
                }
            } else {
                let stored = Paged { of, reads: &mut pages.values[edge_type], limit: limit.values };
                self.choose_paged(stored, reader, batches)?;
            }
            let edges = batches.iter().zip(firsts).map(|(batch, first)| {
                let edges = first..batch.edges[edge_type].e_id.len();
                batch.taken(edge_type, self.ends(edge_type), edges)
            });
            let taken: Vec<Taken<'_>> = edges.collect();
            found.push(match topology.is_resident() {
                true => {
                    let resolved = taken.iter().map(|&taken| {
                        let mut neighbors = Vec::new();
                        resolve(topology, taken, &mut neighbors, &mut self.list)?;
                        Ok(neighbors)
                    });
                    resolved.collect::<Result<_>>()?
                }
                false => {
                    let retained = &mut pages.neighbors[edge_type];
                    look_up(topology, reader, &taken, retained, limit.neighbors, &mut pages.reads)?
                }
            });
        }
        Ok(found)
    }

    /// Relabels the neighbours that a hop found as places in each batch.
    fn relabel_hop(&mut self, batches: &mut [MiniBatch], found: &[Vec<Vec<u32>>]) -> Result<()> {
        for (number, batch) in batches.iter_mut().enumerate() {
            self.enter(batch)?;
            let frontiers = batch.frontiers();
            for (edge_type, found) in found.iter().enumerate() {
                let first = batch.edges[edge_type].row.len();
                self.relabel(batch, edge_type, &found[number])?;
                batch.edges[edge_type].end_hop(first);
            }
            batch.end_hop(&frontiers);
        }
        Ok(())
    }
}

/// The most bytes of pages that one edge type keeps from a hop to the next ones.
#[derive(Clone, Copy)]
struct Limit {
    neighbors: usize,
    values: usize,
}

impl WindowSource<'_> {
    /// The share of kept pages that each edge type has, if pages `may_come_again`.
    fn limit(&self, may_come_again: bool) -> Limit {
        let share = |reads: &dyn Fn(&Topology) -> bool| {
            let readers = self.topologies.iter().filter(|topology| reads(topology)).count();
            if may_come_again { self.retain_bytes / readers.max(1) } else { 0 }
        };
        Limit {
            neighbors: share(&|topology| !topology.is_resident()),
            values: share(&|topology| !topology.columns().choose_in_memory()),
        }
    }
}

/// Returns, for each batch, the neighbours that the edges of this hop lead to, looked up on pages. Keeps
/// pages that it reads in `retained`, up to `limit` bytes.
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
    let here = |page| topology.resident_page(page).or_else(|| retained.get(page)).is_some();
    let (hits, mut misses): (Vec<Request>, Vec<Request>) =
        requests(topology, taken).partition(|request| here(request.page));
    misses.sort_unstable();
    let mut pages: Vec<u64> = misses.iter().map(|request| request.page).collect();
    pages.dedup();
    reads.bytes_host += (hits.len() * PAGE_BYTES) as u64;
    let mut left = hits.as_slice();
    let hop = RefCell::new(hop);
    let retained = RefCell::new(retained);
    let mut resolve_hits = |most: usize| -> Result<bool> {
        let (now, later) = left.split_at(most.min(left.len()));
        let (mut hop, retained) = (hop.borrow_mut(), retained.borrow());
        for &request in now {
            if let Some(page) =
                topology.resident_page(request.page).or_else(|| retained.get(request.page))
            {
                hop.resolve(request, page)?;
            }
        }
        left = later;
        Ok(!left.is_empty())
    };
    let arrived = |number: u64, page: &[u8]| -> Result<()> {
        topology.check(number, page)?;
        let from = misses.partition_point(|request| request.page < number);
        for &request in misses[from..].iter().take_while(|request| request.page == number) {
            hop.borrow_mut().resolve(request, page)?;
        }
        // `resolve_hits` looks only at pages of earlier hops, which stay where they are.
        retained.borrow_mut().put(number, page, limit);
        Ok(())
    };
    reads.read += reader.read(topology.file(), &pages, || resolve_hits(PIECE), arrived)?;
    resolve_hits(usize::MAX)?;
    Ok(hop.into_inner().found)
}

/// The requests of the edges of all batches: each page once for each node.
fn requests<'a>(
    topology: &'a Topology,
    taken: &'a [Taken<'a>],
) -> impl Iterator<Item = Request> + 'a {
    (0..).zip(taken).flat_map(move |(batch, taken)| {
        let mut edge = 0;
        taken.runs().flat_map(move |run| {
            let arcs = &taken.e_id[edge..edge + run.len()];
            let request = move |page| Request { page, batch, edge };
            let pages = pages_of(topology, taken.vertex(run), arcs).into_iter().map(request);
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
