//! What the first lines say.

use std::path::Path;

use tiergraph_core::Result;

use super::super::packing::unpacked_name;
use super::{ChunkSpec, Format, LineFault, fault, line_error, unsigned};

/// What a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// An edge.
    Edges,
    /// A letter, and then perhaps an edge.
    Lettered,
    /// The neighbours of a vertex.
    Vertices,
}

/// A header, and what follows from it.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) vertices: u64,
    pub(super) edges: u64,
    pub(super) directed: Option<bool>,
    /// Whether edges have a weight.
    pub(super) is_weighted: bool,
    /// Whether lines of edges may have more than that.
    pub(super) may_have_more: bool,
    /// Numbers before the neighbours of a line.
    pub(super) before_neighbors: usize,
    pub(super) lines: Lines,
    /// Lines up to the header's end.
    pub(super) lines_before: u64,
    comment: u8,
}

impl Header {
    /// The header of a file.
    ///
    /// # Errors
    /// An input error that names the line, and what a header has there.
    pub(super) fn read(spec: &ChunkSpec, format: Format) -> Result<Self> {
        let head = spec.head()?;
        let mut number = 0;
        if format == Format::MatrixMarket {
            Self::banner(&head).map_err(|fault| line_error(spec.path(), 0, &fault))?;
        }
        let read = |line: &[u8], number: u64| {
            match format {
                Format::MatrixMarket => Self::matrix_market(&head, line),
                Format::Metis => Self::metis(line),
                _ => Self::dimacs(line),
            }
            .map(|header| Self { lines_before: number + 1, ..header })
            .map_err(|fault| line_error(spec.path(), number, &fault))
        };
        let comment = if format == Format::Dimacs { b'c' } else { b'%' };
        for line in head.split(|&b| b == b'\n') {
            let line = line.trim_ascii();
            if !line.is_empty() && !is_comment(line, comment) {
                return read(line, number);
            }
            number += 1;
        }
        read(b"", number.saturating_sub(1))
    }

    /// Whether a line after the header says nothing of the graph.
    pub(super) fn is_comment(&self, line: &[u8]) -> bool {
        is_comment(line, self.comment)
    }

    /// A vertex.
    pub(super) fn vertex(&self, field: Option<&[u8]>) -> std::result::Result<u64, LineFault> {
        match whole(field) {
            Some(id) if (1..=self.vertices).contains(&id) => Ok(id),
            _ => Err(fault(&format!("a vertex from 1 to {}", self.vertices), field)),
        }
    }

    /// Whether edges of `%%MatrixMarket matrix coordinate FIELD SYMMETRY` have weights, and directions.
    fn banner(head: &[u8]) -> std::result::Result<(bool, Option<bool>), LineFault> {
        let banner = head.split(|&b| b == b'\n').next().unwrap_or_default().to_ascii_lowercase();
        let words: Vec<&[u8]> = fields(&banner).collect();
        let [b"%%matrixmarket", b"matrix", b"coordinate", field, symmetry] = words[..] else {
            let expected = "`%%MatrixMarket matrix coordinate FIELD SYMMETRY` on line 1";
            return Err(fault(expected, Some(banner.trim_ascii())));
        };
        let is_weighted = match field {
            b"real" | b"integer" | b"double" => true,
            b"pattern" => false,
            other => return Err(fault("the field `real`, `integer` or `pattern`", Some(other))),
        };
        let directed = match symmetry {
            b"general" => None,
            b"symmetric" | b"skew-symmetric" => Some(false),
            other => return Err(fault("`general`, `symmetric` or `skew-symmetric`", Some(other))),
        };
        Ok((is_weighted, directed))
    }

    /// The banner, and `ROWS COLUMNS ENTRIES`.
    fn matrix_market(head: &[u8], sizes: &[u8]) -> std::result::Result<Self, LineFault> {
        let (is_weighted, directed) = Self::banner(head)?;
        let mut numbers = fields(sizes).map(|field| whole(Some(field)));
        let found = [(); 3].map(|()| numbers.next().flatten());
        let [Some(rows), Some(columns), Some(edges)] = found else {
            return Err(fault("the rows, as many columns, and the entries", Some(sizes)));
        };
        if rows != columns {
            let got = format!("{rows} rows and {columns} columns");
            let square =
                LineFault::new(0, "a square matrix, of edges between vertices".into(), got);
            let hint =
                Some("of a bipartite graph, number the columns after the rows, an edge a line");
            return Err(LineFault { hint, ..square });
        }
        let lines = Lines::Edges;
        Self::of(rows, edges)?.with(|header| Self { directed, is_weighted, lines, ..header })
    }

