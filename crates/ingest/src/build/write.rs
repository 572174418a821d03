//! From buckets to the files of adjacency.

use std::sync::{Arc, Mutex};

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::{FileKind, Weights};
use tiergraph_format::raw::RawWriter;
use tiergraph_format::rows::RowsWriter;
use tiergraph_format::tiles::TilesWriter;

use super::array::Array;
use super::commit::{Encoded, Written};
use super::family::{Family, RowOf};
use super::graph::Graph;
use super::input::Input;
use super::lists::{ListsEncode, ListsSink, ListsWriter};
use super::options::Duplicates;
use super::outputs::{Output, arcs_of};
use super::partition::partition;
use super::plan::SortPlan;
use super::progress::Ticker;
use super::report::Stages;
use super::sort::Stage;
use super::tiles::{TilesEncode, TilesSink, group_columns};
use super::vertices::Vertices;

/// The most arcs of a cell of rows: it and the sort's scratch fit a core's L2 cache.
const CELL_ARCS: u64 = 1 << 16;

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
    /// With the degrees in both directions, as far as there are two.
    pub(super) fn new(
        graph: Graph<'a>,
        (out, into): (Array<u32>, Option<Array<u32>>),
        plan: SortPlan,
        families: Vec<Family>,
        write_bytes: u64,
    ) -> Self {
        Self { graph, out, into, plan, families, write_bytes }
    }

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
            let counted = self.output(output, family, progress, cancel)?;
            if matches!(output, Output::OutRows | Output::OutRaw) {
                totals = counted;
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

    /// Writes a file; the number of arcs, and of self-loops among them, unless it is of tiles.
    fn output(
        &mut self,
        output: Output,
        family: &Arc<Family>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<(u64, u64)> {
        let total = (0..family.buckets.len()).map(|b| family.records(b)).sum();
        let ticker = Mutex::new(Ticker::new(progress, output.name(), "arcs", total));
        let done = |arcs| {
            if let Ok(mut ticker) = ticker.lock() {
                ticker.add(arcs);
            }
        };
        match output {
            Output::Tiles => self.tiles(family, &done, cancel).map(|()| (0, 0)),
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
