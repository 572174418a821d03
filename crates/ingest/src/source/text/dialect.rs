//! The dialect of an edge list: its delimiter, its header and the columns of ends and weights.
//!
//! Found from the first lines, so that nobody has to say it: SNAP separates by tabs, CSV by commas,
//! others by spaces, `;` or `|`; lines that start with `#` or `%` are comments anywhere, and the last
//! comment before the data is a header where it names the ends of edges.

use std::path::Path;

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};

use super::fields::Delimiter;
use super::kinds::kinds;
use super::named::bare;
use crate::source::chunks::{HEAD_BYTES, long_line};
use crate::source::columns::{Asked, Columns, Table, name_ends};
use crate::source::packing::unpacked_name;
use crate::source::raw::Head;
use crate::source::{OpenOptions, Weights};

/// Lines from which the kinds of columns are found.
const LINES: usize = 1000;

/// The dialect of one file: how its lines are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The delimiter between fields.
    pub delimiter: Delimiter,
    /// The column of the sources, from 0.
    pub src: usize,
    /// The column of the targets, from 0.
    pub dst: usize,
    /// The column of the weights, from 0; `None` if they are not read.
    pub weights: Option<usize>,
    /// The number of fields that each line must have; `None` if fields after those read do not matter.
    pub columns: Option<usize>,
    /// Bytes before the first line of data.
    pub data_start: usize,
    /// Lines before the first line of data.
    pub data_line: u64,
    /// Notes for the user about the columns.
    pub notes: Vec<String>,
    /// Whether the ends are names.
    pub is_named: bool,
    /// Whether any of the first lines has an id in quotes.
    pub is_quoted: bool,
}

impl Dialect {
    /// Finds the dialect of the file that starts with `head`.
    ///
    /// # Errors
    /// An input error where a column that is asked for is not there, or lines are no edges.
    pub fn detect(path: &Path, head: &Head, options: &OpenOptions) -> Result<Self> {
        let is_named = options.names.is_some();
        let layout = match is_named {
            false => Layout::of(head),
            true => Layout::of_names(head, options.columns.as_deref()),
        };
        check_lines(path, head, &layout, options)?;
        let Some(first) = layout.lines.first() else {
            // A text without edges, which whoever reads it says.
            return Ok(Self { is_named, ..layout.first_columns() });
        };
        let third_is_weight = extension_is(path, "e");
        let weights = match &options.weights {
            Weights::Auto if extension_is(path, "wel") && options.columns.is_none() => {
                Weights::Column(3)
            }
            weights => weights.clone(),
        };
        let asked = Asked { columns: options.columns.clone(), weights };
        let found = Self { delimiter: layout.delimiter, is_named, ..Self::default() };
        let kinds = kinds(&layout.lines, |line| found.fields(line));
        let (name, names) = (path.display().to_string(), layout.names_of(path, kinds.len())?);
        let table = Table { path: &name, names, kinds: &kinds, third_is_weight };
        let Columns { src, dst, weight, mut notes } = table.choose(&asked)?;
        if is_named && layout.comments > 0 {
            notes.push(format!(
                "{} lines of `{name}` before the first edge begin with `#` or `%` and are taken for \
                 comments; later ones are not",
                layout.comments
            ));
        }
        if is_named && layout.names.is_empty() && layout.delimiter.0.is_some() {
            notes.extend(may_be_header(&name, &layout, &found, [src, dst]));
        }
        let is_quoted = !is_named
            && layout.lines.iter().any(|line| {
                let fields = found.fields(line);
                let in_quotes = |end: usize| fields.get(end).is_some_and(|f| f.starts_with(b"\""));
                in_quotes(src) || in_quotes(dst)
            });
        let third = found.fields(first).get(2).copied().unwrap_or_default();
        if weight.is_none() && asked.weights == Weights::Auto && has_weight(third) {
            notes.push(format!(
                "column 3 of `{name}` is not used, as it is no number; NetworkX writes numbers by \
                 `write_weighted_edgelist`"
            ));
        }
        Ok(Self {
            delimiter: layout.delimiter,
            src,
            dst,
            weights: weight,
            columns: (asked.weights != Weights::Ignore).then_some(kinds.len()),
            data_start: layout.data_start,
            data_line: layout.data_line,
            notes,
            is_named,
            is_quoted,
        })
    }

    /// The fields of one line.
    pub fn fields<'a>(&self, line: &'a [u8]) -> Vec<&'a [u8]> {
        match self.is_named {
            false => self.delimiter.fields(line),
            true => self.delimiter.fields_of_names(line),
        }
    }
}

/// The first lines of a file, split into header and data.
struct Layout<'a> {
    delimiter: Delimiter,
    /// The names in the header; empty without one.
    names: Vec<String>,
    /// The first [`LINES`] lines of data.
    lines: Vec<&'a [u8]>,
    data_start: usize,
    data_line: u64,
    /// Comments before the data.
    comments: u64,
}