    /// `VERTICES EDGES [FORMAT [CONSTRAINTS]]`.
    fn metis(line: &[u8]) -> std::result::Result<Self, LineFault> {
        let expected = "the vertices, the edges, and perhaps a format such as 001 or 011";
        let mut numbers = fields(line);
        let (Some(vertices), Some(edges)) = (whole(numbers.next()), whole(numbers.next())) else {
            return Err(fault(expected, Some(line)));
        };
        let format = numbers.next().unwrap_or(b"0");
        if format.len() > 3 || !format.iter().all(|digit| matches!(digit, b'0' | b'1')) {
            return Err(fault(expected, Some(format)));
        }
        let constraints = match numbers.next() {
            None => 1,
            Some(field) => whole(Some(field)).ok_or_else(|| fault(expected, Some(field)))?,
        };
        let digit = |place: usize| format.len() > place && format[format.len() - 1 - place] == b'1';
        let weights = if digit(1) { constraints as usize } else { 0 };
        Self::of(vertices, edges)?.with(|header| Self {
            directed: Some(false),
            is_weighted: digit(0),
            before_neighbors: usize::from(digit(2)) + weights,
            lines: Lines::Vertices,
            ..header
        })
    }

    /// `p KIND VERTICES EDGES`.
    fn dimacs(line: &[u8]) -> std::result::Result<Self, LineFault> {
        let mut words = fields(line);
        let (letter, kind) = (words.next(), words.next().unwrap_or_default());
        let (Some(vertices), Some(edges)) = (whole(words.next()), whole(words.next())) else {
            return Err(fault("`p`, a kind, the vertices and the edges", Some(line)));
        };
        if letter != Some(b"p") {
            return Err(fault("`p`, a kind, the vertices and the edges", Some(line)));
        }
        let (lines, directed, is_weighted) = match kind {
            b"sp" | b"max" | b"asn" => (Lines::Lettered, Some(true), true),
            b"edge" | b"col" | b"edges" => (Lines::Lettered, Some(false), false),
            // Of PACE's challenges: `tw`, `td`, `ds`, `vc`, …
            _ => (Lines::Edges, Some(false), false),
        };
        let made = |header| Self { comment: b'c', directed, is_weighted, lines, ..header };
        // Some files of colourings have weights.
        Self::of(vertices, edges)?
            .with(|header| Self { may_have_more: lines == Lines::Lettered, ..made(header) })
    }

    fn of(vertices: u64, edges: u64) -> std::result::Result<Self, LineFault> {
        if vertices > u64::from(u32::MAX) {
            let got = format!("{vertices} of them");
            return Err(LineFault::new(0, "at most 2^32 - 1 vertices".into(), got));
        }
        Ok(Self {
            vertices,
            edges,
            directed: None,
            is_weighted: false,
            may_have_more: false,
            before_neighbors: 0,
            lines: Lines::Edges,
            lines_before: 0,
            comment: b'%',
        })
    }

    fn with(self, how: impl FnOnce(Self) -> Self) -> std::result::Result<Self, LineFault> {
        Ok(how(self))
    }
}

fn is_comment(line: &[u8], mark: u8) -> bool {
    match mark {
        // `c` is a word there; a line of neighbours has none.
        b'c' => line == b"c" || line.starts_with(b"c ") || line.starts_with(b"c\t"),
        mark => line.first() == Some(&mark),
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

fn whole(field: Option<&[u8]>) -> Option<u64> {
    let field = field?;
    unsigned(field, 0).filter(|(_, end)| *end == field.len()).map(|(value, _)| value)
}

/// Whether a file named like METIS's has as many lines as its first one has vertices.
pub(in super::super) fn is_metis(path: &Path, head: &[u8]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = Path::new(unpacked_name(name).0).extension();
    let called = extension.is_some_and(|e| e == "graph" || e == "metis");
    let mut lines = head.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"%"));
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let vertices = first.split_whitespace().next().and_then(|n| n.parse::<usize>().ok());
    let ends = usize::from(head.ends_with(b"\n"));
    called && vertices.is_some_and(|vertices| lines.count() == vertices + ends)
}
