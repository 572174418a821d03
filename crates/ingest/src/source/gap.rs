//! Graphs as the GAP benchmark suite serializes them: `.sg`, and `.wsg` with weights.
//!
//! A byte that says whether edges have a direction, the numbers of arcs and of vertices, where each vertex's
//! arcs begin, and the arcs' targets (32 bits, with a weight of 32 bits in `.wsg`); of directed graphs,
//! the same of the other direction, which is not read (S. Beamer et al., gapbs, `writer.h`). Arcs of an undirected graph are
//! there from both ends, and handed out once.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use super::chunks::{ChunkSpec, Chunks, file_bytes, next_chunk};
use super::{EdgeBatch, EdgeSource, SizeHint, Weights};
use crate::generate::hash::mix;

const HEADER_BYTES: u64 = 17;

/// A source of the edges of a serialized graph.
pub struct GapSource {
    path: PathBuf,
    directed: bool,
    vertices: u64,
    arcs: u64,
    /// Bytes of an arc.
    width: usize,
    takes_weights: bool,
    offsets: Stream,
    targets: Stream,
    at: Place,
}

/// How far a file was read.
#[derive(Default)]
struct Place {
    /// Bytes of the chunk of offsets that were used.
    used: usize,
    /// Whether any vertex was reached, the vertex whose arcs come next, and where they end.
    has_begun: bool,
    vertex: u64,
    end: u64,
    arc: u64,
    /// Hashes of edges seen from their smaller end, summed, less those from the larger end.
    halves: u64,
}

struct Stream {
    spec: ChunkSpec,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
}

impl Stream {
    fn new(path: &Path, record: usize, offset: u64, records: u64) -> Self {
        let spec = ChunkSpec::records(path, record, offset, records * record as u64);
        Self { spec, chunks: None, chunk: Vec::new() }
    }

    fn next(&mut self) -> Result<bool> {
        next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)
    }

    fn restart(&mut self) {
        (self.chunks, self.chunk) = (None, Vec::new());
    }
}

