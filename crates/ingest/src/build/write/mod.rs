//! From buckets to adjacency files: load a bucket, sort it part by part, encode, write.

pub(crate) mod from_tiles;
pub(crate) mod lists;
pub(crate) mod load;
pub(crate) mod runs;
pub(crate) mod sort;
pub(crate) mod sorted;
pub(crate) mod tiles;
pub(crate) mod turns;

use std::sync::{Arc, Mutex};

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::manifest::{FileKind, Weights};
use tiergraph_format::raw::RawWriter;
use tiergraph_format::rows::RowsWriter;
use tiergraph_format::tiles::TilesWriter;
use tiergraph_mem::Reservation;

use crate::build::array::Array;
use crate::build::commit::{Encoded, Written};
use crate::build::graph::Graph;
use crate::build::input::Input;
use crate::build::options::Duplicates;
use crate::build::outputs::{Output, arcs_of};
use crate::build::partition::family::{Family, RowOf};
use crate::build::partition::{ChunkPlan, partition};
use crate::build::plan::SortPlan;
use crate::build::progress::Ticker;
use crate::build::report::Stages;
use crate::build::vertices::Vertices;
use from_tiles::FromTiles;
use from_tiles::segments::Segments;
use lists::{ArcCounts, ListsEncode, ListsSink, ListsWriter};
use sort::Stage;
use tiergraph_io::temporary::PagesFile;
use tiles::{TilesEncode, TilesSink, tile_shares};

/// The most bytes of chunks that a thread reads ahead: those of a bucket come while the one before is sorted.
const AHEAD_BYTES: u64 = 16 << 20;

/// The degrees of all vertices, in both directions where there are two.
pub(crate) struct Degrees {
    pub(crate) out: Array<u32>,
    pub(crate) into: Option<Array<u32>>,
}

/// A graph under construction whose families and buckets are planned.
pub(crate) struct Planned<'a> {
    graph: Graph<'a>,
    degrees: Degrees,
    plan: SortPlan,
    families: Vec<Family>,
    chunks: ChunkPlan,
    /// The reservation for the buckets' chunks, some of which stay in memory.
    chunks_held: Reservation,
    /// The tiles, once they are written.
    segments: Option<Arc<Segments>>,
}

impl<'a> Planned<'a> {
    pub(crate) fn new(
        graph: Graph<'a>,
        degrees: Degrees,
        plan: SortPlan,
        families: Vec<Family>,
        chunks: ChunkPlan,
        chunks_held: Reservation,
    ) -> Self {
        Self { graph, degrees, plan, families, chunks, chunks_held, segments: None }
    }

    /// Fills the buckets of all families in one pass over `input`.
    pub(crate) fn partition(
        &mut self,
        input: &mut Input<'_>,
        vertices: &Vertices<'_>,
        ranks: Option<&Array<u32>>,
        ticker: &mut Ticker<'_>,
        cancel: &Cancel,
    ) -> Result<()> {
        let (plan, threads) = (self.chunks, self.graph.options.threads);
        partition(input, vertices, ranks, &mut self.families, plan, threads, ticker, cancel)?;
        self.chunks_held.shrink_to(plan.kept_bytes());
        Ok(())
    }

    /// Writes all adjacency files and the degrees.
    pub(crate) fn encode(
        mut self,
        stages: &mut Stages,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Encoded<'a>> {
        let held = self.graph.budget.reserve(self.plan.bytes, "the arcs being sorted")?;
        let families: Vec<Arc<Family>> =
            std::mem::take(&mut self.families).into_iter().map(Arc::new).collect();
        let mut totals = ArcCounts::default();
        let outputs = self.graph.outputs.clone();
        let (from_tiles, from_buckets): (Vec<Output>, Vec<Output>) =
            outputs.iter().partition(|output| output.is_from_tiles(&outputs));
        for output in from_buckets {
            let row_of = output.row_of(self.graph.undirected);
            let Some(family) = families.iter().find(|f| f.row_of == row_of) else { continue };
            let counted = self.output(output, family, progress, cancel)?;
            if output != Output::Tiles {
                totals = counted;
            }
            stages.end(output.name());
        }
        drop((families, held));
        self.chunks_held.shrink_to(0);
        for output in from_tiles {
            totals = self.lists_from_tiles(output, progress, cancel)?;
            stages.end(output.name());
        }
        // Rows in one direction have their own degrees, which alone are counted without duplicates.
        if self.graph.outputs != [Output::InRows] {
            self.graph.flat("out.degrees", self.degrees.out)?;
        }
        if let Some(into) = self.degrees.into {
            self.graph.flat("in.degrees", into)?;
        }
        let ArcCounts { arcs, loops, repeats } = totals;
        let edges = if self.graph.undirected { (arcs + loops) / 2 } else { arcs };
        let counts = Written { edges, arcs, strip_arcs: self.plan.strip_arcs, repeats };
        self.graph.flush()?;
        Ok(Encoded { graph: self.graph, counts })
    }

