//! How an edge list is written: its delimiter, its header and which column holds the weights.
//!
//! Found from the first lines, so that nobody has to say it: SNAP separates by tabs, CSV by commas,
//! others by spaces, `;` or `|`; lines that start with `#` or `%` are comments anywhere.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tiergraph_core::{Error, ErrorKind, Result};

use crate::source::Weights;

/// How much of a file the dialect is found from.
const HEAD_BYTES: u64 = 1 << 20;

/// How the lines of one file are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The byte between fields; `None`: any number of spaces and tabs.
    pub delimiter: Option<u8>,
    /// The names in the header line, empty without one.
    pub names: Vec<String>,
    /// The column of the weights, from 0, if they are read.
    pub weights: Option<usize>,
    /// Bytes before the first line of data.
    pub data_start: usize,
    /// Lines before the first line of data.
    pub data_line: u64,
}

/// The first bytes of a file, unzipped.
pub(crate) fn head(path: &Path, gzip: bool) -> Result<Vec<u8>> {
    let failed = |e| Error::io("read", path.display(), e);
    let file = File::open(path).map_err(failed)?;
    let mut head = Vec::new();
    if gzip {
        MultiGzDecoder::new(file).take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    } else {
        file.take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    }
    Ok(head)
}

impl Dialect {
    /// The dialect of the file that starts with `head`.
    ///
    /// # Errors
    /// An input error where `weights` names a column that the file does not have.
    pub fn detect(path: &Path, head: &[u8], weights: &Weights) -> Result<Self> {
        let mut dialect = Self::default();
        let mut lines = DataLines { head, at: 0, line: 0 };
        let first = lines.next();
        if let Some((header, line, end)) = first.filter(|(text, ..)| is_header(text)) {
            let data = lines.next().map(|(text, ..)| text);
            dialect.delimiter = data.map_or_else(|| header_delimiter(header), delimiter);
            dialect.names = dialect.fields(header).iter().map(|name| unquoted(name)).collect();
            dialect.data_start = end;
            dialect.data_line = line + 1;
            dialect.weights = dialect.find_weights(path, data.unwrap_or(header), weights)?;
        } else if let Some((data, ..)) = first {
            dialect.delimiter = delimiter(data);
            dialect.weights = dialect.find_weights(path, data, weights)?;
        }
        Ok(dialect)
    }

    /// The fields of one line.
    pub fn fields<'a>(&self, line: &'a [u8]) -> Vec<&'a [u8]> {
        match self.delimiter {
            Some(d) => line.split(|&b| b == d).map(<[u8]>::trim_ascii).collect(),
            None => line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect(),
        }
    }

    /// Whether the first lines are of numbers alone and differ in how many: then they may be
    /// adjacency lists, and to ignore the columns after the second would lose edges.
    pub fn is_ragged(&self, head: &[u8]) -> bool {
        let lines = DataLines { head: &head[self.data_start..], at: 0, line: 0 }.take(1000);
        let mut counts = lines.map(|(text, _, end)| {
            let fields = self.fields(text);
            let whole = self.data_start + end < head.len();
            let numbers = fields.iter().all(|field| field.iter().all(u8::is_ascii_digit));
            (numbers && whole).then_some(fields.len())
        });
        let first = counts.next().flatten();
        counts
            .flatten()
            .any(|count| first.is_some_and(|first| first != count && count.max(first) > 2))
    }

    fn find_weights(&self, path: &Path, data: &[u8], weights: &Weights) -> Result<Option<usize>> {
        let columns = self.fields(data).len();
        let refuse = |got: String| {
            let names = match self.names.get(2..) {
                Some(names) if !names.is_empty() => format!("one of `{}`", names.join("`, `")),
                _ if columns > 3 => format!("a column from 3 to {columns}"),
                _ if columns == 3 => "column 3".into(),
                _ => "no weights, as the file has only the two columns of ids".into(),
            };
            let e = Error::new(ErrorKind::Input, "read weights from").object(path.display());
            Err(e.expected(names).got(got))
        };
        match weights {
            Weights::Auto if extension_is(path, "wel") => Ok(Some(2)),
            Weights::Auto | Weights::Ignore => Ok(None),
            Weights::Column(column) if (3..=columns).contains(column) => Ok(Some(column - 1)),
            Weights::Column(column) => refuse(format!("column {column}")),
            Weights::Name(name) => match self.names.iter().position(|n| n == name) {
                Some(column) if column >= 2 => Ok(Some(column)),
                _ => refuse(format!("`{name}`")),
            },
        }
    }
}

