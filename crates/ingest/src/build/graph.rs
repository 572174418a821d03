//! A graph under construction whose vertices are known: its files so far, and the division of arcs.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::thread::JoinHandle;

use tiergraph_core::{Error, ErrorKind, Result, threads};
use tiergraph_format::directory::Building;
use tiergraph_format::features::Destination;
use tiergraph_format::flat::{Element, FlatWriter};
use tiergraph_format::manifest::{FileEntry, Weights};
use tiergraph_format::names::{ENDS_FILE, PLACES_FILE, TEXT_FILE};
use tiergraph_format::raw::IdWidth;
use tiergraph_format::sink::FileSink;
use tiergraph_format::tiles::TileOptions;
use tiergraph_mem::Budget;

use crate::Names;

use super::array::Array;
use super::needs::Seen;
use super::options::{BuildOptions, Duplicates};
use super::outputs::{Output, arcs_of};
use super::partition::ChunkPlan;
use super::partition::family::Family;
use super::partition::records::{Record, column_bits};
use super::partition::strips::{self, Bucket};
use super::plan::{self, SortPlan, ToSort};
use super::scratch::Scratch;
use super::vertices::identify::UserIds;
use super::vertices::order::inverse;
use super::write::{Degrees, Planned};

/// A graph under construction whose vertices are known.
pub(super) struct Graph<'a> {
    /// Declared before `building`, so that it is dropped before it.
    finishing: Finishing,
    pub(super) building: Building,
    pub(super) options: &'a BuildOptions,
    pub(super) budget: &'a Budget,
    scratch: &'a Scratch,
    pub(super) undirected: bool,
    pub(super) vertices: usize,
    pub(super) weights: Weights,
    pub(super) outputs: Vec<Output>,
    pub(super) tile_options: TileOptions,
    pub(super) ids: IdWidth,
    pub(super) files: BTreeMap<String, FileEntry>,
}

/// Threads that each write a file, or force one to the device. Dropping this waits for them: a file that
/// appears in a folder that is being removed would stay, and the folder with it.
struct Finishing(Vec<JoinHandle<Result<Entries>>>);

/// The entries of complete files.
type Entries = Vec<(String, FileEntry)>;

impl Drop for Finishing {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<'a> Graph<'a> {
    pub(super) fn new(
        building: Building,
        options: &'a BuildOptions,
        budget: &'a Budget,
        scratch: &'a Scratch,
        undirected: bool,
        vertices: usize,
        weights: Weights,
    ) -> Result<Self> {
        options.attachments.check(vertices)?;
        let min_gap = u32::from(options.duplicates == Duplicates::Remove);
        let tile_options = TileOptions {
            columns_log2: options.columns_log2(undirected, vertices),
            min_gap,
            weights,
            block_bytes: options.block_bytes as usize,
        };
        let ids = if options.id_width == Some(8) { IdWidth::Eight } else { IdWidth::Four };
        Ok(Self {
            finishing: Finishing(Vec::new()),
            building,
            options,
            budget,
            scratch,
            undirected,
            vertices,
            weights,
            outputs: Output::all(options, undirected),
            tile_options,
            ids,
            files: BTreeMap::new(),
        })
    }

    /// Starts to write `values` as the array file `name`, on a thread of its own.
    pub(super) fn flat<T, V>(&mut self, name: &str, values: V) -> Result<()>
    where
        T: Element,
        V: Deref<Target = [T]> + Send + 'static,
    {
        let path = self.building.flat(name);
        self.spawn(name, move || {
            let entry = array(&path, &values);
            drop(values);
            entry
        })
    }

    /// Starts to force the complete file `name` to the device, on a thread of its own.
    pub(super) fn finish(&mut self, name: &str, file: FileSink) -> Result<()> {
        self.spawn(name, move || file.finish())
    }

    /// Runs `body`, which finishes a file, on a thread of its own: nothing else waits for the device.
    fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce() -> Result<FileEntry> + Send + 'static,
    ) -> Result<()> {
        let name = name.to_owned();
        self.spawn_all(move || Ok(vec![(name, body()?)]))
    }

    /// Runs `body`, which finishes files, on a thread of its own.
    fn spawn_all(&mut self, body: impl FnOnce() -> Result<Entries> + Send + 'static) -> Result<()> {
        self.finishing.0.push(threads::start("finish-file", body)?);
        Ok(())
    }

    /// Waits for the threads that finish files, and adds the files' entries.
    pub(super) fn flush(&mut self) -> Result<()> {
        for thread in self.finishing.0.drain(..) {
            let entries = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            self.files.extend(entries);
        }
        Ok(())
    }

