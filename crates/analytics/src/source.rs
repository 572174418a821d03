//! The vertex that a search starts from.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::Graph;

/// Fails if `source` is no vertex; `op` completes the error's "cannot …".
pub(crate) fn check_source(graph: &Graph, op: &str, source: u32) -> Result<()> {
    let n = graph.vertices();
    if (source as usize) < n {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, op).object(source).expected(format!("a vertex below {n}")))
}

/// How many vertices have state in a search from `source`: those up to the last that has an arc, or the source.
pub(crate) fn with_state(graph: &Graph, source: u32) -> usize {
    graph.tiles().vertices().max(source as usize + 1).min(graph.vertices())
}
