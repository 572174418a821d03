//! The files of adjacency that a graph has, and which end of an edge is the row of each.

use tiergraph_format::manifest::Codec;

use super::array::Array;
use super::options::{BuildOptions, Purpose};
use super::partition::family::RowOf;

/// A file of adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Tiles,
    OutRows,
    InRows,
    OutRaw,
    InRaw,
}

impl Output {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tiles => "tiles.blocks",
            Self::OutRows => "out.rows",
            Self::InRows => "in.rows",
            Self::OutRaw => "out.blocks",
            Self::InRaw => "in.blocks",
        }
    }

    pub(super) fn row_of(self, undirected: bool) -> RowOf {
        match (self, undirected) {
            (Self::Tiles, true) => RowOf::Larger,
            (_, true) => RowOf::Both,
            (Self::Tiles | Self::InRows | Self::InRaw, false) => RowOf::Target,
            (Self::OutRows | Self::OutRaw, false) => RowOf::Source,
        }
    }

    /// Whether it is made from tiles, if `outputs` have those, and not from buckets of its own.
    pub(super) fn is_from_tiles(self, outputs: &[Self]) -> bool {
        matches!(self, Self::OutRows | Self::InRows) && outputs.contains(&Self::Tiles)
    }

    /// One of `outputs` for each kind of rows by which arcs are in buckets.
    pub(super) fn of_families(outputs: &[Self], undirected: bool) -> Vec<Self> {
        let mut families: Vec<Self> = Vec::new();
        for &output in outputs.iter().filter(|output| !output.is_from_tiles(outputs)) {
            let row_of = output.row_of(undirected);
            if families.iter().all(|other| other.row_of(undirected) != row_of) {
                families.push(output);
            }
        }
        families
    }

    pub(super) fn is_weighted(self) -> bool {
        !matches!(self, Self::OutRows | Self::InRows)
    }

    pub(super) fn all(options: &BuildOptions, undirected: bool) -> Vec<Self> {
        let both: &[Self] = match (options.codec, options.purpose) {
            (Codec::Raw, _) => &[Self::OutRaw, Self::InRaw],
            (_, Purpose::Analytics) => &[Self::Tiles, Self::OutRows],
            (_, Purpose::Training) => &[Self::OutRows, Self::InRows],
            (_, Purpose::Both) => &[Self::Tiles, Self::OutRows, Self::InRows],
            // Of undirected edges, rows in one direction are those in both.
            (_, Purpose::Sampling) if undirected => &[Self::OutRows],
            (_, Purpose::Sampling) => &[Self::InRows],
        };
        let has = |o: &Self| !undirected || !matches!(o, Self::InRows | Self::InRaw);
        both.iter().copied().filter(has).collect()
    }
}

/// The number of arcs of a row before duplicates are removed; about, where edges are stored once.
pub(super) fn arcs_of(row_of: RowOf, out: &[u32], into: Option<&Array<u32>>, row: usize) -> u64 {
    match row_of {
        RowOf::Source | RowOf::Both => out[row].into(),
        RowOf::Target => into.map_or(0, |into| into[row]).into(),
        // Columns are at most the row, and a hub's neighbours are mostly larger than it.
        RowOf::Larger => u64::from(out[row]).min(row as u64 + 1),
    }
}
