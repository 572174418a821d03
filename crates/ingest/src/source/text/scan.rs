//! The inner loop of the text importer: bytes to columns of ids.
//!
//! Ids are read eight digits at a time in one 64-bit word (D. Lemire, "Quickly parsing eight
//! digits", 2018): the first byte that is no digit comes from one add and one mask, and three
//! multiplications turn up to eight digits into a number.

use crate::source::batch::VertexId;

use super::dialect::Dialect;
use super::named::{bare, is_name};

/// A line that cannot be read, counted from the start of the scanned bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFault {
    /// The number of lines before it.
    pub line: u64,
    pub expected: String,
    pub got: String,
    pub hint: Option<&'static str>,
}

impl LineFault {
    /// A fault after `line` lines, without a hint.
    pub fn new(line: u64, expected: String, got: String) -> Self {
        Self { line, expected, got, hint: None }
    }
}

/// The reason why a scan stopped before the end.
pub(super) enum Stop {
    /// An id does not fit the width: go on from this byte and line with a wider one.
    TooWide { at: usize, line: u64 },
    /// A malformed line.
    Fault(LineFault),
}

/// The columns that the scan of one part of a chunk appends to.
pub(super) struct Columns<'a, I> {
    pub src: &'a mut Vec<I>,
    pub dst: &'a mut Vec<I>,
    pub weights: Option<&'a mut Vec<f64>>,
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// The number that up to eight digits at the front of `word` (little-endian) make, and how many.
#[inline(always)]
fn eight_digits(word: u64) -> (u64, u32) {
    let values = word ^ (ONES * 0x30);
    // Bit 7 of a byte is set where the byte is not 0…9; a carry only disturbs later bytes.
    let others = (values.wrapping_add(ONES * 0x76) | values) & (ONES * 0x80);
    let digits = others.trailing_zeros() / 8;
    if digits == 0 {
        return (0, 0);
    }
    let v = values << (64 - 8 * digits);
    let v = v.wrapping_mul(10).wrapping_add(v >> 8) & 0x00ff_00ff_00ff_00ff;
    let v = v.wrapping_mul(100).wrapping_add(v >> 16) & 0x0000_ffff_0000_ffff;
    let v = v.wrapping_mul(10_000).wrapping_add(v >> 32) & 0xffff_ffff;
    (v, digits)
}

const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The unsigned integer at `at` and the byte after it; `None` without a digit or on overflow.
#[inline(always)]
pub(crate) fn unsigned(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, digits) = eight_digits(word(text, at));
    match digits {
        0 => None,
        8 => longer(text, value, at + 8),
        _ => Some((value, at + digits as usize)),
    }
}

/// Reads on in an integer of which eight digits are read.
fn longer(text: &[u8], mut value: u64, mut end: usize) -> Option<(u64, usize)> {
    loop {
        let (more, digits) = eight_digits(word(text, end));
        value = value.checked_mul(POWERS[digits as usize])?.checked_add(more)?;
        end += digits as usize;
        if digits < 8 {
            return Some((value, end));
        }
    }
}

/// Eight bytes at `at`, zeros after the end of the text.
#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    match text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => last_word(text, at),
    }
}

#[cold]
fn last_word(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = text.get(at..).unwrap_or_default();
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(bytes)
}

#[inline]
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(b'\n')
}

#[inline]
fn skip_blanks(text: &[u8], mut at: usize, dialect: &Dialect) -> usize {
    while dialect.delimiter.is_blank(byte(text, at)) {
        at += 1;
    }
    at
}

/// The first byte of the next line.
#[inline]
fn next_line(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|&b| b == b'\n').map_or(text.len(), |end| at + end + 1)
}

/// The first byte of the next line, where the line ends at `at`.
#[inline(always)]
fn line_end(text: &[u8], at: usize) -> Option<usize> {
    match byte(text, at) {
        b'\n' => Some(at + 1),
        b'\r' if byte(text, at + 1) == b'\n' => Some(at + 2),
        _ => None,
    }
}

/// What a line has of an edge, and where the scan of the line goes on.
pub(super) struct Line<E> {
    pub edge: E,
    pub end: usize,
}

/// An edge, and where the scan of its line goes on.
struct Edge {
    src: u64,
    dst: u64,
    weight: f64,
    end: usize,
}

