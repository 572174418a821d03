//! WebGraph's BVGraph, as LAW publishes the large web and social graphs.
//!
//! P. Boldi and S. Vigna, "The WebGraph framework I: compression techniques" (2004). A vertex's
//! successors are its outdegree; a reference to one of the last `windowsize` lists with the blocks
//! copied from it; intervals of consecutive ids; and residual gaps. Read in order, no `.offsets`
//! are needed, and what is resident is the window and one chunk.
//!
//! The `webgraph` crate reads this format too, with random access; it brings some 160 crates, and
//! an importer needs one sequential pass.

mod bits;
mod properties;

use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use self::bits::{BitReader, Code};
use self::properties::Properties;
use super::batch::VertexId;
use super::chunks::file_bytes;
use super::{EdgeBatch, EdgeSource, SizeHint};

/// Edges after which a batch ends, once the current vertex is complete.
const BATCH_EDGES: usize = 1 << 20;

/// A source of the arcs of a BVGraph.
pub struct BvGraphSource {
    path: PathBuf,
    bytes: u64,
    properties: Properties,
    decoder: Option<Decoder>,
}

impl BvGraphSource {
    /// Opens a graph by the path of its `.graph` or `.properties`, or by what they share.
    ///
    /// # Errors
    /// An I/O error, or an input error where the properties name what this reader does not have.
    pub fn open(path: &Path) -> Result<Self> {
        let properties = Properties::read(&part(path, "properties"))?;
        let path = part(path, "graph");
        let bytes = file_bytes(&path)?;
        Ok(Self { path, bytes, properties, decoder: None })
    }

    fn fill<I: VertexId>(decoder: &mut Decoder, batch: &mut EdgeBatch) -> Result<()> {
        let (src, dst) = I::columns(batch);
        while src.len() < BATCH_EDGES && decoder.vertex < decoder.properties.nodes {
            let vertex = I::from_u64(decoder.vertex);
            let successors = decoder.next_list()?;
            src.resize(src.len() + successors.len(), vertex);
            dst.extend(successors.iter().map(|&id| I::from_u64(id)));
        }
        Ok(())
    }

    fn check_end(&self, decoder: &Decoder) -> Result<()> {
        if decoder.arcs == self.properties.arcs {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Input, "read all of")
            .object(self.path.display())
            .expected(format!("{} arcs", self.properties.arcs))
            .got(decoder.arcs))
    }
}

/// Whether `path` has a `.properties` file beside it, which describes the graph.
pub(super) fn has_properties(path: &Path) -> bool {
    part(path, "graph").is_file() && part(path, "properties").is_file()
}

/// The path of the graph's file with this extension.
fn part(path: &Path, extension: &str) -> PathBuf {
    let known = ["graph", "properties", "offsets"];
    let stem = if path.extension().is_some_and(|e| known.iter().any(|k| e == *k)) {
        path.with_extension("")
    } else {
        path.into()
    };
    let mut name = stem.into_os_string();
    name.push(format!(".{extension}"));
    name.into()
}

impl EdgeSource for BvGraphSource {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint {
            edges: Some(self.properties.arcs),
            vertices: Some(self.properties.nodes),
            bytes: Some(self.bytes),
        }
    }

    fn directed(&self) -> Option<bool> {
        Some(true)
    }

    fn restart(&mut self) -> Result<()> {
        self.decoder = None;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = None;
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => Decoder::open(&self.path, &self.properties)?,
        };
        if self.properties.nodes <= 1 << 32 {
            Self::fill::<u32>(&mut decoder, batch)?;
        } else {
            Self::fill::<u64>(&mut decoder, batch)?;
        }
        if batch.is_empty() {
            self.check_end(&decoder)?;
        }
        self.decoder = Some(decoder);
        Ok(!batch.is_empty())
    }
}

/// A decoder of successor lists, one after the other.
struct Decoder {
    bits: BitReader,
    properties: Properties,
    /// The vertex whose list comes next.
    vertex: u64,
    arcs: u64,
    /// The last lists: that of vertex v at v mod (window + 1).
    lists: Vec<Vec<u64>>,
    /// Successors that the current list copies, then its intervals and residuals before they are merged.
    copied: Vec<u64>,
    extra: Vec<u64>,
}

impl Decoder {
    fn open(path: &Path, properties: &Properties) -> Result<Self> {
        Ok(Self {
            bits: BitReader::open(path)?,
            properties: properties.clone(),
            vertex: 0,
            arcs: 0,
            lists: vec![Vec::new(); properties.window + 1],
            copied: Vec::new(),
            extra: Vec::new(),
        })
    }

