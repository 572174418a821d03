//! Edge lists as SNAP, TSV and CSV have them, plain or packed.
//!
//! One thread reads and unpacks chunks of 8 MiB, or less where a build has little memory; the chunk is cut at line
//! ends into as many parts as there are threads, and their columns are joined in order, so the edges come as the file has
//! them. [`columns`](super::columns) chooses the columns of the ids and of the weights. Every line that
//! is neither empty, nor a comment, nor an edge is refused, as is one with another number of fields
//! than the first.
//!
//! Cost: up to 72 MiB resident (three chunks and the edges of one, in parts and joined). `examples/source_speed.rs`
//! measures the speed; a packed file comes as fast as one thread unpacks it.

mod dialect;
mod fields;
mod kinds;
mod named;
mod scan;

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result, threads};

use super::batch::VertexId;
use super::chunks::{ChunkSpec, Chunks, next_chunk};
use super::raw::Raw;
use super::{EdgeBatch, EdgeSource, Endpoints, OpenOptions, SizeHint};
use crate::Names;
use dialect::Dialect;
pub(crate) use dialect::is_ragged;
use named::NamedPart;
use scan::{Columns, Stop, scan};
pub(crate) use scan::{LineFault, shorten, unsigned};

/// Bytes of the smallest part of a chunk that is worth a thread.
const PART_BYTES: usize = 64 << 10;
/// Bytes in which a chunk's names are found and numbered.
const NAMED_BYTES: u64 = 16 << 20;
/// Bytes of the longest line of an edge.
const LINE_BYTES: usize = 1 << 20;

/// A source of the edges of a text file.
pub struct TextSource {
    spec: ChunkSpec,
    dialect: Dialect,
    threads: usize,
    bytes: Option<u64>,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
    /// Bytes of the header that are still to be skipped.
    skip: usize,
    /// The number of lines before the next chunk.
    line: u64,
    /// Whether an edge was found since the start.
    found: bool,
    parts: Vec<EdgeBatch>,
    /// Where the ends of edges are names: these, and what each thread finds.
    named: Option<(Names, Vec<NamedPart>)>,
}

impl TextSource {
    /// Opens an edge list and finds its dialect.
    ///
    /// # Errors
    /// An I/O error, or an input error where the column of weights is not there.
    pub(crate) fn open(raw: &Raw, options: &OpenOptions) -> Result<Self> {
        let mut spec = ChunkSpec::lines(raw)?;
        spec.line_bytes = LINE_BYTES;
        let dialect = Dialect::detect(raw.path(), &spec.head()?, options)?;
        let threads = options.threads.max(1);
        Ok(Self {
            spec,
            threads,
            bytes: raw.bytes(),
            chunks: None,
            chunk: Vec::new(),
            skip: dialect.data_start,
            line: 0,
            found: false,
            parts: vec![EdgeBatch::default(); threads],
            named: options.names.clone().map(|names| (names, vec![NamedPart::default(); threads])),
            dialect,
        })
    }

    /// Replaces `batch` by the edges of `self.chunk`, of which each thread scans a part.
    fn scan_chunk(&mut self, batch: &mut EdgeBatch) -> Result<()> {
        let skip = self.skip.min(self.chunk.len());
        self.skip -= skip;
        self.line += count_lines(&self.chunk[..skip]);
        let texts = split_lines(&self.chunk[skip..], self.threads);
        let dialect = &self.dialect;
        let lines = match &mut self.named {
            None => {
                on_threads(&texts, &mut self.parts, |text, part| scan_part(text, dialect, part))?
            }
            Some((_, parts)) => on_threads(&texts, parts, |text, part| {
                part.scan(text, dialect).map_err(|stop| match stop {
                    Stop::Fault(fault) => fault,
                    Stop::TooWide { .. } => unreachable!("every name is taken"),
                })
            })?,
        };
        for lines in lines {
            match lines {
                Ok(lines) => self.line += lines,
                Err(fault) => return Err(line_error(self.spec.path(), self.line, &fault)),
            }
        }
        match &self.named {
            None => join(&mut self.parts[..texts.len()], batch),
            Some((names, parts)) => {
                let weighted = self.dialect.weights.is_some();
                number(&texts, parts, names, batch, weighted, self.threads)?;
            }
        }
        Ok(())
    }
}

