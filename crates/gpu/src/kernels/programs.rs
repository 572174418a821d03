//! The programs of passes: `programs/*.cuh`, and their parameters.

use bytemuck::{Pod, Zeroable};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// What a pass does with arcs: a `struct Program` in CUDA, and its parameters here.
pub trait Program: Pod + Sync {
    /// Its name in messages.
    const NAME: &'static str;
    /// Its CUDA C++.
    const SOURCE: &'static str;
    /// Whether it sees both directions of an edge that is stored once by itself.
    const SYMMETRIC: bool = false;
    /// Whether it looks at the arcs' weights, where there are any.
    const WEIGHTED: bool = false;
    /// Whether it skips most rows, and is done with others before their end.
    const SELECTIVE: bool = false;
}

macro_rules! program {
    ($(#[$doc:meta])* $name:ident, $text:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $($trait:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

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
        /// Address of x, a value a vertex.
        x: u64,
        /// Address of y.
        y: u64,
        /// How many of the first vertices have [`LANES`] sums each besides, for what rows add to columns.
        hubs: u32,
        /// Where in y those begin.
        by_lane: u32,
    }
}
program! {
    /// Joins the trees of an arc's ends.
    Join, "join" {
        /// Address of the parents, u32 a vertex.
        parent: u64,
    } SYMMETRIC
}
program! {
    /// Gives the unvisited neighbours of the vertices at a level the next.
    Level, "level" {
        /// Address of the depths, u32 a vertex.
        depth: u64,
        /// Address of a flag for every `2^log2` vertices: whether one of them is at the level.
        reached: u64,
        /// Address of as many: whether one of them has no depth.
        unvisited: u64,
        /// The level.
        level: u32,
        /// Of the flags.
        log2: u32,
        /// Of raw blocks, 1: rows are the vertices at the level, and give. 0: rows are unvisited, and
        /// look for one. Rows of tiles do what they can.
        push: u32,
        /// Zero.
        unused: u32,
    } SELECTIVE
}
program! {
    /// Lowers distances along arcs.
    Relax, "relax" {
        /// Address of the distances, f64 a vertex.
        distance: u64,
        /// Address of a flag for every `2^log2` vertices whose distance fell.
        lowered: u64,
        /// Address of a count of falls.
        count: u64,
        /// Of the flags.
        log2: u32,
        /// Zero.
        unused: u32,
    } WEIGHTED
}
program! {
    /// `y[row] ⊕= weight · x[column]` for a [`Panel`] of values.
    Fold, "fold" {
        /// Address of x, a panel's values a vertex.
        x: u64,
        /// Address of y, which holds the operation's identity.
        y: u64,
        /// 0: a sum, 1: a minimum, 2: a maximum.
        operation: u32,
        /// Zero.
        unused: u32,
    }
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
