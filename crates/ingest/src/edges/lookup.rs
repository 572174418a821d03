//! Looking up the graph's vertices by the user's ids.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_mem::{Budget, Reservation};

use crate::features::{OrderFile, Places, order_of};

/// A map from user ids to the graph's vertices: up to 12 bytes a vertex.
pub(super) struct Lookup {
    ids: Option<Vec<u64>>,
    places: Option<Places>,
    vertices: u64,
    _held: Reservation,
}

impl Lookup {
    pub(super) fn of(dir: &GraphDir, budget: &Budget) -> Result<Self> {
        const USER: &str = "user.ids";
        let vertices = dir.manifest().vertices;
        let entry = dir.manifest().files.get(USER);
        let bytes = entry.map_or(0, |entry| entry.bytes);
        let held = budget.reserve(bytes, "the vertices' ids")?;
        let ids = entry.map(|entry| flat::read(&dir.path().join(USER), entry)).transpose()?;
        let order: Option<OrderFile> = order_of(dir);
        let places = Places::new(order.as_ref(), None, vertices, budget)?;
        Ok(Self { ids, places, vertices, _held: held })
    }

    /// Permutes values in the user's order of vertices to the graph's.
    pub(super) fn by_vertex(&self, values: Vec<i64>) -> Vec<i64> {
        let Some(places) = &self.places else { return values };
        let mut by_vertex = vec![0; values.len()];
        for (value, position) in values.into_iter().zip(0..) {
            if let Some(vertex) = places.row(position) {
                by_vertex[vertex as usize] = value;
            }
        }
        by_vertex
    }

    /// The vertex with the user's id `id`; an error if there is none.
    #[inline]
    pub(super) fn vertex(&self, id: u64) -> Result<u32> {
        let position = match &self.ids {
            Some(ids) => ids.binary_search(&id).ok().map(|at| at as u64),
            None => Some(id).filter(|&id| id < self.vertices),
        };
        let vertex = match (&self.places, position) {
            (Some(places), Some(position)) => places.row(position),
            (None, Some(position)) => Some(position as u32),
            (_, None) => None,
        };
        vertex.ok_or_else(|| {
            Error::new(ErrorKind::Input, "store values of an edge of vertex")
                .object(id)
                .expected("a vertex of the graph")
                .hint("give the edges that the graph was built from")
        })
    }
}
