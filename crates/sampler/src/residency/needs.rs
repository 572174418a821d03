//! Bytes that a loader's parts take, counted before the loader is made.

use tiergraph_core::Result;
use tiergraph_graph::{ArcColumn, Features, PageReader};

use crate::options::{LoaderOptions, Resident};
use crate::pipeline::order::Inputs;
use crate::pipeline::types::GraphTypes;
use crate::residency::columns::{Columns, step_bytes};
use crate::residency::extent::Extent;
use crate::residency::hotness::Hotness;
use crate::residency::offsets::Offsets;
use crate::residency::page_map::PageMap;
use crate::residency::room::InFlight;
use crate::residency::rows::RowStore;
use crate::residency::sizes::Sizes;
use crate::residency::topology::Topology;
use crate::sampling::sampler::{SampledTypes, Sampler};

/// The part of the memory, one in so many, that pages may take from hop to hop of a window.
pub(crate) const PAGES_SHARE: u64 = 8;

/// The feature rows of one node type that batches come with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FeatureRows {
    pub(crate) rows: u64,
    /// Bytes of one row: 0 without features.
    pub(crate) row_bytes: usize,
}

impl FeatureRows {
    /// The feature rows of each node type.
    pub(crate) fn of(types: &GraphTypes, options: &LoaderOptions) -> Result<Vec<Self>> {
        let nodes = types.nodes.iter().zip(types.features(options)?);
        let of = nodes.map(|(graph, features)| {
            let row_bytes = features.map_or(0, Features::row_bytes);
            Self { rows: if row_bytes > 0 { graph.manifest().vertices } else { 0 }, row_bytes }
        });
        Ok(of.collect())
    }

    /// Bytes of all rows.
    pub(crate) fn bytes(self) -> u64 {
        self.rows * self.row_bytes as u64
    }

    /// Bytes of the set that says which rows are kept, if none is.
    pub(crate) fn set_bytes(self) -> u64 {
        RowStore::bytes_of(0, self.rows, self.row_bytes)
    }
}

/// Bytes of a loader that keeps nothing that it can read, without its batches: its look-up tables, its
/// threads, and the counts of what batches want.
pub(crate) fn least_bytes(types: &GraphTypes, options: &LoaderOptions) -> Result<u64> {
    let (vertices, threads) = (types.vertices(), options.threads as u64);
    let files = types.neighbors(options.direction);
    let neighbors = types.edges.iter().zip(&types.ends).zip(&files);
    let neighbors = neighbors.map(|((graph, ends), file)| {
        Offsets::bytes_of(vertices[ends.destination] as u64, file.arcs)
            + PageMap::bytes_of(file.pages, graph.manifest().vertices)
    });
    let rows = FeatureRows::of(types, options)?;
    let thread = Sampler::new(SampledTypes::of(types, options), None)?.resident_bytes()
        + PageReader::new(types.any())?.resident_bytes();
    let all_vertices = vertices.iter().sum::<usize>() as u64;
    let least = neighbors.sum::<u64>()
        + rows.iter().map(|rows| rows.set_bytes()).sum::<u64>()
        + Hotness::bytes_of(files.iter().map(|file| file.pages).sum(), all_vertices)
        + threads * thread;
    // Of any memory, one part in so many goes to pages.
    let pages = threads * options.retain_bytes as u64;
    Ok(least + pages.min(least.div_ceil(PAGES_SHARE - 1)))
}

