//! Text files whose header says how many vertices and edges they have: Matrix Market, METIS, DIMACS and PACE.
//!
//! Vertices are numbered from 1, and keep their numbers as ids. What the header promises is compared with what the
//! file has, so that a file that was cut off is refused.

mod header;

use tiergraph_core::{Error, ErrorKind, Result};

use super::chunks::{ChunkSpec, Chunks, next_chunk};
use super::raw::Raw;
use super::text::{LineFault, line_error, shorten, unsigned};
use super::{EdgeBatch, EdgeSource, Format, OpenOptions, SizeHint, Weights};
use crate::generate::hash::mix;
use header::{Header, Lines};

pub(super) use header::is_metis;

/// A source of the edges of a file with a header.
pub struct HeadedSource {
    spec: ChunkSpec,
    header: Header,
    takes_weights: bool,
    bytes: Option<u64>,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
    progress: Progress,
}

/// How far a file was read.
#[derive(Default)]
struct Progress {
    line: u64,
    /// Lines of vertices so far, in files that have one for each.
    vertex: u64,
    /// Edges so far, or ends of edges.
    entries: u64,
    /// Hashes of edges seen from their smaller end, summed, less those from the larger end.
    halves: u64,
    src: Vec<u64>,
    dst: Vec<u64>,
    weights: Vec<f64>,
}

impl HeadedSource {
    /// Opens a file of one of these formats.
    ///
    /// # Errors
    /// An I/O error, or an input error where the header is not one or says what graphs have not.
    pub(crate) fn open(raw: &Raw, format: Format, options: &OpenOptions) -> Result<Self> {
        let spec = ChunkSpec::lines(raw)?;
        let header = Header::read(&spec, format)?;
        let progress = Progress { line: header.lines_before, ..Progress::default() };
        Ok(Self {
            takes_weights: header.is_weighted && options.weights != Weights::Ignore,
            bytes: raw.bytes(),
            spec,
            header,
            chunks: None,
            chunk: Vec::new(),
            progress,
        })
    }

    fn parse_chunk(&mut self, skip: u64) -> Result<()> {
        let Self { header, progress, spec, chunk, takes_weights, .. } = self;
        progress.src.clear();
        progress.dst.clear();
        progress.weights.clear();
        for text in chunk.split_inclusive(|&b| b == b'\n').skip(skip as usize) {
            let line = progress.line;
            progress.line += 1;
            let text = text.trim_ascii();
            if header.is_comment(text) || (text.is_empty() && header.lines != Lines::Vertices) {
                continue;
            }
            let fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
            let parsed = match header.lines {
                Lines::Edges => progress.edge(header, fields, *takes_weights),
                Lines::Lettered => progress.lettered(header, fields, *takes_weights),
                Lines::Vertices => progress.list(header, fields, *takes_weights),
            };
            parsed.map_err(|fault| line_error(spec.path(), line, &fault))?;
        }
        Ok(())
    }

    /// Fails for faults that only show after the last line.
    fn check_end(&self) -> Result<()> {
        let Self { header, progress, .. } = self;
        let refuse = |expected: String, got: String| {
            let e = Error::new(ErrorKind::Input, "read all of").object(self.spec.path().display());
            Err(e.expected(expected).got(got))
        };
        if header.lines == Lines::Vertices {
            if progress.vertex < header.vertices {
                let expected = format!("{} lines of neighbours", header.vertices);
                return refuse(expected, progress.vertex.to_string());
            }
            if progress.halves != 0 {
                let expected = "every edge from both ends, with the same weight".into();
                return refuse(expected, "edges from one end only".into());
            }
        }
        let both = if header.lines == Lines::Vertices { 2 } else { 1 };
        if progress.entries != header.edges * both {
            let expected = format!("{} edges, as its header says", header.edges);
            let half = if progress.entries % both > 0 { " and a half" } else { "" };
            return refuse(expected, format!("{}{half}", progress.entries / both));
        }
        Ok(())
    }
}

type Parsed = std::result::Result<(), LineFault>;

