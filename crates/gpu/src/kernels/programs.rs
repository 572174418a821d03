//! The programs of passes (`programs/*.cuh`), and their parameters.

use std::mem::offset_of;

use crate::DevicePtr;
use crate::shared::{Shared, shared};

/// How many lanes (threads) a warp has.
pub const LANES: usize = 32;

/// A program: what a pass does with arcs. In CUDA it is a `struct Program`, whose fields, the program's
/// parameters, a type here has too.
pub trait Program: Shared + Copy + Sync + 'static {
    /// The program's name in messages.
    const NAME: &'static str;
    /// The program's text, CUDA C++.
    const SOURCE: &'static str;
    /// Whether the program itself handles both directions of an edge that is stored once.
    const SYMMETRIC: bool = false;
    /// Whether the program reads the arcs' weights, where there are any.
    const WEIGHTED: bool = false;
    /// Whether the program skips most rows, and may stop within a row.
    const SELECTIVE: bool = false;
}

macro_rules! program {
    ($(#[$doc:meta])* $name:ident, $text:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $($trait:ident)?) => {
        shared! {
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name as "Program" { $($(#[$field_doc])* pub $field: $type,)* }
        }

        impl Program for $name {
            const NAME: &'static str = $text;
            const SOURCE: &'static str = include_str!(concat!("programs/", $text, ".cuh"));
            $(const $trait: bool = true;)?
        }
    };
}

program! {
    /// A program: `y[row] += Σ x[column]`, float32 values summed in float64.
    Sum, "sum" {
        /// The value of each vertex.
        x: DevicePtr<f32>,
        /// The sum of each vertex, and behind those the hubs' sums by lane.
        y: DevicePtr<f64>,
        /// How many of the first vertices, the hubs, have [`LANES`] further sums each, which take what
        /// rows add to columns.
        hubs: u32,
        /// The index in `y` at which the hubs' sums by lane begin.
        by_lane: u32,
    }
}
program! {
    /// A program: joins the trees that the two ends of each arc are in.
    Join, "join" {
        /// Each vertex's parent in its tree.
        parent: DevicePtr<u32>,
    } SYMMETRIC
}
program! {
    /// A program: sets the depth of unvisited neighbours of the vertices at a level to the next level.
    Level, "level" {
        /// Each vertex's depth, all ones where it is unvisited.
        depth: DevicePtr<u32>,
        /// A flag for every `2^log2` vertices: set if one of them is at the level.
        reached: DevicePtr<u8>,
        /// A flag for every `2^log2` vertices: set if one of them is unvisited.
        unvisited: DevicePtr<u8>,
        /// The level whose vertices have been reached last.
        level: u32,
        /// The binary logarithm of how many vertices share a flag.
        log2: u32,
        /// Over raw blocks, 1 if rows at the level push to their neighbours, 0 if unvisited rows pull
        /// from them. Over tiles, rows do both.
        push: u32,
    } SELECTIVE
}
program! {
    /// A program: puts the ends of each arc into each other's neighbour lists, in any order.
    Put, "put" {
        /// Where the next neighbour of each vertex goes; after all passes, where its list ends.
        ends: DevicePtr<u32>,
        /// The lists.
        targets: DevicePtr<u32>,
        /// The number of vertices.
        vertices: u32,
        /// How many neighbours there is room for in all lists.
        room: u32,
        /// Which lists an arc is in: [`Self::ROWS`] and others.
        ways: u32,
    } SYMMETRIC
}

impl Put {
    /// Columns are in the lists of rows.
    pub const ROWS: u32 = 1;
    /// Rows are in the lists of columns, unless both are the same vertex.
    pub const COLUMNS: u32 = 2;
    /// Arcs from a vertex to itself are in its list as columns, too.
    pub const LOOPS: u32 = 4;
    /// Targets are doubled, and odd where the arc leads to the list's vertex.
    pub const SIDES: u32 = 8;
    /// Arcs lead from rows to columns, and not from columns to rows.
    pub const FROM_ROWS: u32 = 16;
}

program! {
    /// A program: lowers distances along arcs.
    Relax, "relax" {
        /// Each vertex's distance.
        distance: DevicePtr<f64>,
        /// A flag for every `2^log2` vertices: set if the distance of one of them fell.
        lowered: DevicePtr<u8>,
        /// A counter of the distances that fell.
        count: DevicePtr<u32>,
        /// The binary logarithm of how many vertices share a flag.
        log2: u32,
    } WEIGHTED
}

/// A program: `y[row] ⊕= weight · x[column]` for a [`Panel`] of values, float32 or float64.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Fold<T> {
    /// The panel's values of each vertex.
    pub x: DevicePtr<T>,
    /// The panel's results of each vertex: the operation's identity before the first pass.
    pub y: DevicePtr<T>,
    /// The operation ⊕.
    pub operation: Operation,
}

/// How [`Fold`] makes one value of two; `fold.cuh` has the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// The sum of both.
    Sum = 0,
    /// The lesser of both.
    Min = 1,
    /// The greater of both.
    Max = 2,
}

impl<T> Shared for Fold<T> {
    const CUDA: &'static str = "Program";
    const FIELDS: &'static [(&'static str, usize)] = &[
        ("x", offset_of!(Self, x)),
        ("y", offset_of!(Self, y)),
        ("operation", offset_of!(Self, operation)),
    ];
}

impl<T: Copy + Sync + 'static> Program for Fold<T> {
    const NAME: &'static str = "fold";
    const SOURCE: &'static str = include_str!("programs/fold.cuh");
}

/// A panel: the values of each vertex that [`Fold`] loads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    value_bytes: usize,
    width: usize,
}

impl Panel {
    /// Bytes of a vertex's values in the widest panel: those of one load.
    const BYTES: usize = 16;

    /// The panel for vertices with `values` values of `value_bytes` each: 4 (float32) or 8 (float64).
    ///
    /// # Panics
    /// If values have another size.
    pub fn of(value_bytes: usize, values: usize) -> Self {
        assert!(matches!(value_bytes, 4 | 8), "float32 or float64 values, not {value_bytes} bytes");
        Self { value_bytes, width: if values == 1 { 1 } else { Self::BYTES / value_bytes } }
    }

    /// How many values of each vertex the panel holds.
    pub fn width(self) -> usize {
        self.width
    }

    /// The options that compile a program for this panel.
    pub fn options(self) -> Vec<String> {
        let value = if self.value_bytes == 4 { "float" } else { "double" };
        vec![format!("-DVALUE={value}"), format!("-DWIDTH={}", self.width)]
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        [4, 8].into_iter().flat_map(|bytes| [1, 2].map(|values| Self::of(bytes, values)))
    }
}
