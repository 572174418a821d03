//! Names and sizes of the files that hold edges' values beside a rows file.
//!
//! | file | holds |
//! |---|---|
//! | `edges/SIDE.edges` | u32 (u64 from 2^32 edges on) an arc of `SIDE.rows`: the number of its edge |
//! | `edges/SIDE.NAME.f32`, `.i64` | a value an arc, in the same order |
//! | each of these with `.crc32c` | u32 a page: its CRC-32C ([pages](crate::pages)) |
//! | `edges/NAME.rows`, `.crc` | [feature rows](crate::features), one an edge |
//!
//! Arcs are numbered as [`RowsPage::first_arc`](crate::rows::RowsPage::first_arc) counts them: by row,
//! then by neighbour; arcs of equal ends in the order of their edges.

use std::fmt;

use crate::pages::PAGE_BYTES;

/// One of the two rows files that a graph may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// `out.rows`, whose rows are sources, or in an undirected graph both sources and targets.
    Out,
    /// `in.rows`, whose rows are targets.
    In,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "out",
            Self::In => "in",
        })
    }
}

/// The type of a column of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// 32-bit floats: weights.
    F32,
    /// 64-bit integers: times.
    I64,
}

impl ValueType {
    /// Bytes of one value of this type.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::I64 => 8,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::I64 => "i64",
        })
    }
}

/// The folder of a graph directory that holds the files of edges' values.
pub const FOLDER: &str = "edges";

/// The name of the file that holds, for each arc, the number of its edge.
pub fn numbers_file(side: Side) -> String {
    format!("{FOLDER}/{side}.edges")
}

/// The name of the file that holds, for each arc, the value `name` of its edge.
pub fn column_file(side: Side, name: &str, kind: ValueType) -> String {
    format!("{FOLDER}/{side}.{name}.{kind}")
}

/// The key that marks the times `name` as times of vertices, among the manifest's provenance options.
pub fn node_times_mark(name: &str) -> String {
    format!("{NODE_TIMES}{name}")
}

/// The prefix of the keys that [`node_times_mark`] makes.
pub const NODE_TIMES: &str = "node_times.";

/// The name of the file that holds the checksums of the pages of the file `column`.
pub fn crc_file(column: &str) -> String {
    format!("{column}.crc32c")
}

/// The widths, in bytes, that a value of `file` may have; `None` for a file that holds no value an arc.
pub fn column_widths(file: &str) -> Option<&'static [usize]> {
    if [Side::Out, Side::In].into_iter().any(|side| file == numbers_file(side)) {
        return Some(&[4, 8]);
    }
    match columns(std::iter::once(file)).first()?.1 {
        ValueType::F32 => Some(&[4]),
        ValueType::I64 => Some(&[8]),
    }
}

/// Bytes of a file with `width` bytes for each of `arcs` arcs, rounded up to whole pages.
pub fn column_bytes(arcs: u64, width: usize) -> u64 {
    arcs.saturating_mul(width as u64).div_ceil(PAGE_BYTES as u64).saturating_mul(PAGE_BYTES as u64)
}

/// The name and type of each column of values among a graph's `files`, once even if both sides have it.
pub fn columns<'a>(files: impl Iterator<Item = &'a str>) -> Vec<(&'a str, ValueType)> {
    let mut columns: Vec<(&str, ValueType)> = Vec::new();
    for file in files {
        let Some((side, rest)) = file
            .strip_prefix(FOLDER)
            .and_then(|name| name.strip_prefix('/'))
            .and_then(|name| name.split_once('.'))
        else {
            continue;
        };
        let kind = [ValueType::F32, ValueType::I64].into_iter().find_map(|kind| {
            let name = rest.strip_suffix(&kind.to_string())?.strip_suffix('.')?;
            Some((name, kind))
        });
        match kind {
            Some(column) if matches!(side, "in" | "out") && !columns.contains(&column) => {
                columns.push(column);
            }
            _ => {}
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_files() {
        let files = [
            numbers_file(Side::In),
            column_file(Side::In, "time", ValueType::I64),
            column_file(Side::Out, "time", ValueType::I64),
            column_file(Side::Out, "a.b", ValueType::F32),
            "features/in.x.f32".into(),
            "edges/edge_attr.rows".into(),
        ];
        let found = columns(files.iter().map(String::as_str));
        assert_eq!(found, [("time", ValueType::I64), ("a.b", ValueType::F32)]);
        let ours = files.iter().filter(|file| column_widths(file).is_some()).count();
        assert_eq!(ours, 4, "with the numbers, without features");
        assert!(files.iter().all(|file| column_widths(&crc_file(file)).is_none()));
    }
}
