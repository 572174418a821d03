//! Values of edges beside a rows file: what the files are called.
//!
//! | file | holds |
//! |---|---|
//! | `edges/SIDE.edges` | u32 (u64 from 2^32 edges on) an arc of `SIDE.rows`: the edge that it is of |
//! | `edges/SIDE.NAME.f32`, `.i64` | a value an arc, in the same order |
//! | `edges/NAME.rows`, `.crc` | [feature rows](crate::features), one an edge |
//!
//! Arcs are numbered as [`RowsPage::first_arc`](crate::rows::RowsPage::first_arc) counts them: by row,
//! then by neighbour; arcs of equal ends in the order of their edges.

use std::fmt;

/// Which rows file arcs are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// `out.rows`: rows are sources. Of an undirected graph, both.
    Out,
    /// `in.rows`: rows are targets.
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
    /// Bytes of a value.
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

/// The folder of all these files.
pub const FOLDER: &str = "edges";

/// The file that tells each arc's edge.
pub fn numbers_file(side: Side) -> String {
    format!("{FOLDER}/{side}.edges")
}

/// The file of a column of values.
pub fn column_file(side: Side, name: &str, kind: ValueType) -> String {
    format!("{FOLDER}/{side}.{name}.{kind}")
}

/// The columns among a graph's files: their names and types, each once.
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
    }
}
