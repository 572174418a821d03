//! The topology of a graph: the neighbours that are sampled from, in memory or on storage.
//!
//! Which arcs of a vertex are taken follows from [`Offsets`] alone, which stay in memory. Whom they
//! lead to is looked up afterwards: in an array of all neighbours, where that fits; on a page that
//! is kept; or on a page that is read for it.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_cache::RankedSet;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::rows::{RowsPage, check_page};
use tiergraph_format::salt::Salt;
use tiergraph_graph::{Direction, Graph};
use tiergraph_io::FileId;
use tiergraph_mem::{AlignedBuf, Array, PAGE_BYTES, Reservation, prefetch};

use crate::residency::columns::Columns;
use crate::residency::neighbors::{NeighborFile, Residency};
use crate::residency::offsets::Offsets;
use crate::residency::page_map::PageMap;
use crate::sampling::weighted::Weighted;

/// A list of at most this many neighbours is unpacked whole, a longer one where it is needed.
const WHOLE_LIST: u64 = 64;
/// A list is unpacked whole too where one in so many of its neighbours is looked up.
const FEW_SKIPPED: u64 = 4;
/// The most neighbours of a list on one page: sixteen equal ones take a byte.
const MOST_ON_PAGE: u64 = 16 * PAGE_BYTES as u64;

/// The vertices of a graph that have neighbours, and those that are neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// The number of vertices, from 0 on, that may have neighbours; no other has any.
    pub expanded: u32,
    /// The range of vertices that may be neighbours, which are numbered from its first one.
    pub neighbors: Range<u32>,
}

impl Sides {
    /// Sides that are both all vertices of `graph`.
    pub fn all(graph: &Graph) -> Self {
        let vertices = u32::try_from(graph.vertices()).unwrap_or(u32::MAX);
        Self { expanded: vertices, neighbors: 0..vertices }
    }
}

/// The neighbours of a graph's vertices in one direction, in memory or on storage.
#[derive(Debug)]
pub struct Topology {
    sides: Sides,
    offsets: Offsets,
    map: PageMap,
    store: Store,
    columns: Columns,
    /// The most arcs of a vertex.
    pub(crate) longest: u64,
    file: FileId,
    name: Arc<str>,
    salt: Salt,
    _held: Reservation,
}

#[derive(Debug)]
pub(crate) enum Store {
    Decoded(Array<u32>),
    Pages { set: RankedSet, bytes: AlignedBuf },
}

impl Topology {
    /// Opens `graph`'s neighbours in this direction, and loads those that `keep` says into memory.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a graph without rows in this direction, [`ErrorKind::Budget`] where
    /// what shall be kept does not fit, and what reading gives.
    pub fn open(graph: &Graph, direction: Direction, keep: &Residency) -> Result<Self> {
        Self::open_between(graph, direction, Sides::all(graph), keep)
    }

    /// Opens the neighbours of a graph whose arcs all join vertices of two `sides`.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`ErrorKind::Format`] for arcs of other vertices.
    pub fn open_between(
        graph: &Graph,
        direction: Direction,
        sides: Sides,
        keep: &Residency,
    ) -> Result<Self> {
        let Some(rows) = graph.rows(direction).pages() else {
            let needs = format!("the layout `{direction}.rows`");
            return Err(graph.missing_layout("sample neighbours", &needs));
        };
        let (vertices, arcs) = (graph.manifest().vertices, graph.manifest().arcs);
        let file = NeighborFile::of(graph, direction);
        let bytes = Offsets::bytes_of(sides.expanded.into(), arcs)
            + PageMap::bytes_of(file.pages, vertices)
            + file.kept(keep);
        let held = graph.memory().reserve(bytes, "the neighbours that stay in memory")?;
        let (offsets, longest) = {
            let _degrees =
                graph.memory().reserve(vertices * 4, "the degrees, while they are summed")?;
            let degrees = graph.degrees().of(direction)?;
            let longest = degrees.iter().copied().max().unwrap_or(0);
            let expanded = degrees.len().min(sides.expanded as usize);
            (Offsets::new(&degrees[..expanded], arcs)?, longest.into())
        };
        let mut topology = Self {
            sides,
            offsets,
            map: PageMap::new(rows.index, graph.vertices())?,
            store: Store::Pages { set: RankedSet::default(), bytes: AlignedBuf::default() },
            columns: Columns::default(),
            longest,
            file: rows.file,
            name: rows.name.into(),
            salt: rows.salt,
            _held: held,
        };
        match keep {
            Residency::Decoded => topology.store = topology.decode_all(graph)?,
            Residency::Pages(kept) => topology.store = topology.load(graph, kept)?,
            Residency::Nothing => {}
        }
        Ok(topology)
    }

    /// Adds columns of values of the arcs.
    pub fn with_columns(self, columns: Columns) -> Self {
        Self { columns, ..self }
    }

    /// Bytes that choosing from the longest list of arcs by weights or times takes.
    pub(crate) fn bytes_of_choice(&self) -> u64 {
        if self.columns.are_weighted_or_timed() { Weighted::bytes_for(self.longest) } else { 0 }
    }

    /// The columns of the arcs: weights, times, edge numbers.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The offsets at which each vertex's arcs begin.
    pub fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// The map from neighbours to pages.
    pub fn map(&self) -> &PageMap {
        &self.map
    }

    /// The file that pages are read from.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The path of the file, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether all neighbours are in memory, so that no page is read.
    pub fn is_resident(&self) -> bool {
        match &self.store {
            Store::Decoded(_) => true,
            Store::Pages { set, .. } => set.len() == self.map.pages(),
        }
    }