impl Progress {
    /// A line `u v` or `u v w`.
    fn edge<'a>(
        &mut self,
        header: &Header,
        mut fields: impl Iterator<Item = &'a [u8]>,
        takes_weights: bool,
    ) -> Parsed {
        let (u, v) = (header.vertex(fields.next())?, header.vertex(fields.next())?);
        let weight = if header.is_weighted { number(fields.next(), takes_weights)? } else { 1.0 };
        if let Some(more) = fields.next().filter(|_| !header.may_have_more) {
            return Err(fault("the end of the line", Some(more)));
        }
        self.push(u, v, takes_weights.then_some(weight));
        self.entries += 1;
        Ok(())
    }

    /// A line that begins with a letter: `a u v w`, `e u v`, or one that says something else.
    fn lettered<'a>(
        &mut self,
        header: &Header,
        mut fields: impl Iterator<Item = &'a [u8]>,
        takes_weights: bool,
    ) -> Parsed {
        match fields.next() {
            Some(b"a" | b"e") => self.edge(header, fields, takes_weights),
            // What nodes are, and bounds of paths.
            Some(b"n" | b"d" | b"v" | b"x") => Ok(()),
            other => Err(fault("a line that begins with `a` or `e`", other)),
        }
    }

    /// A line of neighbours, of the vertex whose turn it is.
    fn list<'a>(
        &mut self,
        header: &Header,
        mut fields: impl Iterator<Item = &'a [u8]>,
        takes_weights: bool,
    ) -> Parsed {
        if self.vertex == header.vertices {
            let end = format!("the end after {} lines of neighbours", header.vertices);
            return fields.next().map_or(Ok(()), |more| Err(fault(&end, Some(more))));
        }
        self.vertex += 1;
        let own = self.vertex;
        for _ in 0..header.before_neighbors {
            number(fields.next(), false)?;
        }
        while let Some(field) = fields.next() {
            let other = header.vertex(Some(field))?;
            let weight =
                if header.is_weighted { number(fields.next(), takes_weights)? } else { 1.0 };
            self.entries += if own == other { 2 } else { 1 };
            let hash = mix(mix(own.min(other)).wrapping_add(own.max(other)) ^ weight.to_bits());
            if own > other {
                self.halves = self.halves.wrapping_sub(hash);
                continue;
            }
            if own < other {
                self.halves = self.halves.wrapping_add(hash);
            }
            self.push(own, other, takes_weights.then_some(weight));
        }
        Ok(())
    }

    fn push(&mut self, u: u64, v: u64, weight: Option<f64>) {
        self.src.push(u);
        self.dst.push(v);
        self.weights.extend(weight);
    }
}

/// A number of a line, which is 0 or more if it `is_weight`.
fn number(field: Option<&[u8]>, is_weight: bool) -> std::result::Result<f64, LineFault> {
    let text = field.and_then(|field| std::str::from_utf8(field).ok());
    let value = text.and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
    match value {
        Some(value) if value >= 0.0 || !is_weight => Ok(value),
        Some(_) => Err(LineFault {
            hint: Some("`--weights none` reads the edges without weights"),
            ..fault("a weight of 0 or more", field)
        }),
        None => Err(fault("a number", field)),
    }
}

fn fault(expected: &str, got: Option<&[u8]>) -> LineFault {
    LineFault::new(0, expected.into(), shown(got))
}

fn shown(got: Option<&[u8]>) -> String {
    got.map_or("the end of the line".into(), |got| format!("`{}`", shorten(got)))
}

impl EdgeSource for HeadedSource {
    fn describe(&self) -> String {
        self.spec.path().display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint { edges: Some(self.header.edges), vertices: None, bytes: self.bytes }
    }

    fn directed(&self) -> Option<bool> {
        self.header.directed
    }

    fn weighted(&self) -> bool {
        self.takes_weights
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
        self.chunks = None;
        self.progress = Progress { line: self.header.lines_before, ..Progress::default() };
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = self.takes_weights.then(|| batch.weights.take().unwrap_or_default());
        loop {
            let skip = if self.chunks.is_none() { self.header.lines_before } else { 0 };
            if !next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)? {
                break;
            }
            self.parse_chunk(skip)?;
            let Progress { src, dst, weights, .. } = &self.progress;
            let (to_src, to_dst) = batch.as_u32_mut();
            // The header has fewer than 2^32 vertices.
            to_src.extend(src.iter().map(|&id| id as u32));
            to_dst.extend(dst.iter().map(|&id| id as u32));
            if let Some(to) = &mut batch.weights {
                to.extend_from_slice(weights);
            }
            if !batch.is_empty() {
                return Ok(true);
            }
        }
        self.check_end()?;
        Ok(false)
    }

    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        Ok(Some((1..=self.header.vertices).collect()))
    }
}
