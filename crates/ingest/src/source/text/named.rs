//! Edges between names: texts in any two columns, of which threads find the ends and the hashes.
//!
//! A name is what stands between delimiters, without blanks around it, or between quotes, where two quotes
//! stand for one (RFC 4180). An empty one is refused.

use tiergraph_format::names::hash;

use super::dialect::Dialect;
use super::scan::{Line, Stop, checked_weight, delimiter, each_line, field_end};

/// Where a name lies in a part of a chunk, or among those that are written otherwise there.
#[derive(Debug, Clone, Copy)]
struct Span {
    hash: u64,
    start: u32,
    len: u32,
}

/// The length's bit that says that a name is not in the text as it is.
const REWRITTEN: u32 = 1 << 31;

/// The edges of a part of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedPart {
    /// The sources and targets of edges, in turn.
    spans: Vec<Span>,
    pub(super) weights: Vec<f64>,
    /// Names whose quotes are written twice in the text.
    rewritten: Vec<u8>,
}

impl NamedPart {
    pub(super) fn edges(&self) -> usize {
        self.spans.len() / 2
    }

    /// Replaces this by the edges of `text`; returns its number of lines.
    pub(super) fn scan(&mut self, text: &[u8], dialect: &Dialect) -> Result<u64, Stop> {
        let Self { spans, weights, rewritten } = self;
        spans.clear();
        weights.clear();
        rewritten.clear();
        let edge = |at| edge(text, at, dialect);
        each_line(text, 0, 0, dialect, edge, |[src, dst, weight]: [(usize, usize); 3]| {
            for (start, end) in [src, dst] {
                spans.push(span(text, start, end, rewritten));
            }
            if dialect.weights.is_some() {
                // It was looked at when the line was.
                weights.extend(checked_weight(&text[weight.0..weight.1]));
            }
            true
        })
    }

    /// A name and its hash: of the first edge's source, its target, the next one's source and so on.
    #[inline]
    pub(super) fn name<'t>(&'t self, at: usize, text: &'t [u8]) -> (u64, &'t [u8]) {
        let span = &self.spans[at];
        let from = if span.len & REWRITTEN == 0 { text } else { &self.rewritten };
        let start = span.start as usize;
        (span.hash, &from[start..start + (span.len & !REWRITTEN) as usize])
    }
}

/// Where the ends and the weight of the line at `at` lie; `None` if one is not there.
#[inline]
fn edge(text: &[u8], mut at: usize, dialect: &Dialect) -> Option<Line<[(usize, usize); 3]>> {
    let weight = dialect.weights.unwrap_or(0);
    let last = dialect.src.max(dialect.dst).max(weight);
    let (mut found, mut end) = ([(0, 0); 3], at);
    for column in 0..=last {
        if column > 0 {
            at = delimiter(text, end, dialect)?;
        }
        end = field_end(text, at, dialect);
        if column == dialect.src {
            found[0] = (at, end);
        }
        if column == dialect.dst {
            found[1] = (at, end);
        }
        if dialect.weights == Some(column) {
            found[2] = (at, end);
        }
    }
    let is_name = |(start, end): (usize, usize)| is_name(bare(&text[start..end]));
    let has_weight = dialect.weights.is_none() || {
        let (start, end) = found[2];
        checked_weight(&text[start..end]).is_some()
    };
    (is_name(found[0]) && is_name(found[1]) && has_weight).then_some(Line { edge: found, end })
}

/// Whether a field may be a name.
pub(super) fn is_name(field: &[u8]) -> bool {
    !field.is_empty() && std::str::from_utf8(field).is_ok()
}

/// A field without blanks around it, and without its quotes.
pub(super) fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

fn span(text: &[u8], start: usize, end: usize, rewritten: &mut Vec<u8>) -> Span {
    let field = &text[start..end];
    let name = bare(field);
    let is_quoted = name.len() < field.len() && field.trim_ascii().first() == Some(&b'"');
    if is_quoted && name.windows(2).any(|pair| pair == b"\"\"") {
        let from = rewritten.len();
        let mut rest = name.iter();
        while let Some(&byte) = rest.next() {
            rewritten.push(byte);
            if byte == b'"' {
                rest.next();
            }
        }
        let hash = hash(&rewritten[from..]);
        return Span { hash, start: from as u32, len: (rewritten.len() - from) as u32 | REWRITTEN };
    }
    // A chunk has less than 2^31 bytes: lines are short.
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    Span { hash: hash(name), start: start as u32, len: name.len() as u32 }
}
