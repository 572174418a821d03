//! The files of a graph: which there are, from which buckets each is made, and the manifest.

use std::collections::BTreeMap;
use std::sync::Arc;

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::directory::Building;
use tiergraph_format::flat::{Element, FlatWriter};
use tiergraph_format::manifest::{
    Checksum, Codec, FORMAT_VERSION, FileEntry, FileKind, LayoutName, Manifest, Order, Provenance,
    TilesParameters, Weights,
};
use tiergraph_format::raw::{IdWidth, RawWriter};
use tiergraph_format::rows::RowsWriter;
use tiergraph_format::tiles::{TileOptions, TilesWriter};
use tiergraph_mem::Budget;

use super::array::Array;
use super::family::{Family, Record, RowOf};
use super::ids::IdMap;
use super::input::Input;
use super::lists::{ListsEncode, ListsSink, ListsWriter};
use super::options::{BuildOptions, Duplicates, Purpose};
use super::order::inverse;
use super::partition::{self, partition};
use super::plan::{self, SortPlan};
use super::progress::Ticker;
use super::report::Stages;
use super::sort::Stage;
use super::strips;
use super::temporary::TemporaryFile;
use super::tiles::{TilesEncode, TilesSink, group_columns};
use super::vertices::Vertices;

/// The most arcs of a cell of rows: it and the sort's scratch fit a core's L2 cache.
const CELL_ARCS: u64 = 1 << 16;

/// A file of adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Tiles,
    OutRows,
    InRows,
    OutRaw,
    InRaw,
}

impl Output {
    fn name(self) -> &'static str {
        match self {
            Self::Tiles => "tiles.blocks",
            Self::OutRows => "out.rows",
            Self::InRows => "in.rows",
            Self::OutRaw => "out.blocks",
            Self::InRaw => "in.blocks",
        }
    }

    fn row_of(self, undirected: bool) -> RowOf {
        match (self, undirected) {
            (Self::Tiles, true) => RowOf::Larger,
            (_, true) => RowOf::Both,
            (Self::Tiles | Self::InRows | Self::InRaw, false) => RowOf::Target,
            (Self::OutRows | Self::OutRaw, false) => RowOf::Source,
        }
    }

    fn is_weighted(self) -> bool {
        !matches!(self, Self::OutRows | Self::InRows)
    }

    fn all(options: &BuildOptions, undirected: bool) -> Vec<Self> {
        let both: &[Self] = match (options.codec, options.purpose) {
            (Codec::Raw, _) => &[Self::OutRaw, Self::InRaw],
            (_, Purpose::Analytics) => &[Self::Tiles, Self::OutRows],
            (_, Purpose::Training) => &[Self::OutRows, Self::InRows],
            (_, Purpose::Both) => &[Self::Tiles, Self::OutRows, Self::InRows],
        };
        let has = |o: &Self| !undirected || !matches!(o, Self::InRows | Self::InRaw);
        both.iter().copied().filter(has).collect()
    }
}