    /// Starts to write `user.ids` and `order.ids`, where the graph has them.
    pub(super) fn write_ids(
        &mut self,
        ids: Option<UserIds>,
        ranks: Option<&Array<u32>>,
    ) -> Result<()> {
        match ids {
            None => {}
            Some(UserIds::Mapped(ids)) => self.flat("user.ids", ids)?,
            Some(UserIds::Occurring(ids)) => {
                let path = self.building.flat("user.ids");
                self.spawn("user.ids", move || {
                    let mut writer = FlatWriter::create(&path)?;
                    ids.each_chunk(|chunk| writer.extend(chunk))?;
                    writer.finish()
                })?;
            }
        }
        let Some(ranks) = ranks else { return Ok(()) };
        let order = inverse(ranks, self.budget)?;
        if self.ids == IdWidth::Four {
            return self.flat("order.ids", order);
        }
        let path = self.building.flat("order.ids");
        self.spawn("order.ids", move || {
            let mut writer = FlatWriter::create(&path)?;
            for part in order.chunks(1 << 12) {
                writer.extend(&part.iter().map(|&id| u64::from(id)).collect::<Vec<_>>())?;
            }
            writer.finish()
        })
    }

    /// Starts to write the names of the `vertices`, on a thread of its own, which then lets go of them.
    pub(super) fn write_names(&mut self, names: Option<Names>, vertices: usize) -> Result<()> {
        // An empty graph has no names.
        let Some(names) = names.filter(|names| names.count() + vertices > 0) else { return Ok(()) };
        if names.count() != vertices {
            return Err(Error::new(ErrorKind::Input, "name the vertices")
                .expected(format!("a name for each of {vertices} ids"))
                .got(names.count()));
        }
        let [text, ends, places] = [TEXT_FILE, ENDS_FILE, PLACES_FILE]
            .map(|file| Destination::flat(&mut self.building, file));
        let (text, ends, places) = (text?, ends?, places?);
        self.spawn_all(move || {
            let table = names.lock();
            let mut of_text = FlatWriter::create(&text)?;
            let mut of_ends = FlatWriter::create(&ends)?;
            table.keys().each_part(|text, ends| {
                of_text.extend(text)?;
                of_ends.extend(ends)
            })?;
            let entries = vec![
                (TEXT_FILE.to_owned(), of_text.finish()?),
                (ENDS_FILE.to_owned(), of_ends.finish()?),
                (PLACES_FILE.to_owned(), array(&places, table.places())?),
            ];
            drop(table);
            names.written();
            Ok(entries)
        })
    }

    /// Divides the rows of every family into strips and buckets, and the memory among them.
    pub(super) fn plan(
        mut self,
        out: Array<u32>,
        into: Option<Array<u32>>,
        seen: &Seen,
    ) -> Result<Planned<'a>> {
        if self.budget.left() < self.budget.limit() / 4 {
            // What ids take while they are written is worth more to the arcs.
            self.flush()?;
        }
        let edges = seen.edges;
        let arcs = if self.undirected { 2 * edges } else { edges };
        let slice = arcs.min(seen.slice_arcs(self.undirected));
        let (limit, left) = (self.budget.limit(), self.budget.left());
        let plan =
            plan::sort(self.options, limit, left, ToSort { arcs, slice, weights: self.weights });
        if plan.bytes > left {
            // The error says how much would do.
            drop(self.budget.reserve(plan.bytes, "the arcs being sorted")?);
        }
        let of_families = Output::of_families(&self.outputs, self.undirected);
        let family = |output| self.family(output, &plan, &out, into.as_ref());
        let mut families = of_families.into_iter().map(family).collect::<Result<Vec<_>>>()?;
        let buckets = families.iter().map(|f| f.buckets.len()).sum();
        let bytes = families.iter().map(|family| family.most_bytes(edges)).sum();
        let (threads, kept) = (self.options.threads, plan.kept_bytes);
        let chunks = ChunkPlan::new(buckets, threads, plan.chunks_bytes, kept, bytes);
        families.iter_mut().for_each(|family| family.chunk_bytes = chunks.chunk_bytes);
        let chunks_held = self.budget.reserve(chunks.bytes(), "the chunks of buckets")?;
        Ok(Planned::new(self, Degrees { out, into }, plan, families, chunks, chunks_held))
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
        let columns = self.vertices as u32;
        let record = |b: &Bucket| Record::new(b.rows.end - b.rows.start, columns, weights);
        Ok(Family {
            row_of,
            column_bits: column_bits(columns),
            weights,
            records: buckets.iter().map(record).collect(),
            strips,
            buckets,
            chunk_bytes: 0,
            file: self.scratch.file()?,
            chunks: Vec::new(),
        })
    }
}

/// Writes `values` as an array file.
fn array<T: Element>(path: &Path, values: &[T]) -> Result<FileEntry> {
    let mut writer = FlatWriter::create(path)?;
    writer.extend(values)?;
    writer.finish()
}