/// Scans each of `texts` to one of `parts`, on a thread each; returns the number of lines of each.
fn on_threads<P: Send>(
    texts: &[&[u8]],
    parts: &mut [P],
    scan: impl Fn(&[u8], &mut P) -> Result<u64, LineFault> + Sync,
) -> Result<Vec<Result<u64, LineFault>>> {
    let scan = &scan;
    std::thread::scope(|scope| {
        let mut jobs = texts.iter().zip(parts);
        let own = jobs.next();
        let others: Vec<_> = jobs
            .map(|(text, part)| threads::start_in(scope, "scan", move || scan(text, part)))
            .collect::<Result<_>>()?;
        let own = own.map(|(text, part)| scan(text, part));
        let joined = others.into_iter().map(|job| match job.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(own.into_iter().chain(joined).collect())
    })
}

/// Replaces `batch` by the edges of all parts, with numbers in place of names.
fn number(
    texts: &[&[u8]],
    parts: &[NamedPart],
    names: &Names,
    batch: &mut EdgeBatch,
    weighted: bool,
    threads: usize,
) -> Result<()> {
    batch.weights = weighted.then(|| batch.weights.take().unwrap_or_default());
    let (src, dst) = batch.as_u32_mut();
    let mut numbers = Vec::new();
    for (text, part) in texts.iter().zip(parts) {
        numbers.resize(2 * part.edges(), 0);
        names.number_hashed(threads, |at| part.name(at, text), &mut numbers)?;
        src.extend(numbers.iter().step_by(2));
        dst.extend(numbers.iter().skip(1).step_by(2));
    }
    if let Some(weights) = &mut batch.weights {
        parts[..texts.len()].iter().for_each(|part| weights.extend_from_slice(&part.weights));
    }
    Ok(())
}

impl EdgeSource for TextSource {
    fn describe(&self) -> String {
        self.spec.path().display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint { bytes: self.bytes, ..SizeHint::default() }
    }

    fn weighted(&self) -> bool {
        self.dialect.weights.is_some()
    }

    fn notes(&self) -> Vec<String> {
        self.dialect.notes.clone()
    }

    fn names(&self) -> Option<Names> {
        self.named.as_ref().map(|(names, _)| names.clone())
    }

    fn can_restart(&self) -> bool {
        !self.spec.raw.is_pipe()
    }

    fn keep_within(&mut self, memory: u64) {
        self.spec.keep_within(memory);
    }

    fn held_bytes(&self) -> u64 {
        let named = if self.named.is_some() { NAMED_BYTES } else { 0 };
        self.spec.held_bytes() + named
    }

    fn held_bytes_at_most(&self) -> u64 {
        let named = if self.named.is_some() { NAMED_BYTES } else { 0 };
        self.spec.held_bytes_at_most() + named
    }

    fn restart(&mut self) -> Result<()> {
        (self.chunks, self.skip, self.line) = (None, self.dialect.data_start, 0);
        self.found = false;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        // A chunk of comments alone has no edges and is passed over.
        while next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)? {
            self.scan_chunk(batch)?;
            if !batch.is_empty() {
                self.found = true;
                return Ok(true);
            }
        }
        if !self.found {
            return Err(Error::new(ErrorKind::Input, "read")
                .object(self.spec.path().display())
                .expected("lines of edges")
                .got("a file without any")
                .hint("the first two columns of a line are the ids of an edge's ends"));
        }
        Ok(false)
    }
}

/// An error about line `before + fault.line` (from 0) of a file.
pub(crate) fn line_error(path: &Path, before: u64, fault: &LineFault) -> Error {
    let error = Error::new(ErrorKind::Input, format!("read line {} of", before + fault.line + 1))
        .object(path.display())
        .expected(&fault.expected)
        .got(&fault.got);
    match fault.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter().filter(|&&b| b == b'\n').count() as u64
}

/// Cuts `text` into at most `parts` parts of whole lines.
fn split_lines(text: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut texts = Vec::with_capacity(parts);
    let mut rest = text;
    for left in (1..=parts).rev() {
        let target = (rest.len() / left).max(PART_BYTES).min(rest.len());
        let end = rest[target..].iter().position(|&b| b == b'\n').map(|end| target + end + 1);
        let (part, others) =
            rest.split_at(if left == 1 { rest.len() } else { end.unwrap_or(rest.len()) });
        texts.push(part);
        rest = others;
        if rest.is_empty() {
            break;
        }
    }
    texts
}

/// Scans one part, at 32 bits until an id does not fit them; returns its number of lines.
fn scan_part(text: &[u8], dialect: &Dialect, part: &mut EdgeBatch) -> Result<u64, LineFault> {
    part.clear();
    part.weights = dialect.weights.map(|_| part.weights.take().unwrap_or_default());
    let (mut from, mut line) = (0, 0);
    if let Endpoints::U32 { src, dst } = &mut part.ends {
        match run(text, from, line, dialect, src, dst, part.weights.as_mut()) {
            Ok(lines) => return Ok(lines),
            Err(Stop::Fault(fault)) => return Err(fault),
            Err(Stop::TooWide { at, line: before }) => (from, line) = (at, before),
        }
    }
    // Once wide, later chunks of the file start wide.
    part.widen();
    let Endpoints::U64 { src, dst } = &mut part.ends else { unreachable!("widened above") };
    match run(text, from, line, dialect, src, dst, part.weights.as_mut()) {
        Ok(lines) => Ok(lines),
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::TooWide { .. }) => unreachable!("every parsed id fits 64 bits"),
    }
}

fn run<I: VertexId>(
    text: &[u8],
    from: usize,
    line: u64,
    dialect: &Dialect,
    src: &mut Vec<I>,
    dst: &mut Vec<I>,
    weights: Option<&mut Vec<f64>>,
) -> Result<u64, Stop> {
    scan(text, from, line, dialect, &mut Columns { src, dst, weights })
}

/// Moves the parts' edges into `batch`, the first part's columns without a copy.
fn join(parts: &mut [EdgeBatch], batch: &mut EdgeBatch) {
    let Some((first, others)) = parts.split_first_mut() else { return };
    std::mem::swap(first, batch);
    for other in others {
        batch.append(other);
    }
}
