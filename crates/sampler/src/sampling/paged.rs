//! Choosing arcs by weights and times that are read from storage.
//!
//! All batches of a window take a hop together. A choice needs the values of all of a vertex's arcs,
//! so vertices are taken in the order of their arcs, some at a time: a *step*, whose pages lie side
//! by side in memory, so that a vertex's values are a slice. While the pages of a step are read,
//! choices are made from the step before it; the first steps are those whose pages are there
//! already. A page is read once a hop however many vertices and batches request it, and once a window
//! as far as `retain_bytes` goes.
//!
//! A step has at most [`STEP_PAGES`] of a column, or the pages of one vertex where that has more:
//! [`step_bytes`](crate::residency::columns::step_bytes) is what the longest list of arcs makes of it.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_graph::{PageReader, PagesRead};
use tiergraph_mem::PAGE_BYTES;

use crate::gathering::edges::EdgeValues;
use crate::residency::columns::{Column, Columns, STEP_PAGES, negative};
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;
use crate::sampling::retained::Retained;
use crate::sampling::sampler::{Sampler, TypeHop};
use crate::sampling::weighted::Values;

/// Vertices that are chosen for between two polls.
const PIECE: usize = 32;
const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// A request for one node that is expanded: the values of all its arcs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    vertex: u32,
    batch: u32,
    node: u32,
}

/// Pages of one column, in memory.
#[derive(Debug, Default)]
struct Pages {
    /// The numbers of the pages, ascending.
    numbers: Vec<u64>,
    words: Vec<u64>,
}

impl Pages {
    fn at(&self, page: u64) -> Option<Range<usize>> {
        let at = self.numbers.binary_search(&page).ok()? * PAGE_WORDS;
        Some(at..at + PAGE_WORDS)
    }

    fn get(&self, page: u64) -> Option<&[u8]> {
        Some(bytemuck::cast_slice(&self.words[self.at(page)?]))
    }

    fn put(&mut self, page: u64, bytes: &[u8]) {
        if let Some(at) = self.at(page) {
            bytemuck::cast_slice_mut(&mut self.words[at]).copy_from_slice(bytes);
        }
    }

    /// The values of `arcs`, whose pages are all here.
    fn values<T: bytemuck::Pod>(&self, arcs: &Range<u64>) -> &[T] {
        let per_page = (PAGE_BYTES / size_of::<T>()) as u64;
        let first = self.numbers.partition_point(|&page| page < arcs.start / per_page) as u64;
        let begin = (first * per_page + arcs.start % per_page) as usize;
        &bytemuck::cast_slice(&self.words)[begin..begin + (arcs.end - arcs.start) as usize]
    }
}

/// A step: nodes that are chosen for together, and their pages of weights and of times.
#[derive(Debug, Default)]
struct Step<'a> {
    requests: &'a [Request],
    pages: [Pages; 2],
}

/// The arcs that a hop chose, in the order of its steps.
#[derive(Debug, Default)]
struct Chosen {
    arcs: Vec<u64>,
    values: EdgeValues,
    /// For each batch's frontier, the range of each node's arcs.
    places: Vec<Vec<Range<usize>>>,
}

/// Counts of the pages that choosing reads, and pages kept until the window ends.
#[derive(Debug, Default)]
pub(crate) struct PagedReads {
    pub(crate) read: PagesRead,
    pub(crate) bytes_host: u64,
    retained: [Retained; 2],
}

impl PagedReads {
    /// The number of different pages that were read.
    pub(crate) fn distinct_pages(&self) -> u64 {
        self.retained.iter().map(Retained::distinct_pages).sum()
    }
}

/// The parameters of choosing arcs for a hop along one edge type from pages.
pub(crate) struct Paged<'a> {
    pub(crate) of: TypeHop<'a>,
    pub(crate) reads: &'a mut PagedReads,
    /// The most bytes of pages that are kept for further hops.
    pub(crate) limit: usize,
}