fn extension_is(path: &Path, extension: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    Path::new(name).extension().is_some_and(|e| e == extension)
}

/// Lines that are neither empty nor comments: the text, its line number from 0, and its end.
struct DataLines<'a> {
    head: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> Iterator for DataLines<'a> {
    type Item = (&'a [u8], u64, usize);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.head.len() {
            let rest = &self.head[self.at..];
            let end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |end| end + 1);
            let (text, line) = (rest[..end].trim_ascii(), self.line);
            self.at += end;
            self.line += 1;
            if !matches!(text.first(), None | Some(b'#' | b'%')) {
                return Some((text, line, self.at));
            }
        }
        None
    }
}

/// Whether a line names columns: ids are numbers, names start with a letter.
fn is_header(text: &[u8]) -> bool {
    text.first().is_some_and(|&b| b.is_ascii_alphabetic() || b == b'_' || b == b'"' || b == b':')
}

/// What stands between the first two fields of a line of data.
fn delimiter(data: &[u8]) -> Option<u8> {
    let digits = data.iter().position(|b| !b.is_ascii_digit())?;
    let next = *data[digits..].trim_ascii_start().first()?;
    let separates = next.is_ascii_punctuation() && !b"-+.\"'#%_".contains(&next);
    separates.then_some(next)
}

fn header_delimiter(header: &[u8]) -> Option<u8> {
    b",;|".iter().copied().find(|d| header.contains(d))
}

fn unquoted(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_matches('"').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(head: &str, weights: &str) -> Result<Dialect> {
        let Ok(weights) = weights.parse();
        Dialect::detect(Path::new("edges.txt"), head.as_bytes(), &weights)
    }

    #[test]
    fn delimiters_are_found() {
        for (head, delimiter) in [
            ("# a\n1\t2\n", None),
            ("1  2\n", None),
            ("1, 2\n", Some(b',')),
            ("1 ;2\n", Some(b';')),
            ("src|dst\n1|2", Some(b'|')),
            ("1 -2\n", None),
            ("", None),
        ] {
            assert_eq!(detect(head, "auto").unwrap().delimiter, delimiter, "{head:?}");
        }
    }

    #[test]
    fn a_header_names_columns_and_is_skipped() {
        let dialect = detect("% c\nsrc,dst,\"cost\"\n1,2,3\n", "cost").unwrap();
        assert_eq!((dialect.weights, dialect.data_line), (Some(2), 2));
        assert_eq!(dialect.data_start, "% c\nsrc,dst,\"cost\"\n".len());
    }

    #[test]
    fn a_missing_weight_column_is_refused() {
        let message = |head, weights| detect(head, weights).unwrap_err().to_string();
        assert_eq!(
            message("a,b,cost,time\n1,2,3,4\n", "length"),
            "cannot read weights from `edges.txt`: expected one of `cost`, `time`, got `length`"
        );
        assert_eq!(
            message("1 2 5\n", "2"),
            "cannot read weights from `edges.txt`: expected column 3, got column 2"
        );
        assert_eq!(
            message("1 2\n", "3"),
            "cannot read weights from `edges.txt`: expected no weights, as the file has only the \
             two columns of ids, got column 3"
        );
    }
}
