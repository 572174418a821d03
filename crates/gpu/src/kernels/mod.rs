//! The kernels: CUDA C++ beside this file, one family a `.cu`, and the launchers of each.
//!
//! A *pass* is `edge_map` ([`EdgeMap`]): a [`Program`] over the blocks of a layout. What a program reads
//! of a source, how messages are combined at a row and what is done with the result is all that an
//! algorithm writes in CUDA; decoding, balance and residency are the passes'.

mod blocks;
mod checksum;
mod edge_map;
mod gather;
mod lists;
mod parts;
mod programs;
mod queue_pairs;
mod rows;
mod sample;
mod slice_index;
mod vertices;

pub use blocks::{Blocks, MAX_BATCH};
pub use checksum::{Checksum, DamagedRow, DamagedRows, RowChecksum};
pub use edge_map::{EdgeMap, Layout, TilesPass, Variant};
pub use gather::{
    Gather, HostRows, MissingRow, MissingRows, NOT_RESIDENT, Piece, PieceLayout, RowType, Rows,
};
pub use lists::{
    BallKernels, BallState, Choice, Closed, CoreKernels, DeviceLists, GreedyKernels, Kept,
    LabelKernels, ListKernels, PairKernels, PathKernels, TriangleKernels,
};
pub use programs::{Fold, Join, LANES, Level, Operation, Panel, Program, Put, Relax, Sum};
pub use queue_pairs::{
    Asking, BatchPairs, CoupledKernel, CoupledPairs, FailureKind, PageCache, QueuePairAddresses,
    ReadFailure, ReadFailures, ReadKernels, ReadWatch, RowPlaces, RowRequest, RowRequests,
    RowTargets, Taking,
};
pub use rows::{
    Frontier, FrontierKernels, LIST_PAGE_BYTES, ListPages, ListReads, PiecePages, StoredLists,
};
pub use sample::{
    BatchOutputs, LINE_BYTES, LIST_NOT_RESIDENT, ListUse, Lists, Neighbors, Request, SELECTED,
    Sampled, Sampler, SplitLists, list_transactions,
};
pub use slice_index::{CountedSlices, Segment, Slice, SliceIndex, SliceIndexer};
pub use vertices::{Columns, ForestKernels, LevelKernel, Levels, RankKernels, Ranks, ValueKernels};

use tiergraph_core::Result;

use crate::shared::Shared;
use crate::{Architecture, Device, Module, cubins};

const TYPES: &str = include_str!("types.cuh");
const COPY_ROWS: &str = include_str!("copy_rows.cuh");
const ASYNC_COPIES: &str = include_str!("async_copies.cuh");
const TILES: &str = include_str!("tiles.cuh");

/// CUDA C++ to be compiled, with everything that it includes.
#[derive(Debug, Clone)]
pub struct Source {
    /// The source's name in messages and in the names of cached files.
    pub name: String,
    /// The text of the source.
    pub text: String,
    /// The compiler's options.
    pub options: Vec<String>,
}

impl Source {
    fn new(name: impl Into<String>, parts: &[&str]) -> Self {
        Self { name: name.into(), text: parts.concat(), options: Vec::new() }
    }

    /// The same source, which compiles only if its struct is laid out as `T` is.
    fn sharing<T: Shared>(mut self) -> Self {
        self.text.push_str(&T::assertions());
        self
    }

    fn compile(&self, device: &Device) -> Result<Module> {
        Module::compile(device, &self.name, &self.text, &self.options)
    }
}

/// The sources of every variant of every kernel.
pub fn all_sources() -> Vec<Source> {
    let mut sources = vec![sample::source()];
    sources.extend(checksum::sources());
    sources.extend(vertices::sources());
    sources.extend(lists::sources());
    sources.extend(rows::sources());
    sources.extend([RowType::F32, RowType::F16, RowType::Int8].map(gather::source));
    sources.extend([0, 4, 8].map(slice_index::source));
    sources.extend(queue_pairs::sources());
    sources.extend(edge_map::sources());
    sources
}

/// Compiles every variant of every kernel for `architecture`, without a GPU; returns how many there are.
///
/// # Errors
/// No compiler, or the compiler's log.
pub fn compile_all(architecture: Architecture) -> Result<usize> {
    let sources = all_sources();
    for Source { name, text, options } in &sources {
        cubins::get(None, name, text, options, architecture)?;
    }
    Ok(sources.len())
}