impl GapSource {
    /// Opens a graph; `weighted` says whether it is one with weights, which are read unless `weights` ignores them.
    ///
    /// # Errors
    /// An I/O error, or an input error where the file is not as long as it says.
    pub fn open(path: &Path, weighted: bool, weights: &Weights) -> Result<Self> {
        let failed = |e| Error::io("read the header of", path.display(), e);
        let refuse = |expected: String, got: String| {
            Error::new(ErrorKind::Input, "read").object(path.display()).expected(expected).got(got)
        };
        let bytes = file_bytes(path)?;
        let mut header = [0; HEADER_BYTES as usize];
        if bytes < HEADER_BYTES {
            let expected = format!("a header of {HEADER_BYTES} bytes");
            return Err(refuse(expected, format!("{bytes} bytes")));
        }
        File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(failed)?;
        let number =
            |at: usize| header[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        let (arcs, vertices, width) = (number(1), number(9), if weighted { 8u64 } else { 4 });
        let directed = match header[0] {
            0 => false,
            1 => true,
            other => {
                return Err(refuse("a first byte of 0 or 1".into(), format!("{other}")));
            }
        };
        let both = if directed { 2 } else { 1 };
        let list = |vertices: u64| vertices.checked_add(1)?.checked_mul(8);
        let needed = || {
            let one = list(vertices)?.checked_add(arcs.checked_mul(width)?)?;
            one.checked_mul(both)?.checked_add(HEADER_BYTES)
        };
        if needed() != Some(bytes) || vertices > u64::from(u32::MAX) {
            let kind = if weighted { ".wsg" } else { ".sg" };
            let expected = format!("a {kind} file of {vertices} vertices and {arcs} arcs");
            let error = refuse(expected, format!("{bytes} bytes"));
            return Err(error.hint("`.sg` is without weights, `.wsg` with"));
        }
        let targets = HEADER_BYTES + (vertices + 1) * 8;
        Ok(Self {
            path: path.into(),
            directed,
            vertices,
            arcs,
            width: width as usize,
            takes_weights: weighted && *weights != Weights::Ignore,
            offsets: Stream::new(path, 8, HEADER_BYTES, vertices + 1),
            targets: Stream::new(path, width as usize, targets, arcs),
            at: Place::default(),
        })
    }

    fn refuse(&self, what: String, expected: String, got: String) -> Error {
        let error = Error::new(ErrorKind::Input, what).object(self.path.display());
        error.expected(expected).got(got)
    }

    /// The next of the offsets.
    fn offset(&mut self) -> Result<u64> {
        if self.at.used == self.offsets.chunk.len() {
            self.at.used = 0;
            if !self.offsets.next()? {
                let expected = "a place for each vertex".into();
                return Err(self.refuse("read all of".into(), expected, "fewer".into()));
            }
        }
        let bytes = &self.offsets.chunk[self.at.used..self.at.used + 8];
        self.at.used += 8;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// Goes on to the next vertex, whose arcs end at an offset.
    fn next_vertex(&mut self) -> Result<()> {
        if !self.at.has_begun {
            let first = self.offset()?;
            if first != 0 {
                let what = "read the arcs of vertex 0 of".into();
                return Err(self.refuse(what, "the first place to be 0".into(), first.to_string()));
            }
        }
        self.at.vertex += u64::from(self.at.has_begun);
        self.at.has_begun = true;
        let (end, before) = (self.offset()?, self.at.end);
        if end < before || end > self.arcs {
            let what = format!("read the arcs of vertex {} of", self.at.vertex);
            let expected = format!("an end from {before} to {}", self.arcs);
            return Err(self.refuse(what, expected, end.to_string()));
        }
        self.at.end = end;
        Ok(())
    }

    /// Fails unless every vertex has the arcs that the header counts, all together.
    fn check_end(&mut self) -> Result<()> {
        while self.vertices > 0 && (!self.at.has_begun || self.at.vertex + 1 < self.vertices) {
            self.next_vertex()?;
        }
        if self.at.end == self.arcs {
            return Ok(());
        }
        let expected = format!("{} arcs of all vertices", self.arcs);
        Err(self.refuse("read all of".into(), expected, self.at.end.to_string()))
    }
}

impl EdgeSource for GapSource {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        let edges = if self.directed { Some(self.arcs) } else { None };
        let bytes = self.path.metadata().ok().map(|meta| meta.len());
        SizeHint { edges, vertices: Some(self.vertices), bytes }
    }

    fn directed(&self) -> Option<bool> {
        Some(self.directed)
    }

    fn weighted(&self) -> bool {
        self.takes_weights
    }

    fn reads_again(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<()> {
        self.offsets.restart();
        self.targets.restart();
        self.at = Place::default();
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = self.takes_weights.then(|| batch.weights.take().unwrap_or_default());
        let mut weights = batch.weights.take();
        let (src, dst) = batch.as_u32_mut();
        while src.is_empty() && self.targets.next()? {
            let chunk = std::mem::take(&mut self.targets.chunk);
            for arc in chunk.chunks_exact(self.width) {
                while self.at.arc >= self.at.end {
                    self.next_vertex()?;
                }
                let word = |at: usize| {
                    u32::from_le_bytes([arc[at], arc[at + 1], arc[at + 2], arc[at + 3]])
                };
                let (u, v) = (self.at.vertex, u64::from(word(0)));
                let weight = if self.width == 8 { word(4) as i32 } else { 0 };
                let number = self.at.arc;
                self.at.arc += 1;
                if v >= self.vertices {
                    let what = format!("read arc {number} of");
                    let expected = format!("a vertex below {}", self.vertices);
                    return Err(self.refuse(what, expected, (v as u32 as i32).to_string()));
                }
                if self.takes_weights && weight < 0 {
                    let what = format!("read arc {number} of");
                    let error =
                        self.refuse(what, "a weight of 0 or more".into(), weight.to_string());
                    return Err(error.hint("`--weights none` reads the arcs alone"));
                }
                if !self.directed && u != v {
                    let hash = mix(mix(u.min(v)).wrapping_add(u.max(v)) ^ weight as u64);
                    if u > v {
                        self.at.halves = self.at.halves.wrapping_sub(hash);
                        continue;
                    }
                    self.at.halves = self.at.halves.wrapping_add(hash);
                }
                src.push(u as u32);
                dst.push(v as u32);
                if let Some(weights) = &mut weights {
                    weights.push(weight.into());
                }
            }
            self.targets.chunk = chunk;
        }
        let found = !src.is_empty();
        batch.weights = weights;
        if !found {
            self.check_end()?;
        }
        if !found && self.at.halves != 0 {
            let expected = "every edge from both ends, with the same weight".into();
            return Err(self.refuse(
                "read all of".into(),
                expected,
                "edges from one end only".into(),
            ));
        }
        Ok(found)
    }
}
