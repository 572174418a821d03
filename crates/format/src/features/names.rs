//! Names of the files of features, labels and splits.

use std::fmt;

use tiergraph_core::{Error, ErrorKind, Result};

/// The folders that a graph directory may have.
pub const FOLDERS: [&str; 5] =
    ["features", "labels", "splits", crate::edges::FOLDER, crate::names::FOLDER];

const ROWS: &str = ".rows";
const CRC: &str = ".crc";
const ROW_CRC: &str = ".row_crc";
const MOST_BYTES: usize = 64;

/// The names of the files of one feature matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureFiles {
    /// The file of the rows.
    pub rows: String,
    /// The file of the checksums of the rows' pages.
    pub crc: String,
    /// The file of the checksums of the rows; graphs of older versions have none.
    pub row_crc: String,
    /// The file of each vertex's row number; there only if rows are not in the vertices' order.
    pub ids: String,
}

impl FeatureFiles {
    /// The names of the files of the vertices' feature matrix `name`.
    pub fn of(name: &str) -> Self {
        Self::in_folder("features", name)
    }

    /// The names of the files of the edges' feature matrix `name`.
    pub fn of_edges(name: &str) -> Self {
        Self::in_folder(crate::edges::FOLDER, name)
    }

    fn in_folder(folder: &str, name: &str) -> Self {
        let file = |suffix| format!("{folder}/{name}{suffix}");
        Self { rows: file(ROWS), crc: file(CRC), row_crc: file(ROW_CRC), ids: file(".ids") }
    }

    /// The checksums that belong to the file `rows`, which may be a column of edges.
    pub(crate) fn crc_of(rows: &str) -> String {
        match rows.strip_suffix(ROWS) {
            Some(name) => format!("{name}{CRC}"),
            None => crate::edges::crc_file(rows),
        }
    }
}

/// The use of a NumPy array in a graph directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayRole {
    /// A value, or a row of them, for each vertex.
    Labels,
    /// A mask of vertices, or a list of them.
    Split,
}

impl ArrayRole {
    /// The name of the file of the array `name`.
    pub fn file(self, name: &str) -> String {
        let folder = match self {
            Self::Labels => "labels",
            Self::Split => "splits",
        };
        format!("{folder}/{name}.npy")
    }
}

impl fmt::Display for ArrayRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Labels => "labels",
            Self::Split => "split",
        })
    }
}

/// Fails unless `name`, that of features, labels or a split, can be part of a file's name.
///
/// # Errors
/// [`ErrorKind::Input`].
pub fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty()
        && name.len() <= MOST_BYTES
        && !name.starts_with('.')
        && name.chars().all(plain)
    {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "use the name")
        .object(name)
        .expected(format!("1 to {MOST_BYTES} letters, digits, `_`, `-` or `.`, not `.` first")))
}