impl<'a> Layout<'a> {
    fn of(head: &'a [u8]) -> Self {
        let mut all = DataLines { head, at: 0, line: 0, comment: None };
        let (mut data_start, mut data_line) = (0, 0);
        let mut first = all.next().map(|(text, ..)| (text, all.line, all.at));
        let comment = all.comment;
        let mut names = Vec::new();
        let mut delimiter = first.map_or_else(Delimiter::default, |(text, ..)| delimiter_of(text));
        if let Some((header, line, end)) = first.filter(|(text, ..)| is_header(text)) {
            first = all.next().map(|(text, ..)| (text, all.line, all.at));
            delimiter = header_delimiter(header, first.map(|(text, ..)| text));
            names = names_of(delimiter, header);
            (data_start, data_line) = (end, line);
        } else if let (Some(comment), Some((data, ..))) = (comment, first) {
            let named = names_of(header_delimiter(comment, Some(data)), comment);
            if named.len() == delimiter.fields(data).len() && name_ends(&named) {
                names = named;
            }
        }
        let rest = all.map(|(text, ..)| text).take(LINES - 1);
        let lines = first.map(|(text, ..)| text).into_iter().chain(rest).collect();
        Self { delimiter, names, lines, data_start, data_line, comments: 0 }
    }

    /// The same of edges between names: comments are those before the first other line, which is a header if
    /// it names ends, or the columns that are `asked` for.
    fn of_names(head: &'a [u8], asked: Option<&[String]>) -> Self {
        let mut all = DataLines { head, at: 0, line: 0, comment: None };
        let first = all.next().map(|(text, ..)| text).unwrap_or_default();
        let (mut data_start, mut data_line) = (all.at - first.len(), all.line.saturating_sub(1));
        let blank = |line: &&[u8]| line.trim_ascii().is_empty();
        let before = head[..data_start].split_inclusive(|&b| b == b'\n');
        let comments = before.filter(|line| !blank(line)).count() as u64;
        let text = first.trim_ascii();
        let delimiter = Delimiter(b"\t,;|".iter().copied().find(|d| text.contains(d)));
        let mut names = names_of(delimiter, first);
        let is_asked = |asked: &[String]| asked.iter().all(|name| names.contains(name));
        if name_ends(&names) || asked.is_some_and(is_asked) {
            (data_start, data_line) = (all.at, all.line);
        } else {
            names.clear();
        }
        let data = head[data_start..].split_inclusive(|&b| b == b'\n');
        let lines = data.filter(|line| !blank(line)).take(LINES).collect();
        Self { delimiter, names, lines, data_start, data_line, comments }
    }
}

impl Layout<'_> {
    /// The dialect of edges in the first two columns.
    fn first_columns(&self) -> Dialect {
        let &Self { delimiter, data_start, data_line, .. } = self;
        Dialect { delimiter, dst: 1, data_start, data_line, ..Dialect::default() }
    }

    /// The names of the columns; an error if the header has another number than `columns`.
    fn names_of(&self, path: &Path, columns: usize) -> Result<&[String]> {
        if self.names.len() == columns || self.names.is_empty() {
            return Ok(&self.names);
        }
        // A title before two columns is no table's header.
        if columns == 2 && !name_ends(&self.names) {
            return Ok(&[]);
        }
        let e = Error::new(ErrorKind::Input, format!("read line {} of", self.data_line + 1));
        let expected = format!("{} fields, as the header has", self.names.len());
        Err(e.object(path.display()).expected(expected).got(columns))
    }
}

/// Whether lines are of numbers alone and differ in how many: then they may be adjacency lists, and to
/// ignore the columns after the second would lose edges.
pub(crate) fn is_ragged(head: &[u8]) -> bool {
    let layout = Layout::of(head);
    let mut counts = layout.lines.iter().filter_map(|line| {
        let fields = layout.delimiter.fields(line);
        fields.iter().all(|field| field.iter().all(u8::is_ascii_digit)).then_some(fields.len())
    });
    let first = counts.next().unwrap_or(0);
    counts.any(|count| first != count && count.max(first) > 2)
}

/// Fails for lines that hold several edges.
fn check_lines(path: &Path, head: &Head, layout: &Layout<'_>, options: &OpenOptions) -> Result<()> {
    if !head.is_whole && !head.contains(&b'\n') {
        return Err(long_line(path, HEAD_BYTES as usize));
    }
    if !head.is_whole && layout.lines.is_empty() {
        return Err(Error::new(ErrorKind::Input, "read")
            .object(path.display())
            .expected(format!("an edge among its first `{}`", ByteSize(HEAD_BYTES)))
            .got("comments and empty lines alone")
            .hint("leave them out: `grep -v '^[#%]' FILE | grep .`"));
    }
    let [only] = &layout.lines[..] else { return Ok(()) };
    let fields = layout.delimiter.fields(only);
    let numbers = fields.iter().all(|field| field.iter().all(u8::is_ascii_digit));
    let asked = options.weights != Weights::Auto || options.columns.is_some();
    if !head.is_whole || !numbers || fields.len() < 4 || !layout.names.is_empty() || asked {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "read")
        .object(path.display())
        .expected("an edge a line")
        .got(format!("{} numbers on its only line", fields.len()))
        .hint(
            "`--format adjacency` if they are a vertex and its neighbours, `--weights none` if only \
             the first two count",
        ))
}

