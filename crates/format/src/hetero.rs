//! A heterogeneous graph: a directory of graphs, one a node type and one an edge type.
//!
//! `hetero.json` names the types and is sealed as `manifest.json` is. A node type's graph has its
//! features, labels and splits and no edges. An edge type's has the vertices of both types: those
//! of the destination first, then those of the source, unless it is the same.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::leftovers::{remove_leftovers, remove_whole};
use crate::manifest::Manifest;
use crate::place::{Existing, Place, refuse, sync};
use crate::seal::{FORMAT_VERSION, damaged, parse_sealed, write_sealed};

pub use crate::place::HETERO;

const ANOTHERS: &str = "it is of another graph: rebuild the whole";
/// Vertices of both types of an edge are 32-bit numbers.
const MOST_VERTICES: u64 = u32::MAX as u64;

/// The manifest of a heterogeneous graph: its types of nodes and edges, and their graphs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeteroManifest {
    /// [`FORMAT_VERSION`], or an older one that is still read.
    pub format_version: u32,
    /// The types of nodes, in the user's order.
    pub node_types: Vec<NodeType>,
    /// The types of edges, in the user's order: a type's index is part of the key of its random draws.
    pub edge_types: Vec<EdgeType>,
    /// The build ids of all graphs: node types', then edge types'. Empty in format version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<String>,
}

/// A type of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeType {
    /// The type's name.
    pub name: String,
    /// The number of nodes, which are numbered from 0.
    pub vertices: u64,
    /// The folder of the type's graph, inside the heterogeneous graph's.
    pub graph: String,
}

/// A type of edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeType {
    /// The type of nodes that messages come from.
    pub source: String,
    /// The name of the relation that an edge stands for.
    pub relation: String,
    /// The type of nodes that messages go to.
    pub destination: String,
    /// The number of edges.
    pub edges: u64,
    /// The folder of the type's graph, inside the heterogeneous graph's.
    pub graph: String,
}

impl EdgeType {
    /// The type as messages name it: `source relation destination`.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.source, self.relation, self.destination)
    }
}

impl HeteroManifest {
    /// A manifest of these types in [`FORMAT_VERSION`], without build ids.
    pub fn new(node_types: Vec<NodeType>, edge_types: Vec<EdgeType>) -> Self {
        Self { format_version: FORMAT_VERSION, node_types, edge_types, builds: Vec::new() }
    }

    /// Whether there is a heterogeneous graph at `path`, sound or not.
    pub fn is_at(path: &Path) -> bool {
        path.join(HETERO).is_file()
    }

