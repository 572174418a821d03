//! Sources of edges: one trait, and one file for each format that implements it.
//!
//! A source hands out edges in batches of columns, in the order of its input, and holds no more
//! than a few batches in memory. It neither sorts nor removes duplicates nor maps ids.

pub mod adjacency;
mod batch;
pub mod bvgraph;
pub(crate) mod chunks;
pub mod columns;
mod folder;
mod foreign;
pub mod gap;
pub mod graphalytics;
pub mod headed;
pub mod integers;
mod many;
pub mod memory;
mod open;
mod options;
mod packing;
mod raw;
pub mod text;

use tiergraph_core::Result;

use crate::Names;

pub(crate) use batch::VertexId;
pub use batch::{EdgeBatch, Endpoints};
pub use many::open_all;
pub use open::open;
pub use options::{Format, OpenOptions, Weights};

/// The size of a source, as far as it is known before it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeHint {
    /// The number of edges: exact, or the format's own claim, but no estimate.
    pub edges: Option<u64>,
    /// The number of vertices. A source that sets this has ids `0 … vertices − 1` or lists its
    /// [`vertices`](EdgeSource::vertices).
    pub vertices: Option<u64>,
    /// Bytes of the input: compressed, if it is.
    pub bytes: Option<u64>,
}

/// A source of the edges of a graph, which may be read more than once.
pub trait EdgeSource: Send {
    /// The input as errors and the graph's provenance name it: a path, or a generator with its
    /// parameters.
    fn describe(&self) -> String;

    /// The size, as far as it is known without reading.
    fn size_hint(&self) -> SizeHint;

    /// Whether the edges are directed, if the format says so. `Some(false)` means that each edge
    /// comes once, in any orientation.
    fn directed(&self) -> Option<bool> {
        None
    }

    /// Whether every batch carries weights.
    fn weighted(&self) -> bool {
        false
    }

    /// Whether [`restart`](Self::restart) works, so that a second pass needs no spool.
    fn can_restart(&self) -> bool {
        true
    }

    /// Whether reading again costs no more than reading pairs of ids from disk, so that a second pass
    /// is better off without a spool. Only where [`can_restart`](Self::can_restart) is true.
    fn reads_again(&self) -> bool {
        false
    }

    /// Notes that a build has so much memory: of what is read ahead and parsed, a source holds an eighth of it, or its least.
    fn keep_within(&mut self, _memory: u64) {}

    /// The most bytes that batches hold outside of the build until the last one is taken; the build
    /// leaves room for them in its budget.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The most bytes that batches would hold in a build with any amount of memory. Of memory that is
    /// added, batches hold an eighth at most.
    fn held_bytes_at_most(&self) -> u64 {
        self.held_bytes()
    }

    /// Notes for the user on what was noticed or decided when the input was opened: sentences that name
    /// options as the command line does.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the edges are generated, so that notes about them would tell the user nothing.
    fn synthetic(&self) -> bool {
        false
    }

    /// The names of the vertices, where ids are numbers that the source gives to names.
    fn names(&self) -> Option<Names> {
        None
    }

    /// Starts again at the first edge. The edges that follow are the same, batch for batch.
    ///
    /// # Errors
    /// An input error where [`can_restart`](Self::can_restart) is false, or an error of opening the
    /// input again.
    fn restart(&mut self) -> Result<()>;

    /// Replaces `batch` by the next edges, reusing its memory; false at the end, with `batch`
    /// empty. The width of the ids may differ from one batch to the next.
    ///
    /// # Errors
    /// A format or input error names the file and the line or byte; after an error only
    /// [`restart`](Self::restart) may be called.
    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool>;

    /// The ids that the input lists explicitly, isolated vertices included, in input order. The
    /// graph's vertices are these and the ends of the edges. `None` where the vertices are those that
    /// the edges name (or `0 … n − 1`, when [`SizeHint::vertices`] says n).
    ///
    /// # Errors
    /// As [`next_batch`](Self::next_batch). It does not move the edge stream.
    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        Ok(None)
    }
}