/// Appends the edges of `text[from..]` to `columns`; returns the number of lines before the end, `line`
/// included.
pub(super) fn scan<I: VertexId>(
    text: &[u8],
    from: usize,
    line: u64,
    dialect: &Dialect,
    columns: &mut Columns<'_, I>,
) -> Result<u64, Stop> {
    match (dialect.src, dialect.dst, dialect.weights) {
        _ if dialect.is_quoted => {
            each_edge(text, from, line, dialect, columns, |at| any_columns(text, at, dialect))
        }
        (0, 1, None) => each_edge(text, from, line, dialect, columns, |at| ids(text, at, dialect)),
        (0, 1, Some(column)) if column > 1 => each_edge(text, from, line, dialect, columns, |at| {
            let Edge { src, dst, end, .. } = ids(text, at, dialect)?;
            let (weight, end) = weight(text, end, column - 2, dialect)?;
            Some(Edge { src, dst, weight, end })
        }),
        _ => each_edge(text, from, line, dialect, columns, |at| any_columns(text, at, dialect)),
    }
}

/// Appends the edge that `edge` finds on each line to `columns`.
#[inline(always)]
fn each_edge<I: VertexId>(
    text: &[u8],
    from: usize,
    line: u64,
    dialect: &Dialect,
    columns: &mut Columns<'_, I>,
    edge: impl Fn(usize) -> Option<Edge>,
) -> Result<u64, Stop> {
    let edge = |at| edge(at).map(|edge| Line { end: edge.end, edge });
    each_line(text, from, line, dialect, edge, |Edge { src, dst, weight, .. }| {
        if src > I::MAX || dst > I::MAX {
            return false;
        }
        if let Some(weights) = &mut columns.weights {
            weights.push(weight);
        }
        columns.src.push(I::from_u64(src));
        columns.dst.push(I::from_u64(dst));
        true
    })
}

/// Gives `take` what `edge` finds at the start of each line that is neither empty nor a comment; stops where
/// it does not take it. Among names there are no comments: a name may begin as one.
#[inline(always)]
pub(super) fn each_line<E>(
    text: &[u8],
    from: usize,
    mut line: u64,
    dialect: &Dialect,
    edge: impl Fn(usize) -> Option<Line<E>>,
    mut take: impl FnMut(E) -> bool,
) -> Result<u64, Stop> {
    let mut at = from;
    while at < text.len() {
        let start = at;
        at = skip_blanks(text, at, dialect);
        let first = byte(text, at);
        let is_comment = (first == b'#' || first == b'%') && !dialect.is_named;
        if is_comment || line_end(text, at).is_some() {
            at = next_line(text, at);
            line += 1;
            continue;
        }
        let found = edge(at).and_then(|found| Some((rest(text, found.end, dialect)?, found.edge)));
        let Some((next, edge)) = found else {
            return Err(Stop::Fault(explain(text, start, line, dialect)));
        };
        if !take(edge) {
            return Err(Stop::TooWide { at: start, line });
        }
        at = next;
        line += 1;
    }
    Ok(line)
}

/// The ids in the first two columns of the line at `at`; `None` if they are no ids.
#[inline(always)]
fn ids(text: &[u8], at: usize, dialect: &Dialect) -> Option<Edge> {
    let (src, end) = unsigned(text, at)?;
    let at = delimiter(text, end, dialect)?;
    let (dst, end) = unsigned(text, at)?;
    ends_field(text, end, dialect).then_some(Edge { src, dst, weight: 0.0, end })
}

/// Whether a field may end at `at`.
#[inline(always)]
fn ends_field(text: &[u8], at: usize, dialect: &Dialect) -> bool {
    if byte(text, at) == b'\n' {
        return true;
    }
    let after = skip_blanks(text, at, dialect);
    let delimits = dialect.delimiter.0.map_or(after > at, |d| byte(text, after) == d);
    delimits || line_end(text, after).is_some()
}

/// The edge of the line at `at`, with ids and weight in any columns; `None` if it is malformed.
fn any_columns(text: &[u8], mut at: usize, dialect: &Dialect) -> Option<Edge> {
    let last = dialect.src.max(dialect.dst).max(dialect.weights.unwrap_or(0));
    let mut edge = Edge { src: 0, dst: 0, weight: 0.0, end: at };
    for column in 0..=last {
        if column > 0 {
            at = delimiter(text, edge.end, dialect)?;
        }
        if column == dialect.src || column == dialect.dst {
            let (id, end) = quoted_id(text, at, dialect)?;
            let to = if column == dialect.src { &mut edge.src } else { &mut edge.dst };
            (*to, edge.end) = (id, end);
            if !ends_field(text, end, dialect) {
                return None;
            }
        } else {
            edge.end = field_end(text, at, dialect);
            if dialect.weights == Some(column) {
                edge.weight = checked_weight(&text[at..edge.end])?;
            }
        }
    }
    Some(edge)
}

