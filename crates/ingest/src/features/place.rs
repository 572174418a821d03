//! The row of each of the user's vertices.

use std::path::PathBuf;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat;
use tiergraph_format::manifest::FileEntry;
use tiergraph_mem::{Budget, Reservation};

/// The file of a graph's order of vertices: `order.ids`.
#[derive(Debug, Clone)]
pub(crate) struct OrderFile {
    pub(crate) path: PathBuf,
    pub(crate) entry: FileEntry,
    /// Whether its positions have 8 bytes, not 4.
    pub(crate) wide: bool,
}

/// The row of each vertex, by its position in the user's order.
pub(crate) struct Places {
    rows: Vec<u32>,
    _held: Reservation,
}

impl Places {
    /// The row of the user's `position`-th vertex; `None` beyond the last.
    pub(crate) fn row(&self, position: u64) -> Option<u32> {
        self.rows.get(usize::try_from(position).ok()?).copied()
    }

    /// Composes the graph's order with the rows of its vertices (`None`: row v is that of vertex v);
    /// `None` where rows stay in the user's order.
    pub(crate) fn new(
        order: Option<&OrderFile>,
        row_of: Option<&[u32]>,
        vertices: u64,
        budget: &Budget,
    ) -> Result<Option<Self>> {
        if let Some(rows) = row_of {
            check_permutation(rows, vertices)?;
        }
        let row = |vertex: usize| row_of.map_or(vertex as u32, |rows| rows[vertex]);
        let Some(order) = order else {
            let Some(rows) = row_of else { return Ok(None) };
            let held = budget.reserve(4 * vertices, "the places of feature rows")?;
            return Ok(Some(Self { rows: rows.to_vec(), _held: held }));
        };
        let held = budget.reserve(4 * vertices, "the places of feature rows")?;
        let mut rows = vec![0; vertices as usize];
        let mut vertex = 0;
        for number in 0..order.entry.chunks.len() as u64 {
            for position in order.chunk(number)? {
                let slot = usize::try_from(position).ok().and_then(|at| rows.get_mut(at));
                *slot.ok_or_else(|| order.outside(position, vertices))? = row(vertex);
                vertex += 1;
            }
        }
        Ok(Some(Self { rows, _held: held }))
    }
}

impl OrderFile {
    fn chunk(&self, number: u64) -> Result<Vec<u64>> {
        if self.wide {
            return flat::read_chunk(&self.path, &self.entry, number);
        }
        let narrow: Vec<u32> = flat::read_chunk(&self.path, &self.entry, number)?;
        Ok(narrow.into_iter().map(u64::from).collect())
    }

    fn outside(&self, position: u64, vertices: u64) -> Error {
        Error::new(ErrorKind::Format, "use")
            .object(self.path.display())
            .expected(format!("positions below {vertices}"))
            .got(position)
    }
}

/// Fails unless `rows` is a permutation of `0 .. vertices`.
pub(super) fn check_permutation(rows: &[u32], vertices: u64) -> Result<()> {
    let mut taken = vec![false; vertices as usize];
    let twice =
        |&&row: &&u32| taken.get_mut(row as usize).is_none_or(|slot| std::mem::replace(slot, true));
    let wrong = rows.iter().find(twice);
    if wrong.is_none() && rows.len() as u64 == vertices {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Input, "store features in the order of")
        .object("rows")
        .expected(format!("each of 0 to {} once", vertices.saturating_sub(1)));
    Err(match wrong {
        Some(row) => error.got(format!("{row} twice, or beyond")),
        None => error.got(format!("{} rows", rows.len())),
    })
}
