//! Adjacency lists as text, one vertex a line.
//!
//! Two dialects: Graphalytics' validation graphs write `v n1 n2 …`, an isolated vertex as a line of
//! its own; WebGraph's ASCII graphs write the number of vertices and then a line of successors for
//! vertex 0, 1, ….
//!
//! An undirected list names each edge from both ends. It is handed out once, from its smaller end,
//! and both halves are compared by an order-free sum of hashes, so that a list with only one of
//! them is refused instead of losing edges.

use tiergraph_core::{Error, ErrorKind, Result};

use super::chunks::{ChunkSpec, Chunks, next_chunk};
use super::raw::Raw;
use super::text::{LineFault, line_error, shorten, unsigned};
use super::{EdgeBatch, EdgeSource, SizeHint};
use crate::generate::hash::mix;

/// How a line tells its vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineVertex {
    /// The line's first id.
    Named,
    /// The line's number; the file's first line says how many vertices there are.
    Counted,
}

/// A source of the edges of an adjacency list.
pub struct AdjacencySource {
    spec: ChunkSpec,
    line_vertex: LineVertex,
    directed: Option<bool>,
    bytes: Option<u64>,
    /// The number of vertices that the file's first line gives.
    counted: Option<u64>,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
    line: u64,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    src: Vec<u64>,
    dst: Vec<u64>,
    /// The hashes of the edges seen from their smaller end, summed, less those from the larger end.
    halves: u64,
}

impl AdjacencySource {
    /// Opens an adjacency list; `directed` says what its edges are, if the caller knows.
    ///
    /// # Errors
    /// An I/O error, or an input error where the number of vertices is missing.
    pub(crate) fn open(raw: &Raw, line_vertex: LineVertex, directed: Option<bool>) -> Result<Self> {
        let spec = ChunkSpec::lines(raw)?;
        let counted = match line_vertex {
            LineVertex::Named => None,
            LineVertex::Counted => Some(vertex_count(&spec)?),
        };
        Ok(Self {
            spec,
            line_vertex,
            directed,
            bytes: raw.bytes(),
            counted,
            chunks: None,
            chunk: Vec::new(),
            line: 0,
            scratch: Scratch::default(),
        })
    }

    fn parse_chunk(&mut self) -> Result<()> {
        self.scratch.src.clear();
        self.scratch.dst.clear();
        for text in self.chunk.split_inclusive(|&b| b == b'\n') {
            let line = self.line;
            self.line += 1;
            let vertex = match (self.line_vertex, self.counted) {
                (LineVertex::Counted, Some(_)) if line == 0 => continue,
                (LineVertex::Counted, Some(vertices)) if line > vertices => {
                    check_empty(text, vertices)
                        .map_err(|fault| line_error(self.spec.path(), line, &fault))?;
                    continue;
                }
                (LineVertex::Counted, _) => Some(line - 1),
                (LineVertex::Named, _) => None,
            };
            let vertices = self.counted.unwrap_or(u64::MAX);
            parse_line(text, vertex, vertices, self.directed, &mut self.scratch)
                .map_err(|fault| line_error(self.spec.path(), line, &fault))?;
        }
        Ok(())
    }

    /// Fails for faults that only show after the last line.
    fn check_end(&self) -> Result<()> {
        let refuse = |expected: String, got: String| {
            let e = Error::new(ErrorKind::Input, "read all of").object(self.spec.path().display());
            Err(e.expected(expected).got(got))
        };
        match self.counted {
            Some(vertices) if self.line < vertices + 1 => {
                refuse(format!("{vertices} lines of successors"), format!("{}", self.line - 1))
            }
            _ if self.directed == Some(false) && self.scratch.halves != 0 => refuse(
                "every edge of an undirected list from both ends".into(),
                "edges from one end only".into(),
            ),
            _ => Ok(()),
        }
    }
}

/// The number on the first line of an ASCII graph.
fn vertex_count(spec: &ChunkSpec) -> Result<u64> {
    let head = spec.head()?;
    let line = head.split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
    match unsigned(line, 0) {
        Some((vertices, end)) if end == line.len() && vertices < u64::MAX => Ok(vertices),
        _ => {
            let expected = "the number of vertices".into();
            let got = format!("`{}`", shorten(line));
            Err(line_error(spec.path(), 0, &LineFault::new(0, expected, got)))
        }
    }
}