/// The id at `at`, in quotes or not, and the byte after it.
fn quoted_id(text: &[u8], at: usize, dialect: &Dialect) -> Option<(u64, usize)> {
    if byte(text, at) != b'"' {
        return unsigned(text, at);
    }
    let end = field_end(text, at, dialect);
    let (id, _) = whole_id(bare(&text[at..end]))?;
    Some((id, end))
}

/// The id that is a whole field, and its length.
fn whole_id(field: &[u8]) -> Option<(u64, usize)> {
    unsigned(field, 0).filter(|(_, end)| *end == field.len())
}

/// The first byte of the next line, where the last field that is read has ended at `at`; `None` if the
/// line has fewer or more fields than it should.
#[inline(always)]
fn rest(text: &[u8], at: usize, dialect: &Dialect) -> Option<usize> {
    match dialect.columns {
        None => Some(next_line(text, at)),
        Some(columns) => {
            let read = dialect.src.max(dialect.dst).max(dialect.weights.unwrap_or(0)) + 1;
            match (line_end(text, at), columns - read) {
                (Some(next), 0) => Some(next),
                (_, unread) => unread_fields(text, at, unread, dialect),
            }
        }
    }
}

/// The first byte of the next line, after `unread` further fields; `None` if there are not as many.
fn unread_fields(text: &[u8], mut at: usize, unread: usize, dialect: &Dialect) -> Option<usize> {
    for _ in 0..unread {
        let start = delimiter(text, at, dialect)?;
        if dialect.delimiter.0.is_none() && line_end(text, start).is_some() {
            return None;
        }
        at = field_end(text, start, dialect);
    }
    at = skip_blanks(text, at, dialect);
    match dialect.delimiter.0 {
        // A delimiter at the end of a line has no field after it.
        Some(d) if byte(text, at) == d => at = skip_blanks(text, at + 1, dialect),
        None if byte(text, at) == b'#' && !dialect.is_named => return Some(next_line(text, at)),
        _ => {}
    }
    line_end(text, at)
}

/// The first byte of the next field, where a field has just ended at `at`.
#[inline]
pub(super) fn delimiter(text: &[u8], at: usize, dialect: &Dialect) -> Option<usize> {
    let after = skip_blanks(text, at, dialect);
    match dialect.delimiter.0 {
        None => (after > at).then_some(after),
        Some(d) => (byte(text, after) == d).then(|| skip_blanks(text, after + 1, dialect)),
    }
}

/// The weight `skip` fields after the field that ended at `at`, and the byte after it.
#[inline]
fn weight(text: &[u8], mut at: usize, skip: usize, dialect: &Dialect) -> Option<(f64, usize)> {
    for _ in 0..skip {
        at = field_end(text, delimiter(text, at, dialect)?, dialect);
    }
    let start = delimiter(text, at, dialect)?;
    let end = field_end(text, start, dialect);
    Some((checked_weight(text.get(start..end)?)?, end))
}

#[inline]
pub(super) fn checked_weight(field: &[u8]) -> Option<f64> {
    let field = if field.first() == Some(&b'"') { bare(field) } else { field.trim_ascii_end() };
    decimal(field).filter(|weight| weight.is_finite() && *weight >= 0.0)
}

/// The end of the field that begins at `at`, as [`Delimiter::field_end`](super::fields::Delimiter) finds
/// it, but faster for most fields.
#[inline]
pub(super) fn field_end(text: &[u8], mut at: usize, dialect: &Dialect) -> usize {
    let delimiter = dialect.delimiter;
    if matches!(byte(text, at), b'"' | b'{') {
        return delimiter.field_end(text, at);
    }
    loop {
        let b = byte(text, at);
        let ends = match delimiter.0 {
            None => delimiter.is_blank(b),
            Some(d) => b == d,
        };
        if ends || b == b'\n' || line_end(text, at).is_some() {
            return at;
        }
        at += 1;
    }
}