/// A graph whose vertices are known.
pub(super) struct Graph<'a> {
    building: Building,
    options: &'a BuildOptions,
    budget: &'a Budget,
    undirected: bool,
    vertices: usize,
    weights: Weights,
    outputs: Vec<Output>,
    tile_options: TileOptions,
    ids: IdWidth,
    files: BTreeMap<String, FileEntry>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(
        building: Building,
        options: &'a BuildOptions,
        budget: &'a Budget,
        undirected: bool,
        vertices: usize,
        weights: Weights,
    ) -> Result<Self> {
        let min_gap = u32::from(options.duplicates == Duplicates::Remove);
        let tile_options = TileOptions {
            columns_log2: options.columns_log2.unwrap_or(if undirected { 13 } else { 16 }),
            min_gap,
            weights,
            block_bytes: options.block_bytes as usize,
        };
        let ids = if options.id_width == Some(8) { IdWidth::Eight } else { IdWidth::Four };
        Ok(Self {
            building,
            options,
            budget,
            undirected,
            vertices,
            weights,
            outputs: Output::all(options, undirected),
            tile_options,
            ids,
            files: BTreeMap::new(),
        })
    }

    fn flat<T: Element>(&mut self, name: &str, values: &[T]) -> Result<()> {
        let mut writer = FlatWriter::create(&self.building.flat(name))?;
        writer.extend(values)?;
        self.files.insert(name.into(), writer.finish()?);
        Ok(())
    }

    /// Writes `user.ids` and `order.ids`, where there are any.
    pub(super) fn write_ids(
        &mut self,
        ids: Option<&IdMap>,
        ranks: Option<&Array<u32>>,
    ) -> Result<()> {
        if let Some(ids) = ids {
            self.flat("user.ids", ids.ids())?;
        }
        let Some(ranks) = ranks else { return Ok(()) };
        let order = inverse(ranks, self.budget)?;
        if self.ids == IdWidth::Four {
            return self.flat("order.ids", &order);
        }
        let mut writer = FlatWriter::create(&self.building.flat("order.ids"))?;
        for part in order.chunks(1 << 12) {
            writer.extend(&part.iter().map(|&id| u64::from(id)).collect::<Vec<_>>())?;
        }
        self.files.insert("order.ids".into(), writer.finish()?);
        Ok(())
    }

    /// Divides rows into strips and buckets.
    pub(super) fn plan(
        self,
        out: Array<u32>,
        into: Option<Array<u32>>,
        edges: u64,
    ) -> Result<Planned<'a>> {
        let arcs = if self.undirected { 2 * edges } else { edges };
        let plan = plan::sort(self.options, self.budget, arcs, self.weights)?;
        let mut families: Vec<Family> = Vec::new();
        for &output in &self.outputs {
            let row_of = output.row_of(self.undirected);
            if families.iter().all(|family| family.row_of != row_of) {
                families.push(self.family(output, &plan, &out, into.as_ref())?);
            }
        }
        let buckets = families.iter().map(|f| f.buckets.len()).sum();
        let (bytes, count) =
            partition::buffers(buckets, self.options.threads, self.budget.left() / 4);
        families.iter_mut().for_each(|family| family.chunk_bytes = bytes);
        let write_bytes = (bytes * count) as u64;
        Ok(Planned { graph: self, out, into, plan, families, write_bytes })
    }

    fn family(
        &self,
        first: Output,
        plan: &SortPlan,
        out: &Array<u32>,
        into: Option<&Array<u32>>,
    ) -> Result<Family> {
        let row_of = first.row_of(self.undirected);
        let same = |o: &&Output| o.row_of(self.undirected) == row_of;
        let (mut weights, mut strip_arcs) = (Weights::None, plan.bucket_arcs / 16);
        for output in self.outputs.iter().filter(same) {
            if output.is_weighted() {
                weights = self.weights;
            }
            if *output == Output::Tiles {
                strip_arcs = plan.strip_arcs;
            }
        }
        let arcs_of = |row: usize| arcs_of(row_of, out, into, row);
        let strips = strips::cut(self.vertices, strip_arcs, arcs_of);
        let buckets = strips::join(&strips, plan.bucket_arcs, arcs_of);
        let rows = buckets.iter().map(|b| b.rows.end - b.rows.start).max().unwrap_or(0);
        let name = format!("buckets-{}", first.name());
        Ok(Family {
            row_of,
            record: Record::new(rows, self.vertices as u32, weights),
            strips,
            buckets,
            chunk_bytes: 0,
            file: TemporaryFile::create(&self.building.flat(&name))?,
            chunks: Vec::new(),
        })
    }
}

/// Arcs of a row before duplicates are removed; about, where edges are stored once.
fn arcs_of(row_of: RowOf, out: &[u32], into: Option<&Array<u32>>, row: usize) -> u64 {
    match row_of {
        RowOf::Source | RowOf::Both => out[row].into(),
        RowOf::Target => into.map_or(0, |into| into[row]).into(),
        // Columns are at most the row, and a hub's neighbours are mostly larger than it.
        RowOf::Larger => u64::from(out[row]).min(row as u64 + 1),
    }
}

/// A graph whose buckets are known.
pub(super) struct Planned<'a> {
    graph: Graph<'a>,
    out: Array<u32>,
    into: Option<Array<u32>>,
    plan: SortPlan,
    families: Vec<Family>,
    write_bytes: u64,
}

impl<'a> Planned<'a> {
    /// Fills the buckets.
    pub(super) fn partition(
        &mut self,
        input: &mut Input<'_>,
        vertices: &Vertices<'_>,
        ranks: Option<&Array<u32>>,
        ticker: &mut Ticker<'_>,
        cancel: &Cancel,
    ) -> Result<()> {
        let _held = self.graph.budget.reserve(self.write_bytes, "the write buffers")?;
        let threads = self.graph.options.threads;
        partition(input, vertices, ranks, &mut self.families, threads, ticker, cancel)
    }