impl Sampler {
    /// Chooses arcs of the frontiers of all `batches` and appends them, and their weights and times
    /// to the sampler's values.
    pub(crate) fn choose_paged(
        &mut self,
        paged: Paged<'_>,
        reader: &mut PageReader,
        batches: &mut [MiniBatch],
    ) -> Result<()> {
        let Paged { of, reads, limit } = paged;
        let TypeHop { topology, edge_type, .. } = of;
        let columns = topology.columns();
        let destination = self.ends(edge_type).destination;
        let kept = |request: &Request| is_retained(topology, reads, request.vertex);
        let (hits, misses): (Vec<Request>, Vec<Request>) =
            requests(topology, batches, destination).partition(kept);
        let frontiers = batches.iter().map(|batch| batch.nodes[destination].frontier().len());
        let mut chosen = Chosen::new(columns, frontiers);
        let mut before = Step::default();
        let all = [hits, misses].map(|mut requests| {
            requests.sort_unstable();
            requests
        });
        for requests in all.iter().flat_map(|requests| steps(topology, requests)) {
            let mut next = Step::default();
            let missing = next.plan(topology, requests, &before, reads);
            let mut left = before.requests;
            let mut choose = |most: usize| -> Result<bool> {
                let (now, later) = left.split_at(most.min(left.len()));
                for &request in now {
                    self.choose_from(of, batches, request, &before, &mut chosen)?;
                }
                left = later;
                Ok(!left.is_empty())
            };
            let parts = next.pages.iter_mut().zip(&mut reads.retained).zip(&missing);
            for (column, ((pages, retained), missing)) in
                columns.read_to_choose().into_iter().zip(parts)
            {
                let Some(column) = column else { continue };
                let visit = |number: u64, page: &[u8]| {
                    column.check_page(number, page)?;
                    pages.put(number, page);
                    retained.put(number, page, limit / 2);
                    Ok(())
                };
                reads.read += reader.read(column.file(), missing, || choose(PIECE), visit)?;
            }
            choose(usize::MAX)?;
            before = next;
        }
        for &request in before.requests {
            self.choose_from(of, batches, request, &before, &mut chosen)?;
        }
        chosen.append_to(batches, edge_type, destination, &mut self.values);
        Ok(())
    }

    fn choose_from(
        &mut self,
        of: TypeHop<'_>,
        batches: &[MiniBatch],
        request: Request,
        step: &Step<'_>,
        chosen: &mut Chosen,
    ) -> Result<()> {
        let (batch, node) = (&batches[request.batch as usize], request.node as usize);
        let TypeHop { topology, edge_type, .. } = of;
        let columns = topology.columns();
        let arcs = topology.offsets().arcs(request.vertex);
        let [weights, times] = &step.pages;
        let values = Values {
            weights: columns.weights.as_ref().map(|column| of_arcs(column, weights, &arcs)),
            times: columns.times.as_ref().map(|column| of_arcs(column, times, &arcs)),
            strategy: columns.strategy,
        };
        self.check_weights(edge_type, &values, request.vertex)?;
        let first = chosen.arcs.len();
        self.choose_one(of, batch, node, &values, &mut chosen.arcs)?;
        let at = chosen.arcs[first..].iter().map(|arc| (arc - arcs.start) as usize);
        if let (Some(to), Some(from)) = (&mut chosen.values.weights, values.weights) {
            to.extend(at.clone().map(|at| from[at]));
        }
        if let (Some(to), Some(from)) = (&mut chosen.values.times, values.times) {
            to.extend(at.map(|at| from[at]));
        }
        let frontier = batch.nodes[self.ends(edge_type).destination].frontier().start;
        chosen.places[request.batch as usize][node - frontier] = first..chosen.arcs.len();
        Ok(())
    }

    /// Refuses weights below 0, as loading the column would.
    fn check_weights(&self, edge_type: usize, values: &Values<'_>, vertex: u32) -> Result<()> {
        let weights = values.weights.unwrap_or_default();
        match weights.iter().find(|&&weight| weight < 0.0) {
            None => Ok(()),
            Some(&weight) => {
                let name = self.options(edge_type).weights.as_deref().unwrap_or_default();
                let of =
                    format!("{weight} of an edge of vertex {vertex} (as the graph numbers it)");
                Err(negative(name, weight).got(of))
            }
        }
    }
}

/// A column's values of `arcs`: from memory, or from `pages`.
fn of_arcs<'a, T: bytemuck::Pod>(
    column: &'a Column<T>,
    pages: &'a Pages,
    arcs: &Range<u64>,
) -> &'a [T] {
    match column.resident() {
        Some(all) => &all[arcs.start as usize..arcs.end as usize],
        None => pages.values(arcs),
    }
}