/// A decimal number. Up to 15 digits with up to 22 after the point are exact in one division (W.
/// Clinger, "How to read floating point numbers accurately", 1990); others take the slow way.
#[inline]
fn decimal(text: &[u8]) -> Option<f64> {
    const TENS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (mut mantissa, mut point) = (0u64, None);
    let short = !text.is_empty() && text.len() <= 16;
    let plain = short
        && text.iter().enumerate().all(|(i, &b)| {
            if b.is_ascii_digit() {
                mantissa = mantissa * 10 + u64::from(b - b'0');
                return true;
            }
            b == b'.' && point.replace(i).is_none()
        });
    let digits = text.len() - usize::from(point.is_some());
    if plain && (1..=15).contains(&digits) {
        let decimals = point.map_or(0, |i| text.len() - 1 - i);
        return Some(mantissa as f64 / TENS[decimals]);
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Explains what is wrong with the line that starts at `start`. Not on the fast path, so it reads again.
fn explain(text: &[u8], start: usize, line: u64, dialect: &Dialect) -> LineFault {
    let end = next_line(text, start);
    let content = text[start..end].trim_ascii_end();
    let quoted = |field: &[u8]| format!("`{}`", shorten(field));
    let fault = |expected: String, got: String| LineFault::new(line, expected, got);
    let fields = dialect.fields(content);
    if content.contains(&b'\r') {
        return fault("line feeds at the ends of lines".into(), "a carriage return alone".into());
    }
    for (column, name) in [(dialect.src, "source"), (dialect.dst, "target")] {
        let Some(field) = fields.get(column) else {
            return fault(format!("a {name} id in column {}", column + 1), quoted(content));
        };
        if dialect.is_named {
            if !is_name(bare(field)) {
                let kind = if bare(field).is_empty() { "" } else { " in UTF-8" };
                let expected = format!("a name{kind} in column {}", column + 1);
                return fault(expected, quoted(field));
            }
            continue;
        }
        if whole_id(if dialect.is_quoted { bare(field) } else { field }).is_none() {
            let expected = format!("an unsigned 64-bit integer in column {}", column + 1);
            let is_name = field.first().is_some_and(|first| first.is_ascii_alphabetic());
            let hint = is_name.then_some("`--ids names` reads ids that are names");
            return LineFault { hint, ..fault(expected, quoted(field)) };
        }
    }
    if let Some(column) = dialect.weights
        && fields.get(column).is_none_or(|field| checked_weight(field).is_none())
    {
        let got = quoted(fields.get(column).unwrap_or(&content));
        let expected = format!("a weight of 0 or more in column {}", column + 1);
        return LineFault {
            hint: Some("`--weights none` reads only the ids"),
            ..fault(expected, got)
        };
    }
    let columns = dialect.columns.unwrap_or(0);
    let expected = format!("{columns} fields, as before");
    let hint = Some(
        "`--format adjacency` if a line is a vertex and its neighbours, `--weights none` if only the \
         columns of ids are to be read",
    );
    let hint = hint.filter(|_| !dialect.is_named);
    LineFault { hint, ..fault(expected, fields.len().to_string()) }
}

/// The first 40 characters of a line or field at most, for a message.
pub(crate) fn shorten(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_are_read() {
        let mut value = 0u64;
        for digit in [1, 8, 4, 4, 6, 7, 4, 4, 0, 7, 3, 7, 0, 9, 5, 5, 1, 6, 1, 5] {
            value = value * 10 + digit;
            for tail in ["", " ", "\n", ",12345678", "/x", ":x"] {
                let text = format!("{value}{tail}");
                let end = text.len() - tail.len();
                assert_eq!(unsigned(text.as_bytes(), 0), Some((value, end)), "{text:?}");
            }
        }
        assert_eq!(value, u64::MAX);
        assert_eq!(unsigned(b"18446744073709551616", 0), None);
        assert_eq!(unsigned(b"00000000000000000000000007 ", 0), Some((7, 26)));
        assert_eq!(unsigned(b"-1", 0), None);
        assert_eq!(unsigned(b"", 0), None);
    }

    #[test]
    fn decimals_agree_with_the_standard_library() {
        for text in ["0", "0.5", "5.", ".25", "123456.789", "1e3", "0.1234567890123456789", "1e-9"]
        {
            assert_eq!(decimal(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in ["", ".", "1.2.3", "x", "1,5"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }
}