    /// The next vertex's successors, ascending.
    fn next_list(&mut self) -> Result<&[u64]> {
        let slot = (self.vertex % self.lists.len() as u64) as usize;
        let mut list = std::mem::take(&mut self.lists[slot]);
        list.clear();
        let degree = self.bits.read(self.properties.outdegrees)?;
        if degree > self.properties.nodes {
            return Err(self.fault("an outdegree of at most the number of vertices", degree));
        }
        if degree > 0 {
            self.read_copied(degree)?;
            self.read_extra(degree - self.copied.len() as u64)?;
            merge(&self.copied, &self.extra, &mut list);
        }
        if let Some(&last) = list.last().filter(|last| **last >= self.properties.nodes) {
            return Err(self.fault("successors below the number of vertices", last));
        }
        self.arcs += degree;
        self.vertex += 1;
        self.lists[slot] = list;
        Ok(&self.lists[slot])
    }

    /// Reads the reference and copies its blocks: every other one, the first is copied.
    fn read_copied(&mut self, degree: u64) -> Result<()> {
        self.copied.clear();
        if self.properties.window == 0 {
            return Ok(());
        }
        let reference = self.bits.read(self.properties.references)?;
        if reference == 0 {
            return Ok(());
        }
        if reference > self.vertex.min(self.properties.window as u64) {
            return Err(self.fault("a reference into the window", reference));
        }
        let slot = ((self.vertex - reference) % self.lists.len() as u64) as usize;
        let blocks = self.bits.read(self.properties.block_counts)?;
        let mut at = 0;
        for block in 0..blocks {
            let len = self.bits.read(self.properties.blocks)?.saturating_add(u64::from(block > 0));
            let rest = (self.lists[slot].len() - at) as u64;
            if len > rest {
                return Err(self.fault("a block inside the list referred to", len));
            }
            let end = at + len as usize;
            if block % 2 == 0 {
                self.copied.extend_from_slice(&self.lists[slot][at..end]);
            }
            at = end;
        }
        if blocks % 2 == 0 {
            self.copied.extend_from_slice(&self.lists[slot][at..]);
        }
        if self.copied.len() as u64 > degree {
            return Err(self.fault("at most the outdegree copied", self.copied.len() as u64));
        }
        Ok(())
    }

    /// Reads `count` successors as intervals and residuals, merged.
    fn read_extra(&mut self, count: u64) -> Result<()> {
        self.extra.clear();
        let mut left = count;
        if left > 0 && self.properties.min_interval > 0 {
            left = self.read_intervals(left)?;
        }
        let intervals = self.extra.len();
        let mut residual = 0;
        for index in 0..left {
            let gap = self.bits.read(self.properties.residuals)?;
            residual = match index {
                0 => self.relative_to_vertex(gap)?,
                _ => self.below_nodes(residual.saturating_add(gap).saturating_add(1))?,
            };
            self.extra.push(residual);
        }
        if intervals > 0 && left > 0 {
            let both = std::mem::take(&mut self.extra);
            merge(&both[..intervals], &both[intervals..], &mut self.extra);
        }
        Ok(())
    }

    /// Reads the intervals among `left` successors; returns how many successors are left.
    fn read_intervals(&mut self, mut left: u64) -> Result<u64> {
        let count = self.bits.read(Code::Gamma)?;
        let mut next = 0;
        for index in 0..count {
            let gap = self.bits.read(Code::Gamma)?;
            let start = match index {
                0 => self.relative_to_vertex(gap)?,
                _ => self.below_nodes(gap.saturating_add(next).saturating_add(1))?,
            };
            let len = self.bits.read(Code::Gamma)?.saturating_add(self.properties.min_interval);
            if len > left {
                return Err(self.fault("intervals of at most the outdegree", len));
            }
            left -= len;
            next = start + len;
            self.extra.extend(start..next);
        }
        Ok(left)
    }

    /// The id at a signed distance from the vertex: even codes are forward, odd ones back.
    fn relative_to_vertex(&self, code: u64) -> Result<u64> {
        let half = code / 2;
        let id = match code % 2 {
            0 => self.vertex.checked_add(half),
            _ => self.vertex.checked_sub(half + 1),
        };
        match id {
            Some(id) => self.below_nodes(id),
            None => Err(self.fault("a successor of 0 or more", code)),
        }
    }

    fn below_nodes(&self, id: u64) -> Result<u64> {
        if id < self.properties.nodes {
            return Ok(id);
        }
        Err(self.fault("successors below the number of vertices", id))
    }

    fn fault(&self, expected: &str, got: u64) -> Error {
        self.bits.fault(expected, format!("{got} at vertex {}", self.vertex))
    }
}

/// Merges two ascending lists.
fn merge(a: &[u64], b: &[u64], out: &mut Vec<u64>) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let take_a = a[i] <= b[j];
        out.push(if take_a { a[i] } else { b[j] });
        i += usize::from(take_a);
        j += usize::from(!take_a);
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
}