    /// Whether sampling reads nothing: neighbours, weights and times are in memory.
    pub(crate) fn samples_in_memory(&self) -> bool {
        self.is_resident() && self.columns.choose_in_memory()
    }

    /// Every neighbour by arc number; `None` if they are not in memory unpacked.
    pub fn decoded(&self) -> Option<&[u32]> {
        match &self.store {
            Store::Decoded(neighbors) => Some(neighbors),
            Store::Pages { .. } => None,
        }
    }

    /// The bytes of a page; `None` if it is not in memory as a page.
    #[inline]
    pub fn resident_page(&self, page: u64) -> Option<&[u8]> {
        let Store::Pages { set, bytes } = &self.store else { return None };
        let at = set.rank(page)? as usize * PAGE_BYTES;
        Some(&bytes[at..at + PAGE_BYTES])
    }

    /// Prefetches the memory that finding `vertex`'s list on a resident page touches first: the page's
    /// header and the list's end.
    #[inline]
    pub fn prefetch(&self, vertex: u32) {
        let page = self.map.page(vertex, 0);
        if let Some(bytes) = self.resident_page(page) {
            let place = vertex.wrapping_sub(self.map.begin(page).0) as usize;
            prefetch(bytes, 0);
            prefetch(bytes, (32 + 2 * place).min(PAGE_BYTES - 1));
        }
    }

    /// Checks page `number`, which was just read.
    pub fn check(&self, number: u64, page: &[u8]) -> Result<()> {
        check_page(page, &self.name, number, self.salt)
    }

    /// Looks up, on one page, those of `arcs` (arc numbers of `vertex`) that it holds: the neighbour
    /// that arc `arcs[i]` leads to is written to `out[i]`. `list` is scratch.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for a page that disagrees with the degrees, or names a vertex that
    /// the graph does not have.
    pub fn resolve(
        &self,
        page: &[u8],
        vertex: u32,
        arcs: &[u64],
        out: &mut [u32],
        list: &mut Vec<u64>,
    ) -> Result<()> {
        let page = RowsPage::parse(page)?;
        let piece = page.piece(vertex.into())?;
        let all = self.offsets.arcs(vertex);
        if piece.degree != all.end - all.start {
            return Err(self.damaged(vertex, "as many neighbours as its degree", piece.degree));
        }
        let here = piece.first..piece.first + piece.len;
        let whole = piece.len <= WHOLE_LIST || piece.len <= FEW_SKIPPED * arcs.len() as u64;
        if whole {
            list.clear();
            page.neighbors(vertex.into(), list)?;
        }
        for (&arc, slot) in arcs.iter().zip(out) {
            let ordinal = arc.wrapping_sub(all.start);
            if here.contains(&ordinal) {
                let neighbor = match whole {
                    true => list[(ordinal - here.start) as usize],
                    false => page.kth(vertex.into(), ordinal)?,
                };
                *slot = self.neighbor(vertex, neighbor)?;
            }
        }
        Ok(())
    }

    /// The most neighbours that are unpacked together where `arcs` of a vertex are looked up.
    pub(crate) fn most_unpacked(arcs: u64) -> u64 {
        FEW_SKIPPED.saturating_mul(arcs).clamp(WHOLE_LIST, MOST_ON_PAGE)
    }

    /// Looks up the neighbours that all `arcs` (arc numbers of `vertex`) lead to, on resident pages, and
    /// writes that of `arcs[i]` to `out[i]`; an error if a page is not in memory. `list` is scratch.
    pub fn resolve_resident(
        &self,
        vertex: u32,
        arcs: &[u64],
        out: &mut [u32],
        list: &mut Vec<u64>,
    ) -> Result<()> {
        let (page, all) = (self.map.page(vertex, 0), self.offsets.arcs(vertex));
        let kept = |page| self.resident_page(page).ok_or_else(|| self.not_resident(page));
        if !self.map.goes_on(vertex, page) {
            return self.resolve(kept(page)?, vertex, arcs, out, list);
        }
        for (arc, slot) in arcs.iter().zip(out) {
            let page = self.map.page(vertex, (arc - all.start) as u32);
            let (arc, slot) = (std::slice::from_ref(arc), std::slice::from_mut(slot));
            self.resolve(kept(page)?, vertex, arc, slot, list)?;
        }
        Ok(())
    }

    #[cold]
    fn not_resident(&self, page: u64) -> Error {
        Error::new(ErrorKind::Input, "use page").object(page).expected("one that is in memory")
    }

    /// The number of neighbour `vertex` among the vertices that may be neighbours of `of`.
    #[inline]
    pub(crate) fn neighbor(&self, of: u32, vertex: u64) -> Result<u32> {
        match u32::try_from(vertex) {
            Ok(id) if self.sides.neighbors.contains(&id) => Ok(id - self.sides.neighbors.start),
            _ => Err(self.damaged(of, "a neighbour of the graph", vertex)),
        }
    }

    /// The number of a vertex that may have neighbours; an error for others.
    pub(crate) fn expanded(&self, vertex: u64) -> Result<u32> {
        match u32::try_from(vertex) {
            Ok(id) if id < self.sides.expanded => Ok(id),
            _ => Err(self.damaged(u32::MAX, "a vertex that has neighbours", vertex)),
        }
    }

    #[cold]
    pub(crate) fn damaged(&self, vertex: u32, expected: &str, got: u64) -> Error {
        Error::new(ErrorKind::Format, format!("use the list of vertex {vertex} in"))
            .object(&self.name)
            .expected(expected)
            .got(got)
            .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
    }
}
