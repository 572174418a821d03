//! The programs of passes: `programs/*.cuh`, and their parameters.

use std::mem::offset_of;

use crate::DevicePtr;
use crate::shared::{Shared, shared};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// What a pass does with arcs: a `struct Program` in CUDA, and its parameters here.
pub trait Program: Shared + Copy + Sync + 'static {
    /// The program's name in messages.
    const NAME: &'static str;
    /// The program's CUDA C++.
    const SOURCE: &'static str;
    /// Whether the program handles both directions of an edge that is stored once by itself.
    const SYMMETRIC: bool = false;
    /// Whether the program reads the arcs' weights, where there are any.
    const WEIGHTED: bool = false;
    /// Whether the program skips most rows, and leaves others before their end.
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
    /// `y[row] += Σ x[column]`, float32 summed in float64.
    Sum, "sum" {
        /// x, a value a vertex.
        x: DevicePtr<f32>,
        /// y, a value a vertex, and after those the hubs' sums by lane.
        y: DevicePtr<f64>,
        /// How many of the first vertices have [`LANES`] sums each besides, for what rows add to columns.
        hubs: u32,
        /// Where in y those begin.
        by_lane: u32,
    }
}
program! {
    /// Joins the trees of an arc's ends.
    Join, "join" {
        /// Each vertex's parent in its tree.
        parent: DevicePtr<u32>,
    } SYMMETRIC
}
program! {
    /// Gives the unvisited neighbours of the vertices at a level the next.
    Level, "level" {
        /// Each vertex's depth, all ones where it is unvisited.
        depth: DevicePtr<u32>,
        /// A flag for every `2^log2` vertices: set if one of them is at the level.
        reached: DevicePtr<u8>,
        /// A flag for every `2^log2` vertices: set if one of them is unvisited.
        unvisited: DevicePtr<u8>,
        /// The level.
        level: u32,
        /// The binary logarithm of how many vertices share a flag.
        log2: u32,
        /// For raw blocks. 1: rows are the vertices at the level, and push to their neighbours. 0: rows are
        /// unvisited, and pull from a neighbour at the level. Programs over tiles do both.
        push: u32,
    } SELECTIVE
}
program! {
    /// Lowers distances along arcs.
    Relax, "relax" {
        /// Each vertex's distance.
        distance: DevicePtr<f64>,
        /// A flag for every `2^log2` vertices: set if the distance of one of them fell.
        lowered: DevicePtr<u8>,
        /// One counter of the distances that fell.
        count: DevicePtr<u32>,
        /// The binary logarithm of how many vertices share a flag.
        log2: u32,
    } WEIGHTED
}

/// `y[row] ⊕= weight · x[column]` for a [`Panel`] of values, float32 or float64.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Fold<T> {
    /// x, a panel's values a vertex.
    pub x: DevicePtr<T>,
    /// y, a panel's values a vertex, which hold the operation's identity before the first pass.
    pub y: DevicePtr<T>,
    /// What ⊕ is.
    pub operation: Operation,
}

/// How [`Fold`] makes one value of two; `fold.cuh` has the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// Their sum.
    Sum = 0,
    /// The least.
    Min = 1,
    /// The greatest.
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

/// The values a vertex that [`Fold`] is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    value_bytes: usize,
    width: usize,
}

impl Panel {
    /// Bytes of the widest panel: what one load brings.
    const BYTES: usize = 16;

    /// For `values` values a vertex of `value_bytes` each: 4 (float32) or 8 (float64).
    ///
    /// # Panics
    /// At another size.
    pub fn of(value_bytes: usize, values: usize) -> Self {
        assert!(matches!(value_bytes, 4 | 8), "float32 or float64 values, not {value_bytes} bytes");
        Self { value_bytes, width: if values == 1 { 1 } else { Self::BYTES / value_bytes } }
    }

    /// Values a vertex.
    pub fn width(self) -> usize {
        self.width
    }

    /// The compiler's options.
    pub fn options(self) -> Vec<String> {
        let value = if self.value_bytes == 4 { "float" } else { "double" };
        vec![format!("-DVALUE={value}"), format!("-DWIDTH={}", self.width)]
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        [4, 8].into_iter().flat_map(|bytes| [1, 2].map(|values| Self::of(bytes, values)))
    }
}