    /// Writes all files of adjacency and the degrees.
    pub(super) fn encode(
        mut self,
        stages: &mut Stages,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Encoded<'a>> {
        let _held = self.graph.budget.reserve(self.plan.bytes, "the arcs being sorted")?;
        let mut families: Vec<Arc<Family>> =
            std::mem::take(&mut self.families).into_iter().map(Arc::new).collect();
        let mut totals = (0, 0);
        let outputs = self.graph.outputs.clone();
        for (i, &output) in outputs.iter().enumerate() {
            let row_of = output.row_of(self.graph.undirected);
            let Some(family) = families.iter().find(|f| f.row_of == row_of) else { continue };
            let total = (0..family.buckets.len()).map(|b| family.records(b)).sum();
            let ticker = Ticker::new(progress, output.name(), "arcs", total);
            let ticker = std::sync::Mutex::new(ticker);
            let done = |arcs| {
                if let Ok(mut ticker) = ticker.lock() {
                    ticker.add(arcs);
                }
            };
            match output {
                Output::Tiles => self.tiles(family, &done, cancel)?,
                list => {
                    let counted = self.lists(list, family, &done, cancel)?;
                    if matches!(list, Output::OutRows | Output::OutRaw) {
                        totals = counted;
                    }
                }
            }
            // The disk space of buckets that no other file is made from.
            let undirected = self.graph.undirected;
            families.retain(|f| outputs[i + 1..].iter().any(|o| o.row_of(undirected) == f.row_of));
            stages.end(output.name());
        }
        self.graph.flat("out.degrees", &self.out)?;
        if let Some(into) = &self.into {
            self.graph.flat("in.degrees", into)?;
        }
        let (arcs, loops) = totals;
        let edges = if self.graph.undirected { (arcs + loops) / 2 } else { arcs };
        let counts = Written { edges, arcs, strip_arcs: self.plan.strip_arcs };
        Ok(Encoded { graph: self.graph, counts })
    }

    fn removes_duplicates(&self) -> bool {
        self.graph.options.duplicates == Duplicates::Remove
    }