/// The nodes of a type that the last hop found and that have arcs.
fn requests<'a>(
    topology: &'a Topology,
    batches: &'a [MiniBatch],
    destination: usize,
) -> impl Iterator<Item = Request> + 'a {
    (0..).zip(batches).flat_map(move |(number, batch)| {
        let nodes = &batch.nodes[destination];
        let request = move |node: usize| Request {
            vertex: nodes.n_id[node],
            batch: number,
            node: node as u32,
        };
        let has_arcs = |request: &Request| !topology.offsets().arcs(request.vertex).is_empty();
        nodes.frontier().map(request).filter(has_arcs)
    })
}

/// Whether all pages of a vertex's values were kept by an earlier hop.
fn is_retained(topology: &Topology, reads: &PagedReads, vertex: u32) -> bool {
    let arcs = topology.offsets().arcs(vertex);
    let columns = topology.columns().read_to_choose().into_iter().zip(&reads.retained);
    columns
        .filter_map(|(column, retained)| Some((column?, retained)))
        .all(|(column, kept)| column.pages(arcs.clone()).all(|page| kept.get(page).is_some()))
}

/// Cuts `requests`, which are in the order of vertices, into steps.
fn steps<'a>(
    topology: &'a Topology,
    requests: &'a [Request],
) -> impl Iterator<Item = &'a [Request]> {
    let columns = topology.columns().read_to_choose();
    let mut rest = requests;
    std::iter::from_fn(move || {
        let first = rest.first()?.vertex;
        let mut pages = [0u64; 2];
        let mut ends = [0u64; 2];
        let mut fits = |request: &Request| {
            let arcs = topology.offsets().arcs(request.vertex);
            for ((column, pages), end) in columns.iter().zip(&mut pages).zip(&mut ends) {
                let Some(column) = column else { continue };
                let here = column.pages(arcs.clone());
                *pages += here.end - here.start.max(*end).min(here.end);
                *end = here.end;
            }
            request.vertex == first || pages.iter().all(|&pages| pages <= STEP_PAGES)
        };
        let count = rest.iter().take_while(|request| fits(request)).count();
        let (now, later) = rest.split_at(count);
        rest = later;
        Some(now)
    })
}

impl<'a> Step<'a> {
    /// Makes room for the pages that `requests` need, and takes those that are in memory: kept ones,
    /// and those that the step before ends with. The others are returned, of weights and of times.
    fn plan(
        &mut self,
        topology: &Topology,
        requests: &'a [Request],
        before: &Step<'_>,
        reads: &mut PagedReads,
    ) -> [Vec<u64>; 2] {
        self.requests = requests;
        let columns = topology.columns().read_to_choose();
        std::array::from_fn(|i| {
            let Some(column) = columns[i] else { return Vec::new() };
            let pages = &mut self.pages[i];
            let of = |request: &Request| column.pages(topology.offsets().arcs(request.vertex));
            let vertices = requests.chunk_by(|a, b| a.vertex == b.vertex).map(|run| &run[0]);
            // Where a vertex's values end, the next one's may begin.
            pages.numbers.extend(vertices.flat_map(of));
            pages.numbers.dedup();
            pages.words.resize(pages.numbers.len() * PAGE_WORDS, 0);
            let mut missing = pages.numbers.clone();
            missing.retain(|&page| {
                match reads.retained[i].get(page).or_else(|| before.pages[i].get(page)) {
                    None => true,
                    Some(bytes) => {
                        pages.put(page, bytes);
                        reads.bytes_host += PAGE_BYTES as u64;
                        false
                    }
                }
            });
            missing
        })
    }
}

impl Chosen {
    /// Empty choices for frontiers of these lengths.
    fn new(columns: &Columns, frontiers: impl Iterator<Item = usize>) -> Self {
        let places = frontiers.map(|nodes| vec![0..0; nodes]).collect();
        Self { arcs: Vec::new(), values: EdgeValues::to_choose(columns), places }
    }

    /// Appends the chosen arcs to the batches, in the order of the nodes.
    fn append_to(
        &self,
        batches: &mut [MiniBatch],
        edge_type: usize,
        destination: usize,
        values: &mut [Vec<EdgeValues>],
    ) {
        for ((batch, places), values) in batches.iter_mut().zip(&self.places).zip(values) {
            let edges = &mut batch.edges[edge_type];
            for (node, place) in batch.nodes[destination].frontier().zip(places) {
                edges.e_id.extend_from_slice(&self.arcs[place.clone()]);
                edges.col.resize(edges.e_id.len(), node as u32);
                values[edge_type].extend(&self.values, place);
            }
        }
    }
}
