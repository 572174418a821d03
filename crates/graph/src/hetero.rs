//! An opened heterogeneous graph: a graph for each node type and edge type, under one budget.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::hetero::HeteroManifest;

use crate::{Graph, OpenOptions};

/// An opened heterogeneous graph: a [`Graph`] for each node type and each edge type. They share one
/// memory budget, and an engine of any of them reads the files of all.
pub struct HeteroGraph {
    manifest: HeteroManifest,
    ends: Vec<(usize, usize)>,
    nodes: Vec<Arc<Graph>>,
    edges: Vec<Arc<Graph>>,
}

impl HeteroGraph {
    /// Opens the heterogeneous graph at `path`; `cancel` stops passes and reads over any of its graphs.
    ///
    /// # Errors
    /// Those of [`Graph::open`], for any of its graphs; [`ErrorKind::Format`] where a graph does not
    /// match the manifest.
    pub fn open(path: &Path, options: &OpenOptions, cancel: &Cancel) -> Result<Self> {
        let manifest = HeteroManifest::read(path)?;
        let paths: Vec<PathBuf> = manifest.graphs().map(|graph| path.join(graph)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let mut graphs = Graph::open_all(&paths, options)?;
        graphs.iter_mut().for_each(|graph| graph.set_cancel(cancel.clone()));
        manifest.check(&graphs.iter().map(Graph::manifest).collect::<Vec<_>>())?;
        one_block_size(&graphs)?;
        let mut graphs = graphs.into_iter().map(Arc::new);
        let nodes = graphs.by_ref().take(manifest.node_types.len()).collect();
        Ok(Self { ends: manifest.ends()?, manifest, nodes, edges: graphs.collect() })
    }

    /// The manifest that names the node types and edge types.
    pub fn manifest(&self) -> &HeteroManifest {
        &self.manifest
    }

    /// For each edge type, the indices of its source's and its destination's node types.
    pub fn ends(&self) -> &[(usize, usize)] {
        &self.ends
    }

    /// The graphs of the node types, in the manifest's order.
    pub fn nodes(&self) -> &[Arc<Graph>] {
        &self.nodes
    }

    /// The graphs of the edge types, in the manifest's order.
    pub fn edges(&self) -> &[Arc<Graph>] {
        &self.edges
    }

    /// Any one of the graphs, for what all share: the budget, the engines, the cancellation flag.
    ///
    /// # Panics
    /// If there is no node type, which no manifest that was read allows.
    pub fn any(&self) -> &Arc<Graph> {
        &self.nodes[0]
    }
}

/// Refuses graphs whose blocks differ in size: a reader keeps its reads inside blocks of one size.
fn one_block_size(graphs: &[Graph]) -> Result<()> {
    let sizes: Vec<u32> = graphs.iter().map(|graph| graph.manifest().block_bytes).collect();
    match sizes.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Format, "open the parts")
            .expected("blocks of one size")
            .got(format!("{sizes:?}"))
            .hint("rebuild the graph")),
    }
}