/// Bytes of such a loader (see [`least_bytes`]), with the largest batch that degrees allow.
pub(crate) fn bounded_bytes(
    types: &GraphTypes,
    options: &LoaderOptions,
    inputs: Inputs<'_>,
) -> Result<u64> {
    let direction = options.direction;
    let columns = open_columns(types, options)?;
    let vertices = types.vertices();
    let offsets = types.edges.iter().zip(&types.ends).map(|(graph, ends)| {
        let degrees = graph.degrees().of(direction)?;
        let expanded = degrees.len().min(vertices[ends.destination]);
        Offsets::new(&degrees[..expanded], graph.manifest().arcs)
    });
    let offsets = offsets.collect::<Result<Vec<Offsets>>>()?;
    let offsets: Vec<&Offsets> = offsets.iter().collect();
    let most = Extent::bound(&SampledTypes::of(types, options), &offsets, options, inputs.seeds);
    let sizes = Sizes::of(types, columns.iter(), options)?;
    let batches = InFlight::least().bytes(sizes.batch_bytes(0, &most));
    // Of any memory, one part in so many goes to pages.
    Ok(least_bytes(types, options)? + batches + batches.div_ceil(PAGES_SHARE - 1))
}

/// The columns of each edge type, none of them in memory.
fn open_columns(types: &GraphTypes, options: &LoaderOptions) -> Result<Vec<Columns>> {
    let direction = options.direction;
    let edges = types.edges.iter().zip(&options.sample);
    edges.map(|(graph, sample)| Columns::load(graph, direction, sample, Resident::NONE)).collect()
}

/// Bytes of the columns that batches are made of, by edge type: weights, times, numbers, other values.
pub(crate) fn column_bytes(types: &GraphTypes, options: &LoaderOptions) -> Result<Vec<[u64; 4]>> {
    Ok(open_columns(types, options)?.iter().map(Columns::bytes).collect())
}

/// The columns of each edge type that stay in memory, and the bytes of `capacity` that are left: weights
/// and times first, then numbers and other values, each if they take no more than half of what is left.
pub(crate) fn fit_columns(columns: &[[u64; 4]], capacity: u64) -> (Vec<Resident>, u64) {
    let mut left = capacity;
    let mut fits = |bytes: u64, share: u64| {
        let fits = bytes <= left / share;
        left -= if fits { bytes } else { 0 };
        fits
    };
    let mut resident = vec![Resident::NONE; columns.len()];
    for (resident, [weights, times, ..]) in resident.iter_mut().zip(columns) {
        resident.weights = fits(*weights, 1);
        resident.times = fits(*times, 1);
    }
    for (resident, [.., numbers, values]) in resident.iter_mut().zip(columns) {
        resident.numbers = fits(*numbers, 2);
        resident.values = fits(*values, 2);
    }
    (resident, left)
}

/// Bytes of the columns that stay in memory.
pub(crate) fn bytes_of(columns: &[[u64; 4]], resident: &[Resident]) -> u64 {
    let of = columns.iter().zip(resident).map(|(columns, resident)| {
        let kept = [resident.weights, resident.times, resident.numbers, resident.values];
        columns.iter().zip(kept).map(|(bytes, kept)| if kept { *bytes } else { 0 }).sum::<u64>()
    });
    of.sum()
}

/// Bytes of weights and times that a window holds to choose by where these columns are read and pages
/// up to `retain_bytes` are kept, which edge types share.
pub(crate) fn choosing_bytes<'a>(
    topologies: &'a [Topology],
    retain_bytes: u64,
    columns: impl Fn(&'a Columns) -> [Option<&'a ArcColumn>; 2],
) -> u64 {
    let of = topologies.iter().map(|topology| (columns(topology.columns()), topology.longest));
    let read = of.filter(|(columns, _)| columns.iter().any(Option::is_some));
    let share = retain_bytes / read.clone().count().max(1) as u64;
    read.map(|(columns, longest)| share + step_bytes(columns, longest)).sum()
}

/// Bytes that threads want to choose by weights and times that are read, beyond what a loader with
/// these topologies holds.
pub(crate) fn bytes_to_choose(topologies: &[Topology], options: &LoaderOptions) -> u64 {
    let retain_bytes = options.retain_bytes as u64;
    let all = choosing_bytes(topologies, retain_bytes, Columns::chosen_by);
    let held = choosing_bytes(topologies, retain_bytes, Columns::read_to_choose);
    options.threads as u64 * all.saturating_sub(held)
}