/// A note about the first line of edges between names, if no other of the first lines has its ends: it may
/// name columns.
fn may_be_header(
    name: &str,
    layout: &Layout<'_>,
    dialect: &Dialect,
    ends: [usize; 2],
) -> Option<String> {
    let of_line = |line: &&[u8]| {
        let fields = dialect.fields(line);
        ends.map(|end| fields.get(end).map(|field| bare(field).to_vec()).unwrap_or_default())
    };
    let mut lines = layout.lines.iter().map(of_line);
    let first = lines.next()?;
    if lines.any(|line| line.iter().any(|end| first.contains(end))) {
        return None;
    }
    let [src, dst] = first.map(|end| String::from_utf8_lossy(&end).into_owned());
    Some(format!(
        "line {} of `{name}`, `{src}` to `{dst}`, is taken for an edge; if it names the columns, \
         `--columns {src},{dst}` says so",
        layout.data_line + 1
    ))
}

/// Whether a field is a dictionary with a weight, as NetworkX writes it.
fn has_weight(field: &[u8]) -> bool {
    field.starts_with(b"{") && field.windows(8).any(|word| word == b"'weight'")
}

fn extension_is(path: &Path, extension: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Path::new(unpacked_name(name).0).extension().is_some_and(|e| e == extension)
}

/// An iterator over the lines that are neither empty nor comments, and where each ends.
struct DataLines<'a> {
    head: &'a [u8],
    at: usize,
    /// The number of lines so far.
    line: u64,
    /// The last comment so far, without its mark.
    comment: Option<&'a [u8]>,
}

impl<'a> Iterator for DataLines<'a> {
    type Item = (&'a [u8], usize);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.head.len() {
            let rest = &self.head[self.at..];
            let end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |end| end + 1);
            let text = &rest[..end];
            self.at += end;
            self.line += 1;
            match text.trim_ascii() {
                [] => {}
                [b'#' | b'%', comment @ ..] => self.comment = Some(comment.trim_ascii()),
                _ => return Some((text, self.at)),
            }
        }
        None
    }
}

/// Whether a line names columns: no field is a number, and one begins like a name.
fn is_header(text: &[u8]) -> bool {
    let fields = header_delimiter(text, None).fields(text);
    let begins = |field: &&[u8], number: bool| {
        // A number in quotes is one.
        let bare = field.strip_prefix(b"\"").filter(|_| number).unwrap_or(field);
        bare.first().is_some_and(|b| match number {
            true => b.is_ascii_digit() || b"+-.".contains(b),
            false => b.is_ascii_alphabetic() || b"_\":".contains(b),
        })
    };
    !fields.iter().any(|field| begins(field, true))
        && fields.iter().any(|field| begins(field, false))
}

/// The delimiter between the first two fields of a line of data.
fn delimiter_of(data: &[u8]) -> Delimiter {
    let data = data.trim_ascii();
    let digits = data.iter().position(|b| !b.is_ascii_digit());
    let next = digits.and_then(|digits| data[digits..].trim_ascii_start().first().copied());
    let separates = |b: &u8| b.is_ascii_punctuation() && !b"-+.\"'#%_{".contains(b);
    Delimiter(next.filter(separates))
}

/// The delimiter of the header's names and of the first line of data.
fn header_delimiter(header: &[u8], data: Option<&[u8]>) -> Delimiter {
    let both = |d: &u8| header.contains(d) && data.is_none_or(|data| data.contains(d));
    match b",;|\t".iter().copied().find(both) {
        Some(b'\t') => Delimiter(tabs(header, data)),
        Some(delimiter) => Delimiter(Some(delimiter)),
        None => data.map_or_else(Delimiter::default, delimiter_of),
    }
}

/// A tab, if it delimits fields that have blanks inside; else `None`.
fn tabs(header: &[u8], data: Option<&[u8]>) -> Option<u8> {
    let blanks = |text: &[u8]| text.trim_ascii().contains(&b' ');
    (blanks(header) || data.is_some_and(blanks)).then_some(b'\t')
}

fn names_of(delimiter: Delimiter, header: &[u8]) -> Vec<String> {
    let name = |name: &&[u8]| String::from_utf8_lossy(name).trim_matches('"').into();
    delimiter.fields(header).iter().map(name).collect()
}