    /// Sorts the arcs of `family` into an adjacency file, and counts them unless it holds tiles.
    fn output(
        &mut self,
        output: Output,
        family: &Arc<Family>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<ArcCounts> {
        let total = (0..family.buckets.len()).map(|b| family.arcs(b)).sum();
        let ticker = Mutex::new(Ticker::new(progress, output.name(), "arcs", total));
        let done = |arcs| {
            if let Ok(mut ticker) = ticker.lock() {
                ticker.add(arcs);
            }
        };
        match output {
            Output::Tiles => self.tiles(family, &done, cancel).map(|()| ArcCounts::default()),
            list => self.lists(list, family, &done, cancel),
        }
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
            duplicates: !self.removes_duplicates(),
            weighted,
            ahead: ((self.plan.capacity * 8).min(AHEAD_BYTES) / family.chunk_bytes.max(1) as u64)
                .max(1) as usize,
            arc_bytes: self.plan.arc_bytes,
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
        let arcs_of = |column: usize| u64::from(self.degrees.out[column]);
        let k = graph.tile_options.columns_log2;
        let shares = tile_shares(graph.vertices, k, arcs_of);
        let counts = !keep && !graph.undirected;
        let encoder = |_| TilesEncode::new(Arc::clone(family), graph.tile_options, counts, &shares);
        let encoders = (0..self.plan.workers).map(encoder).collect();
        let block_bytes = graph.options.block_bytes;
        let file = graph.building.sink(Output::Tiles.name(), FileKind::Blocks, block_bytes)?;
        let degrees = counts.then(|| self.zeros()).transpose()?;
        let sink = TilesSink::new(TilesWriter::new(file, graph.tile_options), degrees);
        let stage = self.stage(family, graph.weights != Weights::None, done, cancel);
        let (file, index, degrees) = stage.run(encoders, sink)?.finish()?;
        let words = index.iter().flat_map(|entry| {
            let bytes = entry.to_bytes();
            let (words, _) = bytes.as_chunks::<8>();
            words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()
        });
        self.graph.flat("tiles.index", words.collect::<Vec<_>>())?;
        let files = file.paths().map(PagesFile::open).collect::<Result<_>>()?;
        let memory = self.graph.budget.limit();
        let segments = Segments::new(files, self.graph.tile_options, index, memory);
        self.segments = Some(Arc::new(segments));
        self.graph.finish(Output::Tiles.name(), file)?;
        if degrees.is_some() {
            self.degrees.into = degrees;
        }
        Ok(())
    }

    fn zeros(&self) -> Result<Array<u32>> {
        Array::zeroed(self.graph.vertices, self.graph.budget, "the degrees")
    }

    /// Writes rows or raw blocks of the arcs of `family`, and counts them.
    fn lists(
        &mut self,
        output: Output,
        family: &Arc<Family>,
        done: &(dyn Fn(u64) + Sync),
        cancel: &Cancel,
    ) -> Result<ArcCounts> {
        let (graph, keep) = (&self.graph, !self.removes_duplicates());
        let row_of = family.row_of;
        let arcs_of =
            |row: usize| arcs_of(row_of, &self.degrees.out, self.degrees.into.as_ref(), row);
        let raw = matches!(output, Output::OutRaw | Output::InRaw);
        let encoder = |_| ListsEncode::new(Arc::clone(family), raw, &arcs_of, keep);
        let encoders = (0..self.plan.workers).map(encoder).collect();
        let weighted = raw && graph.weights != Weights::None;
        let stage = self.stage(family, weighted, done, cancel);
        let sink = stage.run(encoders, self.lists_sink(output)?)?;
        self.finish_lists(output, sink)
    }

    /// Writes rows of the arcs of the tiles, and counts them.
    fn lists_from_tiles(
        &mut self,
        output: Output,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<ArcCounts> {
        let (graph, keep) = (&self.graph, !self.removes_duplicates());
        let Some(segments) = &self.segments else { return Ok(ArcCounts::default()) };
        let row_of = output.row_of(graph.undirected);
        let arcs_of =
            |row: usize| arcs_of(row_of, &self.degrees.out, self.degrees.into.as_ref(), row);
        let total = (0..graph.vertices).map(arcs_of).sum();
        let ticker = Mutex::new(Ticker::new(progress, output.name(), "arcs", total));
        let done = |arcs| {
            if let Ok(mut ticker) = ticker.lock() {
                ticker.add(arcs);
            }
        };
        let sink = self.lists_sink(output)?;
        let job = FromTiles {
            segments,
            vertices: graph.vertices,
            row_of,
            arcs_of: &arcs_of,
            exact: keep,
            cancel,
            done: &done,
        };
        // The index is in memory, too.
        let left = graph.budget.left().saturating_sub(segments.index_bytes());
        let shares = job.shares(left, graph.options.threads);
        let _held = graph.budget.reserve(shares.bytes, "the neighbours of vertices")?;
        let sink = job.run(shares, sink)?;
        self.finish_lists(output, sink)
    }

    /// The file for rows or raw blocks.
    fn lists_sink(&self, output: Output) -> Result<ListsSink> {
        let graph = &self.graph;
        let raw = matches!(output, Output::OutRaw | Output::InRaw);
        let (name, size) = (output.name(), graph.options.block_bytes);
        let kind = if raw { FileKind::Blocks } else { FileKind::Rows };
        let file = graph.building.sink(name, kind, size)?;
        let writer = match raw {
            true => ListsWriter::Raw(RawWriter::new(file, size, graph.ids, graph.weights)),
            false => ListsWriter::Rows(RowsWriter::new(file, size)),
        };
        let degrees = if self.removes_duplicates() { Some(self.zeros()?) } else { None };
        Ok(ListsSink::new(writer, degrees))
    }

    /// Starts to finish the file of rows or raw blocks, and keeps the degrees that were counted.
    fn finish_lists(&mut self, output: Output, sink: ListsSink) -> Result<ArcCounts> {
        let name = output.name();
        let file = match sink.writer {
            ListsWriter::Raw(writer) => writer.finish()?,
            ListsWriter::Rows(writer) => {
                let (file, index, _) = writer.finish()?;
                self.graph.flat(&format!("{name}.index"), index.to_words())?;
                file
            }
        };
        self.graph.finish(name, file)?;
        if let Some(degrees) = sink.degrees {
            match output.row_of(self.graph.undirected) {
                RowOf::Target => self.degrees.into = Some(degrees),
                _ => self.degrees.out = degrees,
            }
        }
        Ok(sink.counts)
    }
}