    fn stage<'s>(
        &'s self,
        family: &'s Arc<Family>,
        weighted: bool,
        done: &'s (dyn Fn(u64) + Sync),
        cancel: &'s Cancel,
    ) -> Stage<'s> {
        Stage {
            family,
            capacity: self.plan.capacity,
            page_keys: (self.plan.bucket_arcs / 256).clamp(64, 4096) as usize,
            weighted,
            ahead: (self.plan.capacity as usize * 4 / family.chunk_bytes.max(1)).clamp(1, 16),
            budget: self.graph.budget,
            cancel,
            done,
        }
    }

    fn tiles(
        &mut self,
        family: &Arc<Family>,
        done: &(dyn Fn(u64) + Sync),
        cancel: &Cancel,
    ) -> Result<()> {
        let (graph, keep) = (&self.graph, !self.removes_duplicates());
        // Columns are the other ends.
        let arcs_of = |column: usize| u64::from(self.out[column]);
        let k = graph.tile_options.columns_log2;
        let columns = Arc::new(group_columns(graph.vertices, k, arcs_of));
        let encoder = |_| {
            let columns = Arc::clone(&columns);
            TilesEncode::new(Arc::clone(family), columns, graph.tile_options, keep)
        };
        let encoders = (0..self.plan.workers).map(encoder).collect();
        let block_bytes = graph.options.block_bytes;
        let file = graph.building.sink(Output::Tiles.name(), FileKind::Blocks, block_bytes)?;
        let counted = !keep && !graph.undirected;
        let degrees = counted.then(|| self.zeros()).transpose()?;
        let sink = TilesSink::new(TilesWriter::new(file, graph.tile_options), degrees);
        let stage = self.stage(family, graph.weights != Weights::None, done, cancel);
        let (file, index, degrees) = stage.run(encoders, sink)?.finish()?;
        let mut writer = FlatWriter::create(&self.graph.building.flat("tiles.index"))?;
        for entry in &index {
            let bytes = entry.to_bytes();
            let (words, _) = bytes.as_chunks::<8>();
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            writer.extend(&words)?;
        }
        self.graph.files.insert("tiles.index".into(), writer.finish()?);
        self.graph.files.insert(Output::Tiles.name().into(), file.finish()?);
        if degrees.is_some() {
            self.into = degrees;
        }
        Ok(())
    }

    fn zeros(&self) -> Result<Array<u32>> {
        Array::zeroed(self.graph.vertices, self.graph.budget, "the degrees")
    }

    /// Writes rows or raw blocks; the number of arcs, and of self-loops among them.
    fn lists(
        &mut self,
        output: Output,
        family: &Arc<Family>,
        done: &(dyn Fn(u64) + Sync),
        cancel: &Cancel,
    ) -> Result<(u64, u64)> {
        let (graph, keep) = (&self.graph, !self.removes_duplicates());
        let row_of = family.row_of;
        let arcs_of = |row: usize| arcs_of(row_of, &self.out, self.into.as_ref(), row);
        let cell_arcs = (self.plan.bucket_arcs / 16).clamp(1 << 10, CELL_ARCS);
        let encoder = |_| ListsEncode::new(Arc::clone(family), keep, cell_arcs, &arcs_of);
        let encoders = (0..self.plan.workers).map(encoder).collect();
        let (name, size) = (output.name(), graph.options.block_bytes);
        let raw = matches!(output, Output::OutRaw | Output::InRaw);
        let kind = if raw { FileKind::Blocks } else { FileKind::Rows };
        let file = graph.building.sink(name, kind, size)?;
        let writer = match raw {
            true => ListsWriter::Raw(RawWriter::new(file, size, graph.ids, graph.weights)),
            false => ListsWriter::Rows(RowsWriter::new(file, size)),
        };
        let degrees = if keep { None } else { Some(self.zeros()?) };
        let weighted = raw && graph.weights != Weights::None;
        let stage = self.stage(family, weighted, done, cancel);
        let sink = stage.run(encoders, ListsSink::new(writer, degrees))?;
        let file = match sink.writer {
            ListsWriter::Raw(writer) => writer.finish()?,
            ListsWriter::Rows(writer) => {
                let (file, index, _) = writer.finish()?;
                self.graph.flat(&format!("{name}.index"), &index.to_words())?;
                file
            }
        };
        self.graph.files.insert(name.into(), file.finish()?);
        if let Some(degrees) = sink.degrees {
            match row_of {
                RowOf::Target => self.into = Some(degrees),
                _ => self.out = degrees,
            }
        }
        Ok((sink.arcs, sink.loops))
    }
}

/// What was written.
pub(super) struct Written {
    pub(super) edges: u64,
    pub(super) arcs: u64,
    pub(super) strip_arcs: u64,
}

/// A graph that lacks only its manifest.
pub(super) struct Encoded<'a> {
    graph: Graph<'a>,
    pub(super) counts: Written,
}

impl Encoded<'_> {
    /// Writes the manifest and puts the graph in its place.
    pub(super) fn commit(self, source: String, order: Order) -> Result<Manifest> {
        let graph = self.graph;
        let mut layouts = Vec::new();
        for output in &graph.outputs {
            let layout = match output {
                Output::Tiles => LayoutName::Tiles,
                Output::OutRows | Output::InRows => LayoutName::Rows,
                Output::OutRaw | Output::InRaw => LayoutName::Raw,
            };
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        let options =
            graph.options.provenance().into_iter().map(|(name, value)| (name.into(), value));
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            vertices: graph.vertices as u64,
            edges: self.counts.edges,
            arcs: self.counts.arcs,
            directed: !graph.undirected,
            weighted: graph.weights,
            id_width: graph.ids.bytes() as u8,
            block_bytes: graph.options.block_bytes,
            codec: graph.options.codec,
            tiles: layouts.contains(&LayoutName::Tiles).then_some(TilesParameters {
                columns_log2: graph.tile_options.columns_log2,
                strip_arcs: self.counts.strip_arcs,
                stored_once: graph.undirected,
                min_gap: graph.tile_options.min_gap,
            }),
            layouts,
            stripes: Vec::new(),
            checksum: Checksum::Crc32c,
            order,
            build_id: String::new(),
            provenance: Provenance {
                source,
                options: options.collect(),
                tiergraph: env!("CARGO_PKG_VERSION").into(),
            },
            files: graph.files,
        };
        Ok(graph.building.commit(manifest)?.manifest().clone())
    }
}