    /// Reads and checks `dir/hetero.json`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none; [`ErrorKind::Format`] if it is damaged, of another
    /// version, or disagrees with itself.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(HETERO);
        let bytes = std::fs::read(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::new(ErrorKind::Input, "open")
                .object(dir.display())
                .expected("a heterogeneous graph")
                .got(format!("a path without `{HETERO}`"))
                .hint(
                    "`tiergraph.build_hetero` makes one; `tiergraph.open` opens graphs of one type",
                ),
            _ => Error::io("read", path.display(), e),
        })?;
        let file = path.display().to_string();
        let manifest: Self = parse_sealed(&bytes, &file)?;
        manifest.validate().map_err(|got| damaged(&file).got(got))?;
        Ok(manifest)
    }

    /// The index of the node type `name`; `None` if there is no such type.
    pub fn node_type(&self, name: &str) -> Option<usize> {
        self.node_types.iter().position(|t| t.name == name)
    }

    /// For each edge type, the indices of the node types of its source and its destination.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for a name that no node type has.
    pub fn ends(&self) -> Result<Vec<(usize, usize)>> {
        let place = |name: &str| {
            self.node_type(name)
                .ok_or_else(|| Error::new(ErrorKind::Format, "find the node type").object(name))
        };
        self.edge_types.iter().map(|t| Ok((place(&t.source)?, place(&t.destination)?))).collect()
    }

    /// The folders of all graphs: node types, then edge types.
    pub fn graphs(&self) -> impl Iterator<Item = &str> {
        let nodes = self.node_types.iter().map(|t| t.graph.as_str());
        nodes.chain(self.edge_types.iter().map(|t| t.graph.as_str()))
    }

    /// Vertices of the graph of an edge type with these ends.
    fn vertices_of(&self, source: usize, destination: usize) -> u64 {
        let count = |place: usize| self.node_types[place].vertices;
        match source == destination {
            true => count(source),
            false => count(source).saturating_add(count(destination)),
        }
    }

    /// What no such file can say.
    fn validate(&self) -> Result<(), String> {
        if self.node_types.is_empty() {
            return Err("no node type".into());
        }
        let mut names: Vec<&str> = self.node_types.iter().map(|t| t.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two node types `{}`", pair[0]));
        }
        let key = |t: &EdgeType| (t.source.clone(), t.relation.clone(), t.destination.clone());
        let mut keys: Vec<_> = self.edge_types.iter().map(key).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two edge types `{:?}`", pair[0]));
        }
        let plain = |name: &&str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        if let Some(name) = self.graphs().find(|name| !plain(name)) {
            return Err(format!("a graph outside of the directory: `{name}`"));
        }
        let ends = self.ends().map_err(|e| e.to_string())?;
        match ends
            .into_iter()
            .zip(&self.edge_types)
            .find(|((from, to), _)| self.vertices_of(*from, *to) > MOST_VERTICES)
        {
            Some((_, t)) => Err(format!("more than 2^32 - 1 nodes at the ends of `{}`", t.name())),
            None => Ok(()),
        }
    }

    /// Compares the manifests of all graphs, in the order of [`graphs`](Self::graphs), with this one.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for a graph of another size or build.
    pub fn check(&self, manifests: &[&Manifest]) -> Result<()> {
        let nodes = self.node_types.iter().map(|t| (t.vertices, 0));
        let ends = self.ends()?.into_iter().map(|(from, to)| self.vertices_of(from, to));
        let edges = ends.zip(&self.edge_types).map(|(vertices, t)| (vertices, t.edges));
        let expected = nodes.chain(edges);
        for ((graph, manifest), (vertices, edges)) in self.graphs().zip(manifests).zip(expected) {
            if (manifest.vertices, manifest.edges) != (vertices, edges) || !manifest.directed {
                return Err(Error::new(ErrorKind::Format, "open the part")
                    .object(graph)
                    .expected(format!("{vertices} vertices and {edges} directed edges"))
                    .got(format!("{} and {}", manifest.vertices, manifest.edges))
                    .hint(ANOTHERS));
            }
        }
        for ((graph, manifest), build) in self.graphs().zip(manifests).zip(&self.builds) {
            if manifest.build_id != *build {
                return Err(Error::new(ErrorKind::Format, "open the part")
                    .object(graph)
                    .expected(format!("build {build}"))
                    .got(format!("build {}", manifest.build_id))
                    .hint(ANOTHERS));
            }
        }
        Ok(())
    }
}

/// A heterogeneous graph that is being written. Dropped without [`Self::commit`], it leaves nothing
/// behind.
#[derive(Debug)]
pub struct HeteroBuilding {
    place: Place,
    existing: Existing,
}

impl HeteroBuilding {
    /// Begins a graph at `path`; everything is written to a hidden sibling.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where something stands at `path` that may not be replaced; I/O errors.
    pub fn begin(path: &Path, existing: Existing) -> Result<Self> {
        let absolute =
            std::path::absolute(path).map_err(|e| Error::io("create", path.display(), e))?;
        refuse(&absolute, existing)?;
        let mut place = Place::new(absolute)?;
        remove_leftovers(&place);
        place.create()?;
        Ok(Self { place, existing })
    }

    /// The folder in which to build the graphs of the types.
    pub fn folder(&self) -> &Path {
        &self.place.building
    }

    /// Writes `hetero.json` and renames the graph into place.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a manifest that disagrees with itself or with the graphs; I/O errors.
    /// After an error, the graph that was at the path is still there.
    pub fn commit(self, manifest: &HeteroManifest) -> Result<PathBuf> {
        let path = self.place.path.clone();
        manifest.validate().map_err(|got| {
            Error::new(ErrorKind::Input, "write the types of").object(path.display()).got(got)
        })?;
        let parts: Vec<Manifest> = manifest
            .graphs()
            .map(|graph| Manifest::read(&self.folder().join(graph)))
            .collect::<Result<_>>()?;
        let builds = parts.iter().map(|part| part.build_id.clone()).collect();
        let manifest = HeteroManifest { builds, ..manifest.clone() };
        manifest.check(&parts.iter().collect::<Vec<_>>())?;
        write_sealed(&manifest, self.folder(), HETERO)?;
        refuse(&path, self.existing)?;
        let io = |e| Error::io("rename into place", path.display(), e);
        sync(self.folder()).map_err(io)?;
        self.place.swap_in().map_err(io)?;
        remove_whole(&self.place.old);
        Ok(path)
    }
}

impl Drop for HeteroBuilding {
    fn drop(&mut self) {
        remove_whole(&self.place.building);
    }
}