fn check_empty(text: &[u8], vertices: u64) -> Result<(), LineFault> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(());
    }
    let expected = format!("the end after {vertices} lines of successors");
    Err(LineFault::new(0, expected, format!("`{}`", shorten(text))))
}

/// Adds one line's edges; `vertex` is the line's vertex unless the line names it.
fn parse_line(
    text: &[u8],
    mut vertex: Option<u64>,
    vertices: u64,
    directed: Option<bool>,
    out: &mut Scratch,
) -> Result<(), LineFault> {
    if vertex.is_none() && matches!(text.trim_ascii_start().first(), None | Some(b'#' | b'%')) {
        return Ok(());
    }
    for field in text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()) {
        let id = match unsigned(field, 0) {
            Some((id, end)) if end == field.len() && id < vertices => id,
            Some((u64::MAX, end)) if end == field.len() && vertices == u64::MAX => u64::MAX,
            _ => {
                let expected = match vertices {
                    u64::MAX => "an unsigned 64-bit integer".into(),
                    _ => format!("a vertex below {vertices}"),
                };
                return Err(LineFault::new(0, expected, format!("`{}`", shorten(field))));
            }
        };
        match vertex {
            None => vertex = Some(id),
            Some(vertex) => out.push(vertex, id, directed),
        }
    }
    Ok(())
}

impl Scratch {
    fn push(&mut self, vertex: u64, neighbour: u64, directed: Option<bool>) {
        if directed == Some(false) {
            let (low, high) = (vertex.min(neighbour), vertex.max(neighbour));
            let hash = mix(mix(low).wrapping_add(high));
            if vertex > neighbour {
                self.halves = self.halves.wrapping_sub(hash);
                return;
            }
            if vertex < neighbour {
                self.halves = self.halves.wrapping_add(hash);
            }
        }
        self.src.push(vertex);
        self.dst.push(neighbour);
    }

    fn write(&self, batch: &mut EdgeBatch) {
        let widest = self.src.iter().chain(&self.dst).fold(0, |all, id| all | id);
        if u32::try_from(widest).is_ok() {
            let (src, dst) = batch.as_u32_mut();
            src.extend(self.src.iter().map(|&id| id as u32));
            dst.extend(self.dst.iter().map(|&id| id as u32));
        } else {
            let (src, dst) = batch.as_u64_mut();
            src.extend_from_slice(&self.src);
            dst.extend_from_slice(&self.dst);
        }
    }
}

impl EdgeSource for AdjacencySource {
    fn describe(&self) -> String {
        self.spec.path().display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint { edges: None, vertices: self.counted, bytes: self.bytes }
    }

    fn directed(&self) -> Option<bool> {
        self.directed
    }

    fn can_restart(&self) -> bool {
        !self.spec.raw.is_pipe()
    }

    fn keep_within(&mut self, memory: u64) {
        self.spec.keep_within(memory);
    }

    fn held_bytes(&self) -> u64 {
        self.spec.held_bytes()
    }

    fn held_bytes_at_most(&self) -> u64 {
        self.spec.held_bytes_at_most()
    }

    fn restart(&mut self) -> Result<()> {
        (self.chunks, self.line, self.scratch.halves) = (None, 0, 0);
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = None;
        while next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)? {
            self.parse_chunk()?;
            self.scratch.write(batch);
            if !batch.is_empty() {
                return Ok(true);
            }
        }
        self.check_end()?;
        Ok(false)
    }

    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        match self.line_vertex {
            LineVertex::Named => Ok(Some(first_ids(&self.spec)?)),
            LineVertex::Counted => Ok(None),
        }
    }
}

/// The first id of every line that has one. Other faults are for the reader of edges.
pub(super) fn first_ids(spec: &ChunkSpec) -> Result<Vec<u64>> {
    let (mut chunks, mut chunk, mut ids, mut line) = (spec.start()?, Vec::new(), Vec::new(), 0);
    while chunks.next(&mut chunk)? {
        for text in chunk.split_inclusive(|&b| b == b'\n') {
            let field = text.trim_ascii_start();
            let field = field.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            line += 1;
            if matches!(field.first(), None | Some(b'#' | b'%')) {
                continue;
            }
            match unsigned(field, 0) {
                Some((id, end)) if end == field.len() => ids.push(id),
                _ => {
                    let expected = "an unsigned 64-bit integer".into();
                    let fault = LineFault::new(0, expected, format!("`{}`", shorten(field)));
                    return Err(line_error(spec.path(), line - 1, &fault));
                }
            }
        }
    }
    Ok(ids)
}
